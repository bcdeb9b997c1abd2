/* Crash models on tiny traces, counted and compared by hand. */
#include "fixture.h"

#include <stdio.h>

#include "faults/explorer/models.h"

static const model_config_t CONFIG = {.enabled = MODELS_ALL, .sector = 512, .seed = 7};

/** Three waiting writes: 'a' one sector at 0, 'b' eight sectors at 4096, 'c' one sector at 0 again.
*/
typedef struct fixture {
    image_t *image;
    fs_list_t list;
    persist_t persist;
} fixture_t;

static int setup(void **state)
{
    static fixture_t f;
    f = (fixture_t){.image = image_create()};
    (void)image_inode_create(f.image);
    image_link(f.image, name_of(f.image, "f"), 0);
    assert_true(image_truncate(f.image, 0, 8192));
    add_fill(&f.list, 0, 0, 512, 'a');
    add_fill(&f.list, 0, 4096, 4096, 'b');
    add_fill(&f.list, 0, 0, 512, 'c');
    persist_init(&f.persist, &f.list, f.image, NULL);
    persist_advance(&f.persist, 3);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_t *f = *state;
    persist_free(&f->persist);
    fs_list_free(&f->list);
    image_destroy(f->image);
    return 0;
}

/** First byte of the file, and one character per sector of the second page. */
static void look(fixture_t *f, model_t model, uint32_t k, char text[10])
{
    image_mark(f->image);
    (void)model_apply(&CONFIG, model, k, 11, &f->persist, NULL, 0);
    const byte *bytes = image_bytes(f->image, 0);
    text[0] = bytes[0] == 0 ? '.' : (char)bytes[0];
    for (int i = 0; i < 8; i++) {
        const byte *sector = bytes + 4096 + i * 512;
        assert_memory_equal(sector, sector + 1, 511); /* old or new, never a mixture */
        text[1 + i] = *sector == 0 ? '.' : (char)*sector;
    }
    text[9] = '\0';
    image_undo(f->image);
}

static void assert_state(fixture_t *f, model_t model, uint32_t k, const char *expected)
{
    char text[10];
    look(f, model, k, text);
    assert_string_equal(text, expected);
}

static void test_counts(void **state)
{
    fixture_t *f = *state;
    assert_int_equal(model_count(&CONFIG, MODEL_ALL_PERSISTED, &f->persist), 1);
    assert_int_equal(model_count(&CONFIG, MODEL_NONE_PERSISTED, &f->persist), 1);
    assert_int_equal(model_count(&CONFIG, MODEL_ONE_DROPPED, &f->persist), 3);
    assert_int_equal(model_count(&CONFIG, MODEL_ONE_PERSISTED, &f->persist), 3);
    assert_int_equal(model_count(&CONFIG, MODEL_ONE_TORN, &f->persist), 3);
    assert_int_equal(model_count(&CONFIG, MODEL_SUBSET, &f->persist), 8);
    assert_int_equal(model_count(&CONFIG, MODEL_ORDERED, &f->persist), 6);
    assert_int_equal(model_count_all(&CONFIG, &f->persist), 25);
    model_config_t two = {.enabled = 1U << MODEL_ONE_TORN | 1U << MODEL_ORDERED, .sector = 4096};
    assert_int_equal(model_count_all(&two, &f->persist), 6); /* no write of two sectors of 4096 */
}

static void test_whole_writes(void **state)
{
    fixture_t *f = *state;
    assert_state(f, MODEL_ALL_PERSISTED, 0, "cbbbbbbbb");
    assert_state(f, MODEL_NONE_PERSISTED, 0, ".........");
    assert_state(f, MODEL_ONE_DROPPED, 0, "abbbbbbbb"); /* 0 is the newest */
    assert_state(f, MODEL_ONE_DROPPED, 1, "c........");
    assert_state(f, MODEL_ONE_DROPPED, 2, "cbbbbbbbb");
    assert_state(f, MODEL_ONE_PERSISTED, 0, "c........");
    assert_state(f, MODEL_ONE_PERSISTED, 1, ".bbbbbbbb");
    assert_state(f, MODEL_ONE_PERSISTED, 2, "a........");
    assert_state(f, MODEL_ORDERED, 0, "abbbbbbbb");
    assert_state(f, MODEL_ORDERED, 2, "a........");
    assert_state(f, MODEL_ORDERED, 4, ".........");
}

/** Torn: sectors whole, at least one kept and one lost, in the shape of its kind; all else is
there. */
static void test_torn(void **state)
{
    fixture_t *f = *state;
    char text[10];
    for (uint32_t k = 0; k < TEAR_KINDS; k++) {
        look(f, MODEL_ONE_TORN, k, text);
        assert_int_equal(text[0], 'c');
        assert_non_null(strchr(text, 'b'));
        assert_non_null(strchr(text, '.'));
        if (k == TEAR_PREFIX) {
            assert_int_equal(strspn(text + 1, "b") + strspn(text + 1 + strspn(text + 1, "b"), "."),
                             8);
        } else if (k == TEAR_SUFFIX) {
            assert_int_equal(strspn(text + 1, ".") + strspn(text + 1 + strspn(text + 1, "."), "b"),
                             8);
        }
    }
    look(f, MODEL_ORDERED, 3, text); /* 'c' lost, of 'b' a part */
    assert_int_equal(text[0], 'a');
    assert_non_null(strchr(text, 'b'));
    assert_non_null(strchr(text, '.'));
}

/** Two waiting events: all four subsets. */
static void test_small_subsets(void **state)
{
    fixture_t *f = *state;
    char seen[4][10];
    persist_t persist;
    persist_init(&persist, &f->list, f->image, NULL);
    persist_advance(&persist, 2);
    assert_int_equal(model_count(&CONFIG, MODEL_SUBSET, &persist), 4);
    for (uint32_t k = 0; k < 4; k++) {
        image_mark(f->image);
        (void)model_apply(&CONFIG, MODEL_SUBSET, k, 11, &persist, NULL, 0);
        const byte *bytes = image_bytes(f->image, 0);
        bool b = false;
        for (int i = 4096; i < 8192; i++) {
            b |= bytes[i] == 'b';
        }
        (void)snprintf(seen[k], sizeof(seen[k]), "%d%d", bytes[0] == 'a', b);
        image_undo(f->image);
    }
    assert_string_equal(seen[0], "00");
    assert_string_equal(seen[1], "10");
    assert_string_equal(seen[2], "01");
    assert_string_equal(seen[3], "11");
    persist_free(&persist);
}

/** Many waiting events: the number of states is bounded, the newest is always singled out, the
others come from all parts; the choice depends on the crash point and on nothing that was done
before. */
static void test_bounded_and_fair(void **state)
{
    fixture_t *f = *state;
    fs_list_t list = {.events = NULL};
    persist_t persist;
    bool dropped[1000] = {false};
    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        add_fill(&list, 0, i * 512, 512, 'n');
    }
    persist_init(&persist, &list, f->image, NULL);
    persist_advance(&persist, 1000);
    assert_int_equal(model_count_all(&CONFIG, &persist), 1 + 1 + 16 + 16 + 0 + 8 + 32);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t k = 0; k < 16; k++) {
            uint32_t n = 0;
            image_mark(f->image);
            (void)model_apply(&CONFIG, MODEL_ONE_DROPPED, round == 0 ? k : 15 - k, 5, &persist,
                              NULL, 0);
            for (uint32_t i = 0; i < 1000; i++) {
                if (image_size(f->image, 0) <= i * 512
                    || image_bytes(f->image, 0)[i * 512] != 'n') {
                    assert_true(round == 0 || dropped[i]);
                    dropped[i] = true;
                    n++;
                }
            }
            assert_int_equal(n, 1);
            image_undo(f->image);
        }
    }
    assert_true(dropped[999]);
    for (uint32_t part = 0; part < 15; part++) {
        uint32_t n = 0;
        for (uint32_t i = 999 * part / 15; i < 999 * (part + 1) / 15; i++) {
            n += dropped[i];
        }
        assert_int_equal(n, 1);
    }
    persist_free(&persist);
    fs_list_free(&list);
}

/** Right after a write of the log: every prefix of it, and nothing else changed. Not before, not later. */
static void test_log_cut(void **state)
{
    fixture_t *f = *state;
    f->list.events[1].site = SITE_REDO;
    assert_int_equal(model_count(&CONFIG, MODEL_LOG_CUT, &f->persist), 0); /* 'c' came after */
    persist_free(&f->persist);
    persist_init(&f->persist, &f->list, f->image, NULL);
    persist_advance(&f->persist, 1);
    assert_int_equal(model_count(&CONFIG, MODEL_LOG_CUT, &f->persist), 0);
    persist_advance(&f->persist, 2);
    assert_int_equal(model_count(&CONFIG, MODEL_LOG_CUT, &f->persist), 7);
    assert_state(f, MODEL_LOG_CUT, 0, "ab.......");
    assert_state(f, MODEL_LOG_CUT, 4, "abbbbb...");
    assert_state(f, MODEL_LOG_CUT, 6, "abbbbbbb.");
}

static void test_names(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < MODEL_KINDS; i++) {
        model_t model;
        const char *name = model_name((model_t)i);
        assert_true(model_parse(name, strlen(name), &model));
        assert_int_equal(model, i);
        assert_false(model_parse(name, strlen(name) - 1, &model));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_whole_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_torn, setup, teardown),
        cmocka_unit_test_setup_teardown(test_small_subsets, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bounded_and_fair, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_cut, setup, teardown),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
