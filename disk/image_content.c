/* The bytes of the files.

Place: below image.c, which undoes what the log of changes says.

    inode --leaves--> descriptions of LEAF_CHUNKS chunks each --bytes--> content of 4096 bytes
                                                              \--NULL--> zeros

Content is changed where it lies only if the image made it under the newest mark; else it is made
anew, and the description leads there. So an old description is all that undo needs, and content
that somebody keeps, as that of a recorded write, is never copied. A file costs what was written to
it, however large it is.

Invariants
1. bytes beyond a file's size are zero, so that growing needs no work and equal files have equal
   chunks;
2. a chunk's stamp equals the newest mark's if and only if its description at that mark is in the
   log of changes; undo in reverse order gives every description back;
3. content made under a mark goes with it: no description of before leads there;
4. hashes are stale under the newest mark only;
5. an inode's hash is the sum of its chunks' contributions; a chunk of zeros contributes nothing, so
   sparse and written zeros are equal, as they are on a disk. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "disk/image_int.h"

#define MADE_PER_BLOCK 64U

static const byte ZERO_CHUNK[CHUNK_BYTES];

/* ---- the log of changes ---- */

change_t *image_change(image_t *image, change_kind_t kind, uint32_t id)
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

/* ---- descriptions ---- */

/** NULL: zeros. */
static chunk_t *chunk_find(const inode_t *inode, uint64_t index)
{
    uint64_t leaf = index / LEAF_CHUNKS;
    bool there = leaf < inode->n_leaves && inode->leaves[leaf] != NULL;
    return there ? &inode->leaves[leaf][index % LEAF_CHUNKS] : NULL;
}

static chunk_t *chunk_make(inode_t *inode, uint64_t index)
{
    uint32_t leaf = (uint32_t)(index / LEAF_CHUNKS);
    if (leaf >= inode->n_leaves) {
        uint32_t n = leaf + 1 > 2 * inode->n_leaves ? leaf + 1 : 2 * inode->n_leaves;
        inode->leaves = mem_grow(inode->leaves, n * sizeof(*inode->leaves));
        memset(inode->leaves + inode->n_leaves, 0, (n - inode->n_leaves) * sizeof(*inode->leaves));
        inode->n_leaves = n;
    }
    if (inode->leaves[leaf] == NULL) {
        inode->leaves[leaf] = mem_alloc(LEAF_CHUNKS * sizeof(chunk_t));
    }
    return &inode->leaves[leaf][index % LEAF_CHUNKS];
}

static const byte *chunk_bytes(const inode_t *inode, uint64_t index)
{
    const chunk_t *chunk = chunk_find(inode, index);
    return chunk == NULL || chunk->bytes == NULL ? ZERO_CHUNK : chunk->bytes;
}

static void save_meta(image_t *image, uint32_t id)
{
    inode_t *inode = &image->inodes[id];
    uint32_t stamp = image_stamp(image);
    if (stamp == 0 || inode->stamp == stamp) {
        return;
    }
    change_t *change = image_change(image, CHANGE_META, id);
    change->old.stamp = inode->stamp;
    change->old.hash = inode->hash;
    change->old_value = inode->size;
    inode->stamp = stamp;
}

static void save_chunk(image_t *image, uint32_t id, uint64_t index, chunk_t *chunk)
{
    uint32_t stamp = image_stamp(image);
    if (stamp == 0 || chunk->stamp == stamp) {
        return;
    }
    change_t *change = image_change(image, CHANGE_CHUNK, id);
    change->chunk = chunk;
    change->old = *chunk;
    change->old_value = index;
    chunk->stamp = stamp;
}

/* ---- content ---- */

/** Room for a chunk: until the newest mark is undone, or, without one, until it is freed. */
static byte *content_make(image_t *image)
{
    if (image->n_marks == 0) {
        return mem_grow(NULL, CHUNK_BYTES);
    }
    if (image->n_made == image->n_blocks * MADE_PER_BLOCK) {
        image->blocks = mem_grow((void *)image->blocks, (image->n_blocks + 1) * sizeof(byte *));
        image->blocks[image->n_blocks++] = mem_grow(NULL, MADE_PER_BLOCK * CHUNK_BYTES);
    }
    size_t number = image->n_made++;
    return image->blocks[number / MADE_PER_BLOCK] + number % MADE_PER_BLOCK * CHUNK_BYTES;
}

/** The chunk leads elsewhere from now on. owner: see chunk_t. */
static void chunk_lead(image_t *image, uint32_t id, uint64_t index, chunk_t *chunk,
                       const byte *bytes, uint32_t owner)
{
    save_chunk(image, id, index, chunk);
    if (image->n_marks == 0 && chunk->owner != 0) {
        free((void *)(uintptr_t)chunk->bytes);
    }
    chunk->bytes = bytes;
    chunk->owner = owner;
}

static void chunk_set_hash(const image_t *image, inode_t *inode, chunk_t *chunk, uint64_t hash)
{
    if (image->hashing) {
        inode->hash += hash - chunk->hash;
        chunk->hash = hash;
        chunk->stale = false;
    }
}

static uint64_t content_hash(const byte *bytes, uint64_t index)
{
    return memcmp(bytes, ZERO_CHUNK, CHUNK_BYTES) == 0
               ? 0
               : XXH3_64bits_withSeed(bytes, CHUNK_BYTES, index);
}

void content_settle(image_t *image)
{
    size_t from = image->n_marks == 0 ? 0 : image->marks[image->n_marks - 1].n_changes;
    for (size_t i = from; image->hashing && i < image->n_changes; i++) {
        const change_t *change = &image->changes[i];
        if (change->kind == CHANGE_CHUNK && change->chunk->stale) {
            uint64_t hash = content_hash(change->chunk->bytes, change->old_value);
            chunk_set_hash(image, &image->inodes[change->id], change->chunk, hash);
        }
    }
}

/** Its bytes are others now. Under a mark, where the same chunk often changes again, its hash waits
until it is asked for. */
static void chunk_changed(image_t *image, inode_t *inode, chunk_t *chunk, uint64_t index)
{
    chunk->version = ++image->last_version;
    if (image->n_marks == 0 && image->hashing) {
        chunk_set_hash(image, inode, chunk, content_hash(chunk->bytes, index));
    } else {
        chunk->stale = image->hashing;
    }
}

/** Changes n bytes of a chunk, from NULL to zeros. */
static void chunk_write(image_t *image, uint32_t id, uint64_t offset, const byte *from, uint64_t n)
{
    inode_t *inode = &image->inodes[id];
    uint64_t index = offset / CHUNK_BYTES;
    chunk_t *chunk = chunk_make(inode, index);
    uint32_t owner = image_stamp(image) + 1;
    if (chunk->owner != owner) {
        byte *made = content_make(image);
        if (n < CHUNK_BYTES) {
            memcpy(made, chunk->bytes != NULL ? chunk->bytes : ZERO_CHUNK, CHUNK_BYTES);
        }
        chunk_lead(image, id, index, chunk, made, owner);
    }
    byte *to = (byte *)(uintptr_t)chunk->bytes + offset % CHUNK_BYTES;
    if (from != NULL) {
        memcpy(to, from, n);
    } else {
        memset(to, 0, n);
    }
    chunk_changed(image, inode, chunk, index);
}

static bool fits(uint64_t offset, uint64_t len)
{
    return offset <= IMAGE_FILE_MAX && len <= IMAGE_FILE_MAX - offset;
}

bool image_write(image_t *image, uint32_t id, uint64_t offset, const void *data, uint64_t len)
{
    CHECK(id < image->n_inodes);
    if (len == 0 || !fits(offset, len)) {
        return len == 0;
    }
    save_meta(image, id);
    const byte *from = data;
    while (len > 0) {
        uint64_t n = CHUNK_BYTES - offset % CHUNK_BYTES;
        n = n < len ? n : len;
        chunk_write(image, id, offset, from, n);
        from += n;
        offset += n;
        len -= n;
    }
    inode_t *inode = &image->inodes[id];
    inode->size = offset > inode->size ? offset : inode->size;
    return true;
}

/** Bytes before the first whole chunk. */
static uint64_t head_of(uint64_t offset, uint64_t len)
{
    uint64_t head = (CHUNK_BYTES - offset % CHUNK_BYTES) % CHUNK_BYTES;
    return head < len ? head : len;
}

bool image_write_kept(image_t *image, uint32_t id, uint64_t offset, const void *data, uint64_t len,
                      const fs_chunk_t *chunks)
{
    CHECK(id < image->n_inodes);
    if (!fits(offset, len)) {
        return false;
    }
    const byte *from = data;
    uint64_t head = head_of(offset, len);
    uint64_t tail = head + (len - head) / CHUNK_BYTES * CHUNK_BYTES;
    save_meta(image, id);
    for (uint64_t at = head; at < tail; at += CHUNK_BYTES, chunks++) {
        inode_t *inode = &image->inodes[id];
        uint64_t index = (offset + at) / CHUNK_BYTES;
        chunk_t *chunk = chunk_make(inode, index);
        chunk_lead(image, id, index, chunk, from + at, 0);
        chunk->version = chunks->version;
        chunk_set_hash(image, inode, chunk, chunks->hash);
    }
    inode_t *inode = &image->inodes[id];
    inode->size = offset + len > inode->size ? offset + len : inode->size;
    return image_write(image, id, offset, from, head)
           && image_write(image, id, offset + tail, from + tail, len - tail);
}

static uint64_t whole_chunks(const fs_event_t *event)
{
    return event->kind == FS_WRITE
               ? (event->length - head_of(event->offset, event->length)) / CHUNK_BYTES
               : 0;
}

void image_keep(image_t *image, fs_list_t *list)
{
    CHECK(list->chunks == NULL);
    uint64_t n = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        n += whole_chunks(&list->events[i]);
    }
    fs_chunk_t *next = list->chunks = mem_alloc(n * sizeof(*list->chunks));
    for (uint32_t i = 0; i < list->n; i++) {
        fs_event_t *event = &list->events[i];
        uint64_t whole = whole_chunks(event);
        uint64_t at = head_of(event->offset, event->length);
        event->chunks = whole > 0 ? next : NULL;
        for (uint64_t k = 0; k < whole; k++, at += CHUNK_BYTES) {
            uint64_t index = (event->offset + at) / CHUNK_BYTES;
            *next++ = (fs_chunk_t){.hash = content_hash(event->data + at, index),
                                   .version = ++image->last_version};
        }
    }
}

void image_zero(image_t *image, uint32_t id, uint64_t offset, uint64_t len)
{
    CHECK(id < image->n_inodes);
    inode_t *inode = &image->inodes[id];
    uint64_t end = offset >= inode->size || len > inode->size - offset ? inode->size : offset + len;
    save_meta(image, id);
    for (uint64_t at = offset; at < end;) {
        uint64_t index = at / CHUNK_BYTES;
        uint64_t next = (index + 1) * CHUNK_BYTES;
        chunk_t *chunk = chunk_find(inode, index);
        if (chunk == NULL) {
            next = (index / LEAF_CHUNKS + 1) * LEAF_CHUNKS * CHUNK_BYTES;
        } else if (chunk->bytes != NULL && at % CHUNK_BYTES == 0
                   && (next <= end || end == inode->size)) {
            chunk_lead(image, id, index, chunk, NULL, 0);
            chunk->version = 0;
            chunk_set_hash(image, inode, chunk, 0);
        } else if (chunk->bytes != NULL) {
            chunk_write(image, id, at, NULL, (next < end ? next : end) - at);
        }
        at = next;
    }
}

bool image_truncate(image_t *image, uint32_t id, uint64_t size)
{
    CHECK(id < image->n_inodes);
    if (size > IMAGE_FILE_MAX) {
        return false;
    }
    image_zero(image, id, size, UINT64_MAX);
    image->inodes[id].size = size;
    return true;
}

/* ---- questions ---- */

uint64_t image_size(const image_t *image, uint32_t inode)
{
    CHECK(inode < image->n_inodes);
    return image->inodes[inode].size;
}

void image_read(const image_t *image, uint32_t id, uint64_t offset, void *to, uint64_t len)
{
    CHECK(id < image->n_inodes);
    const inode_t *inode = &image->inodes[id];
    byte *at = to;
    while (len > 0) {
        uint64_t skip = offset % CHUNK_BYTES;
        uint64_t n = CHUNK_BYTES - skip < len ? CHUNK_BYTES - skip : len;
        memcpy(at, chunk_bytes(inode, offset / CHUNK_BYTES) + skip, n);
        at += n;
        offset += n;
        len -= n;
    }
}

const byte *image_view(const image_t *image, uint32_t id, uint64_t offset, uint64_t len, byte *room)
{
    CHECK(id < image->n_inodes);
    const inode_t *inode = &image->inodes[id];
    uint64_t skip = offset % CHUNK_BYTES;
    uint64_t together = CHUNK_BYTES - skip;
    const byte *first = chunk_bytes(inode, offset / CHUNK_BYTES) + skip;
    while (together < len
           && chunk_bytes(inode, (offset + together) / CHUNK_BYTES) == first + together) {
        together += CHUNK_BYTES;
    }
    if (together >= len) {
        return first;
    }
    CHECK(room != NULL);
    image_read(image, id, offset, room, len);
    return room;
}

/** Are all chunks of the file still in the piece? */
static bool is_in_piece(const inode_t *inode, uint64_t n_chunks)
{
    bool is = inode->piece != NULL;
    for (uint64_t i = 0; is && i < n_chunks; i++) {
        const chunk_t *chunk = chunk_find(inode, i);
        is = chunk != NULL && chunk->bytes == inode->piece + i * CHUNK_BYTES;
    }
    return is;
}

byte *image_bytes(image_t *image, uint32_t id)
{
    CHECK(id < image->n_inodes && image->n_marks == 0 && !image->hashing);
    inode_t *inode = &image->inodes[id];
    uint64_t n_chunks = inode->size == 0 ? 1 : (inode->size + CHUNK_BYTES - 1) / CHUNK_BYTES;
    if (!is_in_piece(inode, n_chunks)) {
        byte *piece = mem_alloc(n_chunks * CHUNK_BYTES);
        image_read(image, id, 0, piece, n_chunks * CHUNK_BYTES);
        for (uint64_t i = 0; i < n_chunks; i++) {
            chunk_t *chunk = chunk_make(inode, i);
            chunk_lead(image, id, i, chunk, piece + i * CHUNK_BYTES, 0);
            chunk_changed(image, inode, chunk, i);
        }
        free(inode->piece);
        inode->piece = piece;
    }
    return inode->piece;
}

const byte *image_data(const image_t *image, uint32_t id, uint64_t *at, uint64_t *len)
{
    CHECK(id < image->n_inodes);
    const inode_t *inode = &image->inodes[id];
    while (*at < inode->size) {
        uint64_t index = *at / CHUNK_BYTES;
        uint64_t skip = *at % CHUNK_BYTES;
        const chunk_t *chunk = chunk_find(inode, index);
        if (chunk != NULL && chunk->bytes != NULL) {
            uint64_t left = inode->size - *at;
            *len = CHUNK_BYTES - skip < left ? CHUNK_BYTES - skip : left;
            return chunk->bytes + skip;
        }
        *at = (chunk != NULL ? index + 1 : (index / LEAF_CHUNKS + 1) * LEAF_CHUNKS) * CHUNK_BYTES;
    }
    return NULL;
}

bool image_is_zero(const image_t *image, uint32_t id, uint64_t offset, uint64_t len)
{
    uint64_t at = offset;
    uint64_t n = 0;
    for (const byte *bytes; (bytes = image_data(image, id, &at, &n)) != NULL && at - offset < len;
         at += n) {
        n = n < offset + len - at ? n : offset + len - at;
        if (memcmp(bytes, ZERO_CHUNK, n) != 0) {
            return false;
        }
    }
    return true;
}

uint64_t image_version(const image_t *image, uint32_t id, uint64_t offset, uint64_t len)
{
    CHECK(id < image->n_inodes);
    const inode_t *inode = &image->inodes[id];
    uint64_t first = offset / CHUNK_BYTES;
    uint64_t n = len / CHUNK_BYTES;
    CHECK(offset % CHUNK_BYTES == 0 && len % CHUNK_BYTES == 0 && n > 0 && len <= inode->size
          && offset <= inode->size - len);
    uint64_t version = 0;
    for (uint64_t i = 0; i < n; i++) {
        const chunk_t *chunk = chunk_find(inode, first + i);
        uint64_t parts[2] = {version, chunk == NULL ? 0 : chunk->version};
        version = i == 0 ? parts[1] : XXH3_64bits(parts, sizeof(parts));
    }
    return version;
}

void content_free(image_t *image)
{
    for (uint32_t i = 0; i < image->inodes_capacity; i++) {
        inode_t *inode = &image->inodes[i];
        for (uint32_t leaf = 0; leaf < inode->n_leaves; leaf++) {
            for (uint32_t k = 0; inode->leaves[leaf] != NULL && k < LEAF_CHUNKS; k++) {
                const chunk_t *chunk = &inode->leaves[leaf][k];
                free(chunk->owner != 0 ? (void *)(uintptr_t)chunk->bytes : NULL);
            }
            free(inode->leaves[leaf]);
        }
        free((void *)inode->leaves);
        free(inode->piece);
    }
    for (size_t i = 0; i < image->n_blocks; i++) {
        free(image->blocks[i]);
    }
    free((void *)image->blocks);
}
