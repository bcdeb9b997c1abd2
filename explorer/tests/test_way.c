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
    way_end(&way, path, 1, MODEL_NONE_PERSISTED, 7, 9);
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
    json_decref(told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_statements, models_setup, persist_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
