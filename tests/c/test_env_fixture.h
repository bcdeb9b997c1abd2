/** The lowest fixture: statuses checked with the engine's own message, and a redo log that is read
to its end and gone on with, as a start does. */
#ifndef TEST_ENV_FIXTURE_H
#define TEST_ENV_FIXTURE_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "disk/image.h"
#include "log/log.h"

/** Fails with the text of the call and the message in the env_t. */
#define ENV_OK_NAMED(env_, call, name)                                                             \
    do {                                                                                           \
        dberr_t ok_err_ = (call);                                                                  \
        if (ok_err_ != DB_SUCCESS) {                                                               \
            fail_msg("%s: %s: %s", name, err_name(ok_err_), (env_)->err.msg);                      \
        }                                                                                          \
    } while (0)

#define ENV_OK(env_, call) ENV_OK_NAMED(env_, call, #call)
/** For a fixture with a member env. */
#define ASSERT_OK(fx, call) ENV_OK_NAMED(&(fx)->env, call, #call)

/** A log read from a position to the end: groups seen, and how the reading ended. */
typedef struct efx_scan {
    dberr_t e;
    uint32_t groups;
    lsn_t end;
    uint64_t sum; /**< of the values written in 8 bytes */
} efx_scan_t;

static inline efx_scan_t efx_log_scan(log_t *log, lsn_t from)
{
    efx_scan_t s = {.e = DB_SUCCESS};
    log_reader_t *reader;
    log_group_t group;

    s.e = log_reader_create(log, from, &reader);
    if (s.e != DB_SUCCESS) {
        return s;
    }
    s.end = from;
    while ((s.e = log_reader_next(reader, &group)) == DB_SUCCESS) {
        assert_true(group.start_lsn == s.end && group.end_lsn > group.start_lsn);
        s.end = group.end_lsn;
        s.groups++;
        for (uint32_t i = 0; i < group.n_recs; i++) {
            s.sum += group.recs[i].len == 8 ? group.recs[i].value : 0;
        }
    }
    assert_true(log_reader_end_lsn(reader) == s.end);
    log_reader_free(reader);
    return s;
}

/** Opens the log for reading; @return the end of its last group. Caller: log_close(). */
static inline lsn_t efx_log_open(env_t *env, log_t **log)
{
    ENV_OK(env, log_open(env, log));
    efx_scan_t s = efx_log_scan(*log, log_last_checkpoint(*log)->lsn);
    assert_int_equal(s.e, DB_NOT_FOUND);
    return s.end;
}

/** Opens the log and goes on at its end. Caller: log_close(). */
static inline log_t *efx_log_start(env_t *env)
{
    log_t *log = NULL;
    lsn_t end = efx_log_open(env, &log);
    ENV_OK(env, log_start_writing(log, log_last_checkpoint(log), end));
    return log;
}

#endif
