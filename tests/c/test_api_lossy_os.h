/** A third back end for tests: a directory that remembers what is durable. A kill keeps what the
processes saw; a power loss keeps what was synced, and of the rest what a seed says: sectors of
writes, whole writes, changes of length, and a prefix of the changes of directory entries. */
#ifndef TEST_LOSSY_OS_H
#define TEST_LOSSY_OS_H

#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "test_random.h"

#define LOSSY_ENTRIES 24U
#define LOSSY_NODES 2048U
#define LOSSY_DIR_OPS 16U

typedef struct lossy_write {
    struct lossy_write *next;
    uint64_t offset;
    size_t len;
    bool truncate; /**< to offset bytes */
    byte bytes[];
} lossy_write_t;

typedef struct lossy_image {
    byte *bytes;
    size_t size;
} lossy_image_t;

typedef struct lossy_node {
    lossy_image_t live;
    lossy_image_t durable;
    lossy_write_t *pending;
    lossy_write_t **pending_tail;
} lossy_node_t;

typedef struct lossy_dir {
    uint32_t n;
    struct lossy_entry {
        char name[PATH_LEN_MAX + 1];
        uint32_t node;
    } at[LOSSY_ENTRIES]; /**< sorted */
} lossy_dir_t;

typedef struct lossy_os {
    os_t base;
    lossy_node_t *nodes[LOSSY_NODES];
    uint32_t n_nodes;
    lossy_dir_t dir;
    lossy_dir_t states[LOSSY_DIR_OPS]; /**< durable one first, then after each change */
    uint32_t n_states;
    bool locked;
    void (*before_change)(void *ctx);
    void *ctx;
} lossy_os_t;

typedef struct lossy_file {
    os_file_t base;
    lossy_node_t *node;
} lossy_file_t;

static inline lossy_os_t *lossy_of(os_t *os)
{
    return (lossy_os_t *)os;
}

static inline void lossy_resize(lossy_image_t *image, size_t size)
{
    if (size > image->size) {
        image->bytes = realloc(image->bytes, size);
        assert_non_null(image->bytes);
        memset(image->bytes + image->size, 0, size - image->size);
    }
    image->size = size;
}

static inline void lossy_put(lossy_image_t *image, uint64_t offset, const byte *bytes, size_t len)
{
    if (offset + len > image->size) {
        lossy_resize(image, (size_t)(offset + len));
    }
    memcpy(image->bytes + offset, bytes, len);
}

static inline void lossy_copy(lossy_image_t *to, const lossy_image_t *from)
{
    free(to->bytes);
    *to = (lossy_image_t){.bytes = NULL};
    if (from->size > 0) {
        lossy_put(to, 0, from->bytes, from->size);
    }
}

static inline void lossy_pending_free(lossy_node_t *node)
{
    while (node->pending != NULL) {
        lossy_write_t *next = node->pending->next;
        free(node->pending);
        node->pending = next;
    }
    node->pending_tail = &node->pending;
}

static inline void lossy_pending_add(lossy_node_t *node, uint64_t offset, const void *bytes,
                                     size_t len, bool truncate)
{
    lossy_write_t *w = malloc(sizeof(*w) + len);
    assert_non_null(w);
    *w = (lossy_write_t){.offset = offset, .len = len, .truncate = truncate};
    if (len > 0) {
        memcpy(w->bytes, bytes, len);
    }
    *node->pending_tail = w;
    node->pending_tail = &w->next;
}

static inline lossy_node_t *lossy_node_new(lossy_os_t *os)
{
    lossy_node_t *node = calloc(1, sizeof(*node));
    assert_non_null(node);
    assert_true(os->n_nodes < LOSSY_NODES);
    node->pending_tail = &node->pending;
    os->nodes[os->n_nodes++] = node;
    return node;
}

static inline uint32_t lossy_find(const lossy_dir_t *dir, const char *name)
{
    uint32_t i = 0;
    while (i < dir->n && strcmp(dir->at[i].name, name) < 0) {
        i++;
    }
    return i;
}

static inline bool lossy_is(const lossy_dir_t *dir, uint32_t i, const char *name)
{
    return i < dir->n && strcmp(dir->at[i].name, name) == 0;
}

static inline void lossy_enter(lossy_dir_t *dir, const char *name, uint32_t node)
{
    uint32_t i = lossy_find(dir, name);
    if (!lossy_is(dir, i, name)) {
        assert_true(dir->n < LOSSY_ENTRIES);
        memmove(&dir->at[i + 1], &dir->at[i], (dir->n - i) * sizeof(dir->at[0]));
        dir->n++;
        memcpy(dir->at[i].name, name, strlen(name) + 1);
    }
    dir->at[i].node = node;
}

static inline void lossy_remove(lossy_dir_t *dir, uint32_t i)
{
    memmove(&dir->at[i], &dir->at[i + 1], (dir->n - i - 1) * sizeof(dir->at[0]));
    dir->n--;
}

static inline void lossy_dir_changed(lossy_os_t *os)
{
    if (os->n_states == LOSSY_DIR_OPS) { /* the oldest unsynced ones merge */
        memmove(&os->states[1], &os->states[2], (os->n_states - 2) * sizeof(os->states[0]));
        os->n_states--;
    }
    os->states[os->n_states++] = os->dir;
}

static inline void lossy_change(os_t *os)
{
    if (lossy_of(os)->before_change != NULL) {
        lossy_of(os)->before_change(lossy_of(os)->ctx);
    }
}

static inline dberr_t lossy_open(os_t *base, const char *path, os_open_mode_t mode, os_file_t **out)
{
    lossy_os_t *os = lossy_of(base);
    uint32_t i = lossy_find(&os->dir, path);
    bool found = lossy_is(&os->dir, i, path);
    base->last_errno = 0;
    if (mode == OS_OPEN ? !found : mode == OS_CREATE_NEW && found) {
        return found ? DB_ALREADY_EXISTS : DB_NOT_FOUND;
    }
    lossy_node_t *node;
    if (found) {
        node = os->nodes[os->dir.at[i].node];
        if (mode == OS_CREATE_TRUNC) {
            lossy_change(base);
            lossy_resize(&node->live, 0);
            lossy_pending_add(node, 0, NULL, 0, true);
        }
    } else {
        lossy_change(base);
        node = lossy_node_new(os);
        lossy_enter(&os->dir, path, os->n_nodes - 1);
        lossy_dir_changed(os);
    }
    lossy_file_t *file = calloc(1, sizeof(*file));
    assert_non_null(file);
    file->base.os = base;
    file->node = node;
    *out = &file->base;
    return DB_SUCCESS;
}

static inline lossy_node_t *lossy_node(os_file_t *file)
{
    return ((lossy_file_t *)file)->node;
}

static inline dberr_t lossy_read(os_file_t *file, uint64_t offset, void *buf, size_t len,
                                 size_t *n_read)
{
    const lossy_image_t *live = &lossy_node(file)->live;
    size_t n = offset >= live->size ? 0 : live->size - (size_t)offset;
    n = n < len ? n : len;
    if (n > 0) {
        memcpy(buf, live->bytes + offset, n);
    }
    *n_read = n;
    return DB_SUCCESS;
}

static inline dberr_t lossy_write(os_file_t *file, uint64_t offset, const void *buf, size_t len)
{
    lossy_change(file->os);
    lossy_put(&lossy_node(file)->live, offset, buf, len);
    lossy_pending_add(lossy_node(file), offset, buf, len, false);
    return DB_SUCCESS;
}

static inline dberr_t lossy_sync(os_file_t *file)
{
    lossy_change(file->os);
    lossy_node_t *node = lossy_node(file);
    lossy_copy(&node->durable, &node->live);
    lossy_pending_free(node);
    return DB_SUCCESS;
}

static inline dberr_t lossy_truncate(os_file_t *file, uint64_t size_bytes)
{
    lossy_change(file->os);
    lossy_resize(&lossy_node(file)->live, (size_t)size_bytes);
    lossy_pending_add(lossy_node(file), size_bytes, NULL, 0, true);
    return DB_SUCCESS;
}

static inline dberr_t lossy_size(os_file_t *file, uint64_t *size_bytes)
{
    *size_bytes = lossy_node(file)->live.size;
    return DB_SUCCESS;
}

static inline void lossy_close(os_file_t *file)
{
    free(file);
}

static inline dberr_t lossy_rename(os_t *base, const char *from, const char *to)
{
    lossy_os_t *os = lossy_of(base);
    uint32_t i = lossy_find(&os->dir, from);
    if (!lossy_is(&os->dir, i, from)) {
        return DB_NOT_FOUND;
    }
    lossy_change(base);
    uint32_t node = os->dir.at[i].node;
    lossy_remove(&os->dir, i);
    lossy_enter(&os->dir, to, node);
    lossy_dir_changed(os);
    return DB_SUCCESS;
}

static inline dberr_t lossy_unlink(os_t *base, const char *path)
{
    lossy_os_t *os = lossy_of(base);
    uint32_t i = lossy_find(&os->dir, path);
    if (!lossy_is(&os->dir, i, path)) {
        return DB_NOT_FOUND;
    }
    lossy_change(base);
    lossy_remove(&os->dir, i);
    lossy_dir_changed(os);
    return DB_SUCCESS;
}

static inline dberr_t lossy_sync_dir(os_t *base)
{
    lossy_os_t *os = lossy_of(base);
    lossy_change(base);
    os->states[0] = os->dir;
    os->n_states = 1;
    return DB_SUCCESS;
}

static inline dberr_t lossy_exists(os_t *base, const char *path, bool *exists)
{
    const lossy_dir_t *dir = &lossy_of(base)->dir;
    *exists = lossy_is(dir, lossy_find(dir, path), path);
    return DB_SUCCESS;
}

static inline dberr_t lossy_list(os_t *base, os_list_fn fn, void *ctx)
{
    const lossy_dir_t dir = lossy_of(base)->dir;
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = 0; err == DB_SUCCESS && i < dir.n; i++) {
        err = fn(ctx, dir.at[i].name);
    }
    return err;
}

static inline dberr_t lossy_lock(os_t *base)
{
    if (lossy_of(base)->locked) {
        return DB_DIR_LOCKED;
    }
    lossy_of(base)->locked = true;
    return DB_SUCCESS;
}

static inline void lossy_unlock(os_t *base)
{
    lossy_of(base)->locked = false;
}

static inline void lossy_destroy(os_t *base)
{
    lossy_os_t *os = lossy_of(base);
    for (uint32_t i = 0; i < os->n_nodes; i++) {
        lossy_pending_free(os->nodes[i]);
        free(os->nodes[i]->live.bytes);
        free(os->nodes[i]->durable.bytes);
        free(os->nodes[i]);
    }
    free(os);
}

static const os_vtable_t LOSSY_VTABLE = {
    .open = lossy_open,
    .read = lossy_read,
    .write = lossy_write,
    .sync = lossy_sync,
    .truncate = lossy_truncate,
    .size = lossy_size,
    .close = lossy_close,
    .rename = lossy_rename,
    .unlink = lossy_unlink,
    .sync_dir = lossy_sync_dir,
    .exists = lossy_exists,
    .list = lossy_list,
    .lock = lossy_lock,
    .unlock = lossy_unlock,
    .destroy = lossy_destroy,
};

static inline lossy_os_t *lossy_create(void)
{
    lossy_os_t *os = calloc(1, sizeof(*os));
    assert_non_null(os);
    os->base.vt = &LOSSY_VTABLE;
    os->n_states = 1;
    return os;
}

/** What a killed process leaves: the same, unsynced writes included. */
static inline lossy_os_t *lossy_kill(const lossy_os_t *os)
{
    lossy_os_t *copy = lossy_create();
    for (uint32_t i = 0; i < os->n_nodes; i++) {
        lossy_node_t *node = lossy_node_new(copy);
        lossy_copy(&node->live, &os->nodes[i]->live);
        lossy_copy(&node->durable, &os->nodes[i]->durable);
        for (const lossy_write_t *w = os->nodes[i]->pending; w != NULL; w = w->next) {
            lossy_pending_add(node, w->offset, w->bytes, w->len, w->truncate);
        }
    }
    copy->dir = os->dir;
    memcpy(copy->states, os->states, sizeof(os->states));
    copy->n_states = os->n_states;
    return copy;
}

typedef enum lossy_mode {
    LOSSY_NONE,
    LOSSY_SECTORS,
    LOSSY_WRITES,
    LOSSY_ALL,
    LOSSY_N
} lossy_mode_t;

static inline void lossy_node_lose(lossy_node_t *node, lossy_mode_t mode, uint64_t *rnd)
{
    for (const lossy_write_t *w = node->pending; w != NULL && mode != LOSSY_NONE; w = w->next) {
        bool whole = mode == LOSSY_ALL || random_split(rnd) % 2 == 0;
        if (w->truncate) {
            if (whole) {
                lossy_resize(&node->durable, (size_t)w->offset);
            }
        } else if (mode != LOSSY_SECTORS) {
            if (whole) {
                lossy_put(&node->durable, w->offset, w->bytes, w->len);
            }
        } else {
            for (size_t at = 0; at < w->len; at += SECTOR_SIZE) {
                size_t n = w->len - at < SECTOR_SIZE ? w->len - at : SECTOR_SIZE;
                if (random_split(rnd) % 2 == 0) {
                    lossy_put(&node->durable, w->offset + at, w->bytes + at, n);
                }
            }
        }
    }
    lossy_pending_free(node);
    lossy_copy(&node->live, &node->durable);
}

/** Turns the directory into what a power loss leaves. */
static inline void lossy_power_loss(lossy_os_t *os, uint64_t *rnd)
{
    for (uint32_t i = 0; i < os->n_nodes; i++) {
        lossy_node_lose(os->nodes[i], (lossy_mode_t)(random_split(rnd) % LOSSY_N), rnd);
    }
    os->dir = os->states[random_split(rnd) % os->n_states];
    os->states[0] = os->dir;
    os->n_states = 1;
}

#endif
