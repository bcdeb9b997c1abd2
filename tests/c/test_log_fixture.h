/** A redo file of 64 pages alone, in memory or on disk, and groups to write into it. */
#ifndef TEST_LOG_FIXTURE_H
#define TEST_LOG_FIXTURE_H

#include <unistd.h>

#include "base/mach.h"
#include "test_env_fixture.h"

#define PAGE_SIZE 4096U
#define FILE_SIZE (64U * PAGE_SIZE)
#define AREA_SIZE (FILE_SIZE - LOG_FILE_HDR_SIZE)

typedef struct log_fixture {
    probe_t probe;
    env_t env;
    char trace[4096]; /**< markers, each with a '|' behind it */
    char dir[32];     /**< empty: in memory */
} log_fixture_t;

static inline void lfx_keep_mark(void *ctx, const char *text, size_t len)
{
    log_fixture_t *f = ctx;

    if (strlen(f->trace) + len + 2 < sizeof(f->trace)) {
        strncat(f->trace, text, len);
        strcat(f->trace, "|");
    }
}

static inline log_fixture_t *lfx_create(void)
{
    log_fixture_t *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->env.probe = &f->probe;
    f->probe.mark = lfx_keep_mark;
    f->probe.ctx = f;
    return f;
}

static inline dberr_t lfx_create_file(log_fixture_t *f, const char *path, uint64_t size)
{
    const log_file_info_t info = {.format_id = log_format_10_4.id,
                                  .page_size = PAGE_SIZE,
                                  .extent_pages = 256,
                                  .file_size = size,
                                  .start_lsn = LOG_START_LSN};

    return log_file_create(&f->env, path, &info, LOG_LOADS_LOGGED);
}

static inline int lfx_setup(void **state)
{
    log_fixture_t *f = lfx_create();

    f->env.os = image_os_create();
    assert_int_equal(lfx_create_file(f, LOG_FILE_NAME, FILE_SIZE), DB_SUCCESS);
    *state = f;
    return 0;
}

static inline int lfx_setup_posix(void **state)
{
    log_fixture_t *f = lfx_create();

    strcpy(f->dir, "test_log_XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(os_posix_create(f->dir, false, &f->env.err, &f->env.os), DB_SUCCESS);
    assert_int_equal(lfx_create_file(f, LOG_FILE_NAME, FILE_SIZE), DB_SUCCESS);
    *state = f;
    return 0;
}

static inline int lfx_teardown(void **state)
{
    log_fixture_t *f = *state;

    if (f->dir[0] != '\0') {
        assert_int_equal(env_unlink(&f->env, LOG_FILE_NAME), DB_SUCCESS);
        assert_int_equal(rmdir(f->dir), 0);
    }
    os_destroy(f->env.os);
    free(f);
    return 0;
}

/** A group of n records of 8 bytes' values and a string of fill bytes (none when 0). */
static inline lsn_t lfx_append(log_t *log, uint32_t n, uint64_t value, uint32_t fill)
{
    static const byte zeros[PAGE_SIZE_MAX] = {0};
    redo_rec_t rec = {
        .op = OP_NUMBER, .len = 8, .space = 1, .page_no = 3, .offset = 100, .value = value};
    redo_rec_t string = {
        .op = OP_WRITE, .space = 1, .page_no = 3, .offset = 100, .data = zeros, .len = fill};
    redo_group_t group;
    lsn_t start_lsn;
    lsn_t end_lsn;

    redo_group_init(&group, log_format(log));
    for (uint32_t i = 0; i < n; i++) {
        redo_group_add(&group, &rec);
    }
    if (fill > 0) {
        redo_group_add(&group, &string);
    }
    redo_group_finish(&group);
    log_append(log, group.bytes, group.len, &start_lsn, &end_lsn);
    assert_true(end_lsn == log_lsn(log) && start_lsn < end_lsn);
    redo_group_free(&group);
    return end_lsn;
}

/** The raw bytes of the file. */
static inline byte *lfx_raw(log_fixture_t *f)
{
    uint64_t size;

    byte *bytes = image_os_bytes(f->env.os, LOG_FILE_NAME, &size);
    assert_int_equal(size, FILE_SIZE);
    return bytes;
}

static inline byte *lfx_raw_block(log_fixture_t *f, lsn_t lsn)
{
    return lfx_raw(f) + LOG_FILE_HDR_SIZE + (lsn - lsn % 512 - LOG_START_LSN) % AREA_SIZE;
}

static inline void lfx_checkpoint(log_t *log)
{
    lsn_t c = log_lsn(log);
    redo_rec_t marker = {.op = OP_CHECKPOINT, .value = c};
    lsn_t end;

    log_append_rec(log, &marker, &end);
    assert_int_equal(log_write_up_to(log, end, true), DB_SUCCESS);
    assert_int_equal(log_checkpoint_write(log, c, c, LOG_LOADS_UNLOGGED), DB_SUCCESS);
    assert_true(log_checkpoint_lsn(log) == c);
}

#endif
