/* Images: undo gives back every byte, name and hash; the hash depends on the content alone. */
#include "fixture.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disk/image_int.h"
#include "disk/models.h"

#define FILES 6U
#define MODEL_BYTES 40000U

/** The plain model: all files as arrays. */
typedef struct plain {
    uint32_t n_inodes;
    uint64_t size[64];
    uint8_t bytes[64][MODEL_BYTES];
    uint32_t link[FILES];
} plain_t;

static const char *const NAMES[FILES] = {"a", "b", "t1.ibd", "ibdata1", "tmp/x", "tmp/y"};

#define KEPT 64U

/** Writes whose bytes outlive the image: at any offset, so that some hold whole chunks and some do
not. */
static void kept_writes(image_t *image, fs_list_t *list, stream_t *stream)
{
    uint8_t data[16384];
    for (uint32_t i = 0; i < KEPT; i++) {
        for (uint32_t k = 0; k < sizeof(data); k++) {
            data[k] = (uint8_t)(i % 8 == 0 ? 0 : stream_next(stream));
        }
        fs_event_t *event = fs_list_add(list, FS_WRITE);
        event->length = stream_below(stream, sizeof(data));
        event->offset = stream_below(stream, MODEL_BYTES - sizeof(data));
        event->offset -= i % 2 == 0 ? event->offset % 4096 : event->offset % 512;
        event->data = fs_list_copy(list, data, event->length);
    }
    image_keep(image, list);
}

static void kept_write(image_t *image, plain_t *plain, uint32_t inode, fs_event_t event)
{
    event.inode = inode;
    persist_apply(image, &event);
    if (event.length > 0) {
        memcpy(plain->bytes[inode] + event.offset, event.data, event.length);
        uint64_t end = event.offset + event.length;
        plain->size[inode] = end > plain->size[inode] ? end : plain->size[inode];
    }
}

static void random_op(image_t *image, plain_t *plain, const fs_list_t *kept, stream_t *stream)
{
    uint32_t inode = (uint32_t)stream_below(stream, plain->n_inodes);
    uint32_t name = (uint32_t)stream_below(stream, FILES);
    uint8_t data[9000];
    uint64_t at = stream_below(stream, MODEL_BYTES - sizeof(data));
    uint64_t len = stream_below(stream, sizeof(data));
    switch (stream_below(stream, 10)) {
    case 0:
        if (plain->n_inodes < 64) {
            assert_int_equal(image_inode_create(image), plain->n_inodes);
            plain->size[plain->n_inodes] = 0;
            memset(plain->bytes[plain->n_inodes], 0, MODEL_BYTES);
            plain->n_inodes++;
        }
        break;
    case 1:
        image_link(image, name_of(image, NAMES[name]), inode);
        plain->link[name] = inode;
        break;
    case 2:
        image_link(image, name_of(image, NAMES[name]), IMAGE_NONE);
        plain->link[name] = IMAGE_NONE;
        break;
    case 3:
        assert_true(image_truncate(image, inode, at));
        if (at < plain->size[inode]) {
            memset(plain->bytes[inode] + at, 0, plain->size[inode] - at);
        }
        plain->size[inode] = at;
        break;
    case 4:
        image_zero(image, inode, at, len);
        if (at < plain->size[inode]) {
            uint64_t room = plain->size[inode] - at;
            memset(plain->bytes[inode] + at, 0, len < room ? len : room);
        }
        break;
    case 5:
    case 6:
        kept_write(image, plain, inode, kept->events[stream_below(stream, kept->n)]);
        break;
    default:
        for (uint64_t i = 0; i < len; i++) {
            data[i] = (uint8_t)stream_next(stream);
        }
        assert_true(image_write(image, inode, at, data, len));
        memcpy(plain->bytes[inode] + at, data, len);
        if (len > 0 && at + len > plain->size[inode]) {
            plain->size[inode] = at + len;
        }
    }
}

/** Of pages of several chunks, whether they lie together or not. */
static void assert_views(const image_t *image, const plain_t *plain, uint32_t inode)
{
    byte room[16384];
    for (uint64_t at = 0; at + sizeof(room) <= MODEL_BYTES; at += 1024) {
        assert_memory_equal(image_view(image, inode, at, sizeof(room), room),
                            plain->bytes[inode] + at, sizeof(room));
    }
}

static void assert_equal(image_t *image, const plain_t *plain)
{
    assert_int_equal(image_inode_count(image), plain->n_inodes);
    for (uint32_t i = 0; i < plain->n_inodes; i++) {
        assert_int_equal(image_size(image, i), plain->size[i]);
        if (plain->size[i] > 0) {
            assert_memory_equal(bytes_of(image, i), plain->bytes[i], plain->size[i]);
        }
        assert_views(image, plain, i);
    }
    for (uint32_t i = 0; i < FILES; i++) {
        assert_int_equal(image_lookup(image, name_of(image, NAMES[i])), plain->link[i]);
    }
}

/** Its hash is that of an image that came about by one write per file. */
static void assert_hash(image_t *image, const plain_t *plain)
{
    image_t *other = image_create();
    for (uint32_t i = 0; i < plain->n_inodes; i++) {
        (void)image_inode_create(other);
        assert_true(image_write(other, i, 0, plain->bytes[i], plain->size[i]));
    }
    for (uint32_t i = 0; i < FILES; i++) {
        if (plain->link[i] != IMAGE_NONE) {
            image_link(other, name_of(other, NAMES[i]), plain->link[i]);
        }
    }
    assert_true(image_hash(image) == image_hash(other));
    image_destroy(other);
}

/** Nested marks, changes with and without hashing, undo: content and hash are those of the mark. */
static void test_undo(void **state)
{
    enum { LEVELS = 4 };
    plain_t *plain = calloc(LEVELS + 1, sizeof(*plain));
    stream_t stream = {.state = 42};
    image_t *image = image_create();
    (void)state;
    fs_list_t kept = {.events = NULL};
    kept_writes(image, &kept, &stream);
    assert_non_null(plain);
    memset(plain[0].link, 0xff, sizeof(plain[0].link));
    (void)image_inode_create(image);
    plain[0].n_inodes = 1;
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 20; i++) {
            random_op(image, &plain[0], &kept, &stream);
        }
        uint64_t hashes[LEVELS];
        for (uint32_t level = 0; level < LEVELS; level++) {
            hashes[level] = image_hash(image);
            assert_hash(image, &plain[level]);
            plain[level + 1] = plain[level];
            image_mark(image);
            image_set_hashing(image, level != LEVELS - 1);
            for (int i = 0; i < 15; i++) {
                random_op(image, &plain[level + 1], &kept, &stream);
            }
        }
        assert_equal(image, &plain[LEVELS]);
        for (uint32_t level = LEVELS; level-- > 0;) {
            image_undo(image);
            image_set_hashing(image, true);
            assert_equal(image, &plain[level]);
            assert_true(image_hash(image) == hashes[level]);
        }
    }
    assert_int_equal(image_marks(image), 0);
    image_destroy(image);
    fs_list_free(&kept);
    free(plain);
}

/** What was written at once is seen where it lies; with a chunk of another write amid it, it is
copied. */
static void test_view_of_what_lies_together(void **state)
{
    image_t *image = image_create();
    (void)state;
    char page[16384 + 1];
    memset(page, 'p', sizeof(page) - 1);
    page[sizeof(page) - 1] = '\0';
    fs_list_t list = {.events = NULL};
    add_write(&list, image_inode_create(image), 16384, page);
    image_keep(image, &list);
    persist_apply(image, &list.events[0]);
    byte room[16384];
    assert_ptr_equal(image_view(image, 0, 16384, 16384, room), list.events[0].data);
    assert_ptr_equal(image_view(image, 0, 16384 + 100, 9000, room), list.events[0].data + 100);
    assert_true(image_write(image, 0, 16384 + 8192, "other", 5));
    memcpy(page + 8192, "other", 5);
    assert_ptr_equal(image_view(image, 0, 16384, 16384, room), room);
    assert_memory_equal(room, page, sizeof(room));
    image_destroy(image);
    fs_list_free(&list);
}

/** A version is never given twice: not after an undo, and not to two files. */
static void test_versions_are_never_given_again(void **state)
{
    (void)state;
    image_t *image = image_create();
    uint64_t seen[9];
    uint32_t n = 0;
    for (uint32_t inode = 0; inode < 2; inode++) {
        (void)image_inode_create(image);
        assert_true(image_truncate(image, inode, 4096));
        assert_true(image_write(image, inode, 0, "a", 1));
        seen[n++] = image_version(image, inode, 0, 4096);
        for (uint32_t round = 0; round < 3; round++) {
            image_mark(image);
            assert_true(image_write(image, inode, round, "b", 1));
            seen[n++] = image_version(image, inode, 0, 4096);
            image_undo(image);
            assert_int_equal(image_version(image, inode, 0, 4096), seen[inode * 4]);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t other = 0; other < i; other++) {
            assert_int_not_equal(seen[i], seen[other]);
        }
    }
    image_destroy(image);
}

/** A page that a state keeps of a recorded write has one version in all states; written once more
it has another. */
static void test_version_of_what_is_kept(void **state)
{
    image_t *image = image_create();
    (void)state;
    char page[4096 + 1];
    memset(page, 'p', sizeof(page) - 1);
    page[sizeof(page) - 1] = '\0';
    fs_list_t list = {.events = NULL};
    add_write(&list, image_inode_create(image), 4096, page);
    image_keep(image, &list);
    uint64_t seen[2] = {0};
    for (int i = 0; i < 2; i++) {
        image_mark(image);
        persist_apply(image, &list.events[0]);
        seen[i] = image_version(image, 0, 4096, 4096);
        assert_true(image_write(image, 0, 4096, page, 4096));
        assert_true(image_version(image, 0, 4096, 4096) != seen[i]);
        image_undo(image);
    }
    assert_true(seen[0] == seen[1]);
    image_destroy(image);
    fs_list_free(&list);
}

/** The most that this process has ever had; of one that was forked, since then. */
static long memory_peak_kb(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

static void use_sparse_file(void)
{
    const uint64_t size = (uint64_t)16 << 30;
    image_t *image = image_create();
    (void)image_inode_create(image);
    image_link(image, name_of(image, "f"), 0);
    assert_true(image_write(image, 0, (uint64_t)5 << 30, "middle", 6));
    assert_true(image_truncate(image, 0, size));
    uint64_t hash = image_hash(image);
    image_mark(image);
    assert_true(image_write(image, 0, size - 3, "end", 3));
    image_zero(image, 0, (uint64_t)1 << 30, (uint64_t)8 << 30);
    assert_true(image_is_zero(image, 0, 0, size - 3));
    uint64_t at = 0;
    uint64_t len = 0;
    assert_non_null(image_data(image, 0, &at, &len));
    assert_int_equal(at + len, size);
    assert_true(image_truncate(image, 0, 0));
    image_undo(image);
    assert_true(image_hash(image) == hash);
    at = 0;
    assert_memory_equal(image_data(image, 0, &at, &len), "middle", 6);
    assert_int_equal(at, (uint64_t)5 << 30);
    at += len;
    assert_null(image_data(image, 0, &at, &len));
    assert_false(image_truncate(image, 0, IMAGE_FILE_MAX + 1));
    image_destroy(image);
}

/** A file of 16 GB costs what was written to it, whatever becomes of it. The bound is that of a
process of its own: what other tests needed does not hide anything. */
static void test_sparse_file(void **state)
{
    (void)state;
    use_sparse_file();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        long before = memory_peak_kb();
        use_sparse_file();
        _exit(memory_peak_kb() - before < 32L << 10 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/** Two ways to the same directory have one hash; every difference shows. */
static void test_hash(void **state)
{
    image_t *a = image_create();
    image_t *b = image_create();
    (void)state;
    char page[8192];
    memset(page, 'x', sizeof(page));
    (void)image_inode_create(a);
    (void)image_inode_create(b);
    (void)image_inode_create(b);
    image_link(a, name_of(a, "f"), 0);
    image_link(b, name_of(b, "g"), 0); /* another order of names, another inode */
    image_link(b, name_of(b, "g"), IMAGE_NONE);
    image_link(b, name_of(b, "f"), 1);
    assert_true(image_write(a, 0, 0, page, sizeof(page)));
    assert_true(image_write(b, 1, 4096, page, 4096));
    assert_true(image_hash(a) != image_hash(b));
    assert_true(image_write(b, 1, 100, page, 3996));
    assert_true(image_write(b, 1, 0, page, 100));
    assert_true(image_hash(a) == image_hash(b));
    assert_true(image_truncate(a, 0, 20000)); /* zeros written and zeros from growing */
    assert_true(image_hash(a) != image_hash(b));
    memset(page, 0, sizeof(page));
    assert_true(image_write(b, 1, 8192, page, 8192));
    assert_true(image_write(b, 1, 16384, page, 20000 - 16384));
    assert_true(image_hash(a) == image_hash(b));
    image_set_dir(a, name_of(a, "d"), DIR_THERE);
    assert_true(image_hash(a) != image_hash(b));
    image_set_dir(b, name_of(b, "d"), DIR_THERE);
    assert_true(image_hash(a) == image_hash(b));
    image_link(b, name_of(b, "f2"), 1);
    assert_true(image_hash(a) != image_hash(b));
    image_destroy(a);
    image_destroy(b);
}

/** The back end for the engine: modes of opening, listing, a file that stays usable without its
name. */
static void test_os(void **state)
{
    image_t *image = image_create();
    os_t *os = image_os(image);
    (void)state;
    fs_list_t record = {.events = NULL};
    image_os_record(image, &record);
    os_file_t *file = NULL;
    assert_int_equal(os->vt->open(os, "f", OS_OPEN, &file), DB_NOT_FOUND);
    assert_int_equal(os->vt->open(os, "f", OS_CREATE_NEW, &file), DB_SUCCESS);
    memcpy(file->path, "f", 2);
    assert_int_equal(os->vt->write(file, 2, "abc", 3), DB_SUCCESS);
    assert_int_equal(os->vt->sync(file), DB_SUCCESS);
    assert_int_equal(os->vt->write(file, IMAGE_FILE_MAX, "abc", 3), DB_IO_ERROR);
    assert_int_equal(os->vt->rename(os, "f", "g"), DB_SUCCESS);
    assert_int_equal(os->vt->write(file, 0, "xy", 2), DB_SUCCESS);
    assert_int_equal(os->vt->unlink(os, "g"), DB_SUCCESS);
    bool exists = true;
    assert_int_equal(os->vt->exists(os, "g", &exists), DB_SUCCESS);
    assert_false(exists);
    size_t n = 0;
    char buf[8];
    assert_int_equal(os->vt->read(file, 0, buf, sizeof(buf), &n), DB_SUCCESS);
    assert_int_equal(n, 5);
    assert_memory_equal(buf, "xyabc", 5);
    os->vt->close(file);
    assert_int_equal(record.n, 6);
    assert_int_equal(record.events[0].kind, FS_LINK);
    assert_int_equal(record.events[1].kind, FS_WRITE);
    assert_memory_equal(record.events[1].data, "abc", 3);
    assert_int_equal(record.events[2].kind, FS_SYNC);
    assert_int_equal(record.events[3].kind, FS_RENAME);
    assert_int_equal(record.events[4].kind, FS_WRITE);
    assert_string_equal(image_name_text(image, record.events[1].name), "f");
    assert_string_equal(image_name_text(image, record.events[4].name), "g");
    assert_int_equal(record.events[5].kind, FS_UNLINK);
    fs_list_free(&record);
    image_destroy(image);
}

typedef struct heard {
    const image_t *image;
    uint64_t sizes[4]; /**< of the file, when that was heard */
    uint32_t n;
} heard_t;

static void hear_before(void *ctx, uint32_t inode, const char *path, uint64_t offset, uint64_t len)
{
    heard_t *heard = ctx;
    (void)path;
    (void)offset;
    (void)len;
    heard->sizes[heard->n++] = image_size(heard->image, inode);
}

static void hear_event(void *ctx, fs_event_t *event, const char *path)
{
    (void)ctx;
    (void)event;
    (void)path;
}

/** A new size is heard of while the old content is there, as a write is: it may tell whose file it
was. */
static void test_watch_before(void **state)
{
    image_t *image = image_create();
    os_t *os = image_os(image);
    heard_t heard = {.image = image};
    const image_watch_t watch = {.event = hear_event, .before = hear_before, .ctx = &heard};
    (void)state;
    image_os_watch(image, &watch);
    os_file_t *file = NULL;
    assert_int_equal(os->vt->open(os, "f", OS_CREATE_NEW, &file), DB_SUCCESS);
    memcpy(file->path, "f", 2);
    assert_int_equal(os->vt->write(file, 2, "abc", 3), DB_SUCCESS);
    assert_int_equal(os->vt->truncate(file, 0), DB_SUCCESS);
    os->vt->close(file);
    assert_int_equal(heard.n, 2);
    assert_int_equal(heard.sizes[0], 0);
    assert_int_equal(heard.sizes[1], 5);
    image_destroy(image);
}

/** A copy has what was there at that moment, under the same numbers, and lives its own life. */
static void test_clone(void **state)
{
    static const char *const PATHS[] = {"f", "gone", "d/empty", "g"};
    os_t *os = image_os_create();
    image_t *image = ((image_os_t *)os)->image;
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(image_inode_create(image), i);
        image_link(image, name_of(image, PATHS[i]), i);
    }
    assert_true(image_write(image, 0, 3 * CHUNK_BYTES + 1, "text", 4));
    assert_true(image_write(image, 3, 0, "other", 5));
    image_link(image, name_of(image, "gone"), IMAGE_NONE);
    image_set_dir(image, name_of(image, "d"), DIR_THERE);
    os_t *copy_os = image_os_clone(os);
    image_t *copy = ((image_os_t *)copy_os)->image;
    os_t *same = image_os_clone(copy_os);
    assert_true(image_write(image, 0, 0, "later", 5));
    os_t *other = image_os_clone(os);
    assert_true(image_os_taken(same) == image_os_taken(copy_os));
    assert_true(image_os_taken(other) != image_os_taken(copy_os));
    os_destroy(same);
    os_destroy(other);
    assert_int_equal(image_inode_count(copy), 4);
    assert_int_equal(image_name_find(copy, "d"), image_name_find(image, "d"));
    assert_int_equal(image_dir_state(copy, name_of(copy, "d")), DIR_THERE);
    assert_int_equal(image_size(copy, 0), 3 * CHUNK_BYTES + 5);
    assert_true(image_is_zero(copy, 0, 0, 3 * CHUNK_BYTES + 1));
    assert_memory_equal(bytes_of(copy, 0) + 3 * CHUNK_BYTES + 1, "text", 4);
    assert_file(copy, "d/empty", "");
    assert_file(copy, "g", "other");
    assert_absent(copy, "gone");
    os_destroy(copy_os);
    os_destroy(os);
}

/** A file in one piece: changes there are changes of the file, and those of others are in the next
piece. */
static void test_bytes(void **state)
{
    os_t *os = image_os_create();
    image_t *image = ((image_os_t *)os)->image;
    (void)state;
    uint64_t size = 0;
    assert_null(image_os_bytes(os, "f", &size));
    image_link(image, name_of(image, "f"), image_inode_create(image));
    assert_non_null(image_os_bytes(os, "f", &size));
    assert_int_equal(size, 0);
    assert_true(image_write(image, 0, CHUNK_BYTES - 2, "abcdef", 6));
    uint64_t version = image_version(image, 0, 0, CHUNK_BYTES);
    byte *bytes = image_os_bytes(os, "f", &size);
    assert_int_equal(size, CHUNK_BYTES + 4);
    assert_memory_equal(bytes + CHUNK_BYTES - 2, "abcdef", 6);
    assert_true(image_version(image, 0, 0, CHUNK_BYTES) != version);
    bytes[CHUNK_BYTES] = 'C';
    assert_memory_equal(bytes_of(image, 0) + CHUNK_BYTES - 2, "abCdef", 6);
    assert_true(image_write(image, 0, CHUNK_BYTES + 1, "D", 1));
    bytes = image_os_bytes(os, "f", &size);
    assert_memory_equal(bytes + CHUNK_BYTES - 2, "abCDef", 6);
    assert_ptr_equal(image_os_bytes(os, "f", &size), bytes);
    assert_true(image_truncate(image, 0, 3));
    assert_memory_equal(image_os_bytes(os, "f", &size), "\0\0\0", 3);
    assert_int_equal(size, 3);
    os_destroy(os);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undo),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_view_of_what_lies_together),
        cmocka_unit_test(test_version_of_what_is_kept),
        cmocka_unit_test(test_versions_are_never_given_again),
        cmocka_unit_test(test_sparse_file),
        cmocka_unit_test(test_os),
        cmocka_unit_test(test_watch_before),
        cmocka_unit_test(test_clone),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
