/** external_judge with the SQLite verifier: states in memory, judged through files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "explorer/targets/external.h"
#include "explorer/targets/machine.h"
#include "explorer/targets/sqlite/verify_sqlite.h"

/* Prefix 1 is one row (7) in t(a:bigint primary a), line 2 of a script; hashes as tornpage.oracle
gives them. */
#define PREFIXES                                                                                   \
    "{\"prefix\": 0, \"line\": 0, \"tables\": []}\n"                                               \
    "{\"prefix\": 1, \"line\": 2, \"tables\": [{\"name\": \"t\", \"rows\": 1, "                    \
    "\"hash\": \"4de1ccc312c22b79\", \"indexes\": []}]}\n"

typedef struct fixture {
    image_t *image;
    allowed_t allowed;
    external_config_t config;
    external_t external;
    unsigned char *bytes; /**< of a database with prefix 1 */
    sqlite3_int64 size;
} fixture_t;

static int setup(void **state)
{
    fixture_t *fx = calloc(1, sizeof(*fx));
    assert_non_null(fx);
    err_sink_t err = {.msg = ""};
    char path[] = "/tmp/test_external_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, PREFIXES, strlen(PREFIXES)), strlen(PREFIXES));
    close(fd);
    if (allowed_load(path, &fx->allowed, &err) != DB_SUCCESS) {
        fail_msg("%s", err.msg);
    }
    unlink(path);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    const char *sql = "CREATE TABLE \"t\"(\"a\" INTEGER PRIMARY KEY); INSERT INTO t VALUES(7)";
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    fx->bytes = sqlite3_serialize(db, "main", &fx->size, 0);
    assert_non_null(fx->bytes);
    sqlite3_close(db);
    fx->image = image_create();
    fx->config = (external_config_t){.verifier = &verify_sqlite};
    char dir[] = "/tmp/test_external_dir_XXXXXX";
    assert_non_null(mkdtemp(dir));
    if (external_open(&fx->external, &fx->config, dir, &err) != DB_SUCCESS) {
        fail_msg("%s", err.msg);
    }
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    fixture_t *fx = *state;
    char dir[sizeof(fx->external.dir)];
    memcpy(dir, fx->external.dir, sizeof(dir));
    err_sink_t err = {.msg = ""};
    assert_int_equal(external_close(&fx->external, &err), DB_SUCCESS);
    assert_int_not_equal(access(dir, F_OK), 0);
    allowed_free(&fx->allowed);
    image_destroy(fx->image);
    sqlite3_free(fx->bytes);
    free(fx);
    return 0;
}

static void put_file(fixture_t *fx, const char *path, const void *bytes, uint64_t len)
{
    uint32_t inode = image_inode_create(fx->image);
    assert_true(image_write(fx->image, inode, 0, bytes, len));
    image_link(fx->image, image_name(fx->image, path, strlen(path)), inode);
}

/** What the kernel says of its memory goes through the test. */
static bool is_short;
bool __wrap_machine_is_short(uint64_t oom_kills);
bool __wrap_machine_is_short(uint64_t oom_kills)
{
    assert_int_equal(oom_kills, machine_oom_kills());
    return is_short;
}

static dberr_t try_to_judge(fixture_t *fx, const expected_t *expected, bool twice,
                            verdict_t *verdict, err_sink_t *err)
{
    outcome_t outcome;
    const external_case_t what = {.expected = expected, .twice = twice};
    outcome_init(&outcome);
    dberr_t status = external_judge(&fx->external, fx->image, &what, &outcome, err);
    *verdict = outcome.verdict;
    return status;
}

static verdict_t judge(fixture_t *fx, uint32_t low, uint32_t high)
{
    err_sink_t err = {.msg = ""};
    verdict_t verdict;
    const expected_t expected = {.allowed = &fx->allowed, .low = low, .high = high};
    if (try_to_judge(fx, &expected, true, &verdict, &err) != DB_SUCCESS) {
        fail_msg("%s", err.msg);
    }
    return verdict;
}

/** I1, I3: the state must be a prefix in the range; an empty directory is prefix 0. */
static void test_prefixes(void **state)
{
    fixture_t *fx = *state;
    assert_int_equal(judge(fx, 0, 1).n, 0);
    verdict_t lost = judge(fx, 1, 1);
    assert_int_equal(lost.n, 1);
    assert_int_equal(lost.findings[0].invariant, 1);
    put_file(fx, "main.db", fx->bytes, (uint64_t)fx->size);
    assert_int_equal(judge(fx, 1, 1).n, 0);
    assert_int_equal(judge(fx, 0, 1).n, 0);
    verdict_t early = judge(fx, 0, 0);
    assert_int_equal(early.n, 1);
    assert_int_equal(early.findings[0].invariant, 3);
}

/** What one state left behind, in folders too, does not reach the next. */
static void test_states_do_not_meet(void **state)
{
    fixture_t *fx = *state;
    image_mark(fx->image);
    put_file(fx, "main.db", fx->bytes, (uint64_t)fx->size);
    put_file(fx, "main.db-wal", "garbage", 7);
    put_file(fx, "sub/deep/file", "garbage", 7);
    image_set_dir(fx->image, image_name(fx->image, "empty/too", strlen("empty/too")), DIR_THERE);
    assert_int_equal(judge(fx, 1, 1).n, 0);
    char empty[PATH_LEN_MAX + 16];
    snprintf(empty, sizeof(empty), "%s/empty/too", fx->external.dir);
    assert_int_equal(access(empty, F_OK), 0);
    char deep[PATH_LEN_MAX + 16];
    snprintf(deep, sizeof(deep), "%s/sub/deep/file", fx->external.dir);
    assert_int_equal(access(deep, F_OK), 0);
    image_undo(fx->image);
    assert_int_equal(judge(fx, 0, 0).n, 0);
    assert_int_not_equal(access(deep, F_OK), 0);
    assert_int_not_equal(access(empty, F_OK), 0);
}

/** A large file is laid out with its holes, each byte where it belongs. */
static void test_holes(void **state)
{
    fixture_t *fx = *state;
    const uint64_t size = (uint64_t)16 << 30;
    enum { BYTES = 3 << 20 }; /* more than one call writes */
    char *bytes = malloc(BYTES);
    char *found = malloc(BYTES);
    assert_true(bytes != NULL && found != NULL);
    memset(bytes, 'x', BYTES);
    put_file(fx, "large", bytes, BYTES);
    uint32_t inode = image_lookup(fx->image, image_name_find(fx->image, "large"));
    assert_true(image_truncate(fx->image, inode, size));
    assert_true(image_write(fx->image, inode, size - 3, "end", 3));
    assert_int_equal(judge(fx, 0, 0).n, 0);
    char path[PATH_LEN_MAX + 16];
    snprintf(path, sizeof(path), "%s/large", fx->external.dir);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, size);
    assert_true(st.st_blocks * 512 < 2 * BYTES);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, BYTES, file), BYTES);
    assert_memory_equal(found, bytes, BYTES);
    assert_int_equal(fseeko(file, -4, SEEK_END), 0);
    assert_int_equal(fread(found, 1, 4, file), 4);
    assert_memory_equal(found, "\0end", 4);
    (void)fclose(file);
    free(bytes);
    free(found);
}

/** I30: a refusal is a finding with SQLite's words. */
static void test_refusal(void **state)
{
    fixture_t *fx = *state;
    memcpy(fx->bytes, "no SQLite", 9);
    put_file(fx, "main.db", fx->bytes, (uint64_t)fx->size);
    verdict_t verdict = judge(fx, 0, 1);
    assert_int_equal(verdict.n, 1);
    assert_int_equal(verdict.findings[0].invariant, 30);
    assert_non_null(strstr(verdict.findings[0].what, "not a database"));
}

/** What a verifier tells the first and the second time. */
typedef struct unsteady {
    uint32_t times;
    uint32_t n_tables[2];
    uint64_t n_findings[2]; /**< of FINDINGS */
} unsteady_t;

static const check_finding_t FINDINGS[] = {
    {.invariant = 9, .path = "t", .what = "no parent"},
    {.invariant = 9, .path = "t", .what = "no parent either"}};

static dberr_t run_unsteady(void *self, const char *dir, check_report_t *report, err_sink_t *err)
{
    unsteady_t *unsteady = self;
    uint32_t time = unsteady->times++;
    (void)dir;
    (void)err;
    *report = (check_report_t){.n_tables = unsteady->n_tables[time],
                               .n_findings = unsteady->n_findings[time]};
    report->tables = calloc(1, sizeof(*report->tables));
    report->findings = calloc(CHECK_FINDINGS_MAX, sizeof(*report->findings));
    assert_true(report->tables != NULL && report->findings != NULL);
    memcpy(report->findings, FINDINGS, sizeof(FINDINGS));
    return DB_SUCCESS;
}

/** What the target's own checker finds, and I17: the second time another state, or damage that the
first recovery did not leave. What both leave is told once. */
static void test_twice(void **state)
{
    static const struct {
        unsteady_t told;
        uint32_t invariants[3];
    } CASES[] = {{{0, {1, 1}, {0, 0}}, {0}},        {{0, {1, 1}, {1, 1}}, {9, 0}},
                 {{0, {1, 0}, {1, 1}}, {9, 17, 0}}, {{0, {1, 1}, {1, 2}}, {9, 17, 0}},
                 {{0, {1, 1}, {0, 1}}, {17, 0}},    {{0, {1, 1}, {1, 0}}, {9, 0}}};
    fixture_t *fx = *state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        unsteady_t told = CASES[i].told;
        const verifier_t unsteady = {.name = "unsteady", .self = &told, .run = run_unsteady};
        fx->config = (external_config_t){.verifier = &unsteady, .any_state = true};
        verdict_t verdict = judge(fx, 0, 1);
        assert_int_equal(told.times, 2);
        uint32_t n = 0;
        for (; CASES[i].invariants[n] != 0; n++) {
            assert_true(n < verdict.n);
            assert_int_equal(verdict.findings[n].invariant, CASES[i].invariants[n]);
        }
        assert_int_equal(verdict.n, n);
    }
}

/** A verifier whose recoveries are ended from outside until then. */
typedef struct ended {
    uint32_t until;
    uint32_t times;
    bool was_clean; /**< each time it has found what is in the image, and nothing else */
} ended_t;

static dberr_t run_ended(void *self, const char *dir, check_report_t *report, err_sink_t *err)
{
    ended_t *ended = self;
    char path[PATH_LEN_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/file", dir);
    ended->was_clean = access(path, F_OK) == 0 && unlink(path) == 0 && ended->was_clean;
    *report = (check_report_t){.n_tables = 0};
    return ended->times++ < ended->until ? err_set(err, DB_INTERRUPTED, "ended by signal 9")
                                         : DB_SUCCESS;
}

/** A recovery that is ended each time, by a machine that is short of nothing, ends itself. What
does not come again, or comes on a machine that is short of memory, says nothing. */
static void test_ended_each_time(void **state)
{
    static const struct {
        uint32_t until;
        bool is_short;
        uint32_t times;
        dberr_t status;
    } CASES[] = {{UINT32_MAX, false, 3, DB_SUCCESS},
                 {UINT32_MAX, true, 3, DB_IO_ERROR},
                 {2, false, 3, DB_IO_ERROR},
                 {1, false, 2, DB_IO_ERROR}};
    fixture_t *fx = *state;
    const expected_t expected = {.allowed = &fx->allowed, .low = 0, .high = 1};
    put_file(fx, "file", "bytes", 5);
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        ended_t ended = {.until = CASES[i].until, .was_clean = true};
        const verifier_t verifier = {.name = "ended", .self = &ended, .run = run_ended};
        fx->config = (external_config_t){.verifier = &verifier};
        is_short = CASES[i].is_short;
        verdict_t verdict;
        err_sink_t err = {.msg = ""};
        dberr_t status = try_to_judge(fx, &expected, false, &verdict, &err);
        assert_int_equal(status, CASES[i].status);
        assert_int_equal(ended.times, CASES[i].times);
        assert_true(ended.was_clean);
        if (CASES[i].status == DB_SUCCESS) {
            assert_int_equal(verdict.n, 1);
            assert_int_equal(verdict.findings[0].invariant, 30);
            assert_non_null(strstr(verdict.findings[0].what, "3 times in a row"));
            assert_non_null(strstr(verdict.findings[0].what, "ended by signal 9"));
        } else {
            assert_string_equal(err.msg, "ended by signal 9");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_prefixes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_states_do_not_meet, setup, teardown),
        cmocka_unit_test_setup_teardown(test_holes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ended_each_time, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
