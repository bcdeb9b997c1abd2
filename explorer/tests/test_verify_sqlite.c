/** verify_sqlite: digests equal the oracle's, recovery happens, damage is told from clean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "explorer/targets/sqlite/verify_sqlite.h"

#define SCHEMA                                                                                     \
    "CREATE TABLE \"t1\"(\"a\" INTEGER PRIMARY KEY, \"b\" CHAR(10) NOT NULL DEFAULT '',"           \
    " \"c\" INTEGER NOT NULL DEFAULT 0);"                                                          \
    "CREATE TABLE \"u\"(\"k\" CHAR(5) NOT NULL DEFAULT '', \"n\" INTEGER NOT NULL DEFAULT 0,"      \
    " PRIMARY KEY(\"k\", \"n\")) WITHOUT ROWID;"                                                   \
    "CREATE INDEX \"ib@3\" ON \"t1\"(substr(\"b\",1,3));"                                          \
    "CREATE UNIQUE INDEX \"ic@3\" ON \"t1\"(\"c\",\"b\");"
#define ROWS                                                                                       \
    "INSERT INTO t1 VALUES(-1, 'alpha', 5), (7, 'alps', -5), (3, '', 0);"                          \
    "INSERT INTO u VALUES('x', 9);"

typedef struct fixture {
    char dir[64];
    char path[96];
    sqlite3 *db;
} fixture_t;

static int setup(void **state)
{
    fixture_t *fx = calloc(1, sizeof(*fx));
    assert_non_null(fx);
    snprintf(fx->dir, sizeof(fx->dir), "/tmp/verify_sqlite_XXXXXX");
    assert_non_null(mkdtemp(fx->dir));
    snprintf(fx->path, sizeof(fx->path), "%s/main.db", fx->dir);
    *state = fx;
    return 0;
}

static void file_name(const fixture_t *fx, const char *suffix, char *name, size_t size)
{
    snprintf(name, size, "%s%s", fx->path, suffix);
}

static int teardown(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", "-saved"};
    fixture_t *fx = *state;
    sqlite3_close(fx->db);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char name[128];
        file_name(fx, suffixes[i], name, sizeof(name));
        unlink(name);
    }
    rmdir(fx->dir);
    free(fx);
    return 0;
}

static void run_sql(fixture_t *fx, const char *sql)
{
    if (fx->db == NULL) {
        assert_int_equal(sqlite3_open(fx->path, &fx->db), SQLITE_OK);
    }
    char *message = NULL;
    if (sqlite3_exec(fx->db, sql, NULL, NULL, &message) != SQLITE_OK) {
        fail_msg("%s: %s", sql, message);
    }
}

static void close_db(fixture_t *fx)
{
    assert_int_equal(sqlite3_close(fx->db), SQLITE_OK);
    fx->db = NULL;
}

/** Copies a file while SQLite has it open: what a crash of this instant would leave. */
static void copy_file(const fixture_t *fx, const char *from_suffix, const char *to_suffix)
{
    char from[128];
    file_name(fx, from_suffix, from, sizeof(from));
    char to[128];
    file_name(fx, to_suffix, to, sizeof(to));
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    char buffer[4096];
    size_t n;
    while ((n = fread(buffer, 1, sizeof(buffer), in)) > 0) {
        assert_int_equal(fwrite(buffer, 1, n, out), n);
    }
    fclose(in);
    fclose(out);
}

static void overwrite(const fixture_t *fx, long offset, const char *bytes, size_t len)
{
    FILE *file = fopen(fx->path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
}

static void verify(const fixture_t *fx, check_report_t *report)
{
    err_sink_t err = {.msg = ""};
    if (verify_sqlite.run(NULL, fx->dir, report, &err) != DB_SUCCESS) {
        fail_msg("refused: %s", err.msg);
    }
}

static void assert_oracle_digest(const check_report_t *report)
{
    assert_int_equal(report->n_findings, 0);
    assert_int_equal(report->n_tables, 2);
    const check_table_t *t1 = &report->tables[0];
    assert_string_equal(t1->name, "t1");
    assert_int_equal(t1->rows, 3);
    assert_true(t1->hash == 0x4acdf2583061a605);
    assert_int_equal(t1->n_indexes, 2);
    assert_string_equal(t1->indexes[0].name, "ib");
    assert_int_equal(t1->indexes[0].entries, 3);
    assert_true(t1->indexes[0].hash == 0x6a2ae428244063d3);
    assert_string_equal(t1->indexes[1].name, "ic");
    assert_int_equal(t1->indexes[1].entries, 3);
    assert_true(t1->indexes[1].hash == 0x8207cd61e9738480);
    const check_table_t *u = &report->tables[1];
    assert_string_equal(u->name, "u");
    assert_int_equal(u->rows, 1);
    assert_true(u->hash == 0x1d35bc610333a5b0);
    assert_int_equal(u->n_indexes, 0);
}

/** The numbers are those that tornpage.oracle gives for the same rows: BIGINT and CHAR, negative
keys, a prefix index, a unique one of two columns, a two-column primary key. */
static void test_digest_is_the_oracles(void **state)
{
    fixture_t *fx = *state;
    run_sql(fx, SCHEMA ROWS);
    close_db(fx);
    check_report_t report;
    verify(fx, &report);
    assert_oracle_digest(&report);
    check_report_free(&report);
}

/** Index names on disk outlive a rename of their table; the digest knows the index by its own
name. */
static void test_renamed_table(void **state)
{
    fixture_t *fx = *state;
    run_sql(fx, SCHEMA ROWS "ALTER TABLE \"t1\" RENAME TO \"z1\"");
    close_db(fx);
    check_report_t report;
    verify(fx, &report);
    assert_int_equal(report.n_tables, 2);
    assert_string_equal(report.tables[1].name, "z1");
    assert_true(report.tables[1].indexes[0].hash == 0x6a2ae428244063d3);
    check_report_free(&report);
}

/** What is committed is only in the log. */
static void leave_log(fixture_t *fx)
{
    run_sql(fx, "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" SCHEMA ROWS);
    copy_file(fx, "-wal", "-saved");
    close_db(fx);
    assert_int_equal(truncate(fx->path, 4096), 0);
    char saved[128];
    file_name(fx, "-saved", saved, sizeof(saved));
    char wal[128];
    file_name(fx, "-wal", wal, sizeof(wal));
    assert_int_equal(rename(saved, wal), 0);
}

/** What is committed only in the log is there: opening recovered it. No -shm is made or needed. */
static void test_log_is_recovered(void **state)
{
    fixture_t *fx = *state;
    leave_log(fx);
    check_report_t report;
    verify(fx, &report);
    assert_oracle_digest(&report);
    check_report_free(&report);
    char wal[128];
    file_name(fx, "-wal", wal, sizeof(wal));
    assert_int_equal(access(wal, F_OK), 0);
    char shm[128];
    file_name(fx, "-shm", shm, sizeof(shm));
    assert_int_not_equal(access(shm, F_OK), 0);
}

/** A recovery that is recorded is a user's program's: it takes the log into main.db when it closes,
and removes it. */
static void test_recorded_is_as_applications_do(void **state)
{
    fixture_t *fx = *state;
    leave_log(fx);
    check_report_t report;
    assert_int_equal(setenv("TORNPAGE_TRACE", "/nowhere", 1), 0);
    verify(fx, &report);
    assert_int_equal(unsetenv("TORNPAGE_TRACE"), 0);
    assert_oracle_digest(&report);
    check_report_free(&report);
    char wal[128];
    file_name(fx, "-wal", wal, sizeof(wal));
    assert_int_not_equal(access(wal, F_OK), 0);
    verify(fx, &report);
    assert_oracle_digest(&report);
    check_report_free(&report);
}

/** A hot journal is rolled back: the transaction that had reached main.db is not there. */
static void test_journal_is_rolled_back(void **state)
{
    fixture_t *fx = *state;
    run_sql(fx, SCHEMA ROWS);
    run_sql(fx, "PRAGMA cache_size = 1; BEGIN; DELETE FROM u; UPDATE t1 SET b = 'changed'");
    assert_int_equal(sqlite3_db_cacheflush(fx->db), SQLITE_OK);
    copy_file(fx, "", "-saved");
    copy_file(fx, "-journal", "-shm");
    sqlite3_close(fx->db);
    fx->db = NULL;
    copy_file(fx, "-saved", "");
    copy_file(fx, "-shm", "-journal");
    check_report_t report;
    verify(fx, &report);
    assert_oracle_digest(&report);
    check_report_free(&report);
}

/** A directory without main.db, or with an empty one, is an empty database. */
static void test_no_database_is_empty(void **state)
{
    fixture_t *fx = *state;
    for (int i = 0; i < 2; i++) {
        check_report_t report;
        verify(fx, &report);
        assert_int_equal(report.n_tables, 0);
        assert_int_equal(report.n_findings, 0);
        check_report_free(&report);
    }
}

/** I10: an index that has lost an entry is a finding under that number, and its digest differs. */
static void test_lost_index_entry(void **state)
{
    fixture_t *fx = *state;
    run_sql(fx, SCHEMA ROWS);
    run_sql(fx, "PRAGMA writable_schema = ON;"
                "UPDATE sqlite_schema SET sql = replace(sql, '1,3', '1,4') WHERE name = 'ib@3'");
    close_db(fx);
    check_report_t report;
    verify(fx, &report);
    assert_true(report.n_findings > 0);
    assert_int_equal(report.findings[0].invariant, 10);
    assert_string_equal(report.findings[0].path, "main.db");
    check_report_free(&report);
}

static void assert_refused(const fixture_t *fx, const char *text)
{
    check_report_t report;
    err_sink_t err = {.msg = ""};
    assert_int_equal(verify_sqlite.run(NULL, fx->dir, &report, &err), DB_UNRECOVERABLE);
    assert_non_null(strstr(err.msg, text));
    assert_null(report.tables);
}

/** Damage is refused in SQLite's words, or found by integrity_check; never taken for a state. */
static void test_damage_is_told(void **state)
{
    fixture_t *fx = *state;
    run_sql(fx, SCHEMA ROWS);
    close_db(fx);
    overwrite(fx, 0, "garbage", 7);
    assert_refused(fx, "not a database");
    unlink(fx->path);
    run_sql(fx, SCHEMA ROWS);
    close_db(fx);
    assert_int_equal(truncate(fx->path, 4096), 0);
    assert_refused(fx, "malformed");
}

/** A value that the script language cannot have stored is damage. */
static void test_foreign_values_are_refused(void **state)
{
    fixture_t *fx = *state;
    run_sql(fx, SCHEMA ROWS "UPDATE t1 SET b = 'longer than ten' WHERE a = 3");
    close_db(fx);
    assert_refused(fx, "CHAR(10)");
    run_sql(fx, "UPDATE t1 SET b = x'00' WHERE a = 3");
    close_db(fx);
    assert_refused(fx, "holds no text");
    run_sql(fx, "UPDATE t1 SET b = '', c = 'word' WHERE a = 3");
    close_db(fx);
    assert_refused(fx, "no integer");
    run_sql(fx, "DELETE FROM t1; CREATE TABLE \"bad name\"(x INTEGER PRIMARY KEY)");
    close_db(fx);
    assert_refused(fx, "bad name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_digest_is_the_oracles, setup, teardown),
        cmocka_unit_test_setup_teardown(test_renamed_table, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_is_recovered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recorded_is_as_applications_do, setup, teardown),
        cmocka_unit_test_setup_teardown(test_journal_is_rolled_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_database_is_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_index_entry, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_values_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
