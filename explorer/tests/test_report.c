/* Which findings are told: of each kind of broken state those of its first one, and no kind is
taken for another. */
#include "disk/tests/fixture.h"

#include <stdio.h>

#include "explorer/run/report.h"

#define STATES_MAX 16U

static record_t records[STATES_MAX];

static record_t found(uint64_t seq, uint32_t invariant, finding_source_t source, const char *what)
{
    record_t record = {.key = seq, .path = {.depth = 1}, .site = SITE_OTHER};
    record.path.level[0].seq = seq;
    record.finding.invariant = invariant;
    record.finding.source = source;
    (void)snprintf(record.finding.what, sizeof(record.finding.what), "%s", what);
    return record;
}

/** How many findings are told of the first n records. */
static uint32_t told(uint64_t n)
{
    static const counts_t NOTHING;
    summary_t summary = {.depth = 1, .jobs = 1, .seconds = 1.0};
    n = report_reduce(records, n);
    return report_print(&NOTHING, records, n, &summary, false);
}

/** A finding that comes beside one that is known by itself makes another kind: both of its state
are told. */
static void test_second_finding_is_told(void **state)
{
    (void)state;
    records[0] = found(1, 5, SOURCE_SCAN, "page 3: checksum");
    records[1] = found(2, 5, SOURCE_SCAN, "page 4: checksum");
    records[2] = found(2, 10, SOURCE_ORACLE, "rows are right, indexes are not");
    assert_int_equal(told(3), 3);
    records[0] = found(1, 5, SOURCE_SCAN, "page 3: checksum");
    records[1] = found(2, 5, SOURCE_SCAN, "page 4: checksum");
    records[2] = found(2, 1, SOURCE_ORACLE, "acknowledged commits are missing");
    assert_int_equal(told(3), 3);
    records[0] = found(1, 5, SOURCE_SCAN, "page 3: checksum");
    records[1] = found(2, 5, SOURCE_SCAN, "page 4: checksum");
    assert_int_equal(told(2), 1);
}

/** Refusals for two causes are two kinds, for one cause one, whatever page it names; so are two
rules. */
static void test_causes_are_told_apart(void **state)
{
    (void)state;
    records[0] = found(1, 30, SOURCE_RECOVERY, "recovery: page 7 is torn");
    records[1] = found(2, 30, SOURCE_RECOVERY, "recovery: page 8 is torn");
    records[2] = found(3, 30, SOURCE_RECOVERY, "recovery: log ends early");
    assert_int_equal(told(3), 2);
    records[0] = found(1, 4, SOURCE_RULE, "x");
    records[1] = found(2, 4, SOURCE_RULE, "x");
    records[0].finding.rule = "log_first";
    records[1].finding.rule = "log_durable";
    assert_int_equal(told(2), 2);
}

/** The same findings behind writes of two sites are of two kinds; of an image that several states
have, one counts. */
static void test_sites_and_images(void **state)
{
    (void)state;
    records[0] = found(1, 2, SOURCE_ORACLE, "x");
    records[1] = found(2, 2, SOURCE_ORACLE, "x");
    records[1].site = SITE_REDO;
    assert_int_equal(told(2), 2);
    records[0] = found(1, 2, SOURCE_ORACLE, "x");
    records[1] = found(2, 2, SOURCE_ORACLE, "x");
    records[1].key = records[0].key;
    assert_int_equal(report_reduce(records, 2), 1);
    assert_int_equal(records[0].path.level[0].seq, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_finding_is_told),
        cmocka_unit_test(test_causes_are_told_apart),
        cmocka_unit_test(test_sites_and_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
