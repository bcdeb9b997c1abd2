/** A back end in front of another one: a hook sees each change before it happens, and may refuse
it. */
#ifndef TEST_TAP_OS_H
#define TEST_TAP_OS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "os/os.h"

typedef enum tap_kind {
    TAP_CREATE,
    TAP_WRITE,
    TAP_SYNC,
    TAP_TRUNCATE,
    TAP_PUNCH,
    TAP_RENAME,
    TAP_UNLINK,
    TAP_SYNC_DIR
} tap_kind_t;

typedef struct tap_op {
    tap_kind_t kind;
    const char *path; /**< not of TAP_SYNC_DIR */
    const char *to;   /**< of TAP_RENAME */
    uint64_t offset;  /**< of TAP_WRITE and TAP_PUNCH; of TAP_TRUNCATE the new size */
    const byte *buf;  /**< of TAP_WRITE, as is len, which TAP_PUNCH has too */
    size_t len;
} tap_op_t;

typedef struct tap {
    os_t base;
    os_t *inner;
    struct tap_file *files; /**< open ones: a rename gives them another path */
    dberr_t (*before)(void *ctx, const tap_op_t *op); /**< NULL: nobody looks */
    void *ctx;
} tap_t;

typedef struct tap_file {
    os_file_t base;
    os_file_t *inner;
    struct tap_file *next;
} tap_file_t;

static inline uint32_t tap_n_open(const tap_t *tap)
{
    uint32_t n = 0;
    for (const tap_file_t *file = tap->files; file != NULL; file = file->next) {
        n++;
    }
    return n;
}

static inline os_t *tap_inner(os_t *os)
{
    return ((tap_t *)os)->inner;
}

static inline os_file_t *tap_inner_file(os_file_t *file)
{
    return ((tap_file_t *)file)->inner;
}

static inline dberr_t tap_before(os_t *os, tap_op_t op)
{
    const tap_t *tap = (const tap_t *)os;
    return tap->before != NULL ? tap->before(tap->ctx, &op) : DB_SUCCESS;
}

static inline dberr_t tap_open(os_t *os, const char *path, os_open_mode_t mode, os_file_t **out)
{
    if (mode != OS_OPEN) {
        TRY(tap_before(os, (tap_op_t){.kind = TAP_CREATE, .path = path}));
    }
    os_file_t *inner = NULL;
    dberr_t err = tap_inner(os)->vt->open(tap_inner(os), path, mode, &inner);
    if (err == DB_SUCCESS) {
        tap_file_t *file = calloc(1, sizeof(*file));
        assert_non_null(file);
        file->base.os = os;
        snprintf(file->base.path, sizeof(file->base.path), "%s", path);
        file->inner = inner;
        file->next = ((tap_t *)os)->files;
        ((tap_t *)os)->files = file;
        *out = &file->base;
    }
    return err;
}

static inline dberr_t tap_read(os_file_t *file, uint64_t offset, void *buf, size_t len, size_t *n)
{
    return tap_inner(file->os)->vt->read(tap_inner_file(file), offset, buf, len, n);
}

static inline dberr_t tap_write(os_file_t *file, uint64_t offset, const void *buf, size_t len)
{
    tap_op_t op = {.kind = TAP_WRITE, .path = file->path, .offset = offset, .buf = buf, .len = len};
    dberr_t err = tap_before(file->os, op);
    return err != DB_SUCCESS
               ? err
               : tap_inner(file->os)->vt->write(tap_inner_file(file), offset, buf, len);
}

static inline dberr_t tap_sync(os_file_t *file)
{
    dberr_t err = tap_before(file->os, (tap_op_t){.kind = TAP_SYNC, .path = file->path});
    return err != DB_SUCCESS ? err : tap_inner(file->os)->vt->sync(tap_inner_file(file));
}

static inline dberr_t tap_truncate(os_file_t *file, uint64_t size_bytes)
{
    tap_op_t op = {.kind = TAP_TRUNCATE, .path = file->path, .offset = size_bytes};
    dberr_t err = tap_before(file->os, op);
    return err != DB_SUCCESS ? err
                             : tap_inner(file->os)->vt->truncate(tap_inner_file(file), size_bytes);
}

static inline dberr_t tap_punch(os_file_t *file, uint64_t offset, uint64_t len, bool *done)
{
    tap_op_t op = {.kind = TAP_PUNCH, .path = file->path, .offset = offset, .len = len};
    dberr_t err = tap_before(file->os, op);
    return err != DB_SUCCESS
               ? err
               : tap_inner(file->os)->vt->punch(tap_inner_file(file), offset, len, done);
}

static inline dberr_t tap_size(os_file_t *file, uint64_t *size_bytes)
{
    return tap_inner(file->os)->vt->size(tap_inner_file(file), size_bytes);
}

static inline void tap_close(os_file_t *file)
{
    tap_inner(file->os)->vt->close(tap_inner_file(file));
    tap_file_t **link = &((tap_t *)file->os)->files;
    while (&(*link)->base != file) {
        link = &(*link)->next;
    }
    *link = (*link)->next;
    free(file);
}

static inline dberr_t tap_rename(os_t *os, const char *from, const char *to)
{
    TRY(tap_before(os, (tap_op_t){.kind = TAP_RENAME, .path = from, .to = to}));
    for (tap_file_t *file = ((tap_t *)os)->files; file != NULL; file = file->next) {
        if (strcmp(file->base.path, from) == 0) {
            snprintf(file->base.path, sizeof(file->base.path), "%s", to);
        }
    }
    return tap_inner(os)->vt->rename(tap_inner(os), from, to);
}

static inline dberr_t tap_unlink(os_t *os, const char *path)
{
    dberr_t err = tap_before(os, (tap_op_t){.kind = TAP_UNLINK, .path = path});
    return err != DB_SUCCESS ? err : tap_inner(os)->vt->unlink(tap_inner(os), path);
}

static inline dberr_t tap_sync_dir(os_t *os, const char *dir)
{
    dberr_t err = tap_before(os, (tap_op_t){.kind = TAP_SYNC_DIR});
    return err != DB_SUCCESS ? err : tap_inner(os)->vt->sync_dir(tap_inner(os), dir);
}

static inline dberr_t tap_exists(os_t *os, const char *path, bool *exists)
{
    return tap_inner(os)->vt->exists(tap_inner(os), path, exists);
}

static inline dberr_t tap_list(os_t *os, const char *dir, os_list_fn fn, void *ctx)
{
    return tap_inner(os)->vt->list(tap_inner(os), dir, fn, ctx);
}

static inline dberr_t tap_lock(os_t *os)
{
    return tap_inner(os)->vt->lock(tap_inner(os));
}

static inline void tap_unlock(os_t *os)
{
    tap_inner(os)->vt->unlock(tap_inner(os));
}

static const os_vtable_t tap_vtable = {.open = tap_open,
                                       .read = tap_read,
                                       .write = tap_write,
                                       .sync = tap_sync,
                                       .truncate = tap_truncate,
                                       .punch = tap_punch,
                                       .size = tap_size,
                                       .close = tap_close,
                                       .rename = tap_rename,
                                       .unlink = tap_unlink,
                                       .sync_dir = tap_sync_dir,
                                       .exists = tap_exists,
                                       .list = tap_list,
                                       .lock = tap_lock,
                                       .unlock = tap_unlock};

/** A tap in front of inner, which stays the caller's. */
static inline tap_t tap_of(os_t *inner)
{
    return (tap_t){.base.vt = &tap_vtable, .inner = inner};
}

#endif
