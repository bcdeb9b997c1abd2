/* Which crashes of a recovery are looked at. */
#include "disk/tests/fixture.h"
#include "explorer/judge/sites.h"

#include "explorer/run/loss.h"
#include "explorer/run/nested.h"

#define EVENTS 100U
#define FIRST 10U
#define PICKS 8U
#define SEEDS 50U
/** Anywhere, at a site, at what was torn before, at a change of names, at an fsync. */
#define AIMS 5U
#define NAMED 63U /**< right after the only change of names */

static void record(fs_list_t *list)
{
    for (uint32_t i = 0; i < EVENTS; i++) {
        (void)fs_list_add(list, i + 1 == NAMED ? FS_LINK : i % 3 == 0 ? FS_SYNC : FS_WRITE);
    }
}

static bool is_same(const nested_pick_t *a, const nested_pick_t *b)
{
    return a->point == b->point && a->newest == b->newest && a->last == b->last
           && a->draw == b->draw;
}

static uint32_t count_at(const nested_pick_t *picks, uint32_t point)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < PICKS; i++) {
        n += picks[i].point == point;
    }
    return n;
}

/** Half of the crashes come right after what a rule complained of, each time drawn anew; the others
are those that as many would be without that. */
static void check_half(const fs_list_t *list, const nested_suspects_t *suspects, uint32_t point)
{
    const torn_t torn = {.n = {{{0}}}};
    const nested_suspects_t none = {.n = 0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        nested_pick_t picks[PICKS];
        nested_draw(list, FIRST, &torn, suspects, seed, picks, PICKS);
        nested_pick_t others[PICKS / 2];
        nested_draw(list, FIRST, &torn, &none, seed, others, PICKS / 2);
        assert_true(count_at(picks, point) >= PICKS / 2);
        uint32_t n_others = 0;
        for (uint32_t i = 0; i < PICKS; i++) {
            if (n_others < PICKS / 2 && is_same(&picks[i], &others[n_others])) {
                n_others++;
            } else {
                assert_int_equal(picks[i].point, point);
                assert_false(picks[i].last);
            }
        }
        assert_int_equal(n_others, PICKS / 2);
    }
}

static void test_suspects(void **state)
{
    const nested_suspects_t one = {.n = 1, .at = {41}};
    const nested_suspects_t late = {.n = 1, .at = {EVENTS}};
    (void)state;
    fs_list_t list = {.n = 0};
    record(&list);
    check_half(&list, &one, FIRST + 42);
    check_half(&list, &late, EVENTS);
    fs_list_free(&list);
}

/** Each that was complained of has its crashes, and half of these single out what happened there.
*/
static void test_each_suspect(void **state)
{
    const torn_t torn = {.n = {{{0}}}};
    const nested_suspects_t three = {.n = 3, .at = {7, 41, 55}};
    (void)state;
    fs_list_t list = {.n = 0};
    record(&list);
    uint32_t n[3] = {0};
    uint32_t n_newest = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        nested_pick_t picks[PICKS];
        nested_draw(&list, FIRST, &torn, &three, seed, picks, PICKS);
        for (uint32_t i = 0; i < PICKS; i++) {
            for (uint32_t at = 0; at < 3; at++) {
                bool there = picks[i].point == FIRST + three.at[at] + 1;
                n[at] += there;
                n_newest += there && picks[i].newest;
            }
        }
    }
    for (uint32_t at = 0; at < 3; at++) {
        assert_true(n[at] > SEEDS * PICKS / 2 / 3 / 2);
    }
    assert_in_range(n_newest, SEEDS * PICKS / 2 / 3, SEEDS * PICKS / 2);
    fs_list_free(&list);
}

/** Writes of eight sectors that wait, at a crash point right behind the last one. */
static void wait_for_writes(fs_list_t *list, image_t *image, persist_t *persist)
{
    (void)image_inode_create(image);
    assert_true(image_truncate(image, 0, 65536));
    for (uint32_t i = 0; i < 16; i++) {
        add_fill(list, 0, (uint64_t)i * 4096, 4096, 'w');
        list->events[i].old_size = 65536;
    }
    persist_init(persist, list, image, NULL);
    persist_advance(persist, 16);
}

/** What is lost at a point is any state of any model; what is singled out is torn, or kept in part
or alone, in each way; and at the end all that waits is lost. */
static void test_what_is_lost(void **state)
{
    static const model_config_t MODELS = {.enabled = MODELS_ALL, .sector = 512, .seed = 7};
    (void)state;
    image_t *image = image_create();
    fs_list_t list = {.n = 0};
    persist_t persist;
    wait_for_writes(&list, image, &persist);
    bool seen[2][MODEL_KINDS][8] = {{{false}}};
    stream_t stream = {.state = 1};
    for (uint32_t i = 0; i < 20000; i++) {
        nested_pick_t pick = {.point = 16, .newest = i % 2 != 0, .draw = stream_next(&stream)};
        model_t model;
        uint32_t k;
        assert_true(nested_state(&MODELS, &persist, &pick, &model, &k));
        assert_true(k < model_count(&MODELS, model, &persist));
        seen[pick.newest][model][k < 8 ? k : 7] = true;
    }
    for (uint32_t m = 0; m < MODEL_KINDS; m++) {
        uint32_t n = model_count(&MODELS, (model_t)m, &persist);
        bool torn = m == MODEL_ONE_TORN || m == MODEL_ONE_PART;
        for (uint32_t k = 0; k < 8; k++) {
            assert_int_equal(seen[0][m][k], k < n);
            assert_int_equal(seen[1][m][k],
                             (torn && k < TEAR_PARTS) || (m == MODEL_ONE_PERSISTED && k == 0));
        }
    }
    nested_pick_t end = {.point = 16};
    end.last = true;
    model_t model;
    uint32_t k;
    assert_true(nested_state(&MODELS, &persist, &end, &model, &k));
    assert_int_equal(model, MODEL_NONE_PERSISTED);
    persist_free(&persist);
    fs_list_free(&list);
    image_destroy(image);
}

/** What a crash of a recovery has lost: anything, a part of a write too, and whether any of it is
of before the recovery. */
static void test_losses(void **state)
{
    static const struct {
        uint32_t n_before;
        model_t model;
        uint32_t k;
        loss_t loss;
    } CASES[] = {{16, MODEL_ALL_PERSISTED, 0, {.any = false}},
                 {16, MODEL_ONE_DROPPED, 0, {.any = true, .of_earlier = true}},
                 {15, MODEL_ONE_DROPPED, 0, {.any = true}},
                 {15, MODEL_ONE_TORN, 0, {.any = true}},
                 {16, MODEL_ONE_TORN, 0, {.any = true, .of_earlier = true}},
                 {0, MODEL_NONE_PERSISTED, 0, {.any = true}}};
    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        model_config_t models = {.enabled = MODELS_ALL, .sector = 512, .seed = 7};
        image_t *image = image_create();
        fs_list_t list = {.n = 0};
        persist_t persist;
        wait_for_writes(&list, image, &persist);
        persist.n_before = CASES[i].n_before;
        torn_t torn = {.n = {{{0}}}};
        loss_watch_t watch;
        loss_begin(&watch, &models, &persist);
        model_apply(&models, CASES[i].model, CASES[i].k, 1, &persist, &torn);
        loss_t loss = loss_end(&watch);
        assert_int_equal(loss.any, CASES[i].loss.any);
        assert_int_equal(loss.of_earlier, CASES[i].loss.of_earlier);
        persist_free(&persist);
        fs_list_free(&list);
        image_destroy(image);
    }
}

/** Where no rule complained, picks depend on the seed alone, lie in the recovery, and look at each
aim in turn: of as many as there are aims, one comes right after a change of names, and one after an
fsync, and loses all that this does not cover. */
static void test_no_suspects(void **state)
{
    const torn_t torn = {.n = {{{0}}}};
    const nested_suspects_t none = {.n = 0, .at = {41}};
    (void)state;
    fs_list_t list = {.n = 0};
    record(&list);
    const nested_suspects_t nothing = {.n = 0};
    uint32_t n_early = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        nested_pick_t picks[PICKS];
        nested_draw(&list, FIRST, &torn, &none, seed, picks, PICKS);
        nested_pick_t again[PICKS];
        nested_draw(&list, FIRST, &torn, &nothing, seed, again, PICKS);
        uint32_t n_last = 0;
        uint32_t n_end = 0;
        for (uint32_t i = 0; i < PICKS; i++) {
            assert_in_range(picks[i].point, FIRST, EVENTS);
            assert_true(is_same(&picks[i], &again[i]));
            n_last += picks[i].last;
            n_end += picks[i].last && picks[i].point == EVENTS;
            n_early += picks[i].last && picks[i].point < EVENTS / 2;
            assert_true(!picks[i].last || picks[i].point == EVENTS
                        || list.events[picks[i].point - 1].kind == FS_SYNC);
        }
        assert_int_equal(n_last, 1 + PICKS / AIMS);
        assert_true(n_end > 0);
        assert_true(picks[PICKS - 1].point == EVENTS);
        assert_true(count_at(picks, NAMED) >= PICKS / AIMS);
    }
    assert_in_range(n_early, SEEDS * 2 / 3, SEEDS - 1);
    fs_list_free(&list);
}

/** Of the writes to what the crash has lost, those of each site are as likely, however few they
are. */
static void test_again(void **state)
{
    const torn_t torn = {.n_places = 2, .places = {{1, 0, 4096}, {2, 512, 1024}}};
    (void)state;
    uint32_t n = 0;
    fs_list_t list = {.n = 0};
    const uint32_t seam = 40;
    for (uint32_t i = 0; i < EVENTS; i++) {
        fs_event_t *event = fs_list_add(&list, FS_WRITE);
        *event = (fs_event_t){.kind = FS_WRITE, .inode = 1, .length = 4096, .site = SITE_DATA_PAGE};
        if (i == seam) {
            *event = (fs_event_t){
                .kind = FS_WRITE, .inode = 2, .offset = 1024, .length = 512, .site = SITE_REDO};
        }
    }
    const nested_suspects_t none = {.n = 0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        nested_pick_t picks[PICKS];
        nested_draw(&list, FIRST, &torn, &none, seed, picks, PICKS);
        for (uint32_t i = 0; i < PICKS; i++) {
            n += picks[i].point == seam + 1 && picks[i].newest;
        }
    }
    /* Two of the picks look there, and each takes it half of the time. */
    assert_in_range(n, SEEDS * 3 / 4, 2 * SEEDS);
    fs_list_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suspects),     cmocka_unit_test(test_each_suspect),
        cmocka_unit_test(test_what_is_lost), cmocka_unit_test(test_losses),
        cmocka_unit_test(test_no_suspects),  cmocka_unit_test(test_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
