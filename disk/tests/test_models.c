/* Crash models on tiny traces, counted and compared by hand. */
#include "models_fixture.h"

#include <stdio.h>

/** What the storage promises to write whole is not torn: of a page of two such units one is there,
or the other. */
static void test_whole_units(void **state)
{
    persist_fixture_t *f = *state;
    torn_t torn = {.n = {{{0}}}};
    f->list.events[1].unit = 4096;
    assert_int_equal(model_count(&CONFIG, MODEL_ONE_TORN, &f->persist), 0);
    assert_int_equal(model_count(&CONFIG, MODEL_ONE_PART, &f->persist), 0);
    torn_possible(&CONFIG, &f->list, &torn);
    assert_int_equal(torn.n[0][1][TEAR_PREFIX], 0);
    f->list.events[1].unit = 2048;
    assert_int_equal(model_count(&CONFIG, MODEL_ONE_TORN, &f->persist), TEAR_PARTS);
    for (uint32_t k = 0; k < TEAR_PARTS; k++) {
        image_mark(f->image);
        model_apply(&CONFIG, MODEL_ONE_TORN, k, 11, &f->persist, &torn);
        const byte *bytes = bytes_of(f->image, 0) + 4096;
        assert_memory_equal(bytes, bytes + 1, 2047);
        assert_memory_equal(bytes + 2048, bytes + 2049, 2047);
        assert_int_equal((bytes[0] != 0) + (bytes[2048] != 0), 1);
        image_undo(f->image);
    }
}

static uint32_t count_all(const model_config_t *config, const persist_t *persist)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < MODEL_KINDS; i++) {
        n += model_count(config, (model_t)i, persist);
    }
    return n;
}

/** First byte of the file, and one character per sector of the second page. */
static void look(persist_fixture_t *f, model_t model, uint32_t k, char text[10])
{
    torn_t torn = {.n = {{{0}}}};
    image_mark(f->image);
    model_apply(&CONFIG, model, k, 11, &f->persist, &torn);
    const byte *bytes = bytes_of(f->image, 0);
    text[0] = bytes[0] == 0 ? '.' : (char)bytes[0];
    for (int i = 0; i < 8; i++) {
        const byte *sector = bytes + 4096 + i * 512;
        assert_memory_equal(sector, sector + 1, 511); /* old or new, never a mixture */
        text[1 + i] = *sector == 0 ? '.' : (char)*sector;
    }
    text[9] = '\0';
    image_undo(f->image);
}

static void assert_state(persist_fixture_t *f, model_t model, uint32_t k, const char *expected)
{
    char text[10];
    look(f, model, k, text);
    assert_string_equal(text, expected);
}

static void test_counts(void **state)
{
    persist_fixture_t *f = *state;
    assert_int_equal(model_count(&CONFIG, MODEL_ALL_PERSISTED, &f->persist), 1);
    assert_int_equal(model_count(&CONFIG, MODEL_NONE_PERSISTED, &f->persist), 1);
    assert_int_equal(model_count(&CONFIG, MODEL_ONE_DROPPED, &f->persist), 3);
    assert_int_equal(model_count(&CONFIG, MODEL_ONE_PERSISTED, &f->persist), 3);
    assert_int_equal(model_count(&CONFIG, MODEL_ONE_TORN, &f->persist), 3);
    assert_int_equal(model_count(&CONFIG, MODEL_SUBSET, &f->persist), 8);
    assert_int_equal(model_count(&CONFIG, MODEL_ORDERED, &f->persist), 6);
    assert_int_equal(model_count(&CONFIG, MODEL_ONE_PART, &f->persist), 3);
    assert_int_equal(count_all(&CONFIG, &f->persist), 29);
    model_config_t two = {.enabled = 1U << MODEL_ONE_TORN | 1U << MODEL_ORDERED, .sector = 4096};
    assert_int_equal(count_all(&two, &f->persist), 6); /* no write of two sectors of 4096 */
}

static void test_whole_writes(void **state)
{
    persist_fixture_t *f = *state;
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
    persist_fixture_t *f = *state;
    char text[10];
    for (uint32_t k = 0; k < TEAR_PARTS; k++) {
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
    for (uint32_t k = 0; k < TEAR_PARTS; k++) {
        look(f, MODEL_ONE_PART, k, text);
        assert_int_equal(text[0], '.');
        assert_non_null(strchr(text, 'b'));
        assert_non_null(strchr(text + 1, '.'));
    }
    look(f, MODEL_ORDERED, 3, text); /* 'c' lost, of 'b' a part */
    assert_int_equal(text[0], 'a');
    assert_non_null(strchr(text, 'b'));
    assert_non_null(strchr(text, '.'));
}

/** Two waiting events: all four subsets. */
static void test_small_subsets(void **state)
{
    persist_fixture_t *f = *state;
    persist_t persist;
    torn_t torn = {.n = {{{0}}}};
    persist_init(&persist, &f->list, f->image, NULL);
    persist_advance(&persist, 2);
    assert_int_equal(model_count(&CONFIG, MODEL_SUBSET, &persist), 4);
    char seen[4][10];
    for (uint32_t k = 0; k < 4; k++) {
        image_mark(f->image);
        model_apply(&CONFIG, MODEL_SUBSET, k, 11, &persist, &torn);
        const byte *bytes = bytes_of(f->image, 0);
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

/** So many writes of a sector each wait. */
static void wait_many(persist_t *persist, fs_list_t *list, image_t *image, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        add_fill(list, 0, i * 512, 512, 'n');
    }
    persist_init(persist, list, image, NULL);
    persist_advance(persist, n);
}

/** Many waiting events: the number of states is bounded, the newest is always singled out, the
others come from all parts; the choice depends on the crash point and on nothing that was done
before. */
static void test_bounded_and_fair(void **state)
{
    persist_fixture_t *f = *state;
    torn_t torn = {.n = {{{0}}}};
    bool dropped[1000] = {false};
    (void)state;
    fs_list_t list = {.events = NULL};
    persist_t persist;
    wait_many(&persist, &list, f->image, 1000);
    assert_int_equal(count_all(&CONFIG, &persist), 1 + 1 + 16 + 16 + 0 + 8 + 32 + 0 + 1 + 32);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t k = 0; k < 16; k++) {
            image_mark(f->image);
            model_apply(&CONFIG, MODEL_ONE_DROPPED, round == 0 ? k : 15 - k, 5, &persist, &torn);
            uint32_t n = 0;
            for (uint32_t i = 0; i < 1000; i++) {
                if (image_size(f->image, 0) <= i * 512 || bytes_of(f->image, 0)[i * 512] != 'n') {
                    assert_true(round == 0 || dropped[i]);
                    dropped[i] = true;
                    n++;
                }
            }
            assert_int_equal(n, 1);
            image_undo(f->image);
        }
    }
    assert_int_equal(torn.n[0][1][TEAR_DROPPED], 2 * 16);
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

/** The event that is singled out of a stretch is another one at another crash point. */
static void test_stretches_are_drawn_from(void **state)
{
    const persist_fixture_t *f = *state;
    bool seen[100] = {false};
    uint32_t n_seen = 0;
    fs_list_t list = {.events = NULL};
    persist_t persist;
    wait_many(&persist, &list, f->image, 100);
    for (uint64_t point = 0; point < 100; point++) {
        for (uint32_t k = 0; k < MODEL_PICKS_MAX; k++) {
            const fs_event_t *one = model_single(&CONFIG, MODEL_ONE_DROPPED, k, point, &persist);
            n_seen += !seen[one - list.events];
            seen[one - list.events] = true;
        }
    }
    assert_int_equal(n_seen, 100);
    persist_free(&persist);
    fs_list_free(&list);
}

/** Of many waiting events some states keep few, and some nearly all. */
static void test_subsets_are_thin_and_dense(void **state)
{
    persist_fixture_t *f = *state;
    uint32_t n_thin = 0;
    uint32_t n_dense = 0;
    fs_list_t list = {.events = NULL};
    persist_t persist;
    wait_many(&persist, &list, f->image, 100);
    for (uint64_t point = 0; point < 10; point++) {
        for (uint32_t k = 0; k < model_count(&CONFIG, MODEL_SUBSET, &persist); k++) {
            torn_t torn = {.n = {{{0}}}};
            image_mark(f->image);
            model_apply(&CONFIG, MODEL_SUBSET, k, point, &persist, &torn);
            image_undo(f->image);
            n_thin += torn.n[0][1][TEAR_DROPPED] > 65;
            n_dense += torn.n[0][1][TEAR_DROPPED] < 35;
        }
    }
    assert_true(n_thin > 10 && n_dense > 10);
    persist_free(&persist);
    fs_list_free(&list);
}

/** Right after a write of the log: every prefix of it, and nothing else changed. Not before, not
later. */
static void test_log_cut(void **state)
{
    persist_fixture_t *f = *state;
    f->list.events[1].site = LOG_SITE;
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

/** Of one file nothing that other models have not; of several, over many draws, all of one without
any of the other, and the other way. */
static void test_by_file(void **state)
{
    persist_fixture_t *f = *state;
    persist_t persist;
    bool seen[2][2] = {{false}};
    bool beginning = false; /* of the first file's writes */
    assert_int_equal(model_count(&CONFIG, MODEL_BY_FILE, &f->persist), 0);
    uint32_t other = image_inode_create(f->image);
    add_fill(&f->list, other, 0, 512, 'd');
    persist_init(&persist, &f->list, f->image, NULL);
    persist_advance(&persist, 4);
    assert_int_equal(model_count(&CONFIG, MODEL_BY_FILE, &persist), MODEL_FILE_DRAWS);
    for (uint32_t point = 0; point < 50; point++) {
        torn_t torn = {.n = {{{0}}}};
        image_mark(f->image);
        model_apply(&CONFIG, MODEL_BY_FILE, 0, point, &persist, &torn);
        bool first = bytes_of(f->image, 0)[0] == 'c';
        bool second = image_size(f->image, other) > 0;
        beginning |= bytes_of(f->image, 0)[0] == 'a';
        seen[first][second] = true;
        image_undo(f->image);
    }
    assert_true(seen[0][0] && seen[0][1] && seen[1][0] && seen[1][1] && beginning);
    persist_free(&persist);
}

/** A killed process: everything it wrote is there, or all but the end of its last write. */
static void test_kill(void **state)
{
    persist_fixture_t *f = *state;
    assert_int_equal(model_count(&CONFIG, MODEL_KILL, &f->persist), 1); /* one sector: not torn */
    assert_state(f, MODEL_KILL, 0, "cbbbbbbbb");
    persist_free(&f->persist);
    persist_init(&f->persist, &f->list, f->image, NULL);
    persist_advance(&f->persist, 2);
    assert_int_equal(model_count(&CONFIG, MODEL_KILL, &f->persist), 2);
    assert_state(f, MODEL_KILL, 0, "abbbbbbbb");
    char text[10];
    look(f, MODEL_KILL, 1, text);
    assert_int_equal(text[0], 'a');
    assert_int_equal(tear_of(text + 1, 'b'), TEAR_PREFIX);
}

/** What it wrote still waits: the same writes, the torn one as short as in the image; and lost by
the next crash. */
static void test_kill_leaves_writes_waiting(void **state)
{
    persist_fixture_t *f = *state;
    persist_t persist;
    persist_free(&f->persist);
    fs_list_t list = {.n = 0};
    persist_init(&f->persist, &f->list, f->image, NULL);
    persist_advance(&f->persist, 2);
    model_kill_waiting(&CONFIG, 1, 11, &f->persist, &list);
    char text[10];
    look(f, MODEL_KILL, 1, text);
    assert_int_equal(list.n, 2);
    assert_int_equal(list.events[1].length / 512, strlen(text + 1) - strlen(strchr(text, '.')));
    add_fill(&list, 0, 0, 512, 'r'); /* what a recovery writes */
    image_mark(f->image);
    persist_init_waiting(&persist, &list, f->image, NULL, 2);
    persist_advance(&persist, 3);
    assert_int_equal(persist.n_pending, 3);
    torn_t torn = {.n = {{{0}}}};
    model_apply(&CONFIG, MODEL_NONE_PERSISTED, 0, 11, &persist, &torn);
    assert_int_equal(bytes_of(f->image, 0)[0], 0);
    assert_int_equal(torn.n[0][1][TEAR_DROPPED], 3);
    image_undo(f->image);
    persist_free(&persist);
    fs_list_free(&list);
}

/** Writes that end in the same bytes are not the same to lose: their number, order and payloads
count. */
static void test_waiting_writes_have_a_hash(void **state)
{
    (void)state;
    static const char *const WAITING[] = {"", "b", "ab", "bb", "cb", "abb"};
    uint64_t hashes[sizeof(WAITING) / sizeof(WAITING[0])];
    for (size_t i = 0; i < sizeof(WAITING) / sizeof(WAITING[0]); i++) {
        fs_list_t list = {.n = 0};
        for (const char *fill = WAITING[i]; *fill != '\0'; fill++) {
            add_fill(&list, 0, 0, 512, *fill);
        }
        hashes[i] = fs_list_hash(&list, 7);
        assert_int_equal(fs_list_hash(&list, 7), hashes[i]);
        assert_int_not_equal(fs_list_hash(&list, 8), hashes[i]);
        for (size_t other = 0; other < i; other++) {
            assert_int_not_equal(hashes[other], hashes[i]);
        }
        fs_list_free(&list);
    }
}

/** And so does all that says which change it is. */
static void test_waiting_changes_have_a_hash(void **state)
{
    (void)state;
    static const fs_event_t CHANGES[] = {
        {.kind = FS_RENAME, .inode = 1, .name = 2, .name2 = 3},
        {.kind = FS_RENAME, .inode = 1, .name = 2, .name2 = 3, .swaps = true},
        {.kind = FS_RENAME, .inode = 1, .name = 3, .name2 = 2},
        {.kind = FS_RENAME, .inode = 2, .name = 2, .name2 = 3},
        {.kind = FS_LINK, .inode = 1, .name = 2, .name2 = 3},
        {.kind = FS_TRUNCATE, .inode = 1, .offset = 512},
        {.kind = FS_TRUNCATE, .inode = 1, .offset = 1024},
        {.kind = FS_ZERO, .inode = 1, .offset = 512},
        {.kind = FS_ZERO, .inode = 1, .offset = 512, .length = 512},
    };
    uint64_t hashes[sizeof(CHANGES) / sizeof(CHANGES[0])];
    for (size_t i = 0; i < sizeof(CHANGES) / sizeof(CHANGES[0]); i++) {
        fs_list_t list = {.n = 0};
        *fs_list_add(&list, FS_WRITE) = CHANGES[i];
        hashes[i] = fs_list_hash(&list, 7);
        for (size_t other = 0; other < i; other++) {
            assert_int_not_equal(hashes[other], hashes[i]);
        }
        fs_list_free(&list);
    }
}

/** What a state is told to keep of the three writes: the same characters that look() finds. */
typedef struct heard {
    char text[10];
} heard_t;

static void hear(void *ctx, uint32_t pending, uint64_t first, uint64_t end)
{
    heard_t *heard = ctx;
    for (uint64_t i = first; i < end; i++) {
        heard->text[pending == 1 ? 1 + i : 0] = "abc"[pending];
    }
}

static void check_watch(persist_fixture_t *f)
{
    uint32_t states = 0;
    for (uint32_t m = 0; m < MODEL_KINDS; m++) {
        for (uint32_t k = 0; k < model_count(&CONFIG, (model_t)m, &f->persist); k++) {
            char text[10];
            heard_t heard = {.text = "........."};
            const model_watch_t watch = {.kept = hear, .ctx = &heard};
            model_config_t config = CONFIG;
            torn_t torn = {.n = {{{0}}}};
            config.watch = &watch;
            image_mark(f->image);
            model_apply(&config, (model_t)m, k, 11, &f->persist, &torn);
            image_undo(f->image);
            look(f, (model_t)m, k, text);
            assert_string_equal(heard.text, text);
            states++;
        }
    }
    assert_int_equal(states, count_all(&CONFIG, &f->persist));
}

/** In the order in which the writes happened: each state of each model is what the watch hears of
it, by sectors, also where several of them are written whole. */
static void test_watch_hears_what_is_kept(void **state)
{
    persist_fixture_t *f = *state;
    for (uint32_t unit = 0; unit <= 2048; unit += 2048) {
        f->list.events[1].unit = unit;
        check_watch(f);
    }
}

static uint32_t single_of(const persist_fixture_t *f, model_t model, uint32_t k)
{
    const fs_event_t *event = model_single(&CONFIG, model, k, 11, &f->persist);
    assert_non_null(event);
    return (uint32_t)(event - f->list.events);
}

/** The event that a state loses or keeps alone is the one that its image lacks or has; where the
first of two writes of a sector is lost the second one is there all the same, and one of the three
can be torn. */
static void test_singles(void **state)
{
    static const char *const DROPPED[] = {"cbbbbbbbb", "c........", "abbbbbbbb"};
    static const char *const PERSISTED[] = {"a........", ".bbbbbbbb", "c........"};
    const persist_fixture_t *f = *state;
    uint32_t seen = 0;
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t dropped = single_of(f, MODEL_ONE_DROPPED, k);
        assert_state(*state, MODEL_ONE_DROPPED, k, DROPPED[dropped]);
        assert_state(*state, MODEL_ONE_PERSISTED, k,
                     PERSISTED[single_of(f, MODEL_ONE_PERSISTED, k)]);
        assert_int_equal(single_of(f, MODEL_ONE_TORN, k), 1);
        assert_int_equal(single_of(f, MODEL_ONE_PART, k), 1);
        seen |= 1U << dropped;
    }
    assert_int_equal(seen, 7);
    assert_null(model_single(&CONFIG, MODEL_ALL_PERSISTED, 0, 11, &f->persist));
    assert_null(model_single(&CONFIG, MODEL_SUBSET, 0, 11, &f->persist));
}

/** What overlapped an fsync of its file is lost, all of it or one; nothing else is, and an fsync of
another file overlaps nothing. */
static void test_overlapped(void **state)
{
    static const char *const WANTED[] = {"a..d", "ab.d", "a.cd"};
    persist_fixture_t *f = *state;
    persist_free(&f->persist);
    fs_list_clear(&f->list);
    add_entry(&f->list, f->image, FS_LINK, 0, "f", NULL);
    add_entry(&f->list, f->image, FS_LINK, image_inode_create(f->image), "g", NULL);
    add_sync_dir(&f->list, f->image, ".");
    add_write(&f->list, 1, 0, "a");
    add_write(&f->list, 0, 512, "b");
    add_write(&f->list, 0, 1024, "c");
    add_sync(&f->list, f->image, 0, "f");
    f->list.events[6].late = 3;
    add_write(&f->list, 0, 1536, "d");
    persist_init(&f->persist, &f->list, f->image, NULL);
    persist_advance(&f->persist, 8);
    assert_int_equal(model_count(&CONFIG, MODEL_OVERLAPPED, &f->persist), 3);
    for (uint32_t k = 0; k < 3; k++) {
        torn_t torn = {.n = {{{0}}}};
        image_mark(f->image);
        model_apply(&CONFIG, MODEL_OVERLAPPED, k, 11, &f->persist, &torn);
        char text[] = "....";
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t inode = i == 0 ? 1 : 0;
            const char *bytes = (const char *)bytes_of(f->image, inode);
            text[i] = bytes[i * 512] != '\0' ? bytes[i * 512] : '.';
        }
        image_undo(f->image);
        assert_string_equal(text, WANTED[k]);
        assert_int_equal(torn.n[0][1][TEAR_DROPPED], k == 0 ? 2 : 1);
    }
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

/** On an ordered file system no change of names is kept where an earlier one is lost, whatever the
model. */
static void test_ordered_names(void **state)
{
    static const char *const NAMES[] = {"n0", "n1", "n2", "n3", "n4", "n5"};
    persist_fixture_t *f = *state;
    disk_profile_t disk = {.fs = fs_profile_find("xfs")};
    persist_free(&f->persist);
    fs_list_clear(&f->list);
    for (uint32_t i = 0; i < 6; i++) {
        add_entry(&f->list, f->image, FS_LINK, image_inode_create(f->image), NAMES[i], NULL);
        add_fill(&f->list, 0, 0, 512, 'a');
    }
    uint32_t out_of_order[2] = {0};
    for (uint32_t ordered = 0; ordered < 2; ordered++) {
        persist_init(&f->persist, &f->list, f->image, ordered != 0 ? &disk : NULL);
        persist_advance(&f->persist, 12);
        for (uint32_t m = 0; m < MODEL_KINDS; m++) {
            for (uint32_t k = 0; k < model_count(&CONFIG, (model_t)m, &f->persist); k++) {
                torn_t torn = {.n = {{{0}}}};
                image_mark(f->image);
                model_apply(&CONFIG, (model_t)m, k, 11, &f->persist, &torn);
                bool lost = false;
                for (uint32_t i = 0; i < 6; i++) {
                    bool there = image_lookup(f->image, name_of(f->image, NAMES[i])) != IMAGE_NONE;
                    out_of_order[ordered] += there && lost;
                    lost |= !there;
                }
                image_undo(f->image);
            }
        }
        persist_free(&f->persist);
    }
    assert_true(out_of_order[0] > 0);
    assert_int_equal(out_of_order[1], 0);
}

/** Where the move of a directory is lost, what came later of the names in it is lost; what came
before, and other names, may be there. */
static void test_lost_move(void **state)
{
    persist_fixture_t *f = *state;
    persist_free(&f->persist);
    fs_list_clear(&f->list);
    (void)image_inode_create(f->image);
    (void)image_inode_create(f->image);
    add_entry(&f->list, f->image, FS_LINK, 0, "dir/a", NULL);
    add_entry(&f->list, f->image, FS_MOVE_DIR, IMAGE_NONE, "dir", "new");
    add_entry(&f->list, f->image, FS_LINK, 1, "new/b", NULL);
    add_entry(&f->list, f->image, FS_LINK, 2, "other", NULL);
    add_entry(&f->list, f->image, FS_RENAME, 0, "new/a", "out");
    persist_init(&f->persist, &f->list, f->image, NULL);
    persist_advance(&f->persist, 5);
    uint32_t moved = 0;
    uint32_t kept_aside = 0;
    for (uint32_t m = 0; m < MODEL_KINDS; m++) {
        for (uint32_t k = 0; k < model_count(&CONFIG, (model_t)m, &f->persist); k++) {
            torn_t torn = {.n = {{{0}}}};
            image_mark(f->image);
            model_apply(&CONFIG, (model_t)m, k, 11, &f->persist, &torn);
            bool old = image_lookup(f->image, name_of(f->image, "dir/a")) != IMAGE_NONE;
            bool b = image_lookup(f->image, name_of(f->image, "new/b")) != IMAGE_NONE;
            bool out = image_lookup(f->image, name_of(f->image, "out")) != IMAGE_NONE;
            assert_false(old && (b || out));
            moved += b;
            kept_aside += old && image_lookup(f->image, name_of(f->image, "other")) != IMAGE_NONE;
            image_undo(f->image);
        }
    }
    assert_true(moved > 0 && kept_aside > 0);
}

/** A file that is renamed into a new directory, and later out of it before that goes, is somewhere
in every state; no file is in a directory that is not there. */
static void test_dirs(void **state)
{
    persist_fixture_t *f = *state;
    persist_free(&f->persist);
    fs_list_clear(&f->list);
    (void)image_inode_create(f->image);
    add_entry(&f->list, f->image, FS_LINK, 0, "f", NULL);
    add_sync_dir(&f->list, f->image, ".");
    add_dir(&f->list, f->image, FS_MKDIR, "a");
    add_entry(&f->list, f->image, FS_RENAME, 0, "f", "a/f");
    add_entry(&f->list, f->image, FS_RENAME, 0, "a/f", "g");
    add_dir(&f->list, f->image, FS_RMDIR, "a");
    add_dir(&f->list, f->image, FS_MKDIR, "a");
    add_entry(&f->list, f->image, FS_LINK, 1, "a/new", NULL);
    persist_init(&f->persist, &f->list, f->image, NULL);
    persist_advance(&f->persist, 8);
    uint32_t no_dir = 0;
    uint32_t new_dir = 0;
    for (uint32_t m = 0; m < MODEL_KINDS; m++) {
        for (uint32_t k = 0; k < model_count(&CONFIG, (model_t)m, &f->persist); k++) {
            torn_t torn = {.n = {{{0}}}};
            image_mark(f->image);
            model_apply(&CONFIG, (model_t)m, k, 11, &f->persist, &torn);
            bool in_dir = image_lookup(f->image, name_of(f->image, "a/f")) == 0;
            bool is_new = image_lookup(f->image, name_of(f->image, "a/new")) == 1;
            bool there = image_dir_state(f->image, name_of(f->image, "a")) == DIR_THERE;
            bool at_old = image_lookup(f->image, name_of(f->image, "f")) == 0;
            bool at_last = image_lookup(f->image, name_of(f->image, "g")) == 0;
            assert_true(at_old || in_dir || at_last);
            assert_true(there || !(in_dir || is_new));
            assert_false(in_dir && is_new);
            no_dir += !there;
            new_dir += is_new;
            image_undo(f->image);
        }
    }
    assert_true(no_dir > 0 && new_dir > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole_units, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_counts, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_whole_writes, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_torn, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_small_subsets, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_bounded_and_fair, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_log_cut, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_kill, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_kill_leaves_writes_waiting, models_setup,
                                        persist_teardown),
        cmocka_unit_test(test_waiting_writes_have_a_hash),
        cmocka_unit_test(test_waiting_changes_have_a_hash),
        cmocka_unit_test_setup_teardown(test_stretches_are_drawn_from, models_setup,
                                        persist_teardown),
        cmocka_unit_test_setup_teardown(test_subsets_are_thin_and_dense, models_setup,
                                        persist_teardown),
        cmocka_unit_test_setup_teardown(test_by_file, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_watch_hears_what_is_kept, models_setup,
                                        persist_teardown),
        cmocka_unit_test_setup_teardown(test_singles, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_overlapped, models_setup, persist_teardown),
        cmocka_unit_test(test_names),
        cmocka_unit_test_setup_teardown(test_ordered_names, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_lost_move, models_setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_dirs, models_setup, persist_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
