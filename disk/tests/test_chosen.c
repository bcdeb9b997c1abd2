/* States that somebody chose: what is named is lost or kept, as far as a disk can leave it. */
#include "models_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "disk/chosen.h"

/** The text as a file of states. */
static dberr_t load(const char *text, chosen_t *chosen, err_sink_t *err)
{
    char path[] = "/tmp/test_chosen_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
    dberr_t code = chosen_load(path, chosen, err);
    (void)unlink(path);
    return code;
}

/** Letters at the start of the file and of the sectors of the second write, "." for none. */
static void look(persist_fixture_t *f, const chosen_t *chosen, uint32_t k, char seen[10])
{
    model_config_t config = CONFIG;
    config.chosen = chosen;
    torn_t torn = {.n = {{{0}}}};
    image_mark(f->image);
    model_apply(&config, MODEL_CHOSEN, k, 1, &f->persist, &torn);
    const uint8_t *bytes = bytes_of(f->image, 0);
    for (uint32_t i = 0; i < 9; i++) {
        uint8_t there = i == 0 ? bytes[0] : bytes[4096 + (i - 1) * 512];
        seen[i] = there == 0 ? '.' : (char)there;
    }
    seen[9] = '\0';
    image_undo(f->image);
}

static void test_what_is_named(void **state)
{
    static const struct {
        const char *line;
        const char *seen;
    } CASES[] = {
        {"lose\n", "cbbbbbbbb"},
        {"keep\n", "........."},
        {"lose 3\n", "abbbbbbbb"},
        {"lose 3 1\n", ".bbbbbbbb"},
        {"lose 1\n", "cbbbbbbbb"}, /* nobody sees what was below */
        {"lose 2=01000001 3\n", "a.b.....b"},
        {"keep 1\n", "a........"},
        {"keep 3\n", "c........"},
        {"keep 2=10000000\n", ".b......."},
        {"keep 77 2\n", ".bbbbbbbb"}, /* 77: of nothing that waits */
    };
    persist_fixture_t *f = *state;
    for (uint32_t i = 0; i < f->list.n; i++) {
        f->list.events[i].seq = i + 1;
    }
    for (uint32_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        chosen_t chosen;
        char seen[10];
        assert_int_equal(load(CASES[i].line, &chosen, NULL), DB_SUCCESS);
        assert_int_equal(chosen.n, 1);
        look(f, &chosen, 0, seen);
        assert_string_equal(seen, CASES[i].seen);
        chosen_free(&chosen);
    }
}

/** Where several sectors are written whole they follow the first that the write has of them. */
static void test_whole_units(void **state)
{
    static const struct {
        const char *line;
        const char *seen;
    } CASES[] = {{"lose 1 3 2=1000\n", "..bbb...."}, {"lose 1 3 2=0001\n", ".....b..."}};
    persist_fixture_t *f = *state;
    for (uint32_t i = 0; i < f->list.n; i++) {
        f->list.events[i].seq = i + 1;
    }
    f->list.events[1].unit = 2048;
    f->list.events[1].offset = 4096 + 512;
    f->list.events[1].length = 2048;
    for (uint32_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        chosen_t chosen;
        char seen[10];
        assert_int_equal(load(CASES[i].line, &chosen, NULL), DB_SUCCESS);
        look(f, &chosen, 0, seen);
        assert_string_equal(seen, CASES[i].seen);
        chosen_free(&chosen);
    }
}

/** An operation that is no write is there or is not. */
static void test_of_a_name(void **state)
{
    persist_fixture_t *f = *state;
    persist_free(&f->persist);
    fs_list_clear(&f->list);
    add_entry(&f->list, f->image, FS_RENAME, 0, "f", "g");
    f->list.events[0].seq = 1;
    persist_init(&f->persist, &f->list, f->image, NULL);
    persist_advance(&f->persist, 1);
    static const char *const LINES[] = {"lose 1\n", "keep 1=0\n", "lose 1=1\n", "keep 1\n"};
    for (uint32_t i = 0; i < 4; i++) {
        chosen_t chosen;
        torn_t torn = {.n = {{{0}}}};
        assert_int_equal(load(LINES[i], &chosen, NULL), DB_SUCCESS);
        model_config_t config = CONFIG;
        config.chosen = &chosen;
        image_mark(f->image);
        model_apply(&config, MODEL_CHOSEN, 0, 1, &f->persist, &torn);
        assert_int_equal(image_lookup(f->image, name_of(f->image, "g")) != IMAGE_NONE, i >= 2);
        image_undo(f->image);
        chosen_free(&chosen);
    }
}

/** There are as many states as lines, at every crash point; and none where nobody chose any. */
static void test_count(void **state)
{
    persist_fixture_t *f = *state;
    model_config_t config = CONFIG;
    chosen_t chosen;
    assert_int_equal(model_count(&config, MODEL_CHOSEN, &f->persist), 0);
    assert_int_equal(load("keep\nlose\nlose 4\n", &chosen, NULL), DB_SUCCESS);
    config.chosen = &chosen;
    assert_int_equal(model_count(&config, MODEL_CHOSEN, &f->persist), 3);
    chosen_free(&chosen);
}

/** Part of a sector is not there without the earlier change of it: one is lost with the other, or
comes with it. */
static void test_coherent(void **state)
{
    persist_fixture_t *f = *state;
    chosen_t chosen;
    char seen[10];
    persist_free(&f->persist);
    fs_list_clear(&f->list);
    add_fill(&f->list, 0, 0, 512, 'a');
    add_fill(&f->list, 0, 256, 16, 'b');
    for (uint32_t i = 0; i < f->list.n; i++) {
        f->list.events[i].seq = i + 1;
        f->list.events[i].old_size = 8192;
    }
    persist_init(&f->persist, &f->list, f->image, NULL);
    persist_advance(&f->persist, 2);
    assert_int_equal(load("lose 1\nkeep 2\n", &chosen, NULL), DB_SUCCESS);
    look(f, &chosen, 0, seen);
    assert_int_equal(seen[0], '.');
    look(f, &chosen, 1, seen);
    assert_int_equal(seen[0], 'a');
    chosen_free(&chosen);
}

static void test_wrong_files(void **state)
{
    static const char *const WRONG[] = {
        "save 1\n",   "\n",          "keep x\n",         "keep 1=\n",
        "keep 1=2\n", "keep 1 -2\n", "lose 1=0 1=01x\n", "keep 99999999999999999999999\n"};
    (void)state;
    for (uint32_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        chosen_t chosen;
        char text[80];
        err_sink_t err = {.msg = ""};
        (void)snprintf(text, sizeof(text), "keep 1\n%s", WRONG[i]);
        assert_int_equal(load(text, &chosen, &err), DB_ERROR);
        assert_non_null(strstr(err.msg, "line 2"));
        chosen_free(&chosen);
    }
    chosen_t chosen;
    assert_int_equal(chosen_load("/nowhere", &chosen, NULL), DB_ERROR);
    chosen_free(&chosen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_named, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_of_a_name, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_whole_units, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_count, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_coherent, models_setup, persist_teardown),
        cmocka_unit_test(test_wrong_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
