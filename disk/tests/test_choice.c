/* What a crash leaves is what a disk can leave: sectors that hold some beginning of their changes,
in every state of every model. */
#include "models_fixture.h"

#include <stdio.h>

#define ROOM 4096U
#define SECTOR CONFIG.sector

/** An empty trace on a file of `size` old bytes. */
static void start(persist_fixture_t *f, uint64_t size)
{
    persist_free(&f->persist);
    fs_list_clear(&f->list);
    assert_true(image_truncate(f->image, 0, 0));
    for (uint64_t at = 0; at < size; at++) {
        assert_true(image_write(f->image, 0, at, "o", 1));
    }
}

/** Calls fn for each state of each model when all events have happened. @return how many */
static uint32_t each_state(persist_fixture_t *f, uint64_t point,
                           void (*fn)(void *ctx, const image_t *image), void *ctx)
{
    persist_init(&f->persist, &f->list, f->image, &f->disk);
    uint32_t n = 0;
    persist_advance(&f->persist, f->list.n);
    for (uint32_t m = 0; m < MODEL_KINDS; m++) {
        for (uint32_t k = 0; k < model_count(&CONFIG, (model_t)m, &f->persist); k++, n++) {
            torn_t torn = {.n = {{{0}}}};
            image_mark(f->image);
            model_apply(&CONFIG, (model_t)m, k, point, &f->persist, &torn);
            fn(ctx, f->image);
            image_undo(f->image);
        }
    }
    persist_free(&f->persist);
    return n;
}

/** States of two bytes of the file, by what is there of them. */
typedef struct two_bytes {
    uint64_t at[2];
    uint32_t seen[2][2];
} two_bytes_t;

static void see_two(void *ctx, const image_t *image)
{
    two_bytes_t *two = ctx;
    const uint8_t *bytes = bytes_of(image, 0);
    two->seen[bytes[two->at[0]] == 'n'][bytes[two->at[1]] == 'n']++;
}

/** A store sets a flag in its header, forgets to sync it, and later writes a counter beside it, in
the same sector: the counter is never there without the flag. In another sector it may be, and so it
may where both calls overlapped. */
static void test_flag_and_counter(void **state)
{
    static const struct {
        uint64_t counter;
        uint32_t late;
        bool alone;
    } CASES[] = {{100, 0, false}, {511, 0, false}, {512, 0, true}, {100, 1, true}};
    persist_fixture_t *f = *state;
    for (uint32_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        two_bytes_t two = {.at = {0, CASES[i].counter}};
        start(f, 1024);
        add_write(&f->list, 0, 0, "n");
        add_write(&f->list, 0, CASES[i].counter, "n");
        f->list.events[1].late = CASES[i].late;
        for (uint64_t point = 0; point < 20; point++) {
            (void)each_state(f, point, see_two, &two);
        }
        assert_int_equal(two.seen[0][1] > 0, CASES[i].alone);
        assert_true(two.seen[0][0] > 0 && two.seen[1][0] > 0 && two.seen[1][1] > 0);
    }
}

/** What the changes leave in their order, the first of them, the first two, and so on. */
typedef struct beginnings {
    uint8_t bytes[16][ROOM];
    uint32_t n;
    uint32_t mixed; /**< states whose sectors are of several beginnings */
} beginnings_t;

static void see_beginnings(void *ctx, const image_t *image)
{
    beginnings_t *all = ctx;
    uint32_t whole = all->n;
    const uint8_t *bytes = bytes_of(image, 0);
    for (uint64_t at = 0; at < ROOM; at += SECTOR) {
        bool found = false;
        for (uint32_t i = 0; i < all->n && !found; i++) {
            found = memcmp(bytes + at, all->bytes[i] + at, SECTOR) == 0;
        }
        assert_true(found);
    }
    for (uint32_t i = 0; i < all->n; i++) {
        whole -= memcmp(bytes, all->bytes[i], ROOM) != 0;
    }
    all->mixed += whole == 0;
}

static void add_random(persist_fixture_t *f, stream_t *stream, char fill, uint64_t base)
{
    uint64_t offset = stream_below(stream, 2048);
    uint64_t kind = stream_below(stream, 8);
    if (kind == 0) {
        add_resize(&f->list, 0, base, offset);
        return;
    }
    add_fill(&f->list, 0, offset, 1 + stream_below(stream, 1500), fill);
    if (kind == 1) {
        f->list.events[f->list.n - 1].kind = FS_ZERO;
        f->list.events[f->list.n - 1].data = NULL;
    }
}

/** Random writes, holes and sizes of a file, none aligned: in every state of every model each
sector holds a beginning of its changes, and not all sectors the same. */
static void test_sectors_hold_beginnings(void **state)
{
    persist_fixture_t *f = *state;
    static beginnings_t all;
    f->disk.fs = fs_profile_find("xfs"); /* no size comes before its bytes */
    uint32_t mixed = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        stream_t stream = {.state = seed};
        uint64_t size = stream_below(&stream, 3000);
        start(f, size);
        all.n = 0;
        all.mixed = 0;
        for (uint32_t i = 0; i < 8; i++) {
            add_random(f, &stream, (char)('a' + i), size);
        }
        image_mark(f->image);
        for (uint32_t i = 0; i <= f->list.n; i++) {
            image_read(f->image, 0, 0, all.bytes[all.n++], ROOM);
            if (i < f->list.n) {
                persist_apply(f->image, &f->list.events[i]);
            }
        }
        image_undo(f->image);
        assert_true(each_state(f, seed, see_beginnings, &all) > 20);
        mixed += all.mixed;
    }
    assert_true(mixed > 1000);
}

/** A short file that is written anew after a truncation: never the new beginning with the old
rest. */
static void test_rewritten_file(void **state)
{
    persist_fixture_t *f = *state;
    two_bytes_t two = {.at = {0, 600}};
    start(f, 1024);
    add_resize(&f->list, 0, 1024, 0);
    add_fill(&f->list, 0, 0, 512, 'n');
    (void)each_state(f, 3, see_two, &two);
    assert_true(two.seen[1][0] > 0 && two.seen[0][0] > 0);
    image_mark(f->image);
    torn_t torn = {.n = {{{0}}}};
    persist_init(&f->persist, &f->list, f->image, NULL);
    persist_advance(&f->persist, 2);
    for (uint32_t k = 0; k < model_count(&CONFIG, MODEL_ONE_PERSISTED, &f->persist); k++) {
        image_mark(f->image);
        model_apply(&CONFIG, MODEL_ONE_PERSISTED, k, 3, &f->persist, &torn);
        assert_int_equal(image_size(f->image, 0), k == 0 ? 512 : 0);
        image_undo(f->image);
    }
    image_undo(f->image);
}

/** Where a write loses a part, a later one of the same sector loses that sector, and no other. */
static void test_loss_takes_the_sector_along(void **state)
{
    persist_fixture_t *f = *state;
    torn_t torn = {.n = {{{0}}}};
    start(f, 2048);
    add_fill(&f->list, 0, 0, 1024, 'a');
    add_fill(&f->list, 0, 1000, 600, 'b'); /* sectors 1 (from 1000), 2, and 3 up to 1600 */
    persist_init(&f->persist, &f->list, f->image, NULL);
    persist_advance(&f->persist, 2);
    image_mark(f->image);
    model_apply(&CONFIG, MODEL_ONE_DROPPED, 1, 3, &f->persist, &torn);
    const uint8_t *bytes = bytes_of(f->image, 0);
    assert_int_equal(bytes[0], 'o');
    assert_int_equal(bytes[1023], 'o');
    assert_int_equal(bytes[1024], 'b');
    assert_int_equal(bytes[1599], 'b');
    assert_int_equal(torn.n[0][1][TEAR_DROPPED], 1);
    assert_int_equal(torn.n[0][1][TEAR_SUFFIX], 1);
    image_undo(f->image);
    image_mark(f->image);
    model_apply(&CONFIG, MODEL_ONE_PERSISTED, 0, 3, &f->persist, &torn);
    bytes = bytes_of(f->image, 0);
    assert_int_equal(bytes[511], 'o');
    assert_int_equal(bytes[512], 'a');
    assert_int_equal(bytes[999], 'a');
    assert_int_equal(bytes[1000], 'b');
    assert_int_equal(bytes[1600], 'o');
    image_undo(f->image);
}

/** Files by name, in every state of every model. */
typedef struct places {
    persist_fixture_t *f;
    uint32_t seen[8]; /**< by bits: the first file is at a name */
    bool lost;        /**< the first file is nowhere, in some state */
    bool twice;       /**< it is in two places */
} places_t;

static void see_places(void *ctx, const image_t *image)
{
    static const char *const NAMES[] = {"a", "b", "c"};
    places_t *places = ctx;
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t name = image_name_find(image, NAMES[i]);
        bits |= name != IMAGE_NONE && image_lookup(image, name) == 0 ? 1U << i : 0;
    }
    places->seen[bits]++;
    places->lost |= bits == 0;
    places->twice |= (bits & (bits - 1)) != 0;
}

/** A file that is renamed from A to B to C is under one of the three names; the old log of a
rotation, whose name a new one takes, is somewhere. */
static void test_a_file_has_one_name(void **state)
{
    persist_fixture_t *f = *state;
    for (uint32_t rotation = 0; rotation < 2; rotation++) {
        places_t places = {.f = f};
        start(f, 100);
        uint32_t next = image_inode_create(f->image);
        image_link(f->image, name_of(f->image, "a"), 0);
        add_entry(&f->list, f->image, FS_RENAME, 0, "a", "b");
        if (rotation == 0) {
            add_entry(&f->list, f->image, FS_RENAME, 0, "b", "c");
        } else {
            add_entry(&f->list, f->image, FS_LINK, next, "a", NULL);
            add_write(&f->list, next, 0, "new");
        }
        for (uint64_t point = 0; point < 20; point++) {
            (void)each_state(f, point, see_places, &places);
        }
        assert_false(places.lost);
        assert_false(places.twice);
        assert_true(places.seen[1] > 0 && places.seen[2] > 0);
        assert_int_equal(places.seen[4] > 0, rotation == 0);
    }
}

/** An append of 128 bytes to 300 durable ones, and one of four sectors behind a full block: on each
file system, with the bytes lost and the size there. */
static void test_size_before_bytes(void **state)
{
    static const struct {
        const char *fs;
        uint64_t start;
        uint64_t length;
        uint32_t states;
        uint64_t size;
        bool garbage;
    } CASES[] = {
        {"posix", 300, 128, 2, 428, false},
        {"posix", 4096, 2048, 2, 6144, true},
        {"ext4-ordered", 300, 8000, 1, 8300, false},
        {"ext4-nodelalloc", 300, 128, 1, 428, false},
        {"ext4-nodelalloc", 300, 8000, 1, 4096, false},
        {"ext4-nodelalloc", 4096, 2048, 0, 0, false},
        {"ext4-writeback", 4096, 600, 2, 4696, true},
        {"xfs", 300, 128, 0, 0, false},
        {"btrfs", 300, 128, 0, 0, false},
    };
    persist_fixture_t *f = *state;
    for (uint32_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        uint64_t size = CASES[i].start;
        start(f, size);
        add_fill(&f->list, 0, size, CASES[i].length, 'n');
        f->list.events[0].old_size = size;
        f->disk.fs = fs_profile_find(CASES[i].fs);
        persist_init(&f->persist, &f->list, f->image, &f->disk);
        persist_advance(&f->persist, 1);
        uint32_t n = model_count(&CONFIG, MODEL_SIZE_FIRST, &f->persist);
        assert_int_equal(n, CASES[i].states);
        for (uint32_t k = 0; k < n; k++) {
            torn_t torn = {.n = {{{0}}}};
            image_mark(f->image);
            model_apply(&CONFIG, MODEL_SIZE_FIRST, k, 3, &f->persist, &torn);
            assert_int_equal(image_size(f->image, 0), CASES[i].size);
            const uint8_t *bytes = bytes_of(f->image, 0);
            assert_int_equal(bytes[size - 1], 'o');
            uint32_t zeros = 0;
            for (uint64_t at = size; at < CASES[i].size; at++) {
                assert_true(at % SECTOR == 0 || k == 1 || bytes[at] == 0);
                zeros += bytes[at] == 0;
            }
            assert_int_equal(zeros < (CASES[i].size - size) / 2, k == 1 && CASES[i].garbage);
            assert_int_equal(torn.n[0][1][TEAR_DROPPED], 1);
            image_undo(f->image);
        }
        persist_free(&f->persist);
    }
}

/** A file that takes another's name by a rename: on ext4 without delayed allocation it is not there
without its bytes, elsewhere it may be. */
static void test_rename_over_flushes(void **state)
{
    persist_fixture_t *f = *state;
    for (uint32_t at = 0; fs_profile_at(at) != NULL; at++) {
        start(f, 100);
        uint32_t next = image_inode_create(f->image);
        image_link(f->image, name_of(f->image, "cur"), 0);
        image_link(f->image, name_of(f->image, "new"), next);
        add_write(&f->list, next, 0, "n");
        add_entry(&f->list, f->image, FS_RENAME, next, "new", "cur");
        f->list.events[1].over = 1;
        f->disk.fs = fs_profile_at(at);
        persist_init(&f->persist, &f->list, f->image, &f->disk);
        persist_advance(&f->persist, 2);
        uint32_t empty = 0;
        for (uint32_t m = 0; m < MODEL_KINDS; m++) {
            for (uint32_t k = 0; k < model_count(&CONFIG, (model_t)m, &f->persist); k++) {
                torn_t torn = {.n = {{{0}}}};
                image_mark(f->image);
                model_apply(&CONFIG, (model_t)m, k, 3, &f->persist, &torn);
                uint32_t now = image_lookup(f->image, name_of(f->image, "cur"));
                empty += bytes_of(f->image, now)[0] == 0;
                image_undo(f->image);
            }
        }
        assert_int_equal(empty == 0, f->disk.fs->replace_flushes);
        persist_free(&f->persist);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_flag_and_counter, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_sectors_hold_beginnings, models_setup,
                                        persist_teardown),
        cmocka_unit_test_setup_teardown(test_size_before_bytes, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_rename_over_flushes, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_a_file_has_one_name, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_rewritten_file, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_loss_takes_the_sector_along, models_setup,
                                        persist_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
