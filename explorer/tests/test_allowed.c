/* The comparison with the oracle: each kind of wrong state under its invariant. */
#include "disk/tests/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "explorer/judge/allowed.h"

static const char GOOD[] = "{\"prefix\":0,\"line\":0,\"tables\":[]}\n"
                           "{\"prefix\":1,\"line\":3,\"tables\":[{\"name\":\"t\",\"rows\":1,"
                           "\"hash\":\"0000000000000001\",\"indexes\":"
                           "[{\"name\":\"i\",\"entries\":1,\"hash\":\"00000000000000ff\"}]}]}\n"
                           "{\"prefix\":2,\"line\":5,\"tables\":[{\"name\":\"t\",\"rows\":2,"
                           "\"hash\":\"0000000000000002\",\"indexes\":"
                           "[{\"name\":\"i\",\"entries\":2,\"hash\":\"fffffffffffffff0\"}]}]}\n";

static dberr_t load(const char *text, allowed_t *allowed)
{
    char path[] = "/tmp/test_explorer_allowed.XXXXXX";
    err_sink_t err = {.msg = ""};
    put_text(path, text);
    dberr_t e = allowed_load(path, allowed, &err);
    (void)unlink(path);
    assert_true(e == DB_SUCCESS || err.msg[0] != '\0');
    return e;
}

static check_table_t table(uint64_t rows, uint64_t hash, uint64_t entries, uint64_t index_hash)
{
    check_table_t t = {.name = "t", .rows = rows, .hash = hash, .n_indexes = 1};
    t.indexes[0] = (check_index_t){.name = "i", .entries = entries, .hash = index_hash};
    return t;
}

static uint32_t judge(const allowed_t *allowed, check_table_t t, uint32_t low, uint32_t high)
{
    check_report_t report = {.n_tables = 1, .tables = &t};
    verdict_t verdict = {.n = 0};
    uint32_t prefix;
    (void)allowed_judge(allowed, &report, low, high, "", &verdict, &prefix);
    return verdict.n == 0 ? 0 : verdict.findings[0].invariant;
}

static void test_judge(void **state)
{
    (void)state;
    allowed_t allowed;
    assert_int_equal(load(GOOD, &allowed), DB_SUCCESS);
    assert_int_equal(allowed_at(&allowed, 0), 0);
    assert_int_equal(allowed_at(&allowed, 2), 0);
    assert_int_equal(allowed_at(&allowed, 3), 1);
    assert_int_equal(allowed_at(&allowed, 4), 1);
    assert_int_equal(allowed_at(&allowed, 99), 2);
    assert_int_equal(judge(&allowed, table(1, 1, 1, 0xff), 1, 2), 0);
    assert_int_equal(judge(&allowed, table(2, 2, 2, 0xfffffffffffffff0), 1, 2), 0);
    assert_int_equal(judge(&allowed, table(1, 1, 1, 0xff), 2, 2), 1);
    assert_int_equal(judge(&allowed, table(2, 2, 2, 0xfffffffffffffff0), 0, 1), 3);
    assert_int_equal(judge(&allowed, table(2, 2, 1, 0xff), 1, 2), 10);
    assert_int_equal(judge(&allowed, table(2, 3, 2, 0xfffffffffffffff0), 1, 2), 2);
    check_report_t none = {.n_tables = 0};
    verdict_t verdict = {.n = 0};
    uint32_t prefix;
    (void)allowed_judge(&allowed, &none, 1, 2, "", &verdict, &prefix);
    assert_int_equal(verdict.findings[0].invariant, 1);
    allowed_free(&allowed);
}

/** The newest; it is sure if each of them has it. */
static void test_exported(void **state)
{
    (void)state;
    allowed_t allowed;
    assert_int_equal(load("{\"prefix\":0,\"line\":0,\"tables\":[]}\n"
                          "{\"prefix\":1,\"line\":3,\"exported\":\"t\",\"tables\":[]}\n"
                          "{\"prefix\":2,\"line\":4,\"exported\":\"t\",\"tables\":[]}\n"
                          "{\"prefix\":3,\"line\":5,\"tables\":[]}\n"
                          "{\"prefix\":4,\"line\":6,\"tables\":[]}\n"
                          "{\"prefix\":5,\"line\":7,\"exported\":\"t\",\"tables\":[]}\n",
                          &allowed),
                     DB_SUCCESS);
    bool sure = false;
    assert_null(allowed_export(&allowed, 0, 0, &sure));
    assert_string_equal(allowed_export(&allowed, 0, 1, &sure), "t");
    assert_false(sure);
    assert_string_equal(allowed_export(&allowed, 1, 2, &sure), "t");
    assert_true(sure);
    assert_string_equal(allowed_export(&allowed, 2, 3, &sure), "t");
    assert_false(sure);
    assert_null(allowed_export(&allowed, 3, 3, &sure));
    assert_null(allowed_export_over(&allowed, 0, 3, 3));
    assert_null(allowed_export_over(&allowed, 1, 3, 3));
    assert_string_equal(allowed_export_over(&allowed, 2, 3, 3), "t");
    assert_string_equal(allowed_export_over(&allowed, 2, 4, 4), "t");
    assert_null(allowed_export_over(&allowed, 2, 4, 5)); /* it may be exported again */
    assert_null(allowed_export_over(&allowed, 0, 1, 2));
    allowed_free(&allowed);
    assert_int_equal(load("{\"prefix\":0,\"line\":0,\"exported\":7,\"tables\":[]}\n", &allowed),
                     DB_ERROR);
}

/** What the clean end makes may be there when the last line was acknowledged, and not before. */
static void test_end(void **state)
{
    (void)state;
    allowed_t allowed;
    assert_int_equal(load("{\"prefix\":0,\"line\":0,\"tables\":[]}\n"
                          "{\"prefix\":1,\"line\":3,\"exported\":\"t\",\"tables\":[]}\n"
                          "{\"prefix\":2,\"line\":3,\"end\":true,\"tables\":[]}\n",
                          &allowed),
                     DB_SUCCESS);
    assert_int_equal(allowed_at(&allowed, 3), 1);
    assert_int_equal(allowed_newest(&allowed, 2, 3), 1);
    assert_int_equal(allowed_newest(&allowed, 3, 3), 2);
    assert_int_equal(allowed_newest(&allowed, 2, 0), 0);
    allowed_free(&allowed);
}

/** A longer list has the prefixes of the other up to one of them, and its own. */
static void test_extend(void **state)
{
    check_table_t t = table(9, 9, 9, 9);
    (void)state;
    allowed_t allowed;
    assert_int_equal(load(GOOD, &allowed), DB_SUCCESS);
    allowed_t longer;
    allowed_extend(&longer, &allowed, 1, 77);
    allowed_add(&longer, &t, 1);
    assert_int_equal(longer.n, 3);
    assert_int_equal(longer.id, 77);
    assert_int_equal(judge(&longer, t, 1, 2), 0);
    assert_int_equal(judge(&longer, table(1, 1, 1, 0xff), 1, 2), 0);
    assert_int_equal(judge(&longer, table(1, 1, 1, 0xff), 2, 2), 1);
    assert_int_equal(judge(&longer, table(2, 2, 2, 0xfffffffffffffff0), 0, 2), 2);
    allowed_free(&longer);
    assert_int_equal(judge(&allowed, table(2, 2, 2, 0xfffffffffffffff0), 2, 2), 0);
    allowed_free(&allowed);
}

#define PART(prefix, line, client, table, hash)                                                    \
    "{\"prefix\":" #prefix ",\"line\":" #line ",\"client\":\"" client                              \
    "\",\"tables\":[{\"name\":\"" table "\",\"rows\":1,\"hash\":" #hash "}]}\n"

static const char CLIENTS[] =
    "{\"prefix\":0,\"line\":0,\"tables\":[{\"name\":\"x\",\"rows\":1,\"hash\":9}]}\n" PART(
        1, 0, "a", "ta", 10) PART(2, 0, "b", "tb", 20) PART(3, 1, "b", "tb", 21)
        PART(4, 2, "b", "tb", 22) PART(5, 3, "a", "ta", 11) PART(6, 4, "b", "tb", 23)
            PART(7, 5, "a", "ta", 12);

/** The invariant that a state breaks in which table x, and those of a and of b, have these hashes;
0: none. */
static uint32_t judge_three(const allowed_t *allowed, uint32_t acked, uint64_t x, uint64_t a,
                            uint64_t b)
{
    check_table_t tables[] = {{.name = "ta", .rows = 1, .hash = a},
                              {.name = "x", .rows = 1, .hash = x},
                              {.name = "tb", .rows = 1, .hash = b}};
    check_report_t report = {.n_tables = 3, .tables = tables};
    verdict_t verdict = {.n = 0};
    uint32_t prefix;
    uint32_t low = allowed_at(allowed, acked);
    (void)allowed_judge(allowed, &report, low, low, "", &verdict, &prefix);
    return verdict.n == 0 ? 0 : verdict.findings[0].invariant;
}

/** Each client's table is its last acknowledged one or the next, whatever the others' are. */
static void test_clients(void **state)
{
    (void)state;
    allowed_t allowed;
    assert_int_equal(load(CLIENTS, &allowed), DB_SUCCESS);
    assert_int_equal(allowed_at(&allowed, 0), 2);
    assert_int_equal(judge_three(&allowed, 0, 9, 10, 20), 0);
    assert_int_equal(judge_three(&allowed, 0, 9, 11, 21), 0); /* both under way */
    assert_int_equal(judge_three(&allowed, 0, 9, 10, 22), 3);
    assert_int_equal(judge_three(&allowed, 2, 9, 10, 22), 0);
    assert_int_equal(judge_three(&allowed, 2, 9, 11, 23), 0);
    assert_int_equal(judge_three(&allowed, 2, 9, 10, 21), 1);
    assert_int_equal(judge_three(&allowed, 3, 9, 10, 22), 1);
    assert_int_equal(judge_three(&allowed, 3, 9, 12, 22), 0);
    assert_int_equal(judge_three(&allowed, 3, 9, 13, 22), 2);
    assert_int_equal(judge_three(&allowed, 3, 8, 11, 22), 2);
    check_report_t none = {.n_tables = 0};
    verdict_t verdict = {.n = 0};
    uint32_t prefix;
    (void)allowed_judge(&allowed, &none, 2, 2, "", &verdict, &prefix);
    assert_int_equal(verdict.findings[0].invariant, 2);
    allowed_free(&allowed);
}

/** Whatever a target says, a finding's text can be told: other bytes than those of UTF-8, control
characters, and what is cut in the middle of a character. */
static void test_words(void **state)
{
    static const struct {
        const char *said;
        const char *told;
    } cases[] = {
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"caf\xe9 \xff\xfe", "caf? ??"},
        {"\x1b[31mred\nline\x7f", "?[31mred?line?"},
        {"cut \xe2\x82", "cut ??"},
        {"\xc0\xaf \xed\xa0\x80 \xc2\x9b", "?? ??? ??"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verdict_t verdict = {.n = 0};
        verdict_add(&verdict, SOURCE_RECOVERY, 30, "%s", cases[i].said);
        assert_string_equal(verdict.findings[0].what, cases[i].told);
        verdict_add_rule(&verdict, 24, "file_sync", 0, cases[i].said);
        assert_string_equal(verdict.findings[1].what, cases[i].told);
    }
}

/** Findings are kept, each kind once. */
static void test_several(void **state)
{
    (void)state;
    verdict_t verdict = {.n = 0};
    verdict_add(&verdict, SOURCE_SCAN, 6, "a page");
    verdict_add(&verdict, SOURCE_SCAN, 7, "its keys");
    verdict_add(&verdict, SOURCE_SCAN, 6, "another page");
    verdict_add(&verdict, SOURCE_ORACLE, 6, "rows");
    verdict_add_rule(&verdict, 6, "home_page", 0, "a write");
    verdict_add_rule(&verdict, 6, "write_ahead", 0, "a write");
    assert_int_equal(verdict.n, 5);
    assert_string_equal(verdict.findings[0].what, "a page");
}

static void test_bad_files(void **state)
{
    static const char *const BAD[] = {
        "",
        "{",
        "{\"prefix\":1,\"line\":0,\"tables\":[]}\n",
        "{\"prefix\":0,\"line\":-1,\"tables\":[]}\n",
        "{\"prefix\":0,\"line\":0}\n",
        "{\"prefix\":0,\"line\":0,\"tables\":[],\"backup\":7}\n",
        "{\"prefix\":0,\"line\":0,\"tables\":[{\"name\":\"t\",\"rows\":1,\"hash\":\"xyz\"}]}\n",
        "{\"prefix\":0,\"line\":5,\"tables\":[]}\n{\"prefix\":1,\"line\":4,\"tables\":[]}\n",
    };
    (void)state;
    allowed_t allowed;
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        assert_int_equal(load(BAD[i], &allowed), DB_ERROR);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge),   cmocka_unit_test(test_extend),
        cmocka_unit_test(test_clients), cmocka_unit_test(test_exported),
        cmocka_unit_test(test_end),     cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_words),   cmocka_unit_test(test_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
