/* A directory in memory: names, marks and their undo, the hash of all.

Place: above fs_event.c and image_content.c, which has the bytes of the files; below image_dir.c;
persist.c changes images, image_os.c lets the engine do it. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "disk/image_int.h"

/* ---- marks ---- */

static void change_undo(image_t *image, const change_t *change)
{
    switch (change->kind) {
    case CHANGE_CHUNK:
        *change->chunk = change->old;
        break;
    case CHANGE_META: {
        inode_t *inode = &image->inodes[change->id];
        inode->size = change->old_value;
        inode->hash = change->old.hash;
        inode->stamp = change->old.stamp;
        break;
    }
    case CHANGE_LINK:
        image->names[change->id].inode = (uint32_t)change->old_value;
        break;
    case CHANGE_DIR:
        image->names[change->id].dir_state = (dir_state_t)change->old_value;
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
    content_settle(image);
    image->marks[image->n_marks++] = (mark_t){
        .stamp = ++image->last_stamp, .n_changes = image->n_changes, .n_made = image->n_made};
}

void image_undo(image_t *image)
{
    CHECK(image->n_marks > 0);
    const mark_t *mark = &image->marks[--image->n_marks];
    while (image->n_changes > mark->n_changes) {
        change_undo(image, &image->changes[--image->n_changes]);
    }
    image->n_made = mark->n_made;
}

uint32_t image_marks(const image_t *image)
{
    return image->n_marks;
}

/* ---- inodes ---- */

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
        (void)image_change(image, CHANGE_INODE, id);
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

static int compare_names(const void *a, const void *b, void *names)
{
    const image_name_t *all = names;
    return strcmp(all[*(const uint32_t *)a].text, all[*(const uint32_t *)b].text);
}

const uint32_t *image_names_in_order(image_t *image)
{
    if (image->n_sorted != image->n_names) {
        image->names_sorted =
            mem_grow(image->names_sorted, image->n_names * sizeof(*image->names_sorted));
        for (uint32_t i = 0; i < image->n_names; i++) {
            image->names_sorted[i] = i;
        }
        qsort_r(image->names_sorted, image->n_names, sizeof(*image->names_sorted), compare_names,
                image->names);
        image->n_sorted = image->n_names;
    }
    return image->names_sorted;
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
        image_change(image, CHANGE_LINK, name)->old_value = image->names[name].inode;
    }
    image->names[name].inode = inode;
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
    content_settle(image);
    image->hashing = on;
}

uint64_t image_hash(image_t *image)
{
    content_settle(image);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < image->n_names; i++) {
        const image_name_t *name = &image->names[i];
        if (name->inode != IMAGE_NONE) {
            const inode_t *inode = &image->inodes[name->inode];
            uint64_t parts[3] = {name->hash, inode->size, inode->hash};
            sum += XXH3_64bits(parts, sizeof(parts));
        }
        sum += name->dir_state == DIR_THERE ? XXH3_64bits(&name->hash, sizeof(name->hash)) : 0;
    }
    return sum;
}

image_t *image_create(void)
{
    image_t *image = mem_alloc(sizeof(*image));
    image->hashing = true;
    return image;
}

void image_copy(image_t *to, const image_t *from)
{
    CHECK(to->n_inodes == 0 && to->n_names == 0 && to->n_marks == 0);
    for (uint32_t i = 0; i < from->n_inodes; i++) {
        uint32_t inode = image_inode_create(to);
        uint64_t at = 0;
        uint64_t len = 0;
        for (const byte *bytes; (bytes = image_data(from, i, &at, &len)) != NULL; at += len) {
            (void)image_write(to, inode, at, bytes, len);
        }
        (void)image_truncate(to, inode, image_size(from, i));
    }
    for (uint32_t i = 0; i < from->n_names; i++) {
        const image_name_t *name = &from->names[i];
        uint32_t copy = image_name(to, name->text, strlen(name->text));
        CHECK(copy == i);
        to->names[i].inode = name->inode;
        to->names[i].dir_state = name->dir_state;
    }
}

void image_destroy(image_t *image)
{
    while (image->n_marks > 0) {
        image_undo(image);
    }
    content_free(image);
    for (uint32_t i = 0; i < image->n_names; i++) {
        free(image->names[i].text);
    }
    free(image->inodes);
    free(image->names);
    free(image->names_sorted);
    free(image->name_table);
    free(image->changes);
    free(image->os.view);
    free(image->os.names);
    free(image);
}
