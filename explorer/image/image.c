/* Files in memory with undo and an incremental hash.

Place: above fs_event.c; persist.c and judge.c change images, image_os.c lets the engine do it.

Invariants
1. bytes beyond a file's size are zero, so that growing needs no work and equal files have equal
   chunks;
2. a chunk's stamp equals the newest mark's if and only if its content at that mark is in the log of
   changes; undo in reverse order gives every byte, stamp and hash back;
3. an inode's hash is the sum of its chunks' contributions; a chunk of zeros contributes nothing, so
   sparse and written zeros are equal, as they are on a disk. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "explorer/image/image_int.h"

static const byte ZERO_CHUNK[CHUNK_BYTES];

/* ---- the log of changes ---- */

static change_t *change_add(image_t *image, change_kind_t kind, uint32_t id)
{
    if (image->n_changes == image->changes_capacity) {
        image->changes_capacity = image->changes_capacity == 0 ? 256 : image->changes_capacity * 2;
        image->changes =
            mem_grow(image->changes, image->changes_capacity * sizeof(*image->changes));
    }
    change_t *change = &image->changes[image->n_changes++];
    *change = (change_t){.kind = kind, .id = id};
    return change;
}

static uint32_t image_stamp(const image_t *image)
{
    return image->n_marks == 0 ? 0 : image->marks[image->n_marks - 1].stamp;
}

static void save_meta(image_t *image, uint32_t id)
{
    inode_t *inode = &image->inodes[id];
    uint32_t stamp = image_stamp(image);
    if (stamp == 0 || inode->stamp == stamp) {
        return;
    }
    change_t *change = change_add(image, CHANGE_META, id);
    change->old_stamp = inode->stamp;
    change->old_hash = inode->hash;
    change->old_value = inode->size;
    inode->stamp = stamp;
}

static void save_chunk(image_t *image, uint32_t id, uint32_t index)
{
    chunk_t *chunk = &image->inodes[id].chunks[index];
    uint32_t stamp = image_stamp(image);
    if (stamp == 0 || chunk->stamp == stamp) {
        return;
    }
    if (image->saved_capacity - image->saved_used < CHUNK_BYTES) {
        image->saved_capacity =
            image->saved_capacity == 0 ? 64 * (size_t)CHUNK_BYTES : image->saved_capacity * 2;
        image->saved = mem_grow(image->saved, image->saved_capacity);
    }
    change_t *change = change_add(image, CHANGE_CHUNK, id);
    change->index = index;
    change->old_stamp = chunk->stamp;
    change->old_hash = chunk->hash;
    change->old_version = chunk->version;
    change->old_value = image->saved_used;
    memcpy(image->saved + image->saved_used, image->inodes[id].bytes + (size_t)index * CHUNK_BYTES,
           CHUNK_BYTES);
    image->saved_used += CHUNK_BYTES;
    chunk->stamp = stamp;
}

static void change_undo(image_t *image, const change_t *change)
{
    inode_t *inode = &image->inodes[change->id];
    switch (change->kind) {
    case CHANGE_CHUNK:
        memcpy(inode->bytes + (size_t)change->index * CHUNK_BYTES, image->saved + change->old_value,
               CHUNK_BYTES);
        inode->chunks[change->index].hash = change->old_hash;
        inode->chunks[change->index].version = change->old_version;
        inode->chunks[change->index].stamp = change->old_stamp;
        image->saved_used = change->old_value;
        break;
    case CHANGE_META:
        inode->size = change->old_value;
        inode->hash = change->old_hash;
        inode->stamp = change->old_stamp;
        break;
    case CHANGE_LINK:
        image->names[change->id].inode = change->index;
        break;
    case CHANGE_INODE:
        CHECK(image->n_inodes == change->id + 1);
        image->n_inodes--;
        break;
    }
}

void image_mark(image_t *image)
{
    CHECK(image->n_marks < IMAGE_MARKS_MAX);
    image->marks[image->n_marks++] =
        (mark_t){.stamp = ++image->last_stamp, .n_changes = image->n_changes};
}

void image_undo(image_t *image)
{
    CHECK(image->n_marks > 0);
    size_t to = image->marks[image->n_marks - 1].n_changes;
    while (image->n_changes > to) {
        change_undo(image, &image->changes[--image->n_changes]);
    }
    image->n_marks--;
}

uint32_t image_marks(const image_t *image)
{
    return image->n_marks;
}

/* ---- content ---- */

static void inode_reserve(inode_t *inode, uint64_t size)
{
    if (size <= inode->capacity) {
        return;
    }
    uint64_t capacity = inode->capacity == 0 ? 16 * (uint64_t)CHUNK_BYTES : inode->capacity;
    while (capacity < size) {
        capacity *= 2;
    }
    inode->bytes = mem_grow(inode->bytes, capacity);
    memset(inode->bytes + inode->capacity, 0, capacity - inode->capacity);
    size_t n_old = inode->capacity / CHUNK_BYTES;
    size_t n_new = capacity / CHUNK_BYTES;
    inode->chunks = mem_grow(inode->chunks, n_new * sizeof(*inode->chunks));
    memset(inode->chunks + n_old, 0, (n_new - n_old) * sizeof(*inode->chunks));
    inode->capacity = capacity;
}

static void chunk_rehash(inode_t *inode, uint32_t index)
{
    chunk_t *chunk = &inode->chunks[index];
    const byte *bytes = inode->bytes + (size_t)index * CHUNK_BYTES;
    inode->hash -= chunk->hash;
    chunk->hash = memcmp(bytes, ZERO_CHUNK, CHUNK_BYTES) == 0
                      ? 0
                      : XXH3_64bits_withSeed(bytes, CHUNK_BYTES, index);
    inode->hash += chunk->hash;
}

/** Its bytes are others now. */
static void chunk_changed(image_t *image, inode_t *inode, uint32_t index)
{
    inode->chunks[index].version = ++image->last_version;
    if (image->hashing) {
        chunk_rehash(inode, index);
    }
}

bool image_write(image_t *image, uint32_t id, uint64_t offset, const void *data, uint64_t len)
{
    CHECK(id < image->n_inodes);
    inode_t *inode = &image->inodes[id];
    if (len == 0) {
        return true;
    }
    if (offset > IMAGE_FILE_MAX || len > IMAGE_FILE_MAX - offset) {
        return false;
    }
    save_meta(image, id);
    inode_reserve(inode, offset + len);
    const byte *from = data;
    while (len > 0) {
        uint32_t index = (uint32_t)(offset / CHUNK_BYTES);
        uint64_t n = CHUNK_BYTES - offset % CHUNK_BYTES;
        n = n < len ? n : len;
        save_chunk(image, id, index);
        memcpy(inode->bytes + offset, from, n);
        chunk_changed(image, inode, index);
        from += n;
        offset += n;
        len -= n;
    }
    inode->size = offset > inode->size ? offset : inode->size;
    return true;
}

void image_zero(image_t *image, uint32_t id, uint64_t offset, uint64_t len)
{
    CHECK(id < image->n_inodes);
    inode_t *inode = &image->inodes[id];
    uint64_t end = offset >= inode->size || len > inode->size - offset ? inode->size : offset + len;
    save_meta(image, id);
    for (uint64_t at = offset; at < end;) {
        uint32_t index = (uint32_t)(at / CHUNK_BYTES);
        uint64_t n = CHUNK_BYTES - at % CHUNK_BYTES;
        n = n < end - at ? n : end - at;
        save_chunk(image, id, index);
        memset(inode->bytes + at, 0, n);
        chunk_changed(image, inode, index);
        at += n;
    }
}

bool image_truncate(image_t *image, uint32_t id, uint64_t size)
{
    CHECK(id < image->n_inodes);
    inode_t *inode = &image->inodes[id];
    if (size > IMAGE_FILE_MAX) {
        return false;
    }
    image_zero(image, id, size, UINT64_MAX);
    inode_reserve(inode, size);
    inode->size = size;
    return true;
}

uint64_t image_size(const image_t *image, uint32_t inode)
{
    CHECK(inode < image->n_inodes);
    return image->inodes[inode].size;
}

const byte *image_bytes(const image_t *image, uint32_t inode)
{
    CHECK(inode < image->n_inodes);
    return image->inodes[inode].bytes;
}

uint64_t image_version(const image_t *image, uint32_t id, uint64_t offset, uint64_t len)
{
    CHECK(id < image->n_inodes);
    const inode_t *inode = &image->inodes[id];
    uint64_t first = offset / CHUNK_BYTES;
    uint64_t n = len / CHUNK_BYTES;
    CHECK(offset % CHUNK_BYTES == 0 && len % CHUNK_BYTES == 0 && n > 0 && len <= inode->capacity
          && offset <= inode->capacity - len);
    uint64_t version = inode->chunks[first].version;
    for (uint64_t i = 1; i < n; i++) {
        uint64_t parts[2] = {version, inode->chunks[first + i].version};
        version = XXH3_64bits(parts, sizeof(parts));
    }
    return version;
}

uint32_t image_inode_create(image_t *image)
{
    uint32_t id = image->n_inodes;
    if (id == image->inodes_capacity) {
        uint32_t capacity = id == 0 ? 16 : id * 2;
        image->inodes = mem_grow(image->inodes, capacity * sizeof(*image->inodes));
        memset(image->inodes + id, 0, (capacity - id) * sizeof(*image->inodes));
        image->inodes_capacity = capacity;
    }
    if (image->n_marks > 0) {
        (void)change_add(image, CHANGE_INODE, id);
    }
    image->n_inodes++;
    return id;
}

uint32_t image_inode_count(const image_t *image)
{
    return image->n_inodes;
}

/* ---- names ---- */

static uint32_t *name_slot(const image_t *image, const char *path, size_t len, uint64_t hash)
{
    uint32_t mask = image->name_table_size - 1;
    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        uint32_t *slot = &image->name_table[i];
        if (*slot == 0) {
            return slot;
        }
        const image_name_t *name = &image->names[*slot - 1];
        if (name->hash == hash && strlen(name->text) == len && memcmp(name->text, path, len) == 0) {
            return slot;
        }
    }
}

static void name_table_grow(image_t *image)
{
    free(image->name_table);
    image->name_table_size = image->name_table_size == 0 ? 256 : image->name_table_size * 2;
    image->name_table = mem_alloc(image->name_table_size * sizeof(*image->name_table));
    for (uint32_t i = 0; i < image->n_names; i++) {
        const image_name_t *name = &image->names[i];
        *name_slot(image, name->text, strlen(name->text), name->hash) = i + 1;
    }
}

uint32_t image_name(image_t *image, const char *path, size_t len)
{
    uint64_t hash = XXH3_64bits(path, len);
    if (image->n_names * 2 >= image->name_table_size) {
        name_table_grow(image);
    }
    uint32_t *slot = name_slot(image, path, len, hash);
    if (*slot != 0) {
        return *slot - 1;
    }
    if (image->n_names == image->names_capacity) {
        image->names_capacity = image->names_capacity == 0 ? 64 : image->names_capacity * 2;
        image->names = mem_grow(image->names, image->names_capacity * sizeof(*image->names));
    }
    uint32_t number = image->n_names++;
    char *text = mem_alloc(len + 1);
    memcpy(text, path, len);
    image->names[number] =
        (image_name_t){.text = text, .hash = hash, .dir = number, .inode = IMAGE_NONE};
    *slot = number + 1;
    if (!(len == 1 && path[0] == '.')) {
        const char *slash = memrchr(path, '/', len);
        uint32_t dir = slash == NULL ? image_name(image, ".", 1)
                                     : image_name(image, path, (size_t)(slash - path));
        image->names[number].dir = dir;
    }
    return number;
}

uint32_t image_name_find(const image_t *image, const char *path)
{
    size_t len = strlen(path);
    if (image->n_names == 0) {
        return IMAGE_NONE;
    }
    const uint32_t *slot = name_slot(image, path, len, XXH3_64bits(path, len));
    return *slot == 0 ? IMAGE_NONE : *slot - 1;
}

const char *image_name_text(const image_t *image, uint32_t name)
{
    CHECK(name < image->n_names);
    return image->names[name].text;
}

uint32_t image_name_dir(const image_t *image, uint32_t name)
{
    CHECK(name < image->n_names);
    return image->names[name].dir;
}

void image_link(image_t *image, uint32_t name, uint32_t inode)
{
    CHECK(name < image->n_names && (inode == IMAGE_NONE || inode < image->n_inodes));
    if (image->names[name].inode == inode) {
        return;
    }
    if (image->n_marks > 0) {
        change_add(image, CHANGE_LINK, name)->index = image->names[name].inode;
    }
    image->names[name].inode = inode;
}

/** Where the rest of a path begins, at its slash or end, if it is within dir; else NULL. */
static const char *rest_within(const image_t *image, uint32_t name, uint32_t dir)
{
    const char *path = image->names[name].text;
    const char *folder = image->names[dir].text;
    size_t len = strlen(folder);
    bool within = strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
    return within ? path + len : NULL;
}

bool image_name_is_within(const image_t *image, uint32_t name, uint32_t dir)
{
    CHECK(name < image->n_names && dir < image->n_names);
    return rest_within(image, name, dir) != NULL;
}

bool image_dir_has_files(const image_t *image, uint32_t dir)
{
    CHECK(dir < image->n_names);
    uint32_t i = 0;
    while (i < image->n_names
           && (image->names[i].inode == IMAGE_NONE || rest_within(image, i, dir) == NULL)) {
        i++;
    }
    return i < image->n_names;
}

void image_move_dir(image_t *image, uint32_t from, uint32_t to)
{
    CHECK(from < image->n_names && to < image->n_names);
    uint32_t n = image->n_names; /* new names come behind them */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t inode = image->names[i].inode;
        const char *rest = inode == IMAGE_NONE ? NULL : rest_within(image, i, from);
        if (rest == NULL) {
            continue;
        }
        size_t to_len = strlen(image->names[to].text);
        size_t len = to_len + strlen(rest);
        char *path = mem_alloc(len + 1);
        memcpy(path, image->names[to].text, to_len);
        memcpy(path + to_len, rest, len - to_len);
        image_link(image, i, IMAGE_NONE);
        image_link(image, image_name(image, path, len), inode);
        free(path);
    }
}

uint32_t image_lookup(const image_t *image, uint32_t name)
{
    CHECK(name < image->n_names);
    return image->names[name].inode;
}

bool image_inode_is_linked(const image_t *image, uint32_t inode)
{
    for (uint32_t i = 0; i < image->n_names; i++) {
        if (image->names[i].inode == inode) {
            return true;
        }
    }
    return false;
}

void image_each(const image_t *image, void (*fn)(void *ctx, uint32_t name, uint32_t inode),
                void *ctx)
{
    for (uint32_t i = 0; i < image->n_names; i++) {
        if (image->names[i].inode != IMAGE_NONE) {
            fn(ctx, i, image->names[i].inode);
        }
    }
}

/* ---- hash, life ---- */

void image_set_hashing(image_t *image, bool on)
{
    image->hashing = on;
}

uint64_t image_hash(const image_t *image)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < image->n_names; i++) {
        const image_name_t *name = &image->names[i];
        if (name->inode != IMAGE_NONE) {
            const inode_t *inode = &image->inodes[name->inode];
            uint64_t parts[3] = {name->hash, inode->size, inode->hash};
            sum += XXH3_64bits(parts, sizeof(parts));
        }
    }
    return sum;
}

image_t *image_create(void)
{
    image_t *image = mem_alloc(sizeof(*image));
    image->hashing = true;
    image_os_init(image);
    return image;
}

void image_destroy(image_t *image)
{
    for (uint32_t i = 0; i < image->inodes_capacity; i++) {
        free(image->inodes[i].bytes);
        free(image->inodes[i].chunks);
    }
    for (uint32_t i = 0; i < image->n_names; i++) {
        free(image->names[i].text);
    }
    free(image->inodes);
    free(image->names);
    free(image->name_table);
    free(image->changes);
    free(image->saved);
    free(image);
}
