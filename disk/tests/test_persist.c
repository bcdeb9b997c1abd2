/* The persistence model on hand-made event lists: what is durable, what waits. */
#include "fixture.h"

static int setup(void **state)
{
    static persist_fixture_t f;
    f = (persist_fixture_t){.image = image_create()};
    (void)image_inode_create(f.image);
    (void)image_inode_create(f.image);
    persist_init(&f.persist, &f.list, f.image, &f.disk);
    *state = &f;
    return 0;
}

/** fsync of a file makes its content durable, not its name; fsync of the directory the reverse. */
static void test_file_and_name(void **state)
{
    persist_fixture_t *f = *state;
    add_entry(&f->list, f->image, FS_LINK, 0, "a", NULL);
    add_write(&f->list, 0, 0, "one");
    add_sync(&f->list, f->image, 0, "a");
    persist_advance(&f->persist, 3);
    assert_int_equal(f->persist.n_pending, 1);
    assert_int_equal(persist_pending(&f->persist, 0)->kind, FS_LINK);
    assert_absent(f->image, "a");
    add_write(&f->list, 0, 3, "two");
    add_sync_dir(&f->list, f->image, ".");
    persist_advance(&f->persist, 5);
    assert_file(f->image, "a", "one");
    assert_int_equal(f->persist.n_pending, 1);
    assert_int_equal(persist_pending(&f->persist, 0)->offset, 3);
}

/** fsync of one file leaves the writes of another waiting; order of the kept ones is that of the
events. */
static void test_other_file(void **state)
{
    persist_fixture_t *f = *state;
    add_entry(&f->list, f->image, FS_LINK, 0, "a", NULL);
    add_entry(&f->list, f->image, FS_LINK, 1, "b", NULL);
    add_sync_dir(&f->list, f->image, ".");
    add_write(&f->list, 0, 0, "old");
    add_write(&f->list, 1, 0, "bbb");
    add_write(&f->list, 0, 0, "new");
    add_sync(&f->list, f->image, 0, "a");
    persist_advance(&f->persist, 7);
    assert_file(f->image, "a", "new");
    assert_file(f->image, "b", "");
    assert_int_equal(f->persist.n_pending, 1);
}

/** A rename without a directory sync waits; with it the old name is gone and a file in the way too.
*/
static void test_rename(void **state)
{
    persist_fixture_t *f = *state;
    add_entry(&f->list, f->image, FS_LINK, 0, "a", NULL);
    add_entry(&f->list, f->image, FS_LINK, 1, "b", NULL);
    add_write(&f->list, 0, 0, "x");
    add_sync(&f->list, f->image, 0, "a");
    add_sync_dir(&f->list, f->image, ".");
    add_entry(&f->list, f->image, FS_RENAME, 0, "a", "b");
    add_sync(&f->list, f->image, 0, "b");
    persist_advance(&f->persist, 7);
    assert_file(f->image, "a", "x");
    assert_file(f->image, "b", "");
    add_sync_dir(&f->list, f->image, "tmp");
    persist_advance(&f->persist, 8);
    assert_int_equal(f->persist.n_pending, 1); /* another directory */
    add_sync_dir(&f->list, f->image, ".");
    persist_advance(&f->persist, 9);
    assert_absent(f->image, "a");
    assert_file(f->image, "b", "x");
}

/** A size change is content: durable with the file, in order with the writes. */
static void test_truncate(void **state)
{
    persist_fixture_t *f = *state;
    add_entry(&f->list, f->image, FS_LINK, 0, "a", NULL);
    add_sync_dir(&f->list, f->image, ".");
    add_write(&f->list, 0, 0, "abcdef");
    add_truncate(&f->list, 0, 2);
    add_write(&f->list, 0, 3, "z");
    persist_advance(&f->persist, 5);
    assert_file(f->image, "a", "");
    assert_int_equal(f->persist.n_pending, 3);
    add_sync(&f->list, f->image, 0, "a");
    persist_advance(&f->persist, 6);
    uint32_t inode = image_lookup(f->image, name_of(f->image, "a"));
    assert_int_equal(image_size(f->image, inode), 4);
    assert_memory_equal(bytes_of(f->image, inode), "ab\0z", 4);
}

/** Unsynced content of a file that is durably gone is forgotten, that of one that may come back is
not. */
static void test_forget(void **state)
{
    persist_fixture_t *f = *state;
    add_entry(&f->list, f->image, FS_LINK, 0, "a", NULL);
    add_write(&f->list, 0, 0, "a");
    add_entry(&f->list, f->image, FS_UNLINK, 0, "a", NULL);
    persist_advance(&f->persist, 3);
    assert_int_equal(f->persist.n_pending, 3);
    add_sync_dir(&f->list, f->image, ".");
    persist_advance(&f->persist, 4);
    assert_int_equal(f->persist.n_pending, 0);
    add_entry(&f->list, f->image, FS_LINK, 1, "b", NULL);
    add_sync_dir(&f->list, f->image, ".");
    add_write(&f->list, 1, 0, "b");
    add_entry(&f->list, f->image, FS_UNLINK, 1, "b", NULL);
    add_sync_dir(&f->list, f->image, "tmp");
    persist_advance(&f->persist, 9);
    assert_int_equal(f->persist.n_pending, 2);
}

/** A lying fsync does nothing. */
static void test_ignore(void **state)
{
    persist_fixture_t *f = *state;
    f->disk.lies.patterns[0] = "*.ibd";
    f->disk.lies.patterns[1] = ".";
    f->disk.lies.n = 2;
    add_write(&f->list, 0, 0, "a");
    add_write(&f->list, 1, 0, "b");
    add_entry(&f->list, f->image, FS_LINK, 0, "t1.ibd", NULL);
    add_sync(&f->list, f->image, 0, "t1.ibd");
    add_sync(&f->list, f->image, 1, "other");
    add_sync_dir(&f->list, f->image, ".");
    persist_advance(&f->persist, 6);
    assert_int_equal(f->persist.n_pending, 2);
    assert_int_equal(image_size(f->image, 0), 0);
    assert_int_equal(image_size(f->image, 1), 1);
}

/** Two files change places at once: both have, or none, and a later change of either waits for it.
An fsync of the folder makes it durable; on btrfs also one of either file. No file is flushed by
it. */
static void test_exchange(void **state)
{
    static const struct {
        const char *fs;
        uint32_t synced; /* 2: the folder */
        bool durable;
    } CASES[] = {{"posix", 2, true}, {"posix", 0, false}, {"btrfs", 0, true},
                 {"btrfs", 1, true}, {"xfs", 0, true},    {"ext4-nodelalloc", 1, true}};
    persist_fixture_t *f = *state;
    for (uint32_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        bool later = CASES[i].synced == 2;
        fs_list_clear(&f->list);
        persist_free(&f->persist);
        image_mark(f->image);
        image_link(f->image, name_of(f->image, "a"), 0);
        image_link(f->image, name_of(f->image, "b"), 1);
        f->disk.fs = fs_profile_find(CASES[i].fs);
        persist_init(&f->persist, &f->list, f->image, &f->disk);
        add_write(&f->list, 0, 0, "x");
        add_entry(&f->list, f->image, FS_RENAME, 0, "a", "b");
        f->list.events[1].over = 1 + 1;
        f->list.events[1].swaps = true;
        add_entry(&f->list, f->image, FS_RENAME, 1, "a", later ? "tmp/c" : "c");
        if (later) {
            add_sync_dir(&f->list, f->image, "tmp");
        } else {
            add_sync(&f->list, f->image, CASES[i].synced, "b");
        }
        persist_advance(&f->persist, 2);
        assert_int_equal(image_lookup(f->image, name_of(f->image, "a")), 0);
        assert_int_equal(image_lookup(f->image, name_of(f->image, "b")), 1);
        const fs_event_t *events = f->list.events;
        assert_false(persist_needs(&f->persist, &events[1], &events[0]));
        assert_true(persist_needs(&f->persist, &events[2], &events[1]));
        persist_advance(&f->persist, 4);
        assert_int_equal(image_lookup(f->image, name_of(f->image, "b")) == 0, CASES[i].durable);
        assert_int_equal(image_lookup(f->image, name_of(f->image, "a")) != 0, CASES[i].durable);
        image_undo(f->image);
    }
}

/** On an ordered file system the fsync of any file takes all earlier names along, and no content of
others. */
static void test_ordered(void **state)
{
    persist_fixture_t *f = *state;
    f->disk.fs = fs_profile_find("xfs");
    add_entry(&f->list, f->image, FS_LINK, 0, "a", NULL);
    add_write(&f->list, 0, 0, "a");
    add_entry(&f->list, f->image, FS_LINK, 1, "tmp/b", NULL);
    add_sync(&f->list, f->image, 1, "tmp/b");
    add_entry(&f->list, f->image, FS_RENAME, 0, "a", "c");
    persist_advance(&f->persist, 5);
    assert_int_equal(f->persist.n_pending, 2);
    assert_file(f->image, "a", "");
    assert_file(f->image, "tmp/b", "");
    assert_absent(f->image, "c");
    add_sync(&f->list, f->image, 0, "c");
    persist_advance(&f->persist, 6);
    assert_absent(f->image, "a");
    assert_file(f->image, "c", "a");
}

/** What an fsync of a log makes durable of the rename of another file before it: where only bytes
of the log have changed, nothing on any file system; where the log has grown since, all that is
older on a journal. An fsync of the file itself takes its name along on btrfs, and of the folder
everywhere. */
static void test_fsync_takes_names_along(void **state)
{
    static const struct {
        const char *fs;
        bool grows;
        const char *synced;
        bool durable;
    } CASES[] = {
        {"posix", true, "log", false},       {"ext4-ordered", false, "log", false},
        {"ext4-ordered", true, "log", true}, {"ext4-writeback", true, "log", true},
        {"xfs", false, "log", false},        {"xfs", true, "log", true},
        {"btrfs", true, "log", false},       {"btrfs", false, "b", true},
        {"posix", false, "b", false},        {"ext4-nodelalloc", false, "b", true},
        {"posix", false, ".", true},         {"xfs", false, ".", true},
        {"xfs", false, "tmp", false},
    };
    persist_fixture_t *f = *state;
    for (uint32_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        bool durable_write = i % 2 == 1 && strcmp(CASES[i].synced, "log") == 0;
        fs_list_clear(&f->list);
        persist_free(&f->persist);
        image_mark(f->image);
        image_link(f->image, name_of(f->image, "a"), 1);
        f->disk.fs = fs_profile_find(CASES[i].fs);
        persist_init(&f->persist, &f->list, f->image, &f->disk);
        add_entry(&f->list, f->image, FS_RENAME, 1, "a", "b");
        add_write(&f->list, 0, 0, "bytes");
        f->list.events[1].old_size = CASES[i].grows ? 0 : 100;
        f->list.events[1].durable = durable_write;
        if (strcmp(CASES[i].synced, ".") == 0 || strcmp(CASES[i].synced, "tmp") == 0) {
            add_sync_dir(&f->list, f->image, CASES[i].synced);
        } else {
            add_sync(&f->list, f->image, CASES[i].synced[0] == 'b' ? 1 : 0, CASES[i].synced);
        }
        persist_advance(&f->persist, 3);
        assert_int_equal(image_lookup(f->image, name_of(f->image, "b")) == 1, CASES[i].durable);
        image_undo(f->image);
    }
}

/** What overlaps a sync is not covered by it, what had ended before it began is; the next sync
covers both. */
static void test_overlap(void **state)
{
    persist_fixture_t *f = *state;
    add_entry(&f->list, f->image, FS_LINK, 0, "a", NULL);
    add_sync_dir(&f->list, f->image, ".");
    add_write(&f->list, 0, 0, "before");
    add_write(&f->list, 0, 6, "during");
    add_entry(&f->list, f->image, FS_LINK, 1, "b", NULL);
    add_sync(&f->list, f->image, 0, "a");
    f->list.events[5].late = 2;
    add_sync_dir(&f->list, f->image, ".");
    f->list.events[6].late = 3;
    persist_advance(&f->persist, 7);
    assert_file(f->image, "a", "before");
    assert_int_equal(f->persist.n_pending, 2);
    assert_true(persist_is_overlapped(&f->persist, 0));
    assert_false(persist_is_overlapped(&f->persist, 1)); /* a name */
    add_write(&f->list, 0, 12, "");
    persist_advance(&f->persist, 8);
    assert_false(persist_is_overlapped(&f->persist, 2));
    add_sync(&f->list, f->image, 0, "a");
    persist_advance(&f->persist, 9);
    assert_file(f->image, "a", "beforeduring");
    assert_absent(f->image, "b");
}

/** A durable write is under way right behind it, and there as soon as anything else happens; what
waited of its sectors comes with it, and what lies elsewhere waits on. A new size takes all that is
older along. */
static void test_durable(void **state)
{
    persist_fixture_t *f = *state;
    add_entry(&f->list, f->image, FS_LINK, 0, "a", NULL);
    add_sync_dir(&f->list, f->image, ".");
    add_write(&f->list, 0, 0, "aaaa");
    add_write(&f->list, 0, 600, "bbbb");
    add_write(&f->list, 0, 8, "cc");
    f->list.events[4].durable = true;
    add_write(&f->list, 1, 0, "other");
    persist_advance(&f->persist, 5);
    assert_file(f->image, "a", "");
    assert_true(persist_is_under_way(&f->persist));
    assert_int_equal(f->persist.n_pending, 3);
    persist_advance(&f->persist, 6);
    assert_false(persist_is_under_way(&f->persist));
    assert_int_equal(image_size(f->image, 0), 10);
    assert_memory_equal(bytes_of(f->image, 0), "aaaa\0\0\0\0cc", 10);
    assert_int_equal(f->persist.n_pending, 2); /* 'bbbb', and the other file's */
    add_truncate(&f->list, 0, 9);
    add_write(&f->list, 0, 1, "d");
    f->list.events[7].durable = true;
    add_sync(&f->list, f->image, 1, "other");
    persist_advance(&f->persist, 9);
    assert_int_equal(f->persist.n_pending, 0);
    assert_int_equal(image_size(f->image, 0), 9);
    assert_memory_equal(bytes_of(f->image, 0), "adaa\0\0\0\0c", 9);
}

/** A durable write takes along what it needs: no name, where an fsync of the file would, and
nothing at all if it writes nothing. */
static void test_durable_takes_no_more(void **state)
{
    persist_fixture_t *f = *state;
    f->disk.fs = fs_profile_find("btrfs");
    image_link(f->image, name_of(f->image, "a"), 0);
    add_entry(&f->list, f->image, FS_RENAME, 0, "a", "b");
    add_write(&f->list, 0, 0, "bytes");
    f->list.events[1].durable = true;
    add_write(&f->list, 0, 600, "waits");
    add_write(&f->list, 0, 600, "");
    f->list.events[3].durable = true;
    add_sync(&f->list, f->image, 1, "other");
    persist_advance(&f->persist, 4);
    assert_false(persist_is_under_way(&f->persist));
    persist_advance(&f->persist, 5);
    assert_file(f->image, "a", "bytes");
    assert_absent(f->image, "b");
    assert_int_equal(persist_pending(&f->persist, 1)->offset, 600);
}

/** A folder is not gone while what was taken out of it may be in it: by a rename, or an exchange.
*/
static void test_taken_out_of_a_folder(void **state)
{
    persist_fixture_t *f = *state;
    for (uint32_t i = 0; i < 3; i++) {
        static const char *const FROM[] = {"d/x", "y", "y"};
        static const char *const TO[] = {"y", "d/x", "z"};
        fs_list_clear(&f->list);
        add_entry(&f->list, f->image, FS_RENAME, 0, FROM[i], TO[i]);
        f->list.events[0].swaps = i == 1;
        add_entry(&f->list, f->image, FS_RMDIR, IMAGE_NONE, "d", NULL);
        const fs_event_t *events = f->list.events;
        assert_int_equal(persist_needs(&f->persist, &events[1], &events[0]), i < 2);
    }
}

/** The move of a folder is not there without one that came before. */
static void test_moves_have_an_order(void **state)
{
    persist_fixture_t *f = *state;
    add_entry(&f->list, f->image, FS_MOVE_DIR, IMAGE_NONE, "d", "e");
    add_entry(&f->list, f->image, FS_MOVE_DIR, IMAGE_NONE, "g", "h");
    assert_true(persist_needs(&f->persist, &f->list.events[1], &f->list.events[0]));
}

/** On a disk of larger sectors a durable write takes what waited of such a one along; one that lies
is never durable. */
static void test_durable_sectors(void **state)
{
    persist_fixture_t *f = *state;
    f->disk.sector = 4096;
    f->disk.lies.patterns[0] = "liar";
    f->disk.lies.n = 1;
    add_write(&f->list, 0, 600, "b");
    add_write(&f->list, 0, 4096, "e");
    add_write(&f->list, 0, 8, "c");
    f->list.events[2].durable = true;
    f->list.events[2].name = name_of(f->image, "a");
    add_write(&f->list, 1, 0, "x");
    f->list.events[3].durable = true;
    f->list.events[3].name = name_of(f->image, "liar");
    persist_advance(&f->persist, 4);
    assert_int_equal(f->persist.n_pending, 2);
    assert_int_equal(persist_pending(&f->persist, 0)->offset, 4096);
    assert_false(persist_is_under_way(&f->persist));
}

/** A name waits for the earlier changes of itself and of its file, and takes them along: a file
that is renamed twice is under one name in all that a crash leaves, and so is a log that is rotated,
and one whose name another takes. */
static void test_same_name_and_file(void **state)
{
    persist_fixture_t *f = *state;
    add_entry(&f->list, f->image, FS_RENAME, 0, "a", "tmp/b");
    add_entry(&f->list, f->image, FS_RENAME, 0, "tmp/b", "far/c");
    add_entry(&f->list, f->image, FS_LINK, 1, "tmp/b", NULL);
    add_entry(&f->list, f->image, FS_LINK, 2, "d", NULL);
    add_entry(&f->list, f->image, FS_RENAME, 2, "d", "e");
    f->list.events[4].over = 1 + 1; /* it takes the name of inode 1 */
    static const char NEEDS[5][6] = {"", "1", "11", "000", "0011"};
    for (uint32_t later = 0; later < 5; later++) {
        for (uint32_t earlier = 0; earlier < later; earlier++) {
            assert_int_equal(
                persist_needs(&f->persist, &f->list.events[later], &f->list.events[earlier]),
                NEEDS[later][earlier] == '1');
        }
    }
    add_sync_dir(&f->list, f->image, "far");
    image_link(f->image, name_of(f->image, "a"), 0);
    persist_advance(&f->persist, 6);
    assert_absent(f->image, "a");
    assert_absent(f->image, "tmp/b");
    assert_int_equal(image_lookup(f->image, name_of(f->image, "far/c")), 0);
    assert_int_equal(f->persist.n_pending, 3);
}

/** A hole is content: zeros within the file, durable with its fsync. */
static void test_zero(void **state)
{
    persist_fixture_t *f = *state;
    add_entry(&f->list, f->image, FS_LINK, 0, "a", NULL);
    add_sync_dir(&f->list, f->image, ".");
    add_write(&f->list, 0, 0, "abcdef");
    add_sync(&f->list, f->image, 0, "a");
    fs_event_t *hole = fs_list_add(&f->list, FS_ZERO);
    hole->offset = 2;
    hole->length = 100;
    persist_advance(&f->persist, 5);
    assert_file(f->image, "a", "abcdef");
    add_sync(&f->list, f->image, 0, "a");
    persist_advance(&f->persist, 6);
    assert_int_equal(image_size(f->image, 0), 6);
    assert_memory_equal(bytes_of(f->image, 0), "ab\0\0\0\0", 6);
}

/** The move of a directory waits for its parent's fsync, or for its own at the new place; it takes
along what waited of the names in it, and nothing of "dir2". */
static void test_move_dir(void **state)
{
    persist_fixture_t *f = *state;
    add_entry(&f->list, f->image, FS_LINK, 0, "dir/a", NULL);
    add_sync_dir(&f->list, f->image, "dir");
    add_entry(&f->list, f->image, FS_LINK, 1, "dir2/b", NULL);
    add_entry(&f->list, f->image, FS_LINK, 1, "dir/sub/b", NULL);
    add_entry(&f->list, f->image, FS_MOVE_DIR, IMAGE_NONE, "dir", "new");
    add_entry(&f->list, f->image, FS_LINK, 0, "new/c", NULL);
    add_sync_dir(&f->list, f->image, "dir2");
    persist_advance(&f->persist, 7);
    assert_file(f->image, "dir/a", "");
    assert_file(f->image, "dir2/b", "");
    assert_int_equal(f->persist.n_pending, 3);
    add_sync_dir(&f->list, f->image, ".");
    persist_advance(&f->persist, 8);
    assert_int_equal(f->persist.n_pending, 1);
    assert_absent(f->image, "dir/a");
    assert_file(f->image, "new/a", "");
    assert_file(f->image, "new/sub/b", "");
    assert_file(f->image, "dir2/b", "");
    assert_absent(f->image, "new/c");
    add_entry(&f->list, f->image, FS_MOVE_DIR, IMAGE_NONE, "new", "old");
    add_sync_dir(&f->list, f->image, "old");
    persist_advance(&f->persist, 10);
    assert_int_equal(f->persist.n_pending, 0);
    assert_file(f->image, "old/c", "");
}

/** A directory waits for its parent's fsync, at every level; until then all that is in it waits,
whatever was fsynced. */
static void test_mkdir(void **state)
{
    persist_fixture_t *f = *state;
    add_dir(&f->list, f->image, FS_MKDIR, "a");
    add_dir(&f->list, f->image, FS_MKDIR, "a/b");
    add_entry(&f->list, f->image, FS_LINK, 0, "a/b/f", NULL);
    add_write(&f->list, 0, 0, "x");
    add_sync(&f->list, f->image, 0, "a/b/f");
    add_sync_dir(&f->list, f->image, "a/b");
    add_sync_dir(&f->list, f->image, "a");
    persist_advance(&f->persist, 7);
    assert_int_equal(f->persist.n_pending, 1);
    settle(f);
    assert_absent(f->image, "a/b/f");
    assert_false(image_dir_is_there(f->image, name_of(f->image, "a")));
    image_undo(f->image);
    add_sync_dir(&f->list, f->image, ".");
    persist_advance(&f->persist, 8);
    settle(f);
    assert_file(f->image, "a/b/f", "x");
    image_undo(f->image);
}

/** On an ordered file system any fsync makes the directory durable. */
static void test_mkdir_ordered(void **state)
{
    persist_fixture_t *f = *state;
    f->disk.fs = fs_profile_find("xfs");
    add_dir(&f->list, f->image, FS_MKDIR, "a");
    add_entry(&f->list, f->image, FS_LINK, 0, "a/f", NULL);
    add_sync(&f->list, f->image, 0, "a/f");
    persist_advance(&f->persist, 3);
    settle(f);
    assert_file(f->image, "a/f", "");
    image_undo(f->image);
}

/** A removed directory is empty when it is made anew, whatever of its files waited; what is fsynced
in the new one is never in the old one. */
static void test_rmdir(void **state)
{
    persist_fixture_t *f = *state;
    image_set_dir(f->image, name_of(f->image, "a"), DIR_THERE);
    add_entry(&f->list, f->image, FS_LINK, 0, "a/old", NULL);
    add_sync_dir(&f->list, f->image, "a");
    add_entry(&f->list, f->image, FS_UNLINK, 0, "a/old", NULL);
    add_dir(&f->list, f->image, FS_RMDIR, "a");
    persist_advance(&f->persist, 4);
    assert_file(f->image, "a/old", "");
    add_dir(&f->list, f->image, FS_MKDIR, "a");
    add_entry(&f->list, f->image, FS_LINK, 1, "a/new", NULL);
    add_sync_dir(&f->list, f->image, "a");
    persist_advance(&f->persist, 7);
    assert_absent(f->image, "a/old");
    settle(f);
    assert_absent(f->image, "a/new");
    image_undo(f->image);
    add_sync_dir(&f->list, f->image, ".");
    persist_advance(&f->persist, 8);
    assert_int_equal(f->persist.n_pending, 0);
    settle(f);
    assert_file(f->image, "a/new", "");
    assert_absent(f->image, "a/old");
    image_undo(f->image);
}

/** A rename into a directory that waits takes it along: otherwise the file would be nowhere. */
static void test_rename_into_new_dir(void **state)
{
    persist_fixture_t *f = *state;
    add_entry(&f->list, f->image, FS_LINK, 0, "f", NULL);
    add_sync_dir(&f->list, f->image, ".");
    add_dir(&f->list, f->image, FS_MKDIR, "a");
    add_dir(&f->list, f->image, FS_MKDIR, "a/b");
    add_dir(&f->list, f->image, FS_MKDIR, "c");
    add_entry(&f->list, f->image, FS_RENAME, 0, "f", "a/b/f");
    add_sync_dir(&f->list, f->image, "a/b");
    persist_advance(&f->persist, 7);
    assert_int_equal(f->persist.n_pending, 1); /* of "c" nobody has asked */
    settle(f);
    assert_file(f->image, "a/b/f", "");
    assert_absent(f->image, "f");
    image_undo(f->image);
}

/** A rename inside it does not: with the directory its file is lost under both names. */
static void test_rename_inside_new_dir(void **state)
{
    persist_fixture_t *f = *state;
    add_dir(&f->list, f->image, FS_MKDIR, "a");
    add_dir(&f->list, f->image, FS_MKDIR, "a/b");
    add_entry(&f->list, f->image, FS_LINK, 0, "a/new", NULL);
    add_entry(&f->list, f->image, FS_RENAME, 0, "a/new", "a/b/f");
    add_sync_dir(&f->list, f->image, "a/b");
    add_sync_dir(&f->list, f->image, "a");
    persist_advance(&f->persist, 6);
    assert_int_equal(f->persist.n_pending, 1);
    settle(f);
    assert_false(image_dir_is_there(f->image, name_of(f->image, "a")));
    assert_absent(f->image, "a/b/f");
    image_undo(f->image);
    add_sync_dir(&f->list, f->image, ".");
    persist_advance(&f->persist, 7);
    settle(f);
    assert_file(f->image, "a/b/f", "");
    image_undo(f->image);
}

/** A pattern means whole paths: what is below a folder of that name is not in the set, nor what is
longer. */
static void test_path_set(void **state)
{
    (void)state;
    path_set_t set = {.n = 0};
    assert_true(path_set_add(&set, "lock"));
    assert_true(path_set_add(&set, "*.tmp"));
    assert_true(path_set_has(&set, "lock") && path_set_has(&set, "dir/x.tmp"));
    assert_false(path_set_has(&set, "lock/x") || path_set_has(&set, "x.tmp/y"));
    assert_false(path_set_has(&set, "locks") || path_set_has(&set, "dir/lock"));
    assert_false(path_set_has(NULL, "lock"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path_set),
        cmocka_unit_test_setup_teardown(test_file_and_name, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_other_file, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_rename, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_truncate, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_forget, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_ignore, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_exchange, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_ordered, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_fsync_takes_names_along, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_overlap, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_durable, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_durable_sectors, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_durable_takes_no_more, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_taken_out_of_a_folder, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_moves_have_an_order, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_same_name_and_file, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_zero, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_move_dir, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_mkdir, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_mkdir_ordered, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_rmdir, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_rename_into_new_dir, setup, persist_teardown),
        cmocka_unit_test_setup_teardown(test_rename_inside_new_dir, setup, persist_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
