/* The scan that knows earlier ones says what the full scan says, whatever became of the pages
between two; and it spares work. */
#include "engine_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/engine.h"
#include "base/mach.h"
#include "disk/image.h"
#include "explorer/judge/scan.h"
#include "page/fil_page.h"

#define PAGE 4096U
#define MEMO_BYTES ((size_t)64 << 20)
#define ROWS 900U
#define ROW_BYTES 48U
#define LONG_ROWS 12U
#define LONG_MAX 9000U
/** Of ten thousand of them the wrecks lie in ibdata1 and t.ibd, of the others in v.ibd. */
#define IMAGES 12500U
#define WRECKS_MAX 3U

typedef struct fixture {
    image_t *image;
    image_t *older; /**< of the same database, some work before */
    engine_options_t options;
    probe_t probe;
    uint64_t seed;
    uint32_t reads;
} fixture_t;

static uint32_t draw(fixture_t *f, uint32_t n)
{
    f->seed = f->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(f->seed >> 33) % n;
}

static engine_t *open_engine(fixture_t *f, image_t *image)
{
    return open_engine_on(image, &f->probe, &f->options);
}

static void add_index(engine_t *engine, const char *name, const char *col, bool unique)
{
    ddl_index_def_t def = {.unique = unique, .n_fields = 1};
    (void)snprintf(def.name, sizeof(def.name), "%s", name);
    (void)snprintf(def.fields[0].col, sizeof(def.fields[0].col), "%s", col);
    const ddl_alter_t alter = {.kind = ALTER_ADD_INDEX, .table = "t", .defs = &def, .n_defs = 1};
    assert_int_equal(engine_alter(engine, &alter), DB_SUCCESS);
}

static void make_row(byte row[ROW_BYTES], uint32_t i, uint32_t c)
{
    memset(row, ' ', ROW_BYTES);
    mach_write_8(row, dict_bigint_encode((int64_t)i));
    (void)snprintf((char *)row + 8, 32, "row %08u", i * 7919U % 10000U);
    row[8 + 12] = ' ';
    mach_write_8(row + 40, dict_bigint_encode((int64_t)c));
}

static void fill(engine_t *engine, uint32_t from, uint32_t to)
{
    trx_t *trx = NULL;
    assert_int_equal(engine_begin(engine, &trx), DB_SUCCESS);
    byte row[ROW_BYTES];
    for (uint32_t i = from; i < to; i++) {
        make_row(row, i, i % 5);
        assert_int_equal(engine_insert(engine, trx, "t", row), DB_SUCCESS);
    }
    assert_int_equal(engine_commit(engine, trx), DB_SUCCESS);
}

static void insert_long(engine_t *engine, trx_t *trx, uint32_t i)
{
    const dict_table_t *table = engine_table(engine, "v");
    byte *row = malloc(table->row_size);
    assert_non_null(row);
    byte text[LONG_MAX];
    memset(text, 'a' + (int)i, sizeof(text));
    byte number[8];
    mach_write_8(number, dict_bigint_encode((int64_t)i));
    dict_row_init(table, row);
    dict_col_put(&table->cols[0], row, number, sizeof(number));
    dict_col_put(&table->cols[1], row, text, LONG_MAX - i * 500U);
    assert_int_equal(engine_insert(engine, trx, "v", row), DB_SUCCESS);
    free(row);
}

/** A table of values that have pages of their own. */
static void make_long_table(engine_t *engine)
{
    create_table_of_two(engine, "v", DICT_VARCHAR, LONG_MAX);
    trx_t *trx = NULL;
    assert_int_equal(engine_begin(engine, &trx), DB_SUCCESS);
    for (uint32_t i = 0; i < LONG_ROWS; i++) {
        insert_long(engine, trx, i);
    }
    assert_int_equal(engine_commit(engine, trx), DB_SUCCESS);
}

/** Leaves delete marks and transaction ids, of which no history is purged. */
static void delete_some(engine_t *engine)
{
    trx_t *trx = NULL;
    assert_int_equal(engine_begin(engine, &trx), DB_SUCCESS);
    for (uint32_t i = 0; i < ROWS / 2; i += 9) {
        byte pk[8];
        mach_write_8(pk, dict_bigint_encode((int64_t)i));
        assert_int_equal(engine_delete(engine, trx, "t", pk), DB_SUCCESS);
    }
    assert_int_equal(engine_commit(engine, trx), DB_SUCCESS);
}

/** A table with a unique index and another, in one image up to half of its rows, in the other up to
all; and one of long values. */
static void make_database(fixture_t *f, image_t *image, bool whole)
{
    dict_table_t made = {.name = "t",
                         .n_cols = 3,
                         .cols = {{.name = "a", .type = DICT_BIGINT, .len = 8},
                                  {.name = "b", .type = DICT_CHAR, .len = 32},
                                  {.name = "c", .type = DICT_BIGINT, .len = 8}},
                         .n_indexes = 1};
    made.indexes[0].n_fields = 1;
    made.indexes[0].fields[0] = (dict_field_t){.col = 0, .prefix_len = 8};
    engine_t *engine = open_engine(f, image);
    assert_int_equal(engine_create_table(engine, &made), DB_SUCCESS);
    add_index(engine, "u", "b", true);
    add_index(engine, "i", "c", false);
    fill(engine, 0, ROWS / 2);
    make_long_table(engine);
    assert_int_equal(engine_checkpoint(engine, true), DB_SUCCESS);
    if (whole) {
        delete_some(engine);
        fill(engine, ROWS / 2, ROWS);
    }
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
}

static int setup(void **state)
{
    static fixture_t f;
    f = (fixture_t){.image = image_create(), .older = image_create(), .seed = 5};
    options_set_defaults(&f.options);
    f.options.buffer_pool_pages = 256;
    make_database(&f, f.older, false);
    make_database(&f, f.image, true);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_t *f = *state;
    image_destroy(f->image);
    image_destroy(f->older);
    return 0;
}

/* ---- wrecks ---- */

static uint32_t inode_of(const image_t *image, const char *path)
{
    return image_lookup(image, image_name_find(image, path));
}

static void put(fixture_t *f, uint32_t inode, uint32_t page_no, byte *page, bool stamp)
{
    if (stamp) {
        fil_page_stamp(page, PAGE);
    }
    assert_true(image_write(f->image, inode, (uint64_t)page_no * PAGE, page, PAGE));
}

/** One thing that a crash or a bug may do to a page. */
static void wreck(fixture_t *f)
{
    static const char *const PATHS[] = {"ibdata1", "t.ibd", "t.ibd", "t.ibd", "v.ibd"};
    const char *path = PATHS[draw(f, 5)];
    uint32_t inode = inode_of(f->image, path);
    uint32_t n = (uint32_t)(image_size(f->image, inode) / PAGE);
    uint32_t page_no = draw(f, n);
    uint32_t other = draw(f, n);
    uint32_t old = inode_of(f->older, path);
    byte page[PAGE];
    image_read(f->image, inode, (uint64_t)page_no * PAGE, page, PAGE);
    switch (draw(f, 6)) {
    case 0: /* a byte, seen by the checksum, or not */
        page[draw(f, PAGE)] ^= (byte)(1U + draw(f, 255));
        put(f, inode, page_no, page, draw(f, 4) != 0);
        break;
    case 1: /* a byte of the header or the first records */
        page[FIL_PAGE_PREV + draw(f, 160)] ^= (byte)(1U << draw(f, 8));
        put(f, inode, page_no, page, true);
        break;
    case 2: /* another page's content, under this number */
        image_read(f->image, inode, (uint64_t)other * PAGE, page, PAGE);
        mach_write_4(page + FIL_PAGE_OFFSET, page_no);
        put(f, inode, page_no, page, true);
        break;
    case 3: /* as it was before: a write that was lost */
        if (page_no < image_size(f->older, old) / PAGE) {
            image_read(f->older, old, (uint64_t)page_no * PAGE, page, PAGE);
            put(f, inode, page_no, page, false);
        }
        break;
    case 4: /* the same page, written again with another LSN */
        fil_page_set_lsn(page, PAGE, fil_page_get_lsn(page) - 1 - draw(f, 8));
        put(f, inode, page_no, page, true);
        break;
    default:
        assert_true(image_truncate(f->image, inode, (uint64_t)(n - draw(f, 3)) * PAGE));
    }
}

static void test_many_images(void **state)
{
    fixture_t *f = *state;
    check_memo_t *memo = check_memo_create(MEMO_BYTES);
    uint32_t clean = 0;
    uint32_t found[32] = {0};
    for (uint32_t i = 0; i < IMAGES; i++) {
        err_sink_t failed = {.msg = ""};
        const scan_t scan = {.memo = memo, .in_full = true, .failed = &failed};
        image_mark(f->image);
        for (uint32_t wrecks = draw(f, WRECKS_MAX + 1); wrecks > 0; wrecks--) {
            wreck(f);
        }
        check_report_t report;
        dberr_t err = scan_run(&scan, image_os(f->image), &report, NULL);
        assert_string_equal(failed.msg, "");
        if (err == DB_SUCCESS) {
            clean += report.n_findings == 0;
            for (uint64_t k = 0; k < report.n_findings && k < CHECK_FINDINGS_MAX; k++) {
                found[report.findings[k].invariant]++;
            }
            check_report_free(&report);
        }
        image_undo(f->image);
    }
    check_memo_free(memo);
    assert_true(clean > IMAGES / 8 && clean < IMAGES / 2);
    const uint32_t often[] = {5, 6, 7, 8, 9, 10, 11};
    for (size_t k = 0; k < sizeof(often) / sizeof(often[0]); k++) {
        assert_true(found[often[k]] > 20);
    }
}

/** With too little room the memo forgets, keeps no more than it may, and every scan says the
same. */
static void test_memory_is_bounded(void **state)
{
    fixture_t *f = *state;
    check_report_t report;
    check_memo_t *roomy = check_memo_create(MEMO_BYTES);
    assert_int_equal(check_run_again(image_os(f->image), roomy, &report, NULL), DB_SUCCESS);
    check_report_free(&report);
    size_t wanted = check_memo_bytes(roomy);
    check_memo_free(roomy);
    for (size_t part = 0; part <= 8; part++) {
        check_memo_t *memo = check_memo_create(wanted * part / 8);
        size_t most = 0;
        for (uint32_t i = 0; i < 20; i++) {
            err_sink_t failed = {.msg = ""};
            const scan_t scan = {.memo = memo, .in_full = true, .failed = &failed};
            image_mark(f->image);
            for (uint32_t wrecks = draw(f, WRECKS_MAX + 1); wrecks > 0; wrecks--) {
                wreck(f);
            }
            if (scan_run(&scan, image_os(f->image), &report, NULL) == DB_SUCCESS) {
                check_report_free(&report);
            }
            image_undo(f->image);
            assert_string_equal(failed.msg, "");
            most = check_memo_bytes(memo) > most ? check_memo_bytes(memo) : most;
            assert_true(most <= wanted * part / 8);
        }
        assert_true(part < 4 || most > 0);
        check_memo_free(memo);
    }
}

/* ---- work that is spared ---- */

static void count_read(void *ctx, uint32_t inode, const char *path, uint64_t offset, uint64_t len)
{
    fixture_t *f = ctx;
    (void)inode, (void)path, (void)offset, (void)len;
    f->reads++;
}

static void ignore_event(void *ctx, fs_event_t *event, const char *path)
{
    (void)ctx, (void)event, (void)path;
}

static uint32_t reads_of_scan(fixture_t *f, check_memo_t *memo)
{
    const image_watch_t watch = {.event = ignore_event, .read = count_read, .ctx = f};
    f->reads = 0;
    image_os_watch(f->image, &watch);
    check_report_t report;
    assert_int_equal(check_run_again(image_os(f->image), memo, &report, NULL), DB_SUCCESS);
    image_os_watch(f->image, NULL);
    assert_int_equal(report.n_findings, 0);
    check_report_free(&report);
    return f->reads;
}

/** A page that is written anew with the same bytes costs nothing; one that changes costs itself and
its right neighbour. */
static void test_work_is_spared(void **state)
{
    fixture_t *f = *state;
    check_memo_t *memo = check_memo_create(MEMO_BYTES);
    uint32_t inode = inode_of(f->image, "t.ibd");
    uint32_t n = (uint32_t)(image_size(f->image, inode) / PAGE);
    uint32_t all = reads_of_scan(f, memo);
    uint32_t known = reads_of_scan(f, memo);
    assert_true(all > n && known < all / 2);
    image_mark(f->image);
    for (uint32_t i = 0; i < n; i++) {
        byte page[PAGE];
        image_read(f->image, inode, (uint64_t)i * PAGE, page, PAGE);
        put(f, inode, i, page, false);
    }
    assert_int_equal(reads_of_scan(f, memo), known);
    byte page[PAGE];
    image_read(f->image, inode, (uint64_t)6 * PAGE, page, PAGE);
    fil_page_set_lsn(page, PAGE, fil_page_get_lsn(page) - 1);
    put(f, inode, 6, page, true);
    uint32_t changed = reads_of_scan(f, memo);
    assert_true(changed > known && changed <= known + 3);
    image_undo(f->image);
    assert_int_equal(reads_of_scan(f, memo), known);
    check_memo_free(memo);
}

/** Pages that were right by one log are beyond the end of an older one. */
static void test_a_page_is_held_against_the_log_of_its_image(void **state)
{
    fixture_t *f = *state;
    check_memo_t *memo = check_memo_create(MEMO_BYTES);
    uint32_t old = inode_of(f->older, LOG_FILE_NAME);
    uint64_t size = image_size(f->older, old);
    byte *log = malloc(size);
    assert_non_null(log);
    image_read(f->older, old, 0, log, size);
    (void)reads_of_scan(f, memo);
    image_mark(f->image);
    assert_true(image_write(f->image, inode_of(f->image, LOG_FILE_NAME), 0, log, size));
    check_report_t full;
    assert_int_equal(check_run(image_os(f->image), &full, NULL), DB_SUCCESS);
    check_report_t known;
    assert_int_equal(check_run_again(image_os(f->image), memo, &known, NULL), DB_SUCCESS);
    assert_true(full.n_findings > 0);
    assert_null(scan_difference(&full, &known));
    check_report_free(&full);
    check_report_free(&known);
    image_undo(f->image);
    check_memo_free(memo);
    free(log);
}

/** What differs is told. */
static void test_difference_is_told(void **state)
{
    fixture_t *f = *state;
    check_report_t a;
    assert_int_equal(check_run(image_os(f->image), &a, NULL), DB_SUCCESS);
    check_report_t b;
    assert_int_equal(check_run(image_os(f->image), &b, NULL), DB_SUCCESS);
    assert_null(scan_difference(&a, &b));
    b.tables[0].indexes[0].hash++;
    assert_non_null(scan_difference(&a, &b));
    b.tables[0].indexes[0].hash--;
    b.n_findings = 1;
    assert_non_null(scan_difference(&a, &b));
    a.n_findings = 1;
    check_finding_t one = {.invariant = 5, .path = "t.ibd", .page_no = 4, .what = "this"};
    check_finding_t other = one;
    check_finding_t *none_a = a.findings;
    check_finding_t *none_b = b.findings;
    a.findings = &one;
    b.findings = &other;
    assert_null(scan_difference(&a, &b));
    other.path[0] = 'u';
    assert_non_null(scan_difference(&a, &b));
    other.path[0] = 't';
    other.what[0] = 'T';
    assert_non_null(scan_difference(&a, &b));
    a.findings = none_a;
    b.findings = none_b;
    a.n_findings = b.n_findings = 0;
    check_report_free(&a);
    check_report_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_images, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_work_is_spared, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_page_is_held_against_the_log_of_its_image, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_difference_is_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
