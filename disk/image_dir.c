/* Directories of an image: which are there, and what is below them.

Place: above image.c. A path is one name; that a directory is missing is told by its own name alone,
and the names below it may wait for it: what was written into a directory that was never durable
(persist.c). image_settle() ends that. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "disk/image_int.h"

void image_set_dir(image_t *image, uint32_t dir, dir_state_t state)
{
    CHECK(dir < image->n_names);
    image_name_t *name = &image->names[dir];
    if (name->dir_state == state) {
        return;
    }
    if (image->n_marks > 0) {
        image_change(image, CHANGE_DIR, dir)->old_value = (uint64_t)name->dir_state;
    }
    name->dir_state = state;
}

dir_state_t image_dir_state(const image_t *image, uint32_t dir)
{
    CHECK(dir < image->n_names);
    return image->names[dir].dir_state;
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

static bool is_used(const image_name_t *name)
{
    return name->inode != IMAGE_NONE || name->dir_state == DIR_THERE;
}

bool image_dir_is_there(const image_t *image, uint32_t dir)
{
    CHECK(dir < image->n_names);
    uint32_t i = 0;
    while (i < image->n_names
           && (!is_used(&image->names[i]) || rest_within(image, i, dir) == NULL)) {
        i++;
    }
    return i < image->n_names;
}

/** Neither file nor directory has this name. */
static void name_clear(image_t *image, uint32_t name)
{
    image_link(image, name, IMAGE_NONE);
    if (image->names[name].dir_state == DIR_THERE) {
        image_set_dir(image, name, DIR_MISSING);
    }
}

void image_remove_dir(image_t *image, uint32_t dir)
{
    CHECK(dir < image->n_names);
    for (uint32_t i = 0; i < image->n_names; i++) {
        if (is_used(&image->names[i]) && rest_within(image, i, dir) != NULL) {
            name_clear(image, i);
        }
    }
    image_set_dir(image, dir, DIR_MISSING);
}

/** The name of what was below one directory, below the other. */
static uint32_t name_moved(image_t *image, uint32_t to, const char *rest)
{
    size_t to_len = strlen(image->names[to].text);
    size_t len = to_len + strlen(rest);
    char *path = mem_alloc(len + 1);
    memcpy(path, image->names[to].text, to_len);
    memcpy(path + to_len, rest, len - to_len);
    uint32_t name = image_name(image, path, len);
    free(path);
    return name;
}

void image_move_dir(image_t *image, uint32_t from, uint32_t to)
{
    CHECK(from < image->n_names && to < image->n_names);
    bool told = image->names[from].dir_state != DIR_IMPLIED;
    uint32_t n = image->n_names; /* new names come behind them */
    for (uint32_t i = 0; i < n; i++) {
        image_name_t name = image->names[i];
        const char *rest = is_used(&name) ? rest_within(image, i, from) : NULL;
        if (rest == NULL) {
            continue;
        }
        uint32_t moved = name_moved(image, to, rest);
        name_clear(image, i);
        image_link(image, moved, name.inode);
        image_set_dir(image, moved, name.dir_state);
    }
    if (told) {
        image_set_dir(image, from, DIR_MISSING);
        image_set_dir(image, to, DIR_THERE);
    }
}

static bool is_below_missing(const image_t *image, uint32_t name)
{
    uint32_t dir = image->names[name].dir;
    while (dir != image->names[dir].dir && image->names[dir].dir_state != DIR_MISSING) {
        dir = image->names[dir].dir;
    }
    return image->names[dir].dir_state == DIR_MISSING;
}

void image_settle(image_t *image)
{
    for (uint32_t i = 0; i < image->n_names; i++) {
        if (is_used(&image->names[i]) && is_below_missing(image, i)) {
            name_clear(image, i);
        }
    }
}

void image_each_dir(const image_t *image, void (*fn)(void *ctx, uint32_t dir), void *ctx)
{
    for (uint32_t i = 0; i < image->n_names; i++) {
        if (image->names[i].dir_state == DIR_THERE) {
            fn(ctx, i);
        }
    }
}
