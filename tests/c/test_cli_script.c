/** The script parser: every statement, and a line number with every refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/script.h"

static script_t *parse_ok(const char *text)
{
    script_t *script = NULL;
    err_sink_t err = {.msg = ""};
    dberr_t e = script_parse(text, strlen(text), &script, &err);
    if (e != DB_SUCCESS) {
        fail_msg("%s", err.msg);
    }
    return script;
}

/** The refusal names the line and has the words. */
static void assert_refused(const char *text, uint32_t line, const char *words)
{
    script_t *script = NULL;
    err_sink_t err = {.msg = ""};
    char prefix[64];
    (void)snprintf(prefix, sizeof(prefix), "script line %u: ", line);
    assert_int_equal(script_parse(text, strlen(text), &script, &err), DB_ERROR);
    if (strncmp(err.msg, prefix, strlen(prefix)) != 0 || strstr(err.msg, words) == NULL) {
        fail_msg("'%s' instead of '%s...%s'", err.msg, prefix, words);
    }
    assert_null(strchr(err.msg, '\n'));
}

/** Lines count from 1, comments and blank lines included. */
static void test_lines_and_comments(void **state)
{
    (void)state;
    script_t *s = parse_ok("# comment\n\n  checkpoint full\r\n\t# more \"\n status\nflush log");
    assert_int_equal(script_n_stmts(s), 3);
    assert_int_equal(script_stmt(s, 0)->line, 3);
    assert_int_equal(script_stmt(s, 0)->kind, STMT_CHECKPOINT);
    assert_true(script_stmt(s, 0)->flag);
    assert_int_equal(script_stmt(s, 1)->line, 5);
    assert_int_equal(script_stmt(s, 1)->kind, STMT_STATUS);
    assert_int_equal(script_stmt(s, 2)->line, 6);
    assert_int_equal(script_stmt(s, 2)->kind, STMT_FLUSH_LOG);
    script_free(s);
    s = parse_ok("");
    assert_int_equal(script_n_stmts(s), 0);
    script_free(s);
}

/** A table definition with several columns and a composite key in its own order. */
static void test_create_table(void **state)
{
    (void)state;
    script_t *s = parse_ok("create table t_1 a:bigint b:char(255) c:char(1) primary c,a");
    const dict_table_t *t = script_stmt(s, 0)->definition;
    assert_string_equal(t->name, "t_1");
    assert_int_equal(t->n_cols, 3);
    assert_string_equal(t->cols[1].name, "b");
    assert_int_equal(t->cols[1].type, DICT_CHAR);
    assert_int_equal(t->cols[1].len, 255);
    assert_int_equal(t->cols[0].len, 8);
    assert_int_equal(t->indexes[0].n_fields, 2);
    assert_int_equal(t->indexes[0].fields[0].col, 2);
    assert_int_equal(t->indexes[0].fields[0].prefix_len, 1);
    assert_int_equal(t->indexes[0].fields[1].col, 0);
    script_free(s);
}

/** Several indexes in one statement, with prefixes. */
static void test_add_index(void **state)
{
    (void)state;
    script_t *s = parse_ok("add index t ib(b) ief(e:10,f:4)\ndrop index t ib");
    const stmt_t *add = script_stmt(s, 0);
    assert_int_equal(add->alter.n_defs, 2);
    assert_string_equal(add->alter.defs[0].name, "ib");
    assert_int_equal(add->alter.defs[0].fields[0].prefix_len, 0);
    assert_int_equal(add->alter.defs[1].n_fields, 2);
    assert_string_equal(add->alter.defs[1].fields[1].col, "f");
    assert_int_equal(add->alter.defs[1].fields[1].prefix_len, 4);
    assert_string_equal(script_stmt(s, 1)->alter.name, "ib");
    script_free(s);
}

/** All indexes of a statement are unique, or none; 64 of them at most. */
static void test_unique_index(void **state)
{
    (void)state;
    script_t *s = parse_ok("add unique index t ub(b) uc(c:3)\nstart unique index t ud(d)\n"
                           "add index unique ub(b)\nbegin unique");
    assert_int_equal(script_stmt(s, 0)->kind, STMT_ALTER);
    assert_int_equal(script_stmt(s, 0)->alter.n_defs, 2);
    assert_true(script_stmt(s, 0)->alter.defs[0].unique);
    assert_true(script_stmt(s, 0)->alter.defs[1].unique);
    assert_int_equal(script_stmt(s, 1)->kind, STMT_START_ALTER);
    assert_true(script_stmt(s, 1)->alter.defs[0].unique);
    assert_string_equal(script_stmt(s, 2)->table, "unique");
    assert_false(script_stmt(s, 2)->alter.defs[0].unique);
    script_free(s);
}

/** An index build in steps; counts have defaults. */
static void test_stepped_index(void **state)
{
    (void)state;
    script_t *s = parse_ok("start index t ib(b) ief(e:10,f)\nstep index t\nstep index t 3\n"
                           "step index t 4 2147483647\nfinish index t\nabort index u\nbegin index");
    const stmt_t *start = script_stmt(s, 0);
    assert_int_equal(start->kind, STMT_START_ALTER);
    assert_int_equal(start->alter.n_defs, 2);
    assert_int_equal(start->alter.defs[1].fields[0].prefix_len, 10);
    assert_int_equal(script_stmt(s, 1)->kind, STMT_STEP_ALTER);
    assert_int_equal(script_stmt(s, 1)->count, 1);
    assert_int_equal(script_stmt(s, 1)->rows, BUILD_STEP_ROWS);
    assert_int_equal(script_stmt(s, 2)->count, 3);
    assert_int_equal(script_stmt(s, 2)->rows, BUILD_STEP_ROWS);
    assert_int_equal(script_stmt(s, 3)->count, 4);
    assert_int_equal(script_stmt(s, 3)->rows, INT32_MAX);
    assert_int_equal(script_stmt(s, 4)->kind, STMT_FINISH_ALTER);
    assert_string_equal(script_stmt(s, 4)->table, "t");
    assert_int_equal(script_stmt(s, 5)->kind, STMT_ABORT_ALTER);
    assert_string_equal(script_stmt(s, 5)->table, "u");
    assert_int_equal(script_stmt(s, 6)->kind, STMT_BEGIN);
    assert_string_equal(script_stmt(s, 6)->trx, "index");
    script_free(s);
}

/** Values: extreme integers, escapes, blanks and equal signs inside quotes, zero bytes. */
static void test_values(void **state)
{
    (void)state;
    script_t *s =
        parse_ok("insert - t a=-9223372036854775808 b=\"x y = \\\"\\\\ \\x00\\xfF#\" c=\"\"\n"
                 "update T1 t a=9223372036854775807 set b=\"z\" c=\"set\"");
    const stmt_t *insert = script_stmt(s, 0);
    assert_string_equal(insert->trx, "-");
    assert_int_equal(insert->n_assigns, 3);
    assert_true(insert->assigns[0].number == INT64_MIN);
    assert_int_equal(insert->assigns[1].kind, VALUE_TEXT);
    assert_int_equal(insert->assigns[1].len, 12);
    assert_memory_equal(insert->assigns[1].text, "x y = \"\\ \0\xff#", 12);
    assert_int_equal(insert->assigns[2].len, 0);
    const stmt_t *update = script_stmt(s, 1);
    assert_string_equal(update->trx, "T1");
    assert_int_equal(update->n_assigns, 1);
    assert_true(update->assigns[0].number == INT64_MAX);
    assert_int_equal(update->n_sets, 2);
    assert_string_equal(update->sets[1].col, "c");
    script_free(s);
}

/** The other statements. */
static void test_other_statements(void **state)
{
    (void)state;
    script_t *s =
        parse_ok("begin A1\ninsert_seq A1 t -3 5\ncommit A1\nrollback b\ndelete - t a=1\n"
                 "select t a=1\nscan t\nscan t ib\npurge 7\npurge all\nclean 3\ncheckpoint\n"
                 "flush table t\nset log_optimize_ddl off\nset log_optimize_ddl on\n"
                 "rename table t u\ndrop table u\nmodify column t b varchar(9) algorithm=copy");
    assert_int_equal(script_n_stmts(s), 18);
    assert_true(script_stmt(s, 1)->first == -3 && script_stmt(s, 1)->last == 5);
    assert_null(script_stmt(s, 6)->name);
    assert_string_equal(script_stmt(s, 7)->name, "ib");
    assert_int_equal(script_stmt(s, 8)->count, 7);
    assert_int_equal(script_stmt(s, 9)->count, 0);
    assert_int_equal(script_stmt(s, 10)->count, 3);
    assert_false(script_stmt(s, 11)->flag);
    assert_false(script_stmt(s, 13)->flag);
    assert_true(script_stmt(s, 14)->flag);
    assert_string_equal(script_stmt(s, 15)->name, "u");
    const ddl_alter_t *modify = &script_stmt(s, 17)->alter;
    assert_int_equal(modify->kind, ALTER_MODIFY_COLUMN);
    assert_string_equal(modify->name, "b");
    assert_true(modify->type == DICT_VARCHAR && modify->len == 9);
    assert_int_equal(modify->algorithm, ALGORITHM_COPY);
    script_free(s);
}

/** Each kind of mistake is refused with its line and a reason. */
static void test_refusals(void **state)
{
    (void)state;
    static char text[VARCHAR_LEN_MAX + 64];
    assert_refused("status\nfrobnicate\n", 2, "unknown statement 'frobnicate'");
    assert_refused("#\n#\ndrop", 3, "unknown statement");
    assert_refused("status now", 1, "'now' is too much");
    assert_refused("create table t a:int primary a", 1, "type must be");
    assert_refused("create table t a:char(0) primary a", 1, "type must be");
    assert_refused("create table t a:char(256) primary a", 1, "type must be");
    assert_refused("create table t a:varchar(0) primary a", 1, "type must be");
    assert_refused("create table t a:varchar(16001) primary a", 1, "type must be");
    assert_refused("create table t a:varchar primary a", 1, "type must be");
    assert_refused("modify column t a", 1, "type");
    assert_refused("modify column t a varchar(0)", 1, "type must be");
    assert_refused("create table t a:bigint not primary a", 1, "`null` expected");
    assert_refused("create table t null primary a", 1, "COLUMN:TYPE");
    assert_refused("insert - t a=nul", 1, "64-bit integer");
    assert_refused("create table t a:bigint primary b", 1, "no column 'b'");
    assert_refused("create table t a:bigint a:bigint primary a", 1, "twice");
    assert_refused("create table t a:bigint primary a,a", 1, "twice");
    assert_refused("create table t a:bigint", 1, "primary");
    assert_refused("create table t/x a:bigint primary a", 1, "bad table name");
    assert_refused("add index t", 1, "indexes expected");
    assert_refused("add unique", 1, "`index` expected");
    assert_refused("add unique t ub(b)", 1, "`index` expected");
    assert_refused("add index t ib(b", 1, "without blanks");
    assert_refused("add index t ib(b:0)", 1, "prefix");
    assert_refused("add index t ib()", 1, "bad column name");
    assert_refused("start index t", 1, "indexes expected");
    assert_refused("step index t 0", 1, "number of steps");
    assert_refused("step index t 1 0", 1, "rows per step");
    assert_refused("step index t 1 2 3", 1, "'3' is too much");
    assert_refused("finish t", 1, "unknown statement");
    assert_refused("abort index t ib", 1, "'ib' is too much");
    assert_refused("begin -", 1, "bad transaction name");
    assert_refused("insert - t", 1, "COLUMN=VALUE");
    assert_refused("insert - t a=1 a=2", 1, "twice");
    assert_refused("insert - t a=9223372036854775808", 1, "64-bit integer");
    assert_refused("insert - t a=1x", 1, "64-bit integer");
    assert_refused("insert - t b=\"x", 1, "not closed");
    assert_refused("insert - t b=\"\\x1\"", 1, "escape");
    assert_refused("insert - t b=\"\\n\"", 1, "escape");
    assert_refused("insert - t b=\"\x01\"", 1, "bad character");
    assert_refused("insert - t b=\"x\"y", 1, "blank expected");
    assert_refused("insert_seq - t 5 4", 1, "last key");
    assert_refused("update - t a=1", 1, "`set` expected");
    assert_refused("update - t a=1 set", 1, "COLUMN=VALUE");
    assert_refused("update - t set b=1", 1, "COLUMN=VALUE");
    assert_refused("purge 0", 1, "count");
    assert_refused("set page_size 4", 1, "unknown statement");
    assert_refused("set defragment", 1, "on or off expected");
    assert_refused("bad\x1b[31m", 1, "'bad?[31m'");
    memset(text, 'x', sizeof(text));
    memcpy(text, "insert - t b=\"", 14);
    text[14 + VARCHAR_LEN_MAX + 1] = '"';
    text[14 + VARCHAR_LEN_MAX + 2] = '\0';
    assert_refused(text, 1, "longer than 16000 bytes");
    memcpy(text, "drop table ", 11);
    memset(text + 11, 'n', 64);
    text[11 + 64] = '\0';
    assert_refused(text, 1, "too long");
}

/** The longest possible value is not too long. */
static void test_longest_value(void **state)
{
    (void)state;
    static char text[VARCHAR_LEN_MAX + 64];
    memset(text, 'x', sizeof(text));
    memcpy(text, "insert - t b=\"", 14);
    text[14 + VARCHAR_LEN_MAX] = '"';
    text[14 + VARCHAR_LEN_MAX + 1] = '\0';
    script_t *s = parse_ok(text);
    assert_int_equal(script_stmt(s, 0)->assigns[0].len, VARCHAR_LEN_MAX);
    script_free(s);
}

/** A zero byte, and a line of more words than any statement has, are refused. */
static void test_hostile_lines(void **state)
{
    (void)state;
    script_t *script = NULL;
    err_sink_t err = {.msg = ""};
    assert_int_equal(script_parse("status\nsta\0tus\n", 15, &script, &err), DB_ERROR);
    assert_non_null(strstr(err.msg, "script line 2: a zero byte"));
    char words[1024];
    for (size_t i = 0; i < sizeof(words) - 1; i++) {
        words[i] = i % 2 == 0 ? 'w' : ' ';
    }
    words[sizeof(words) - 1] = '\0';
    assert_refused(words, 1, "more than 128 words");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_and_comments), cmocka_unit_test(test_create_table),
        cmocka_unit_test(test_add_index),          cmocka_unit_test(test_unique_index),
        cmocka_unit_test(test_stepped_index),      cmocka_unit_test(test_values),
        cmocka_unit_test(test_other_statements),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_longest_value),      cmocka_unit_test(test_hostile_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
