/** Hostile images: whatever the bytes of a directory are, an open ends with a dberr_t and one line.
It never crashes, hangs, leaks or takes memory without bound, and it never says DB_SUCCESS over a
page that recovery has read damaged (I30).

Each trial takes one of a few real images, changes it in one to four places, with or without right
checksums, opens it, works a little, closes it and scans it. Everything follows from one seed:

    HOSTILE_ITERATIONS=100000 HOSTILE_SEED=1 test_api_hostile     a longer run
    HOSTILE_ITERATIONS=1 HOSTILE_SEED=N test_api_hostile          one trial again */
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "page/fil_page.h"
#include "test_api_columns.h"
#include "test_api_mutation.h"

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

/* ---- images ---- */

typedef enum image_kind {
    IMAGE_CLEAN,
    IMAGE_INSERT,     /**< crash inside a transaction */
    IMAGE_ADD_INDEX,  /**< crash after the load, before OP_INDEX_LOAD */
    IMAGE_INDEX_LOAD, /**< crash after it */
    IMAGE_DROP,       /**< crash between FILE_DELETE and unlink */
    IMAGE_RECOVERY,   /**< crash between two batches of a recovery */
    IMAGE_TRUNCATE,   /**< crash before an undo tablespace is cut */
    IMAGE_INSTANT,    /**< crash behind the metadata of an instant column, before its commit */
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
        snapshot->taken = image_os_clone(snapshot->os);
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

/** To `u`: the first one is true before the fault point of the second one. */
static void add_two_columns(fixture_t *f)
{
    new_column_t *new = malloc(sizeof(*new));
    assert_non_null(new);
    insert_rows(f, "u", 21, 200);
    ddl_alter_t alter = add_column(new, "d", DICT_VARCHAR, 20);
    alter.table = "u";
    OK(f, engine_alter(f->engine, &alter));
    alter.algorithm = ALGORITHM_INSTANT;
    alter.name = memcpy(new->col.name, "e", 2);
    OK(f, engine_alter(f->engine, &alter));
    OK(f, engine_checkpoint(f->engine, true));
    atomic_store(&f->probe.armed, true);
    alter.name = memcpy(new->col.name, "f", 2);
    OK(f, engine_alter(f->engine, &alter));
    free(new);
}

/** Lets go of the database at a fault point of what crash_at does. */
static os_t *crash_at(fixture_t *f, image_kind_t kind)
{
    static const char *const points[IMAGE_N] = {
        [IMAGE_ADD_INDEX] = "ddl.flushed",         [IMAGE_INDEX_LOAD] = "ddl.index_load_logged",
        [IMAGE_DROP] = "fil.delete.logged",        [IMAGE_RECOVERY] = "recv.batch_flushed",
        [IMAGE_TRUNCATE] = "undo.truncate.logged", [IMAGE_INSTANT] = "trx.metadata_set",
    };
    snapshot_t snapshot = {.os = f->os, .point = points[kind]};
    const ddl_index_def_t def = index_def("id", "b", 10);
    f->probe.point = on_snapshot_point;
    f->probe.ctx = &snapshot;
    atomic_store(&f->probe.armed, snapshot.point != NULL && kind != IMAGE_INSTANT);
    if (kind == IMAGE_INSERT || kind == IMAGE_RECOVERY) {
        trx_t *trx = NULL;
        OK(f, engine_begin(f->engine, &trx));
        byte row[8 + B_LEN + 8];
        for (int64_t a = 1000; a < 1120; a++) {
            make_row(a, row);
            OK(f, engine_insert(f->engine, trx, "t", row));
        }
        OK(f, engine_flush_log(f->engine));
        fixture_close(f, false);
    } else if (kind == IMAGE_DROP) {
        OK(f, engine_drop_table(f->engine, "u"));
    } else if (kind == IMAGE_TRUNCATE) {
        update_rows(f, "t", 100, 300, 'r');
        purge_all(f);
    } else if (kind == IMAGE_INSTANT) {
        add_two_columns(f);
    } else if (kind != IMAGE_CLEAN) {
        OK(f, add_indexes(f->engine, "t", &def, 1));
    }
    if (kind == IMAGE_RECOVERY) {
        fixture_open(f);
    }
    atomic_store(&f->probe.armed, false);
    if (f->engine != NULL) {
        fixture_close(f, kind == IMAGE_CLEAN);
    }
    if (snapshot.point == NULL) {
        snapshot.taken = image_os_clone(f->os);
    }
    assert_non_null(snapshot.taken);
    return snapshot.taken;
}

static void image_make(images_t *images, image_kind_t kind, uint32_t page_size)
{
    fixture_t f = {.engine = NULL};
    f.os = image_os_create();
    fixture_options(&f.options);
    f.options.page_size = page_size;
    f.options.log_file_size = 64 * (uint64_t)page_size;
    f.options.dblwr_pages = 4;
    f.options.recv_memory = 64 * 1024;
    if (kind == IMAGE_TRUNCATE) {
        f.options.undo_tablespaces = 2;
        f.options.max_undo_log_size = 4 * page_size;
    }
    fixture_open(&f);
    fill(&f);
    image_t *image = &images->at[images->n++];
    image->os = crash_at(&f, kind);
    image->options = f.options;
    image->page_size = page_size;
    image->options.page_size = 0;
    image->options.log_file_size = 0;
    image->options.undo_tablespaces = 0;
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

/* ---- a trial ---- */

/** Pages that recovery has verified or built. */
typedef struct seen {
    page_id_t ids[4096];
    uint32_t n;
} seen_t;

static void on_mark(void *ctx, const char *mark, size_t len)
{
    seen_t *seen = ctx;
    char text[256];
    (void)snprintf(text, sizeof(text), "%.*s", (int)len, mark);
    page_id_t id;
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
    trx_t *trx = NULL;
    if (engine_begin(engine, &trx) != DB_SUCCESS) {
        return false;
    }
    bool ok = true;
    byte row[8 + B_LEN + 8];
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
    uint64_t n = 0;
    ok = engine_scan(engine, "t", NULL, count_row_fn, &n) == DB_SUCCESS && ok;
    ok = engine_scan(engine, "t", "ib", count_row_fn, &n) == DB_SUCCESS && ok;
    dberr_t other = engine_scan(engine, "u", NULL, count_row_fn, &n);
    ok = ok && (other == DB_SUCCESS || other == DB_NOT_FOUND);
    bool done = false;
    ok = engine_purge(engine, 200, &done) == DB_SUCCESS && ok;
    switch (below(rnd, 5)) {
    case 0:
        return add_indexes(engine, "t", &def, 1) == DB_SUCCESS && ok;
    case 1:
        return drop_index(engine, "t", "ib") == DB_SUCCESS && ok;
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
            || (bytes = image_os_bytes(os, finding->path, &size)) == NULL || size < 4096) {
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
    err_sink_t err = {.msg = ""};
    seen.n = 0;
    atomic_store(&probe.armed, true);
    m.os = image_os_clone(image->os);
    mutate(&m);
    engine_t *engine = NULL;
    dberr_t e = engine_open(m.os, &probe, &image->options, below(&rnd, 8) == 0, &engine, &err);
    check_report_t report;
    if (e == DB_SUCCESS) {
        tally->opened++;
        bool at_work = below(&rnd, 2) == 0;
        bool clean = !at_work || work(engine, &rnd);
        e = engine_close(engine, clean, NULL);
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
        (void)snprintf(trial_line, sizeof(trial_line),
                       "HOSTILE_ITERATIONS=1 HOSTILE_SEED=%" PRIu64 "\n", (seed + i));
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
