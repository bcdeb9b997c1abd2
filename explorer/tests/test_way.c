/* The way of a crash: each operation with the name that its file had at that time. */
#include "disk/tests/models_fixture.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "explorer/run/way.h"

static const char *text_of(const json_t *events, size_t i, const char *key)
{
    const char *text = json_string_value(json_object_get(json_array_get(events, i), key));
    assert_non_null(text);
    return text;
}

/** What is told of the crash behind all events of the list that keeps nothing. The caller frees
it. */
static json_t *way_of_all_lost(persist_fixture_t *f)
{
    torn_t torn = {.n = {{{0}}}};
    model_config_t models = CONFIG;
    way_t way;
    char path[] = "/tmp/test_way_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    persist_init(&f->persist, &f->list, f->image, NULL);
    persist_advance(&f->persist, f->list.n);
    way_begin(&way, &models, &f->persist);
    model_apply(&models, MODEL_NONE_PERSISTED, 0, 11, &f->persist, &torn);
    way_end(&way, path, 1, MODEL_NONE_PERSISTED, 7, 9, UINT64_MAX);
    json_t *told = json_load_file(path, 0, NULL);
    assert_non_null(told);
    (void)close(fd);
    (void)unlink(path);
    return told;
}

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/** Of a write, at the crash behind it. The caller frees it. */
static json_t *way_of_part(persist_fixture_t *f, uint64_t sectors, uint64_t first, uint64_t end)
{
    model_config_t models = CONFIG;
    way_t way;
    char path[] = "/tmp/test_way_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    persist_free(&f->persist);
    fs_list_clear(&f->list);
    add_fill(&f->list, 0, 0, sectors * 512, 'a');
    persist_init(&f->persist, &f->list, f->image, NULL);
    persist_advance(&f->persist, f->list.n);
    way_begin(&way, &models, &f->persist);
    models.watch->kept(models.watch->ctx, 0, first, end);
    way_end(&way, path, 1, MODEL_NONE_PERSISTED, 7, 9, UINT64_MAX);
    json_t *told = json_load_file(path, 0, NULL);
    assert_non_null(told);
    (void)close(fd);
    (void)unlink(path);
    return told;
}

/** Sector by sector to whoever makes the crash again, to a person up to a bound; of a write of more
sectors than can be chosen only that it is there in part. */
static void test_large_writes(void **state)
{
    const struct {
        uint64_t sectors, end;
        const char *kept, *fate;
        bool told;
    } rows[] = {
        {8, 3, "11100000", "torn", true},
        {WAY_SECTORS_MAX + 1, 3, NULL, "torn", false},
        {WAY_SECTORS_MAX + 1, WAY_SECTORS_MAX + 1, NULL, "kept", false},
        {CHOSEN_SECTORS_MAX + 1, 3, WAY_IN_PART, "torn", false},
        {CHOSEN_SECTORS_MAX + 1, CHOSEN_SECTORS_MAX + 1, "1", "kept", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *told = way_of_part(*state, rows[i].sectors, 0, rows[i].end);
        const char *kept = text_of(json_object_get(told, "waits"), 0, "kept");
        const json_t *events = json_object_get(told, "events");
        assert_string_equal(text_of(events, 0, "fate"), rows[i].fate);
        assert_int_equal(json_object_get(json_array_get(events, 0), "kept") != NULL, rows[i].told);
        if (rows[i].kept != NULL) {
            assert_string_equal(kept, rows[i].kept);
        } else {
            assert_int_equal(strlen(kept), rows[i].sectors);
            assert_int_equal(strspn(kept, "1"), rows[i].end);
        }
        json_decref(told);
    }
}

/** A write before a rename that became durable, and one after it; the second one is lost. */
static void test_names(void **state)
{
    persist_fixture_t *f = *state;
    persist_free(&f->persist);
    fs_list_clear(&f->list);
    add_fill(&f->list, 0, 0, 512, 'a');
    add_entry(&f->list, f->image, FS_RENAME, 0, "f", "g");
    add_sync_dir(&f->list, f->image, ".");
    add_fill(&f->list, 0, 4096, 4096, 'b');
    json_t *told = way_of_all_lost(f);
    const json_t *events = json_object_get(told, "events");
    assert_int_equal(json_array_size(events), 4);
    assert_string_equal(text_of(events, 0, "path"), "f");
    assert_string_equal(text_of(events, 1, "path"), "f");
    assert_string_equal(text_of(events, 1, "to"), "g");
    assert_string_equal(text_of(events, 1, "fate"), "durable");
    assert_string_equal(text_of(events, 3, "path"), "g");
    assert_string_equal(text_of(events, 3, "fate"), "lost");
    const json_t *waits = json_object_get(told, "waits");
    assert_int_equal(number_of(json_array_get(waits, json_array_size(waits) - 1), "seq"),
                     f->list.events[3].seq);
    assert_string_equal(text_of(waits, json_array_size(waits) - 1, "kept"), "00000000");
    json_decref(told);
}

/** What the crash may leave, and whether anything was issued. */
static void test_statements(void **state)
{
    persist_fixture_t *f = *state;
    persist_free(&f->persist);
    fs_list_clear(&f->list);
    add_fill(&f->list, 0, 0, 512, 'a');
    add_fill(&f->list, 0, 4096, 512, 'b');
    f->list.events[0].issued_line = 3;
    f->list.events[1].issued_line = 4;
    json_t *told = way_of_all_lost(f);
    assert_int_equal(number_of(told, "issued"), 4);
    assert_int_equal(number_of(told, "low"), 7);
    assert_int_equal(number_of(told, "high"), 9);
    const json_t *sample = json_object_get(told, "sample");
    assert_string_equal(json_string_value(sample), "18446744073709551615");
    json_decref(told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_large_writes, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_statements, models_setup, persist_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
