/** Descriptor table, file table and path resolution.

Above io.c and plan.c (a file remembers which rules are about it), below the layer.
1. An id stands for one inode while a path leads to it: rename keeps the id, unlink and create gives
   a new one, two hard links share one. All processes of a recording give it the same.
2. The descriptor table is read without a lock by every call of the program, so a slot is one atomic
   pointer and blocks of slots never move or go away. Slots change under the layer's lock.
   While a call gives a number away (close, dup2), its slot is moving: nobody knows what it leads
   to, so who comes waits.
3. No malloc: the program may be inside its own allocator. Memory comes from mmap and is kept. */
#include "faults/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults/io.h"

#define BLOCK_SLOTS 16384u
#define BLOCK_COUNT 65536u /* 2^30 descriptors: more than the kernel's highest nr_open */
#define CHAIN_COUNT 4096u
#define ARENA_BYTES ((size_t)256 << 10)

/* Address of the file, and in the lowest bits whether the descriptor's writes are durable, and
whether it is moving. */
typedef _Atomic(uintptr_t) slot_t;
#define SLOT_DURABLE ((uintptr_t)1)
#define SLOT_MOVING ((uintptr_t)2)
#define SLOT_FILE(slot) ((file_t *)((slot) & ~(SLOT_DURABLE | SLOT_MOVING)))

static struct {
    char root[PATH_MAX];
    size_t root_len;
    dev_t device;
    const plan_t *plan;
    _Atomic(slot_t *) blocks[BLOCK_COUNT];
    int highest;
    file_t *chains[CHAIN_COUNT];
    share_t *share;
    char *arena;
    size_t arena_left;
} files;

static void *files_alloc(size_t bytes)
{
    bytes = (bytes + 15) / 16 * 16;
    if (bytes > files.arena_left) {
        files.arena = io_map_memory(ARENA_BYTES);
        files.arena_left = files.arena == NULL ? 0 : ARENA_BYTES;
        if (bytes > files.arena_left) {
            return NULL;
        }
    }
    char *at = files.arena;
    files.arena += bytes;
    files.arena_left -= bytes;
    return at;
}

int files_set_root(const char *root, const plan_t *plan)
{
    files.plan = plan;
    if (root[0] != '/') {
        return EINVAL;
    }
    struct stat st;
    if (realpath(root, files.root) == NULL || stat(files.root, &st) != 0) {
        return errno;
    }
    files.device = st.st_dev;
    files.root_len = strlen(files.root);
    if (files.root_len == 1) {
        files.root_len = 0; /* the root of the file system */
    }
    return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

dev_t files_device(void)
{
    return files.device;
}

/* Makes the argument absolute, links unresolved. */
static bool path_make_absolute(int dirfd, const char *path, char *out)
{
    size_t len = strlen(path);
    if (len == 0 || len >= PATH_MAX) {
        return false;
    }
    size_t base = 0;
    if (path[0] != '/') {
        if (dirfd == AT_FDCWD) {
            if (getcwd(out, PATH_MAX) == NULL) {
                return false;
            }
            base = strlen(out);
        } else {
            char link[64];
            (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
            ssize_t got = readlink(link, out, PATH_MAX - 1);
            if (got <= 0 || out[0] != '/') {
                return false;
            }
            base = (size_t)got;
        }
        if (base + 1 + len >= PATH_MAX) {
            return false;
        }
        out[base++] = '/';
    }
    memcpy(out + base, path, len + 1);
    return true;
}

/* Resolves all but the last component, which need not exist. */
static bool path_resolve_parent(char *path, char *out)
{
    char *last = strrchr(path, '/');
    while (last > path && last[1] == '\0') { /* trailing slashes */
        *last = '\0';
        last = strrchr(path, '/');
    }
    if (last[1] == '\0' || strcmp(last + 1, ".") == 0 || strcmp(last + 1, "..") == 0) {
        return realpath(path, out) != NULL;
    }
    *last = '\0';
    if (realpath(last == path ? "/" : path, out) == NULL) {
        return false;
    }
    size_t len = strlen(out);
    if (len + 1 + strlen(last + 1) >= PATH_MAX) {
        return false;
    }
    if (len > 1) {
        out[len++] = '/';
    }
    strcpy(out + len, last + 1);
    return true;
}

bool files_find_place(int dirfd, const char *path, bool follow, place_t *place)
{
    char absolute[PATH_MAX];
    if (path == NULL || !path_make_absolute(dirfd, path, absolute)) {
        return false;
    }
    char resolved[PATH_MAX];
    if (!(follow && realpath(absolute, resolved) != NULL)
        && !path_resolve_parent(absolute, resolved)) {
        return false;
    }
    if (strncmp(resolved, files.root, files.root_len) != 0) {
        return false;
    }
    const char *rest = resolved + files.root_len;
    if (*rest != '/' && *rest != '\0') {
        return false;
    }
    rest += *rest == '/';
    strcpy(place->path, *rest == '\0' ? "." : rest);
    place->exists = lstat(resolved, &place->st) == 0;
    return true;
}

void files_look_again(place_t *place)
{
    char path[PATH_MAX * 2];

    memcpy(path, files.root, files.root_len);
    path[files.root_len] = '/';
    strcpy(path + files.root_len + 1, place->path);
    place->exists = lstat(path, &place->st) == 0;
}

static slot_t *slot_find(int fd)
{
    unsigned block = (unsigned)fd / BLOCK_SLOTS;
    if (fd < 0 || block >= BLOCK_COUNT) {
        return NULL;
    }
    slot_t *slots = atomic_load_explicit(&files.blocks[block], memory_order_acquire);
    return slots == NULL ? NULL : &slots[(unsigned)fd % BLOCK_SLOTS];
}

static uintptr_t slot_get(int fd)
{
    slot_t *slot = slot_find(fd);

    return slot == NULL ? 0 : atomic_load_explicit(slot, memory_order_acquire);
}

bool files_is_free(int fd)
{
    return slot_get(fd) == 0;
}

file_t *files_of_descriptor(int fd)
{
    uintptr_t slot = slot_get(fd);

    return (slot & SLOT_MOVING) != 0 ? NULL : SLOT_FILE(slot);
}

bool files_is_durable(int fd)
{
    return (slot_get(fd) & SLOT_DURABLE) != 0;
}

/* The slot of a descriptor; its block is made where there is none. NULL: no memory, or no such
descriptor. */
static slot_t *slot_make(int fd)
{
    slot_t *slot = slot_find(fd);
    if (slot != NULL || fd < 0 || (unsigned)fd / BLOCK_SLOTS >= BLOCK_COUNT) {
        return slot;
    }
    void *block = io_map_memory(BLOCK_SLOTS * sizeof(slot_t));
    atomic_store_explicit(&files.blocks[(unsigned)fd / BLOCK_SLOTS], block, memory_order_release);
    return slot_find(fd);
}

bool files_bind(int fd, file_t *file, bool durable)
{
    slot_t *slot = file == NULL ? slot_find(fd) : slot_make(fd);
    file_t *before = SLOT_FILE(slot_get(fd));

    if (slot == NULL) {
        return file == NULL;
    }
    if (before != NULL) {
        before->descriptors--;
    }
    if (file != NULL) {
        file->descriptors++;
    }
    if (fd > files.highest) {
        files.highest = fd;
    }
    atomic_store_explicit(slot, (uintptr_t)file | (durable ? SLOT_DURABLE : 0),
                          memory_order_release);
    return true;
}

bool files_hold(int fd)
{
    slot_t *slot = slot_make(fd);

    if (slot != NULL) {
        atomic_fetch_or(slot, SLOT_MOVING);
    }
    return slot != NULL;
}

void files_let_go(int fd)
{
    slot_t *slot = slot_find(fd);

    if (slot != NULL) {
        atomic_fetch_and(slot, ~SLOT_MOVING);
    }
}

file_t *files_held(int fd)
{
    uintptr_t slot = slot_get(fd);

    return (slot & SLOT_MOVING) != 0 ? SLOT_FILE(slot) : NULL;
}

int files_highest(void)
{
    return files.highest;
}

static file_t **chain_of(dev_t device, ino_t inode)
{
    return &files.chains[(inode ^ (device << 7)) % CHAIN_COUNT];
}

file_t *files_lookup(const struct stat *st)
{
    file_t *file = *chain_of(st->st_dev, st->st_ino);

    while (file != NULL && (file->inode != st->st_ino || file->device != st->st_dev)) {
        file = file->next;
    }
    return file;
}

static bool file_set_path(file_t *file, const char *path)
{
    size_t need = strlen(path) + 1;

    if (need > file->path_room) {
        char *room = files_alloc(need);
        if (room == NULL) {
            return false;
        }
        file->path = room;
        file->path_room = need;
    }
    memcpy(file->path, path, need);
    file->matches = plan_match_path(files.plan, path);
    return true;
}

/* Descriptors may lead to it still. */
static void file_drop(file_t *file)
{
    file_t **link = chain_of(file->device, file->inode);

    while (*link != NULL && *link != file) {
        link = &(*link)->next;
    }
    if (*link == file) {
        *link = file->next;
    }
}

file_t *files_intern(const place_t *place, const struct stat *st, bool created)
{
    file_t *file = files_lookup(st);
    file_t **chain = chain_of(st->st_dev, st->st_ino);

    uint32_t id = created ? 0 : share_file_find(files.share, st);

    if (file != NULL && file->id == id) {
        return file;
    }
    if (file != NULL) {
        file_drop(file); /* removed behind our back: the number was reused */
    }
    if (id == 0) {
        id = share_file_add(files.share, st);
    }
    if (id == 0) {
        return NULL;
    }
    file = files_alloc(sizeof(*file));
    if (file == NULL) {
        return NULL;
    }
    *file = (file_t){.device = st->st_dev, .inode = st->st_ino, .next = *chain};
    file->directory = S_ISDIR(st->st_mode);
    if (!file_set_path(file, place->path)) {
        return NULL;
    }
    file->id = id;
    *chain = file;
    return file;
}

void files_forget(file_t *file)
{
    share_file_forget(files.share, file->device, file->inode);
    file_drop(file);
}

void files_rename(file_t *file, const char *path)
{
    (void)file_set_path(file, path);
}

void files_share(share_t *share)
{
    files.share = share;
}

void files_move(const char *from, const char *to)
{
    size_t from_len = strlen(from);
    size_t to_len = strlen(to);
    char moved[PATH_MAX];

    for (unsigned i = 0; i < CHAIN_COUNT; i++) {
        for (file_t *file = files.chains[i]; file != NULL; file = file->next) {
            const char *rest = file->path + from_len;
            if (strncmp(file->path, from, from_len) != 0 || (*rest != '\0' && *rest != '/')
                || to_len + strlen(rest) >= sizeof(moved)) {
                continue;
            }
            memcpy(moved, to, to_len);
            strcpy(moved + to_len, rest);
            (void)file_set_path(file, moved);
        }
    }
}

bool files_have_no_data(const place_t *place)
{
    return place->exists && (S_ISSOCK(place->st.st_mode) || S_ISFIFO(place->st.st_mode));
}

void files_lose_path(const place_t *place)
{
    file_t *file = place->exists ? files_lookup(&place->st) : NULL;

    if (file != NULL && (place->st.st_nlink <= 1 || S_ISDIR(place->st.st_mode))) {
        files_forget(file);
    }
}

void files_follow_rename(const place_t *from, const place_t *to, bool exchange)
{
    const char *aside = "\001"; /* no path of the program: it is relative to the root */

    if (from->path[0] == '\0') {
        files_lose_path(to);
    } else if (to->path[0] == '\0') {
        files_lose_path(from);
    } else if (exchange) {
        files_move(from->path, aside);
        files_move(to->path, from->path);
        files_move(aside, to->path);
    } else if (!to->exists || to->st.st_ino != from->st.st_ino
               || to->st.st_dev != from->st.st_dev) {
        files_lose_path(to);
        files_move(from->path, to->path);
    }
}
