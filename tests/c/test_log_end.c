/* Every way in which the log may end: stale blocks behind it, an unfinished group, damage, and
hostile files (I21). */
#include "base/crc32c.h"
#include "test_log_fixture.h"
#include "test_random.h"

static void fix_crc(byte *block)
{
    mach_write_4(block + 508, crc32c(block, 508));
}

/* (I21) Blocks of an earlier life behind the end are never parsed: not after a new epoch started,
not when a later block of the new epoch reached the disk without an earlier one. */
static void test_stale_tail(void **state)
{
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    lsn_t from = log_lsn(log);
    /* First life: one small group, then a large one whose first block is lost. */
    (void)lfx_append(log, 1, 1, 0);
    lsn_t cut = log_lsn(log);
    assert_int_equal(log_write_up_to(log, cut, true), DB_SUCCESS);
    byte old_block[512];
    memcpy(old_block, lfx_raw_block(f, cut), 512);
    (void)lfx_append(log, 3, 100, 3000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    log_close(log);
    memcpy(lfx_raw_block(f, cut), old_block, 512);
    byte stale_block[512];
    memcpy(stale_block, lfx_raw_block(f, cut + 512), 512);

    /* Second life: goes on at the cut; its group ends in the second block, stale blocks follow. */
    log = efx_log_start(&f->env);
    assert_true(log_lsn(log) == cut);
    (void)lfx_append(log, 1, 10, 600);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    efx_scan_t s = efx_log_scan(log, from);
    assert_true(s.e == DB_NOT_FOUND && s.end == log_lsn(log) && s.sum == 11);

    /* The second block alone is lost: the stale one in its place is whole, but of an older epoch.
    */
    log_close(log);
    memcpy(lfx_raw_block(f, cut + 512), stale_block, 512);
    log_t *again = efx_log_start(&f->env);
    assert_true(log_lsn(again) == cut);
    log_close(again);
}

/* (I21) Blocks of the lap before are not parsed when the log ends with a full block. */
static void test_earlier_lap(void **state)
{
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    while (log_lsn(log) < LOG_START_LSN + AREA_SIZE + 100000) {
        if (log_lsn(log) - log_checkpoint_lsn(log) > AREA_SIZE / 2) {
            lfx_checkpoint(log);
        }
        (void)lfx_append(log, 1, 1, 1000);
    }
    lfx_checkpoint(log);
    (void)lfx_append(log, 0, 0, 508 + 2 * LOG_BLOCK_PAYLOAD - (uint32_t)(log_lsn(log) % 512) - 6);
    assert_int_equal(log_lsn(log) % 512, 12);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    efx_scan_t s = efx_log_scan(log, log_checkpoint_lsn(log));
    assert_true(s.e == DB_NOT_FOUND && s.groups == 2 && s.end == log_lsn(log));
    log_close(log);
}

/* (I21) An unfinished group at the end of one life is cut off durably before the next life writes:
a later block of the new life cannot complete it. */
static void test_unfinished_group_is_cut(void **state)
{
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    lsn_t from = log_lsn(log);
    (void)lfx_append(log, 1, 1, 0);
    lsn_t lost = log_lsn(log);
    (void)lfx_append(log, 3, 100, 3000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    log_close(log);
    memset(lfx_raw_block(f, lost + 1024), 0xEE, 512); /* the third block is lost */

    log = efx_log_start(&f->env);
    assert_true(log_lsn(log) == lost);
    byte first[512];
    memcpy(first, lfx_raw_block(f, lost), 512);
    assert_int_equal(mach_read_2(first + 8), lost % 512);
    for (uint32_t i = (uint32_t)(lost % 512); i < 508; i++) {
        assert_int_equal(first[i], 0);
    }
    (void)lfx_append(log, 3, 10, 3000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), false), DB_SUCCESS);
    log_close(log);
    memcpy(lfx_raw_block(f, lost), first,
           512); /* of this write, all but the first block survives */

    log = efx_log_start(&f->env);
    efx_scan_t s = efx_log_scan(log, from);
    assert_true(s.e == DB_NOT_FOUND && s.end == lost && s.sum == 1 && log_lsn(log) == lost);
    log_close(log);
}

/* The cut block stays sane when the unfinished group was the first to start in it. */
static void test_cut_at_first_group(void **state)
{
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    lsn_t from = log_lsn(log);
    (void)lfx_append(log, 1, 1, 600);
    lsn_t lost = log_lsn(log);
    assert_true(lost - lost % 512 > from);
    (void)lfx_append(log, 1, 1, 3000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    log_close(log);
    memset(lfx_raw_block(f, lost + 512), 0, 512);
    log = efx_log_start(&f->env);
    efx_scan_t s = efx_log_scan(log, from);
    assert_true(s.e == DB_NOT_FOUND && s.end == lost && log_lsn(log) == lost);
    (void)lfx_append(log, 1, 7, 0);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    assert_true(efx_log_scan(log, lost).sum == 7);
    log_close(log);
}

/* A block with right number and checksum was written by the engine: nonsense in it is corruption.
*/
static void test_valid_block_nonsense(void **state)
{
    static const uint32_t BAD_USED[] = {0, 11, 508, 511, 513, 65535};
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    lsn_t from = log_lsn(log);
    (void)lfx_append(log, 1, 1, 0);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    byte *block = lfx_raw_block(f, from);
    byte good[512];
    memcpy(good, block, 512);
    for (size_t i = 0; i < sizeof(BAD_USED) / sizeof(BAD_USED[0]); i++) {
        mach_write_2(block + 8, BAD_USED[i]);
        fix_crc(block);
        assert_int_equal(efx_log_scan(log, LOG_FIRST_LSN).e, DB_CORRUPTION);
        memcpy(block, good, 512);
    }
    mach_write_2(block + 10, 500); /* first group behind the used bytes */
    fix_crc(block);
    assert_int_equal(efx_log_scan(log, LOG_FIRST_LSN).e, DB_CORRUPTION);
    memcpy(block, good, 512);
    mach_write_4(block + 4, 9); /* epoch of the future */
    fix_crc(block);
    assert_int_equal(efx_log_scan(log, LOG_FIRST_LSN).e, DB_CORRUPTION);
    memcpy(block, good, 512);
    block[from % 512] = 0x7F; /* no such record */
    fix_crc(block);
    assert_int_equal(efx_log_scan(log, LOG_FIRST_LSN).e, DB_CORRUPTION);
    block[from % 512] = 31; /* ends no group */
    fix_crc(block);
    assert_int_equal(efx_log_scan(log, LOG_FIRST_LSN).e, DB_CORRUPTION);
    memcpy(block, good, 512);
    assert_int_equal(efx_log_scan(log, LOG_FIRST_LSN).e, DB_NOT_FOUND);

    /* The same nonsense without a right checksum is just the end. */
    block[from % 512] = 0x7F;
    assert_true(efx_log_scan(log, LOG_FIRST_LSN).e == DB_NOT_FOUND);
    assert_true(efx_log_scan(log, LOG_FIRST_LSN).end == LOG_FIRST_LSN);
    memcpy(block, good, 512);
    log_close(log);
}

/* Hostile files, with right checksums where a hit was made: opening, reading and going on end with
success or an error, never in a crash or a loop. */
static void test_fuzz(void **state)
{
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    byte *image = malloc(FILE_SIZE);

    assert_non_null(image);
    for (uint32_t i = 0; i < 60; i++) {
        (void)lfx_append(log, 1 + i % 3, i, (i * 97) % 700);
    }
    lfx_checkpoint(log);
    (void)lfx_append(log, 9, 1, 2000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    log_close(log);
    memcpy(image, lfx_raw(f), FILE_SIZE);
    uint64_t seed = 31415926;
    for (uint32_t round = 0; round < 3000; round++) {
        memcpy(lfx_raw(f), image, FILE_SIZE);
        for (uint64_t hits = 1 + random_next(&seed) % 3; hits > 0; hits--) {
            byte *block = lfx_raw(f) + 512 * (random_next(&seed) % 80);
            uint64_t at = random_next(&seed) % 508;

            block[random_next(&seed) % 2 == 0 ? at : at % 36] = (byte)random_next(&seed);
            fix_crc(block);
        }
        if (log_open(&f->env, &log) == DB_SUCCESS) {
            log_checkpoint_t ckpt[2];
            uint32_t n;

            log_checkpoints(log, ckpt, &n);
            for (uint32_t i = 0; i < n; i++) {
                efx_scan_t s = efx_log_scan(log, ckpt[i].lsn);

                if (i == n - 1 && s.e == DB_NOT_FOUND
                    && log_start_writing(log, &ckpt[i], s.end) == DB_SUCCESS) {
                    (void)lfx_append(log, 1, 1, 0);
                    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
                }
            }
            log_close(log);
        }
        assert_false(f->env.io_failed);
    }
    free(image);
}

/** A log whose LSNs are about to run out is not continued: no reader follows them further. */
static void test_lsns_run_out(void **state)
{
    log_fixture_t *f = *state;
    log_file_info_t info = {.format_id = log_format_10_4.id,
                            .page_size = PAGE_SIZE,
                            .extent_pages = 256,
                            .file_size = FILE_SIZE,
                            .start_lsn = ((lsn_t)1 << 62) - LOG_BLOCK_SIZE};
    assert_int_equal(log_file_create(&f->env, LOG_FILE_NAME, &info, LOG_LOADS_LOGGED), DB_SUCCESS);
    log_t *log = NULL;
    lsn_t end = efx_log_open(&f->env, &log);
    assert_int_equal(log_start_writing(log, log_last_checkpoint(log), end), DB_CORRUPTION);
    assert_int_equal(f->env.err.refusal, REFUSAL_LOG_DAMAGED);
    log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stale_tail, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_unfinished_group_is_cut, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_earlier_lap, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_cut_at_first_group, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_valid_block_nonsense, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_lsns_run_out, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_fuzz, lfx_setup, lfx_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
