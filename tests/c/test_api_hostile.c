/** Hostile images: whatever the bytes of a directory are, an open ends with a dberr_t and one line.
It never crashes, hangs, leaks or takes memory without bound, and it never says DB_SUCCESS over a
page that recovery has read damaged (I30).

Each trial takes one of a few real images, changes it in one to four places, with or without right
checksums, opens it, works a little, closes it and scans it. Everything follows from one seed:

    HOSTILE_ITERATIONS=100000 HOSTILE_SEED=1 test_api_hostile     a longer run
    HOSTILE_ITERATIONS=1 HOSTILE_SEED=N test_api_hostile          one trial again */
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "page/page_index.h"
#include "test_api_fixture.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif

#define ITERATIONS_DEFAULT 250U
#define TRIAL_SECONDS_MAX 30U
#define MEMORY_MAX_MIB 512
/** malloc counts its caches as in use. What leaks in smaller steps, the sanitizer tells. */
#define LEAK_SLACK (64U * 1024)

#ifdef WITH_ASAN
const char *__asan_default_options(void); /* NOLINT: the sanitizer gives the name */
/** One allocation beyond the bound fails as it would on a full machine. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=512";
}
void __sanitizer_set_death_callback(void (*callback)(void));
#endif

/* ---- what a failure prints ---- */

static char trial_line[128];

static void say_trial(void)
{
    ssize_t n = write(STDERR_FILENO, trial_line, strlen(trial_line));
    (void)n;
}

static void on_signal(int sig)
{
    say_trial();
    (void)signal(sig, SIG_DFL);
    (void)raise(sig);
}

/* ---- numbers ---- */

/** splitmix64 */
static uint64_t prng(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
}

static uint32_t below(uint64_t *rnd, uint64_t n)
{
    return n == 0 ? 0 : (uint32_t)(prng(rnd) % n);
}

/* ---- images ---- */

typedef enum image_kind {
    IMAGE_CLEAN,
    IMAGE_INSERT,     /**< crash inside a transaction */
    IMAGE_ADD_INDEX,  /**< crash after the load, before MLOG_INDEX_LOAD */
    IMAGE_INDEX_LOAD, /**< crash after it */
    IMAGE_DROP,       /**< crash between FILE_DELETE and unlink */
    IMAGE_RECOVERY,   /**< crash between two batches of a recovery */
    IMAGE_N
} image_kind_t;

typedef struct image {
    os_t *os;
    engine_options_t options;
    uint32_t page_size;
} image_t;

typedef struct images {
    image_t at[2 * IMAGE_N];
    uint32_t n;
} images_t;

/** Copies the directory the first time that a fault point is met. */
typedef struct snapshot {
    os_t *os;
    const char *point;
    os_t *taken;
} snapshot_t;

static void on_snapshot_point(void *ctx, const char *name)
{
    snapshot_t *snapshot = ctx;
    if (snapshot->taken == NULL && strcmp(name, snapshot->point) == 0) {
        assert_int_equal(os_mem_clone(snapshot->os, &snapshot->taken), DB_SUCCESS);
    }
}

static void fill(fixture_t *f)
{
    create_table(f, "t");
    insert_rows(f, "t", 1, 300);
    add_two_indexes(f, "t");
    delete_rows(f, "t", 50, 80);
    create_table(f, "u");
    insert_rows(f, "u", 1, 20);
    OK(f, engine_checkpoint(f->engine, false));
    update_rows(f, "t", 100, 160, 'q');
}

/** Lets go of the database at a fault point of what crash_at does. */
static os_t *crash_at(fixture_t *f, image_kind_t kind)
{
    static const char *const points[IMAGE_N] = {
        [IMAGE_ADD_INDEX] = "ddl.flushed",
        [IMAGE_INDEX_LOAD] = "ddl.index_load_logged",
        [IMAGE_DROP] = "fil.delete.logged",
        [IMAGE_RECOVERY] = "recv.batch_flushed",
    };
    snapshot_t snapshot = {.os = f->os, .point = points[kind]};
    const ddl_index_def_t def = index_def("id", "b", 10);
    f->probe.point = on_snapshot_point;
    f->probe.ctx = &snapshot;
    atomic_store(&f->probe.armed, snapshot.point != NULL);
    if (kind == IMAGE_INSERT || kind == IMAGE_RECOVERY) {
        byte row[8 + B_LEN + 8];
        trx_t *trx = NULL;
        OK(f, engine_begin(f->engine, &trx));
        for (int64_t a = 1000; a < 1120; a++) {
            make_row(a, row);
            OK(f, engine_insert(f->engine, trx, "t", row));
        }
        OK(f, engine_flush_log(f->engine));
        fixture_close(f, false);
    } else if (kind == IMAGE_DROP) {
        OK(f, engine_drop_table(f->engine, "u"));
    } else if (kind != IMAGE_CLEAN) {
        OK(f, engine_add_indexes(f->engine, "t", &def, 1));
    }
    if (kind == IMAGE_RECOVERY) {
        fixture_open(f);
    }
    atomic_store(&f->probe.armed, false);
    if (f->engine != NULL) {
        fixture_close(f, kind == IMAGE_CLEAN);
    }
    if (snapshot.point == NULL) {
        assert_int_equal(os_mem_clone(f->os, &snapshot.taken), DB_SUCCESS);
    }
    assert_non_null(snapshot.taken);
    return snapshot.taken;
}

static void image_make(images_t *images, image_kind_t kind, uint32_t page_size)
{
    fixture_t f = {.engine = NULL};
    assert_int_equal(os_mem_create(&f.os), DB_SUCCESS);
    options_set_defaults(&f.options);
    f.options.page_size = page_size;
    f.options.log_file_size = 64 * (uint64_t)page_size;
    f.options.buffer_pool_pages = 32;
    f.options.dblwr_pages = 4;
    f.options.sort_buffer_size = 64 * 1024;
    f.options.recv_memory = 64 * 1024;
    fixture_open(&f);
    fill(&f);
    image_t *image = &images->at[images->n++];
    image->os = crash_at(&f, kind);
    image->options = f.options;
    image->page_size = page_size;
    image->options.page_size = 0;
    image->options.log_file_size = 0;
    os_destroy(f.os);
}

static int images_setup(void **state)
{
    images_t *images = calloc(1, sizeof(*images));
    assert_non_null(images);
    for (int kind = 0; kind < IMAGE_N; kind++) {
        image_make(images, (image_kind_t)kind, 4096);
    }
    image_make(images, IMAGE_CLEAN, 16384);
    image_make(images, IMAGE_INSERT, 16384);
    image_make(images, IMAGE_INDEX_LOAD, 16384);
    *state = images;
    return 0;
}

static int images_teardown(void **state)
{
    images_t *images = *state;
    for (uint32_t i = 0; i < images->n; i++) {
        os_destroy(images->at[i].os);
    }
    free(images);
    return 0;
}

/* ---- mutations ---- */

typedef struct mutation {
    os_t *os;
    uint64_t *rnd;
    uint32_t page_size;
} mutation_t;

static const char *const FILES[] = {"ib_logfile0", "ibdata1", "ib_dblwr", "t.ibd", "u.ibd"};
#define N_FILES (sizeof(FILES) / sizeof(FILES[0]))
#define FILE_LOG 0U

static byte *peek(const mutation_t *m, uint32_t file, uint64_t *size)
{
    byte *bytes = NULL;
    *size = 0;
    return os_mem_peek(m->os, FILES[file], &bytes, size) == DB_SUCCESS && *size > 0 ? bytes : NULL;
}

/** Data files only. */
static uint32_t some_data_file(const mutation_t *m)
{
    return 1 + below(m->rnd, N_FILES - 1);
}

/** A used page, more often than not; NULL if the file has none. */
static byte *some_page(const mutation_t *m, uint32_t file)
{
    uint64_t size = 0;
    byte *bytes = peek(m, file, &size);
    uint64_t n = size / m->page_size;
    if (bytes == NULL || n == 0) {
        return NULL;
    }
    byte *page = bytes;
    for (int i = 0; i < 4; i++) {
        page = bytes + (uint64_t)below(m->rnd, n) * m->page_size;
        if (mach_read_4(page) != 0) {
            break;
        }
    }
    return page;
}

/** Overwrites 1, 2, 4 or 8 bytes with a value that likes to be at the edge. */
static void poke(const mutation_t *m, byte *bytes, uint32_t len)
{
    static const uint64_t edges[] = {0,      1,          0xFF,       0x7FFF,
                                     0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, UINT64_MAX};
    uint32_t n = 1U << below(m->rnd, 4);
    uint32_t offset = below(m->rnd, len - n);
    byte value[8];
    uint32_t what = below(m->rnd, 4);
    if (what == 0) {
        bytes[offset] ^= (byte)(1U << below(m->rnd, 8));
        return;
    }
    mach_write_8(value, what == 1   ? edges[below(m->rnd, 8)]
                        : what == 2 ? below(m->rnd, 300)
                                    : prng(m->rnd));
    memcpy(bytes + offset, value + 8 - n, n);
}

static void restamp(const mutation_t *m, byte *page)
{
    if (below(m->rnd, 4) != 0) {
        fil_page_set_lsn(page, m->page_size, fil_page_get_lsn(page));
    }
    fil_page_stamp(page, m->page_size);
}

static void mutate_bit(const mutation_t *m)
{
    uint64_t size = 0;
    byte *bytes = peek(m, below(m->rnd, N_FILES), &size);
    if (bytes != NULL) {
        bytes[prng(m->rnd) % size] ^= (byte)(1U << below(m->rnd, 8));
    }
}

/** A page with a right checksum and wrong contents: header, start of the contents, or anywhere. */
static void mutate_page(const mutation_t *m)
{
    byte *page = some_page(m, some_data_file(m));
    if (page == NULL) {
        return;
    }
    for (uint32_t n = 1 + below(m->rnd, 3); n > 0; n--) {
        switch (below(m->rnd, 4)) {
        case 0:
            poke(m, page, 38);
            break;
        case 1:
            poke(m, page + FIL_PAGE_DATA, 90);
            break;
        case 2:
            poke(m, page + m->page_size - 200, 192);
            break;
        default:
            poke(m, page + FIL_PAGE_DATA, m->page_size - FIL_PAGE_DATA);
        }
    }
    restamp(m, page);
}

static void mutate_page_torn(const mutation_t *m)
{
    byte *page = some_page(m, some_data_file(m));
    if (page != NULL) {
        uint32_t from = below(m->rnd, m->page_size / 512) * 512;
        memset(page + from, (int)below(m->rnd, 2), m->page_size - from);
    }
}

static void mutate_page_zero(const mutation_t *m)
{
    byte *page = some_page(m, some_data_file(m));
    if (page != NULL) {
        memset(page, 0, m->page_size);
    }
}

/** A page at the place of another one, with the other's identity or its own. */
static void mutate_page_copy(const mutation_t *m)
{
    byte *from = some_page(m, some_data_file(m));
    byte *to = some_page(m, some_data_file(m));
    byte id[2][4];
    if (from == NULL || to == NULL || from == to) {
        return;
    }
    memcpy(id[0], to + FIL_PAGE_OFFSET, 4);
    memcpy(id[1], to + FIL_PAGE_SPACE_ID, 4);
    memcpy(to, from, m->page_size);
    if (below(m->rnd, 2) == 0) {
        memcpy(to + FIL_PAGE_OFFSET, id[0], 4);
        memcpy(to + FIL_PAGE_SPACE_ID, id[1], 4);
        restamp(m, to);
    }
}

static void mutate_length(const mutation_t *m)
{
    probe_t probe = {.point = NULL};
    env_t env = {.os = m->os, .probe = &probe};
    os_file_t *file = NULL;
    uint64_t size = 0;
    const char *path = FILES[below(m->rnd, N_FILES)];
    if (env_open(&env, path, OS_OPEN, &file) != DB_SUCCESS) {
        return;
    }
    assert_int_equal(env_size(&env, file, &size), DB_SUCCESS);
    switch (below(m->rnd, 4)) {
    case 0:
        size = 0;
        break;
    case 1:
        size += below(m->rnd, 100000);
        break;
    case 2:
        size -= size > m->page_size ? m->page_size : 0;
        break;
    default:
        size = below(m->rnd, size);
    }
    assert_int_equal(env_truncate(&env, file, size), DB_SUCCESS);
    env_close(&env, file);
}

static void mutate_entries(const mutation_t *m)
{
    probe_t probe = {.point = NULL};
    env_t env = {.os = m->os, .probe = &probe};
    const char *a = FILES[below(m->rnd, N_FILES)];
    const char *b = below(m->rnd, 2) == 0 ? "w.ibd" : FILES[some_data_file(m)];
    bool exists = false;
    assert_int_equal(env_exists(&env, a, &exists), DB_SUCCESS);
    if (exists) {
        dberr_t err = below(m->rnd, 2) == 0 ? env_unlink(&env, a) : env_rename(&env, a, b);
        assert_int_equal(err, DB_SUCCESS);
    }
}

static void block_stamp(byte *block)
{
    mach_write_4(block + 508, crc32c(block, 508));
}

/** Header and slots of the redo file. */
static void mutate_log_head(const mutation_t *m)
{
    uint64_t size = 0;
    byte *bytes = peek(m, FILE_LOG, &size);
    if (bytes != NULL && size >= 2048) {
        byte *block =
            bytes + 512 * (uint64_t)(below(m->rnd, 3) == 0 ? 0 : 1 + 2 * below(m->rnd, 2));
        poke(m, block, 40);
        block_stamp(block);
    }
}

/** A written block, or any one if luck will have it. */
static byte *some_block(const mutation_t *m)
{
    uint64_t size = 0;
    byte *bytes = peek(m, FILE_LOG, &size);
    if (bytes == NULL || size < 4096) {
        return NULL;
    }
    byte *block = bytes;
    for (int i = 0; i < 8; i++) {
        block = bytes + 2048 + (uint64_t)below(m->rnd, (size - 2048) / 512) * 512;
        if (mach_read_4(block) != 0) {
            break;
        }
    }
    return block;
}

/** The last `back` blocks that hold log are what recovery reads. */
static byte *late_block(const mutation_t *m)
{
    uint64_t size = 0;
    byte *bytes = peek(m, FILE_LOG, &size);
    byte *last = NULL;
    for (uint64_t at = 2048; bytes != NULL && at + 512 <= size; at += 512) {
        if (last == NULL || mach_read_4(bytes + at) > mach_read_4(last)) {
            last = bytes + at;
        }
    }
    if (last == NULL) {
        return NULL;
    }
    uint64_t back = (uint64_t)below(m->rnd, 60) * 512;
    return (uint64_t)(last - bytes) >= 2048 + back ? last - back : last;
}

static void mutate_block(const mutation_t *m)
{
    byte *block = below(m->rnd, 4) == 0 ? some_block(m) : late_block(m);
    if (block == NULL) {
        return;
    }
    for (uint32_t n = 1 + below(m->rnd, 3); n > 0; n--) {
        if (below(m->rnd, 5) == 0) {
            poke(m, block, 12);
        } else {
            poke(m, block + 12, 496);
        }
    }
    if (below(m->rnd, 8) != 0) {
        block_stamp(block);
    }
}

static void mutate_block_copy(const mutation_t *m)
{
    byte *from = some_block(m);
    byte *to = late_block(m);
    byte number[8];
    if (from == NULL || to == NULL || from == to) {
        return;
    }
    memcpy(number, to, 8);
    memcpy(to, from, 512);
    if (below(m->rnd, 2) == 0) {
        memcpy(to, number, 8);
        block_stamp(to);
    }
}

/** Puts a whole record of some type, space and page into the middle of a block. */
static void mutate_record(const mutation_t *m)
{
    static const byte types[] = {1,  2,  4,  8,  30, 31, 32, 35, 37, 38, 41,
                                 42, 43, 44, 47, 54, 55, 56, 59, 61, 63, 64};
    byte *block = late_block(m);
    if (block == NULL) {
        return;
    }
    uint32_t first = mach_read_2(block + 10);
    uint32_t at =
        first >= 12 && first < 400 && below(m->rnd, 4) != 0 ? first : 12 + below(m->rnd, 400);
    block[at] = (byte)(types[below(m->rnd, sizeof(types))] | (below(m->rnd, 2) << 7));
    for (uint32_t i = 1; i < 1 + below(m->rnd, 30); i++) {
        block[at + i] = (byte)(below(m->rnd, 3) == 0 ? prng(m->rnd) : below(m->rnd, 6));
    }
    block_stamp(block);
}

static void mutate(const mutation_t *m)
{
    static void (*const kinds[])(const mutation_t *) = {
        mutate_bit,    mutate_page,      mutate_page,   mutate_page,       mutate_page_torn,
        mutate_block,  mutate_page_zero, mutate_block,  mutate_page_copy,  mutate_record,
        mutate_length, mutate_log_head,  mutate_record, mutate_block_copy, mutate_entries};
    for (uint32_t n = 1 + below(m->rnd, 4); n > 0; n--) {
        kinds[below(m->rnd, sizeof(kinds) / sizeof(kinds[0]))](m);
    }
}

/* ---- a trial ---- */

/** Pages that recovery has verified or built. */
typedef struct seen {
    page_id_t ids[4096];
    uint32_t n;
} seen_t;

static void on_mark(void *ctx, const char *mark, size_t len)
{
    seen_t *seen = ctx;
    page_id_t id;
    char text[256];
    (void)snprintf(text, sizeof(text), "%.*s", (int)len, mark);
    if ((sscanf(text, "recv_read space=%u page=%u", &id.space, &id.page_no) == 2
         || sscanf(text, "recv_create space=%u page=%u", &id.space, &id.page_no) == 2)
        && seen->n < 4096) {
        seen->ids[seen->n++] = id;
    }
}

typedef struct tally {
    uint32_t opened;
    uint32_t refused;
    uint32_t findings;
} tally_t;

/** Whatever fails may fail; the first failure that poisons ends it. */
static bool work(engine_t *engine, uint64_t *rnd)
{
    const ddl_index_def_t def = index_def("iz", "c", 0);
    byte row[8 + B_LEN + 8];
    trx_t *trx = NULL;
    uint64_t n = 0;
    bool done = false;
    if (engine_begin(engine, &trx) != DB_SUCCESS) {
        return false;
    }
    bool ok = true;
    for (int i = 0; i < 8; i++) {
        make_row((int64_t)below(rnd, 400), row);
        bool change = below(rnd, 2) == 0;
        dberr_t err =
            change ? engine_insert(engine, trx, "t", row) : engine_delete(engine, trx, "t", row);
        ok = ok && err != DB_IO_ERROR && err != DB_CORRUPTION;
    }
    ok = (below(rnd, 2) == 0 ? engine_commit(engine, trx) : engine_rollback(engine, trx))
             == DB_SUCCESS
         && ok;
    ok = engine_scan(engine, "t", NULL, count_row_fn, &n) == DB_SUCCESS && ok;
    ok = engine_scan(engine, "t", "ib", count_row_fn, &n) == DB_SUCCESS && ok;
    ok = engine_purge(engine, 200, &done) == DB_SUCCESS && ok;
    switch (below(rnd, 5)) {
    case 0:
        return engine_add_indexes(engine, "t", &def, 1) == DB_SUCCESS && ok;
    case 1:
        return engine_drop_index(engine, "t", "ib") == DB_SUCCESS && ok;
    case 2:
        return engine_drop_table(engine, "u") == DB_SUCCESS && ok;
    case 3:
        return engine_rename_table(engine, "u", "v") == DB_SUCCESS && ok;
    default:
        return ok;
    }
}

static void check_seen(const seen_t *seen, const check_report_t *report, os_t *os)
{
    for (uint64_t i = 0; i < report->n_findings && i < CHECK_FINDINGS_MAX; i++) {
        const check_finding_t *finding = &report->findings[i];
        byte *bytes = NULL;
        uint64_t size = 0;
        if (finding->invariant != 5 || finding->page_no == FIL_NULL
            || os_mem_peek(os, finding->path, &bytes, &size) != DB_SUCCESS || size < 4096) {
            continue;
        }
        bool system = strcmp(finding->path, "ibdata1") == 0;
        space_id_t space = system ? SPACE_SYSTEM : mach_read_4(bytes + FIL_PAGE_SPACE_ID);
        if (!system && (space == SPACE_SYSTEM || mach_read_4(bytes + FIL_PAGE_OFFSET) != 0)) {
            continue; /* nobody's file, such as the doublewrite file under another name */
        }
        for (uint32_t j = 0; j < seen->n; j++) {
            if (seen->ids[j].space == space && seen->ids[j].page_no == finding->page_no) {
                fail_msg("%sI30: recovery read page %u of %s and succeeded: %s", trial_line,
                         finding->page_no, finding->path, finding->what);
            }
        }
    }
}

static void trial(const images_t *images, uint64_t seed, tally_t *tally)
{
    uint64_t rnd = seed;
    const image_t *image = &images->at[below(&rnd, images->n)];
    static seen_t seen;
    probe_t probe = {.mark = on_mark, .ctx = &seen};
    mutation_t m = {.rnd = &rnd, .page_size = image->page_size};
    engine_t *engine = NULL;
    err_sink_t err = {.msg = ""};
    check_report_t report;
    seen.n = 0;
    atomic_store(&probe.armed, true);
    assert_int_equal(os_mem_clone(image->os, &m.os), DB_SUCCESS);
    mutate(&m);
    dberr_t e = engine_open(m.os, &probe, &image->options, below(&rnd, 8) == 0, &engine, &err);
    if (e == DB_SUCCESS) {
        tally->opened++;
        bool at_work = below(&rnd, 2) == 0;
        bool clean = !at_work || work(engine, &rnd);
        e = engine_close(engine, clean);
        bool scanned = check_run(m.os, &report, &err) == DB_SUCCESS;
        if (scanned && !at_work && e == DB_SUCCESS) {
            check_seen(&seen, &report, m.os);
            tally->findings += report.n_findings != 0;
        }
        if (scanned) {
            check_report_free(&report);
        }
    } else {
        tally->refused++;
        assert_true(err.msg[0] != 0);
        assert_null(strchr(err.msg, '\n'));
        if (check_run(m.os, &report, &err) == DB_SUCCESS) {
            check_report_free(&report);
        }
    }
    os_destroy(m.os);
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void test_hostile(void **state)
{
    const images_t *images = *state;
    uint64_t n = env_number("HOSTILE_ITERATIONS", ITERATIONS_DEFAULT);
    uint64_t seed = env_number("HOSTILE_SEED", 1);
    tally_t tally = {.opened = 0};
#ifdef WITH_ASAN
    __sanitizer_set_death_callback(say_trial);
#else
    const struct rlimit limit = {(rlim_t)MEMORY_MAX_MIB << 20, (rlim_t)MEMORY_MAX_MIB << 20};
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    size_t in_use = 0;
#endif
    (void)signal(SIGABRT, on_signal);
    (void)signal(SIGALRM, on_signal);
    for (uint64_t i = 0; i < n; i++) {
        (void)snprintf(trial_line, sizeof(trial_line), "HOSTILE_ITERATIONS=1 HOSTILE_SEED=%llu\n",
                       (unsigned long long)(seed + i));
        (void)alarm(TRIAL_SECONDS_MAX);
        trial(images, seed + i, &tally);
#ifndef WITH_ASAN
        size_t now = mallinfo2().uordblks;
        in_use = i == 0 ? now : in_use;
        if (now > in_use + LEAK_SLACK) {
            fail_msg("%smemory leak: %zu bytes", trial_line, now - in_use);
        }
#endif
    }
    (void)alarm(0);
    print_message("%u opened, %u refused, %u with findings\n", tally.opened, tally.refused,
                  tally.findings);
    assert_true(n < ITERATIONS_DEFAULT || (tally.opened > n / 10 && tally.refused > n / 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hostile, images_setup, images_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
