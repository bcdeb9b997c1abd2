/* The trace reader: a hand-made trace gives its events and lines; damage and what cannot be
modelled is refused. */
#include "disk/tests/fixture.h"
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "explorer/judge/trace_read.h"
#include "trace_builder.h"

/** A path of eight bytes has no zero byte behind it; one of the lock file means nothing. */
static void standard(builder_t *b)
{
    begin(b);
    (void)put_record(b, TP_OP_OPEN, 2, "engine.lock", 11);
    mark(b, "ack n=1");
    mark(b, "issue n=2 trx=-");
    (void)put_record(b, TP_OP_OPEN, 3, "ib_dblwr", 8);
    put_record(b, TP_OP_WRITE, 3, "hello", 5)->offset = 512;
    (void)put_record(b, TP_OP_WRITE, 3, "no", 2);
    put_record(b, TP_OP_WRITE, 3, "failed", 6)->result = -5;
    (void)put_record(b, TP_OP_FSYNC, 3, NULL, 0);
    mark(b, "ack n=2");
    mark(b, "issue n=3 trx=-");
    mark(b, "ack n=3");
    mark(b, "issue n=4 trx=-");
    (void)put_record(b, TP_OP_SYNC_DIR, 1, ".", 1);
    (void)put_record(b, TP_OP_RENAME, 3, "ib_dblwr\0t.ibd", 14);
    (void)put_record(b, TP_OP_UNLINK, 3, "t.ibd", 5);
}

static void ignore(void *ctx, uint32_t invariant, const char *rule, uint64_t page, const char *what)
{
    (void)page;
    (void)ctx;
    (void)invariant;
    (void)rule;
    (void)what;
}

static dberr_t load_with(const builder_t *b, const trace_config_t *config, image_t *image,
                         trace_t *trace, err_sink_t *err)
{
    char path[] = "/tmp/test_explorer_trace.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    save(b, path);
    dberr_t e = trace_load(path, image, config, trace, err);
    (void)unlink(path);
    return e;
}

static dberr_t load(const builder_t *b, image_t *image, trace_t *trace, err_sink_t *err)
{
    const path_set_t lock = {.patterns = {"engine.lock"}, .n = 1};
    const trace_config_t config = {.rules = {.found = ignore}, .ignored = &lock};
    return load_with(b, &config, image, trace, err);
}

/** A trace in the making, and what is read of it. */
typedef struct reading {
    builder_t b;
    image_t *image;
    trace_t trace;
} reading_t;

static int setup(void **state)
{
    static reading_t r;
    r = (reading_t){.image = image_create()};
    begin(&r.b);
    *state = &r;
    return 0;
}

static int teardown(void **state)
{
    reading_t *r = *state;
    trace_free(&r->trace);
    image_destroy(r->image);
    return 0;
}

/** Reads it. @return its events, of which there are so many */
static const fs_event_t *read_events(reading_t *r, uint32_t n)
{
    err_sink_t err = {.msg = ""};
    assert_int_equal(load(&r->b, r->image, &r->trace, &err), DB_SUCCESS);
    assert_int_equal(r->trace.list.n, n);
    return r->trace.list.events;
}

static void test_events(void **state)
{
    reading_t *r = *state;
    static const fs_kind_t KINDS[] = {FS_LINK,     FS_WRITE,  FS_WRITE, FS_SYNC,
                                      FS_SYNC_DIR, FS_RENAME, FS_UNLINK};
    standard(&r->b);
    const fs_event_t *events = read_events(r, 7);
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(events[i].kind, KINDS[i]);
    }
    assert_int_equal(image_inode_count(r->image), 1);
    assert_absent(r->image, "ib_dblwr");
    assert_string_equal(image_name_text(r->image, events[0].name), "ib_dblwr");
    assert_int_equal(events[1].offset, 512);
    assert_memory_equal(events[1].data, "hello", 5);
    assert_int_equal(events[1].site, SITE_DOUBLEWRITE);
    /* The crash point before the first event: line 1 is acknowledged, nothing is issued by then. */
    assert_int_equal(r->trace.first_acked_line, 1);
    assert_int_equal(events[0].issued_line, 2);
    assert_int_equal(events[2].acked_line, 1);
    /* After the fsync: lines 2 and 3 were acknowledged before anything else was written. */
    assert_int_equal(events[3].acked_line, 3);
    assert_int_equal(events[3].issued_line, 2);
    assert_int_equal(events[4].issued_line, 4);
}

/** The numbers of several clients come in no order: what counts is how many there were. */
static void test_clients_are_counted(void **state)
{
    reading_t *r = *state;
    mark(&r->b, "issue n=7 client=a");
    mark(&r->b, "issue n=2 client=b");
    (void)put_record(&r->b, TP_OP_OPEN, 3, "ib_dblwr", 8);
    mark(&r->b, "ack n=2 client=b");
    put_record(&r->b, TP_OP_WRITE, 3, "hello", 5)->offset = 512;
    mark(&r->b, "issue n=4 client=b");
    mark(&r->b, "ack n=7 client=a");
    (void)put_record(&r->b, TP_OP_FSYNC, 3, NULL, 0);
    const fs_event_t *events = read_events(r, 3);
    assert_int_equal(events[0].issued_line, 2);
    assert_int_equal(events[0].acked_line, 1);
    assert_int_equal(events[1].acked_line, 2);
    assert_int_equal(events[2].issued_line, 3);
    assert_int_equal(events[2].acked_line, 2);
}

/** What was acknowledged last is the newest that was issued, until another statement is. */
static void test_nothing_is_issued_unasked(void **state)
{
    reading_t *r = *state;
    mark(&r->b, "issue n=1");
    mark(&r->b, "ack n=1");
    (void)put_record(&r->b, TP_OP_OPEN, 3, "ib_dblwr", 8);
    const fs_event_t *events = read_events(r, 1);
    assert_int_equal(r->trace.first_acked_line, 1);
    assert_int_equal(events[0].issued_line, 1);
}

/** Of two writes to one place the first is a first flush, and the image holds nothing of them in
the end. */
static void test_first_flushes(void **state)
{
    static const bool WANTED[] = {true, false};
    reading_t *r = *state;
    (void)put_record(&r->b, TP_OP_OPEN, 3, "t.ibd", 5);
    for (uint32_t i = 0; i < 2; i++) {
        (void)put_record(&r->b, TP_OP_WRITE, 3, "contents", 8);
    }
    const fs_event_t *events = read_events(r, 3);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(events[i + 1].first_flush, WANTED[i]);
    }
    assert_int_equal(image_size(r->image, 0), 0);
}

/** What begins to write a range waits for nothing: it makes no event. */
static void test_a_range_that_is_written_back_is_not_synced(void **state)
{
    reading_t *r = *state;
    (void)put_record(&r->b, TP_OP_OPEN, 3, "t.ibd", 5);
    (void)put_record(&r->b, TP_OP_WRITE, 3, "one", 3);
    put_record(&r->b, TP_OP_SYNC_RANGE, 3, NULL, 0)->flags = 7;
    (void)read_events(r, 2);
}

/** A sync knows which of the events before it had not ended when it began; a write, whether it is
durable. */
static void test_tickets(void **state)
{
    reading_t *r = *state;
    (void)put_record(&r->b, TP_OP_OPEN, 3, "t.ibd", 5);
    put_record(&r->b, TP_OP_WRITE, 3, "one", 3)->flags |= TP_WRITE_DURABLE;
    (void)put_record(&r->b, TP_OP_WRITE, 3, "two", 3);
    (void)put_record(&r->b, TP_OP_READ, 3, NULL, 0);
    (void)put_record(&r->b, TP_OP_WRITE, 3, "three", 5);
    put_record(&r->b, TP_OP_FSYNC, 3, NULL, 0)->began = 2;
    put_record(&r->b, TP_OP_SYNC_DIR, 1, ".", 1)->began = 0;
    (void)put_record(&r->b, TP_OP_FSYNC, 3, NULL, 0);
    put_record(&r->b, TP_OP_FSYNC, 3, NULL, 0)->began = UINT64_MAX;
    const fs_event_t *events = read_events(r, 8);
    assert_true(events[1].durable);
    assert_false(events[2].durable);
    assert_int_equal(events[4].late, 2);
    assert_int_equal(events[5].late, 5);
    assert_int_equal(events[6].late, 0);
    assert_int_equal(events[7].late, 0);
}

/** Holes and zeroed ranges are events; space that is reserved is none, a file that grows has a new
size. */
static void test_allocation(void **state)
{
    static const struct {
        uint16_t mode;
        uint64_t offset;
        uint64_t length;
    } CALLS[] = {{1, 0, 4096}, {0, 0, 100}, {3, 4, 1ULL << 40},
                 {16, 90, 30}, {17, 0, 8},  {0x40, 0, 9}};
    static const struct {
        fs_kind_t kind;
        uint64_t offset;
        uint64_t length;
    } WANTED[] = {{FS_TRUNCATE, 100, 0},
                  {FS_ZERO, 4, 1ULL << 40},
                  {FS_TRUNCATE, 120, 0},
                  {FS_ZERO, 90, 30},
                  {FS_ZERO, 0, 8}};
    reading_t *r = *state;
    (void)put_record(&r->b, TP_OP_OPEN, 3, "t.ibd", 5);
    for (uint32_t i = 0; i < 6; i++) {
        tp_trace_record_t *rec = put_record(&r->b, TP_OP_FALLOCATE, 3, NULL, 0);
        rec->flags = CALLS[i].mode;
        rec->offset = CALLS[i].offset;
        rec->length = CALLS[i].length;
    }
    const fs_event_t *events = read_events(r, 6);
    for (uint32_t i = 0; i < 5; i++) {
        const fs_event_t *event = &events[i + 1];
        assert_int_equal(event->kind, WANTED[i].kind);
        assert_int_equal(event->offset, WANTED[i].offset);
        assert_int_equal(event->length, WANTED[i].length);
    }
}

/** A further name leads to the same file, which is called by the newest, and by the other when that
is gone. Two names of one file are not renamed onto each other. */
static void test_links(void **state)
{
    static const struct {
        fs_kind_t kind;
        const char *name;
    } WANTED[] = {{FS_LINK, "tmp"},   {FS_WRITE, "tmp"},     {FS_LINK, "d/final"},
                  {FS_UNLINK, "tmp"}, {FS_WRITE, "d/final"}, {FS_LINK, "x"},
                  {FS_WRITE, "x"},    {FS_UNLINK, "x"},      {FS_WRITE, "d/final"}};
    reading_t *r = *state;
    (void)put_record(&r->b, TP_OP_OPEN, 3, "tmp", 3);
    (void)put_record(&r->b, TP_OP_WRITE, 3, "one", 3);
    (void)put_record(&r->b, TP_OP_LINK, 3, "tmp\0d/final", 11);
    (void)put_record(&r->b, TP_OP_RENAME, 3, "tmp\0d/final", 11);
    (void)put_record(&r->b, TP_OP_UNLINK, 3, "tmp", 3);
    (void)put_record(&r->b, TP_OP_WRITE, 3, "two", 3);
    (void)put_record(&r->b, TP_OP_LINK, 0, "d/final\0x", 9);
    (void)put_record(&r->b, TP_OP_WRITE, 3, "three", 5);
    (void)put_record(&r->b, TP_OP_UNLINK, 3, "x", 1);
    (void)put_record(&r->b, TP_OP_WRITE, 3, "four", 4);
    const fs_event_t *events = read_events(r, 9);
    for (uint32_t i = 0; i < 9; i++) {
        assert_int_equal(events[i].kind, WANTED[i].kind);
        assert_string_equal(image_name_text(r->image, events[i].name), WANTED[i].name);
        assert_int_equal(events[i].inode, 0);
    }
}

/** A file of O_TMPFILE is in no folder before a link names it: what was written to it is there
then, and one that is never named is in no state. */
static void test_file_without_a_name(void **state)
{
    static const fs_kind_t KINDS[] = {FS_WRITE, FS_SYNC, FS_WRITE, FS_LINK};
    reading_t *r = *state;
    put_record(&r->b, TP_OP_OPEN, 3, "./#tmpfile", 10)->offset = O_TMPFILE | O_RDWR;
    (void)put_record(&r->b, TP_OP_WRITE, 3, "named", 5);
    (void)put_record(&r->b, TP_OP_FSYNC, 3, NULL, 0);
    put_record(&r->b, TP_OP_OPEN, 4, "./#tmpfile", 10)->offset = O_TMPFILE | O_RDWR;
    (void)put_record(&r->b, TP_OP_WRITE, 4, "never", 5);
    (void)put_record(&r->b, TP_OP_LINK, 3, "./#tmpfile\0d/final", 18);
    const fs_event_t *events = read_events(r, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(events[i].kind, KINDS[i]);
        assert_int_equal(events[i].inode, i == 2 ? 1 : 0);
    }
    assert_string_equal(image_name_text(r->image, events[3].name), "d/final");
    assert_absent(r->image, "./#tmpfile");
}

/** A sync of everything is one of each file, then of each folder whose names changed; what
overlapped it may be lost. */
static void test_sync_of_everything(void **state)
{
    static const struct {
        fs_kind_t kind;
        const char *name;
    } WANTED[] = {{FS_SYNC, "a"},
                  {FS_SYNC, "e/c"},
                  {FS_SYNC_DIR, "."},
                  {FS_SYNC_DIR, "d"},
                  {FS_SYNC_DIR, "e"}};
    reading_t *r = *state;
    (void)put_record(&r->b, TP_OP_OPEN, 3, "a", 1);
    (void)put_record(&r->b, TP_OP_OPEN, 4, "d/b", 3);
    (void)put_record(&r->b, TP_OP_RENAME, 4, "d/b\0e/c", 7);
    (void)put_record(&r->b, TP_OP_WRITE, 3, "late", 4);
    put_record(&r->b, TP_OP_SYNC_ALL, 0, NULL, 0)->began = 3;
    const fs_event_t *events = read_events(r, 9);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(events[i + 4].kind, WANTED[i].kind);
        assert_string_equal(image_name_text(r->image, events[i + 4].name), WANTED[i].name);
        assert_int_equal(events[i + 4].late,
                         i + 1); /* the write, and the parts of the sync itself */
    }
}

static void count_cuts(void *ctx, uint32_t invariant, const char *rule, uint64_t page,
                       const char *what)
{
    uint32_t *found = ctx;
    (void)page;
    (void)what;
    *found += invariant == 24 && strcmp(rule, "file_record") == 0;
}

/** A file that is opened to be emptied is cut: the rules hear of it, as of any truncation. */
static void test_truncation_by_open(void **state)
{
    static world_t w;
    reading_t *r = *state;
    for (uint32_t empties = 0; empties < 2; empties++) {
        err_sink_t err = {.msg = ""};
        w.atomic_unit = 0;
        world_begin(&w, true);
        uint32_t found = 0;
        const trace_config_t config = {
            .live = true, .rules = {.doublewrite = true, .found = count_cuts, .ctx = &found}};
        begin(&r->b);
        tp_trace_record_t *rec = put_record(&r->b, TP_OP_OPEN, 3, "t.ibd", 5);
        rec->flags = 0;
        rec->offset = empties != 0 ? O_RDWR | O_TRUNC : O_RDWR;
        trace_t trace;
        assert_int_equal(load_with(&r->b, &config, w.image, &trace, &err), DB_SUCCESS);
        assert_int_equal(found, empties);
        assert_int_equal(trace.list.n, empties);
        assert_true(empties == 0 || trace.list.events[0].old_size >= WORLD_PAGE);
        trace_free(&trace);
        world_end(&w);
    }
}

static void count_failures(void *ctx, uint32_t invariant, const char *rule, uint64_t page,
                           const char *what)
{
    uint32_t *found = ctx;
    (void)page;
    (void)what;
    *found += invariant == 23 && strcmp(rule, "failed_io") == 0;
}

/** What was to change a file, or to make that durable, and has failed: the rules hear of it. */
static void test_failures_are_heard_of(void **state)
{
    static const struct {
        uint16_t kind;
        uint32_t heard;
    } CALLS[] = {{TP_OP_WRITE, 1},  {TP_OP_TRUNCATE, 1}, {TP_OP_FSYNC, 1},  {TP_OP_FDATASYNC, 1},
                 {TP_OP_RENAME, 1}, {TP_OP_SYNC_DIR, 1}, {TP_OP_UNLINK, 0}, {TP_OP_READ, 0}};
    static world_t w;
    reading_t *r = *state;
    for (size_t i = 0; i < sizeof(CALLS) / sizeof(CALLS[0]); i++) {
        err_sink_t err = {.msg = ""};
        w.atomic_unit = 0;
        world_begin(&w, true);
        uint32_t found = 0;
        const trace_config_t config = {
            .live = true, .rules = {.doublewrite = true, .found = count_failures, .ctx = &found}};
        begin(&r->b);
        put_record(&r->b, TP_OP_OPEN, 3, "t.ibd", 5)->flags = 0;
        bool folder = CALLS[i].kind == TP_OP_SYNC_DIR;
        put_record(&r->b, CALLS[i].kind, 3, folder ? "." : "t.ibd\0u.ibd", folder ? 1 : 11)
            ->result = -EIO;
        mark(&r->b, "ack n=1");
        trace_t trace;
        assert_int_equal(load_with(&r->b, &config, w.image, &trace, &err), DB_SUCCESS);
        assert_int_equal(found, CALLS[i].heard);
        trace_free(&trace);
        world_end(&w);
    }
}

/** A renamed folder is one event; its files are known by their new names. */
static void test_renamed_folder(void **state)
{
    reading_t *r = *state;
    (void)put_record(&r->b, TP_OP_OPEN, 3, "dir/t.ibd", 9);
    put_record(&r->b, TP_OP_OPEN, 4, "dir", 3)->flags = TP_OPEN_DIRECTORY;
    (void)put_record(&r->b, TP_OP_RENAME, 4, "dir\0new", 7);
    (void)put_record(&r->b, TP_OP_FSYNC, 3, NULL, 0);
    (void)put_record(&r->b, TP_OP_SYNC_DIR, 4, "dir", 3);
    (void)put_record(&r->b, TP_OP_UNLINK, 3, "new/t.ibd", 9);
    const fs_event_t *events = read_events(r, 5);
    assert_int_equal(events[1].kind, FS_MOVE_DIR);
    assert_string_equal(image_name_text(r->image, events[2].name), "new/t.ibd");
    assert_string_equal(image_name_text(r->image, events[3].name), "new");
    assert_int_equal(events[4].inode, events[0].inode);
}

/** Two files exchange their names: one event, and each is known by its new one. */
static void test_exchanged_names(void **state)
{
    reading_t *r = *state;
    (void)put_record(&r->b, TP_OP_OPEN, 3, "t.ibd", 5);
    (void)put_record(&r->b, TP_OP_OPEN, 4, "u.ibd", 5);
    put_record(&r->b, TP_OP_RENAME, 3, "t.ibd\0u.ibd", 11)->flags = 2;
    (void)put_record(&r->b, TP_OP_FSYNC, 3, NULL, 0);
    (void)put_record(&r->b, TP_OP_FSYNC, 4, NULL, 0);
    const fs_event_t *events = read_events(r, 5);
    assert_int_equal(events[2].kind, FS_RENAME);
    assert_true(events[2].swaps);
    assert_int_equal(events[2].over, events[1].inode + 1);
    assert_string_equal(image_name_text(r->image, events[3].name), "u.ibd");
    assert_string_equal(image_name_text(r->image, events[4].name), "t.ibd");
}

/** Directories are made and removed; before the recording one was missing, and the other there. */
static void test_dirs(void **state)
{
    reading_t *r = *state;
    (void)put_record(&r->b, TP_OP_MKDIR, 0, ".", 1);
    (void)put_record(&r->b, TP_OP_MKDIR, 0, "new", 3);
    put_record(&r->b, TP_OP_UNLINK, 0, "old", 3)->flags = TP_UNLINK_DIRECTORY;
    put_record(&r->b, TP_OP_MKDIR, 0, "failed", 6)->result = -17;
    (void)put_record(&r->b, TP_OP_RENAME, 0, "new\0old", 7);
    (void)put_record(&r->b, TP_OP_MKDIR, 0, "new", 3);
    (void)put_record(&r->b, TP_OP_MKDIR, 0, "engine.lock", 11);
    (void)put_record(&r->b, TP_OP_RENAME, 0, "new\0last", 8);
    const fs_event_t *events = read_events(r, 5);
    assert_int_equal(events[0].kind, FS_MKDIR);
    assert_int_equal(events[1].kind, FS_RMDIR);
    assert_int_equal(events[2].kind, FS_MOVE_DIR);
    assert_int_equal(events[3].kind, FS_MKDIR);
    assert_int_equal(image_dir_state(r->image, name_of(r->image, "new")), DIR_MISSING);
    assert_int_equal(image_dir_state(r->image, name_of(r->image, "old")), DIR_THERE);
    assert_int_equal(image_dir_state(r->image, name_of(r->image, "failed")), DIR_IMPLIED);
    assert_int_equal(image_dir_state(r->image, name_of(r->image, "last")), DIR_MISSING);
}

static void assert_refused(const builder_t *b, const char *why)
{
    trace_t trace;
    err_sink_t err = {.msg = ""};
    image_t *image = image_create();
    assert_int_equal(load(b, image, &trace, &err), DB_ERROR);
    assert_non_null(strstr(err.msg, why));
    image_destroy(image);
}

static void test_refused(void **state)
{
    (void)state;
    builder_t b;
    begin(&b);
    (void)put_record(&b, TP_OP_MKDIR, 0, "a", 1);
    (void)put_record(&b, TP_OP_MKDIR, 0, "b", 1);
    (void)put_record(&b, TP_OP_RENAME, 0, "a\0b", 3);
    assert_refused(&b, "over another one");
    standard(&b);
    b.bytes[0] = 'X';
    assert_refused(&b, "not a trace");
    standard(&b);
    b.bytes[16] = TP_TRACE_OVERFLOW;
    assert_refused(&b, "ran out of space");
    memcpy(b.bytes + 8, &b.used, 8); /* what has run out of space leaves some */
    b.used += 64;
    assert_refused(&b, "ran out of space");
    standard(&b);
    put_record(&b, TP_OP_WRITE, 3, "data", 4)->flags = 0;
    assert_refused(&b, "TORNPAGE_PAYLOAD=full");
    standard(&b);
    put_record(&b, TP_OP_WRITE, 3, "data", 4)->result = 4096;
    assert_refused(&b, "damaged");
    standard(&b);
    put_record(&b, TP_OP_WRITE, 3, "data", 4)->offset = UINT64_MAX - 1;
    assert_refused(&b, "damaged");
    standard(&b);
    put_record(&b, TP_OP_FSYNC, 3, NULL, 0)->total = 8;
    assert_refused(&b, "impossible record");
    standard(&b);
    put_record(&b, TP_OP_FSYNC, 3, NULL, 0)->total = 1U << 30;
    assert_refused(&b, "impossible record");
    standard(&b);
    put_record(&b, TP_OP_OPEN, 9, "before", 6)->flags = 0;
    assert_refused(&b, "was there before");
    standard(&b);
    (void)put_record(&b, TP_OP_LINK, 0, "none\0new", 8);
    assert_refused(&b, "a link to an unknown file");
    standard(&b);
    mark(&b, "refused no memory");
    assert_refused(&b, "refused no memory");
    standard(&b);
    (void)put_record(&b, TP_OP_FSYNC, 77, NULL, 0);
    assert_refused(&b, "unknown file");
    standard(&b);
    (void)put_record(&b, TP_OP_FSYNC, UINT32_MAX, NULL, 0);
    assert_refused(&b, "unknown file");
    standard(&b);
    (void)put_record(&b, TP_OP_FAULT, 3, NULL, 0);
    assert_refused(&b, "fault");
    standard(&b);
    for (uint16_t mode = 8; mode <= 32; mode += 24) { /* collapses a range, inserts one */
        put_record(&b, TP_OP_FALLOCATE, 3, NULL, 0)->flags = mode;
        assert_refused(&b, "moves what is behind it");
        standard(&b);
    }
    put_record(&b, TP_OP_RENAME, 3, "t.ibd\0u.ibd", 11)->flags = 2;
    assert_refused(&b, "exchange with a folder or an unknown file");
    standard(&b);
    (void)put_record(&b, TP_OP_RENAME, 0, "none\0other", 10);
    assert_refused(&b, "unknown file");
    standard(&b);
    mark(&b, "unseen mmap path=f");
    assert_refused(&b, "unseen");
}

static dberr_t load_sites(const char *text, write_sites_t *sites)
{
    char path[] = "/tmp/test_explorer_sites.XXXXXX";
    err_sink_t err = {.msg = ""};
    put_text(path, text);
    dberr_t e = write_sites_load(path, sites, &err);
    (void)unlink(path);
    assert_true(e == DB_SUCCESS || strstr(err.msg, "SEQ SITE") != NULL);
    return e;
}

/** A write that is told by its number is of that site, another one of that of its path. */
static void test_sites_of_single_writes(void **state)
{
    reading_t *r = *state;
    const path_set_t lock = {.patterns = {"engine.lock"}, .n = 1};
    site_map_t map = {.n = 0};
    err_sink_t err = {.msg = ""};
    assert_true(site_map_add(&map, "data_page=ib_*"));
    assert_true(site_map_add(&map, "undo_page="));
    write_sites_t writes;
    assert_int_equal(load_sites("1 redo\n5 undo_page\n", &writes), DB_SUCCESS);
    const trace_config_t config = {
        .rules = {.found = ignore}, .ignored = &lock, .sites = &map, .write_sites = &writes};
    standard(&r->b);
    assert_int_equal(load_with(&r->b, &config, r->image, &r->trace, &err), DB_SUCCESS);
    const fs_event_t *event = r->trace.list.events;
    for (uint64_t seq = 5; seq <= 6; seq++) {
        while (event->seq != seq) {
            event++;
        }
        assert_int_equal(event->site, seq == 5 ? SITE_UNDO_PAGE : SITE_DATA_PAGE);
    }
    assert_true(site_map_has(&map, SITE_UNDO_PAGE));
    assert_false(site_map_has(&map, SITE_REDO));
    write_sites_free(&writes);
}

/** The first pattern that matches says it, and one with @N only of writes that begin in the first N
bytes. */
static void test_sites_by_place(void **state)
{
    (void)state;
    site_map_t map = {.n = 0};
    assert_true(site_map_add(&map, "checkpoint_header=*-wal@32"));
    assert_true(site_map_add(&map, "redo=*-wal"));
    assert_true(site_map_add(&map, "page0=me@home"));
    assert_int_equal(site_map_find(&map, "a/main.db-wal", 31), SITE_CHECKPOINT_HEADER);
    assert_int_equal(site_map_find(&map, "a/main.db-wal", 32), SITE_REDO);
    assert_int_equal(site_map_find(&map, "me@home", 1 << 20), SITE_PAGE0);
    assert_int_equal(site_map_find(&map, "me", 0), SITE_OTHER);
    assert_false(site_map_add(&map, "nosite=x"));
}

static void test_wrong_sites(void **state)
{
    const char *const wrong[] = {"1 redo\n1 redo\n", "2 redo\n1 redo\n", "1 nosite\n", "1\n",
                                 "x redo\n",         "1  redo\n",        "\n"};
    (void)state;
    write_sites_t sites;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_int_equal(load_sites(wrong[i], &sites), DB_ERROR);
    }
    assert_int_equal(load_sites("", &sites), DB_SUCCESS);
    assert_int_equal(sites.n, 0);
}

static void test_many_sites(void **state)
{
    enum { LINES = 5000, LINE_BYTES = 10 };
    static char text[LINES * LINE_BYTES + 1];
    (void)state;
    for (int i = 0; i < LINES; i++) {
        (void)snprintf(text + (ptrdiff_t)i * LINE_BYTES, LINE_BYTES + 1, "%04d redo\n", i);
    }
    write_sites_t sites;
    assert_int_equal(load_sites(text, &sites), DB_SUCCESS);
    assert_int_equal(sites.n, LINES);
    fs_site_t site;
    assert_true(write_sites_find(&sites, LINES - 1, &site));
    assert_int_equal(site, SITE_REDO);
    assert_false(write_sites_find(&sites, LINES, &site));
    write_sites_free(&sites);
}

/** Every cut and every damaged byte either loads or is refused; nothing else. */
static void test_hostile(void **state)
{
    (void)state;
    builder_t good;
    standard(&good);
    for (uint64_t at = TP_TRACE_HEADER_SIZE; at < good.used; at++) {
        builder_t b = good;
        err_sink_t err = {.msg = ""};
        image_t *image = image_create();
        b.bytes[at] ^= 0xff;
        trace_t trace;
        if (load(&b, image, &trace, &err) == DB_SUCCESS) {
            trace_free(&trace);
        }
        image_destroy(image);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_events, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clients_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_issued_unasked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_range_that_is_written_back_is_not_synced, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_failures_are_heard_of, setup, teardown),
        cmocka_unit_test_setup_teardown(test_first_flushes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tickets, setup, teardown),
        cmocka_unit_test_setup_teardown(test_allocation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_renamed_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_exchanged_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_without_a_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sync_of_everything, setup, teardown),
        cmocka_unit_test_setup_teardown(test_truncation_by_open, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dirs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sites_of_single_writes, setup, teardown),
        cmocka_unit_test(test_sites_by_place),
        cmocka_unit_test(test_wrong_sites),
        cmocka_unit_test(test_many_sites),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
