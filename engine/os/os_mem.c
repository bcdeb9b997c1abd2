/* The memory back end: files are byte arrays, in a list sorted by name.

1. What is written is there at once; there is no crash here. Whoever wants one clones the directory.
2. An unlinked or replaced file lives until its last handle is closed, as POSIX has it.
3. Bytes between a file's size and its allocation are zero, so that growing needs no write. */
#include "os/os.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

typedef struct mem_node {
    struct mem_node *next; /* by name; only while linked */
    char name[PATH_LEN_MAX + 1];
    byte *bytes;
    size_t size;
    size_t allocated;
    uint32_t refs; /* open handles, and 1 for the directory entry */
} mem_node_t;

typedef struct mem_os {
    os_t base;
    mem_node_t *files;
    uint32_t n_open;
    bool locked;
} mem_os_t;

typedef struct mem_file {
    os_file_t base;
    mem_node_t *node;
} mem_file_t;

static mem_os_t *mem_os(os_t *os)
{
    return (mem_os_t *)os;
}

static mem_node_t *mem_node(os_file_t *file)
{
    return ((mem_file_t *)file)->node;
}

/** The link that holds the first file whose name is >= name. */
static mem_node_t **mem_find(mem_os_t *os, const char *name)
{
    mem_node_t **link = &os->files;

    while (*link != NULL && strcmp((*link)->name, name) < 0) {
        link = &(*link)->next;
    }
    return link;
}

static bool link_is(mem_node_t *const *link, const char *name)
{
    return *link != NULL && strcmp((*link)->name, name) == 0;
}

static void node_release(mem_node_t *node)
{
    if (--node->refs == 0) {
        free(node->bytes);
        free(node);
    }
}

static void node_unlink(mem_node_t **link)
{
    mem_node_t *node = *link;

    *link = node->next;
    node->next = NULL;
    node_release(node);
}

static mem_node_t *node_create(mem_node_t **link, const char *name)
{
    mem_node_t *node = calloc(1, sizeof(*node));

    if (node == NULL) {
        return NULL;
    }
    CHECK(strlen(name) <= PATH_LEN_MAX);
    memcpy(node->name, name, strlen(name) + 1);
    node->refs = 1;
    node->next = *link;
    *link = node;
    return node;
}

static dberr_t node_resize(mem_node_t *node, uint64_t size)
{
    if (size > SIZE_MAX / 4) {
        return DB_OUT_OF_MEMORY;
    }
    if (size > node->allocated) {
        size_t twice = node->allocated * 2;
        size_t allocated = twice > size ? twice : (size_t)size;
        byte *bytes = calloc(1, allocated);

        if (bytes == NULL) {
            return DB_OUT_OF_MEMORY;
        }
        if (node->size > 0) {
            memcpy(bytes, node->bytes, node->size);
        }
        free(node->bytes);
        node->bytes = bytes;
        node->allocated = allocated;
    }
    if (size < node->size) {
        memset(node->bytes + size, 0, node->size - (size_t)size);
    }
    node->size = (size_t)size;
    return DB_SUCCESS;
}

static dberr_t mem_open(os_t *os, const char *path, os_open_mode_t mode, os_file_t **out)
{
    mem_node_t **link = mem_find(mem_os(os), path);
    bool found = link_is(link, path);
    mem_file_t *file;
    mem_node_t *node;

    os->last_errno = 0;
    if (mode == OS_OPEN && !found) {
        return DB_NOT_FOUND;
    }
    if (mode == OS_CREATE_NEW && found) {
        return DB_ALREADY_EXISTS;
    }
    file = calloc(1, sizeof(*file));
    if (file == NULL) {
        return DB_OUT_OF_MEMORY;
    }
    node = found ? *link : node_create(link, path);
    if (node == NULL) {
        free(file);
        return DB_OUT_OF_MEMORY;
    }
    if (mode == OS_CREATE_TRUNC && node->size > 0) {
        memset(node->bytes, 0, node->size);
        node->size = 0;
    }
    node->refs++;
    file->node = node;
    file->base.os = os;
    mem_os(os)->n_open++;
    *out = &file->base;
    return DB_SUCCESS;
}

static dberr_t mem_read(os_file_t *file, uint64_t offset, void *buf, size_t len, size_t *n_read)
{
    const mem_node_t *node = mem_node(file);
    size_t n = offset >= node->size ? 0 : node->size - (size_t)offset;

    n = n < len ? n : len;
    if (n > 0) {
        memcpy(buf, node->bytes + offset, n);
    }
    *n_read = n;
    return DB_SUCCESS;
}

static dberr_t mem_write(os_file_t *file, uint64_t offset, const void *buf, size_t len)
{
    mem_node_t *node = mem_node(file);
    dberr_t err = DB_SUCCESS;

    if (len == 0) {
        return DB_SUCCESS;
    }
    if (offset > UINT64_MAX - len) {
        return DB_OUT_OF_MEMORY;
    }
    if (offset + len > node->size) {
        err = node_resize(node, offset + len);
    }
    if (err == DB_SUCCESS) {
        memcpy(node->bytes + offset, buf, len);
    }
    return err;
}

static dberr_t mem_sync(os_file_t *file)
{
    (void)file;
    return DB_SUCCESS;
}

static dberr_t mem_truncate(os_file_t *file, uint64_t size_bytes)
{
    return node_resize(mem_node(file), size_bytes);
}

static dberr_t mem_punch(os_file_t *file, uint64_t offset, uint64_t len, bool *done)
{
    const mem_node_t *node = mem_node(file);
    uint64_t n = offset >= node->size ? 0 : node->size - offset;

    n = n < len ? n : len;
    if (n > 0) {
        memset(node->bytes + offset, 0, (size_t)n);
    }
    *done = true;
    return DB_SUCCESS;
}

static dberr_t mem_size(os_file_t *file, uint64_t *size_bytes)
{
    *size_bytes = mem_node(file)->size;
    return DB_SUCCESS;
}

static void mem_close(os_file_t *file)
{
    mem_os(file->os)->n_open--;
    node_release(mem_node(file));
    free(file);
}

static dberr_t mem_rename(os_t *os, const char *from, const char *to)
{
    mem_node_t **link = mem_find(mem_os(os), from);
    mem_node_t *node;

    os->last_errno = 0;
    if (!link_is(link, from)) {
        return DB_NOT_FOUND;
    }
    if (strcmp(from, to) == 0) {
        return DB_SUCCESS;
    }
    node = *link;
    *link = node->next;
    link = mem_find(mem_os(os), to);
    if (link_is(link, to)) {
        node_unlink(link);
    }
    CHECK(strlen(to) <= PATH_LEN_MAX);
    memcpy(node->name, to, strlen(to) + 1);
    node->next = *link;
    *link = node;
    return DB_SUCCESS;
}

static dberr_t mem_unlink(os_t *os, const char *path)
{
    mem_node_t **link = mem_find(mem_os(os), path);

    os->last_errno = 0;
    if (!link_is(link, path)) {
        return DB_NOT_FOUND;
    }
    node_unlink(link);
    return DB_SUCCESS;
}

static dberr_t mem_sync_dir(os_t *os, const char *dir)
{
    (void)os;
    (void)dir;
    return DB_SUCCESS;
}

static dberr_t mem_exists(os_t *os, const char *path, bool *exists)
{
    mem_node_t **link = mem_find(mem_os(os), path);

    *exists = link_is(link, path);
    return DB_SUCCESS;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/** The entries of the directory itself: of "tmp/a" and "tmp/b" it has one, "tmp". Names are copied
first, because fn may change the directory, and sorted again: "t.x" lies between "t/a" and "t". */
static dberr_t mem_list(os_t *os, const char *dir, os_list_fn fn, void *ctx)
{
    size_t n = 0;
    size_t skip = strcmp(dir, OS_ROOT) == 0 ? 0 : strlen(dir) + 1;
    char(*names)[PATH_LEN_MAX + 1];
    dberr_t err = DB_SUCCESS;

    for (const mem_node_t *node = mem_os(os)->files; node != NULL; node = node->next) {
        n++;
    }
    names = calloc(n + 1, sizeof(*names));
    if (names == NULL) {
        return DB_OUT_OF_MEMORY;
    }
    n = 0;
    for (const mem_node_t *node = mem_os(os)->files; node != NULL; node = node->next) {
        if (skip == 0 || (strncmp(node->name, dir, skip - 1) == 0 && node->name[skip - 1] == '/')) {
            memcpy(names[n++], node->name + skip, strcspn(node->name + skip, "/"));
        }
    }
    qsort(names, n, sizeof(*names), compare_names);
    for (size_t i = 0; i < n && err == DB_SUCCESS; i++) {
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0) {
            err = fn(ctx, names[i]);
        }
    }
    free(names);
    return err;
}

static dberr_t mem_lock(os_t *os)
{
    if (mem_os(os)->locked) {
        return DB_DIR_LOCKED;
    }
    mem_os(os)->locked = true;
    return DB_SUCCESS;
}

static void mem_unlock(os_t *os)
{
    mem_os(os)->locked = false;
}

static void mem_destroy(os_t *os)
{
    CHECK(mem_os(os)->n_open == 0);
    while (mem_os(os)->files != NULL) {
        node_unlink(&mem_os(os)->files);
    }
    free(os);
}

static const os_vtable_t MEM_VTABLE = {
    .open = mem_open,
    .read = mem_read,
    .write = mem_write,
    .sync = mem_sync,
    .truncate = mem_truncate,
    .punch = mem_punch,
    .size = mem_size,
    .close = mem_close,
    .rename = mem_rename,
    .unlink = mem_unlink,
    .sync_dir = mem_sync_dir,
    .exists = mem_exists,
    .list = mem_list,
    .lock = mem_lock,
    .unlock = mem_unlock,
    .destroy = mem_destroy,
};

dberr_t os_mem_create(os_t **out)
{
    mem_os_t *os = calloc(1, sizeof(*os));

    if (os == NULL) {
        return DB_OUT_OF_MEMORY;
    }
    os->base.vt = &MEM_VTABLE;
    *out = &os->base;
    return DB_SUCCESS;
}

dberr_t os_mem_peek(os_t *os, const char *path, byte **bytes, uint64_t *size_bytes)
{
    mem_node_t **link = mem_find(mem_os(os), path);

    CHECK(os->vt == &MEM_VTABLE);
    if (!link_is(link, path)) {
        return DB_NOT_FOUND;
    }
    *bytes = (*link)->bytes;
    *size_bytes = (*link)->size;
    return DB_SUCCESS;
}

dberr_t os_mem_clone(os_t *os, os_t **out)
{
    mem_node_t **tail;
    os_t *copy;
    dberr_t err;

    CHECK(os->vt == &MEM_VTABLE);
    err = os_mem_create(&copy);
    if (err != DB_SUCCESS) {
        return err;
    }
    tail = &mem_os(copy)->files;
    for (const mem_node_t *node = mem_os(os)->files; node != NULL; node = node->next) {
        mem_node_t *twin = node_create(tail, node->name);

        if (twin == NULL || node_resize(twin, node->size) != DB_SUCCESS) {
            os_destroy(copy);
            return DB_OUT_OF_MEMORY;
        }
        if (node->size > 0) {
            memcpy(twin->bytes, node->bytes, node->size);
        }
        tail = &twin->next;
    }
    *out = copy;
    return DB_SUCCESS;
}
