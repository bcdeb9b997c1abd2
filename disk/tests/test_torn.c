/* What the models tell of the writes that they tear and drop: kinds of loss, counted, and their
places. */
#include "models_fixture.h"

/** Of a crash's lost writes the next one knows where they were. */
static void test_lost_places(void **state)
{
    persist_fixture_t *f = *state;
    torn_t torn = {.n = {{{0}}}};
    image_mark(f->image);
    model_apply(&CONFIG, MODEL_ONE_TORN, TEAR_SUFFIX, 11, &f->persist, &torn);
    image_undo(f->image);
    assert_false(torn_overlaps(&torn, &f->list.events[0]));
    assert_true(torn_overlaps(&torn, &f->list.events[1]));
    for (uint32_t i = 0; i < 2 * TORN_PLACES_MAX; i++) { /* the newest are kept */
        image_mark(f->image);
        model_apply(&CONFIG, MODEL_NONE_PERSISTED, 0, 11, &f->persist, &torn);
        image_undo(f->image);
    }
    assert_true(torn_overlaps(&torn, &f->list.events[0]));
}

/** Another file, place or length that was lost is another loss to crash below. */
static void test_losses_have_a_hash(void **state)
{
    (void)state;
    static const fs_event_t LOST[] = {{.inode = 1, .offset = 512, .length = 512},
                                      {.inode = 2, .offset = 512, .length = 512},
                                      {.inode = 1, .offset = 1024, .length = 512},
                                      {.inode = 1, .offset = 512, .length = 1024}};
    uint64_t hashes[sizeof(LOST) / sizeof(LOST[0])];
    for (size_t i = 0; i < sizeof(LOST) / sizeof(LOST[0]); i++) {
        torn_t torn = {.n = {{{0}}}};
        torn_add(&torn, &LOST[i], TEAR_DROPPED);
        hashes[i] = torn_hash(&torn, 7);
        for (size_t other = 0; other < i; other++) {
            assert_int_not_equal(hashes[other], hashes[i]);
        }
    }
}

/** Whatever was drawn, the count names the mask that came of it: over many crash points, for writes
of two and of eight sectors, and never an interior mask of two. */
static void test_masks_are_counted_as_they_came(void **state)
{
    persist_fixture_t *f = *state;
    uint32_t seen[2][TEAR_KINDS] = {{0}};
    uint32_t kept_of_interior = 0; /* by bits: numbers of sectors */
    f->list.events[1].first_flush = true;
    for (uint32_t point = 0; point < 600; point++) {
        bool two = point % 2 != 0;
        torn_t torn = {.n = {{{0}}}};
        f->list.events[1].length = two ? 1024 : 4096;
        image_mark(f->image);
        model_apply(&CONFIG, MODEL_ONE_TORN, point % TEAR_PARTS, point, &f->persist, &torn);
        char sectors[9];
        for (uint32_t i = 0; i < 8; i++) {
            sectors[i] = bytes_of(f->image, 0)[4096 + i * 512] == 'b' ? 'b' : '.';
        }
        sectors[two ? 2 : 8] = '\0';
        image_undo(f->image);
        tear_t tear = tear_of(sectors, 'b');
        for (uint32_t i = 0; i < TEAR_KINDS; i++) {
            assert_int_equal(torn.n[0][0][i], i == (uint32_t)tear);
            assert_int_equal(torn.n[0][1][i], 0);
        }
        seen[two][tear]++;
        uint32_t n_kept = 0;
        for (const char *at = sectors; *at != '\0'; at++) {
            n_kept += *at == 'b';
        }
        kept_of_interior |= tear == TEAR_INTERIOR ? 1U << n_kept : 0;
    }
    assert_true(seen[0][TEAR_PREFIX] > 0 && seen[0][TEAR_SUFFIX] > 0 && seen[0][TEAR_INTERIOR] > 0);
    assert_true(seen[1][TEAR_PREFIX] > 0 && seen[1][TEAR_SUFFIX] > 0);
    assert_int_equal(seen[1][TEAR_INTERIOR], 0);
    assert_int_equal(kept_of_interior & 0x7E, 0x7E); /* from one to six of eight */
}

/** Every waiting write is kept, torn or dropped, and the last two are counted. */
static void test_dropped_writes_are_counted(void **state)
{
    static const struct {
        model_t model;
        uint32_t k;
        uint32_t dropped;
        uint32_t prefix;
    } CASES[] = {
        {MODEL_ALL_PERSISTED, 0, 0, 0}, {MODEL_NONE_PERSISTED, 0, 3, 0},
        {MODEL_ONE_DROPPED, 1, 1, 0},   {MODEL_ONE_PERSISTED, 0, 2, 0},
        {MODEL_ORDERED, 0, 1, 0},       {MODEL_ORDERED, 1, 1, 0}, /* one sector: all or nothing */
        {MODEL_ORDERED, 4, 3, 0},       {MODEL_ONE_TORN, TEAR_PREFIX, 0, 1},
        {MODEL_KILL, 0, 0, 0},
    };
    persist_fixture_t *f = *state;
    for (uint32_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        torn_t torn = {.n = {{{0}}}};
        image_mark(f->image);
        model_apply(&CONFIG, CASES[i].model, CASES[i].k, 11, &f->persist, &torn);
        image_undo(f->image);
        assert_int_equal(torn.n[0][1][TEAR_DROPPED], CASES[i].dropped);
        assert_int_equal(torn.n[0][1][TEAR_PREFIX], CASES[i].prefix);
    }
}

/** A write counts for the kinds of loss that it has sectors enough for; sectors lie in the file. */
static void test_possible_tears(void **state)
{
    static const model_config_t LARGE = {.enabled = MODELS_ALL, .sector = 4096, .seed = 7};
    static const uint32_t SMALL_WANTED[TEAR_KINDS] = {
        [TEAR_PREFIX] = 2, [TEAR_SUFFIX] = 2, [TEAR_INTERIOR] = 1, [TEAR_DROPPED] = 4};
    persist_fixture_t *f = *state;
    torn_t small = {.n = {{{0}}}};
    torn_t large = {.n = {{{0}}}};
    add_fill(&f->list, 0, 500, 100, 'd'); /* 100 bytes in two sectors */
    add_fill(&f->list, 0, 0, 0, 'e');
    torn_possible(&CONFIG, &f->list, &small);
    torn_possible(&LARGE, &f->list, &large);
    for (uint32_t tear = 0; tear < TEAR_KINDS; tear++) {
        assert_int_equal(small.n[0][1][tear], SMALL_WANTED[tear]);
        assert_int_equal(large.n[0][1][tear], tear == TEAR_DROPPED ? 4 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lost_places, models_setup, persist_teardown),
        cmocka_unit_test(test_losses_have_a_hash),
        cmocka_unit_test_setup_teardown(test_masks_are_counted_as_they_came, models_setup,
                                        persist_teardown),
        cmocka_unit_test_setup_teardown(test_dropped_writes_are_counted, models_setup,
                                        persist_teardown),
        cmocka_unit_test_setup_teardown(test_possible_tears, models_setup, persist_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
