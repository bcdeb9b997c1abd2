/** The scanner on damaged undo logs, which wait in the history for purge: each damage is reported
under its number, and under no other. */
#include "test_check_damage.h"
#include "trx/undo_format.h"

/** First page of the oldest log. */
static byte *oldest_log(const items_t *it)
{
    const byte *rseg = dbx_home(it->db, FIL_SYSTEM_PATH, RSEG_PAGE);
    return dbx_home(it->db, FIL_SYSTEM_PATH, mach_read_4(rseg + RSEG_HISTORY_HEAD));
}

/** The length at the end of a record is the one at its start. */
static void test_i6_length_at_the_end(void **state)
{
    (void)state;
    items_t it = items_create(false);
    byte *page = oldest_log(&it);
    byte *end = page + UNDO_RECS + mach_read_2(page + UNDO_RECS + UNDO_REC_LEN);
    end[-1]++;
    expect_stamped(&it, page, 6);
}

/** No two logs have one commit number. */
static void test_i6_commit_number_again(void **state)
{
    (void)state;
    items_t it = items_create(false);
    const byte *first = oldest_log(&it);
    byte *next = dbx_home(it.db, FIL_SYSTEM_PATH, mach_read_4(first + UNDO_HISTORY_NEXT));
    memcpy(next + UNDO_TRX_NO, first + UNDO_TRX_NO, 8);
    expect_stamped(&it, next, 6);
}

/** A log is that of a transaction. */
static void test_i25_log_of_nobody(void **state)
{
    (void)state;
    items_t it = items_create(false);
    byte *page = oldest_log(&it);
    mach_write_8(page + UNDO_TRX_ID, 0);
    expect_stamped(&it, page, 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_i6_length_at_the_end),
        cmocka_unit_test(test_i6_commit_number_again),
        cmocka_unit_test(test_i25_log_of_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
