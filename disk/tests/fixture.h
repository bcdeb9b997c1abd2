/** Hand-made events on an image. */
#ifndef DISK_TESTS_FIXTURE_H
#define DISK_TESTS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "disk/persist.h"

/** An image and what happens on it. */
typedef struct persist_fixture {
    image_t *image;
    fs_list_t list;
    persist_t persist;
    disk_profile_t disk;
} persist_fixture_t;

static inline int persist_teardown(void **state)
{
    persist_fixture_t *f = *state;
    persist_free(&f->persist);
    fs_list_free(&f->list);
    image_destroy(f->image);
    return 0;
}

/** A new file with this text; path: ends with XXXXXX, and is filled in. Caller: unlink(). */
static inline void put_text(char *path, const char *text)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static inline uint32_t name_of(image_t *image, const char *path)
{
    return image_name(image, path, strlen(path));
}

static inline void add_write(fs_list_t *list, uint32_t inode, uint64_t offset, const char *text)
{
    fs_event_t *event = fs_list_add(list, FS_WRITE);
    event->inode = inode;
    event->offset = offset;
    event->length = strlen(text);
    list->events[list->n - 1].data = fs_list_copy(list, text, strlen(text));
}

static inline void add_fill(fs_list_t *list, uint32_t inode, uint64_t offset, uint64_t len, char c)
{
    char *buf = malloc(len);
    assert_non_null(buf);
    memset(buf, c, len);
    fs_event_t *event = fs_list_add(list, FS_WRITE);
    event->inode = inode;
    event->offset = offset;
    event->length = len;
    list->events[list->n - 1].data = fs_list_copy(list, buf, len);
    free(buf);
}

/** From the size that the file has after the changes before it in the list; base: in front of
all. */
static inline void add_resize(fs_list_t *list, uint32_t inode, uint64_t base, uint64_t size)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const fs_event_t *event = &list->events[i];
        uint64_t end = event->offset + event->length;
        if (event->inode == inode && event->kind == FS_TRUNCATE) {
            base = event->offset;
        } else if (event->inode == inode && event->kind == FS_WRITE) {
            base = end > base ? end : base;
        }
    }
    fs_event_t *event = fs_list_add(list, FS_TRUNCATE);
    event->inode = inode;
    event->offset = size;
    event->old_size = base;
}

static inline void add_truncate(fs_list_t *list, uint32_t inode, uint64_t size)
{
    add_resize(list, inode, 0, size);
}

static inline void add_sync(fs_list_t *list, image_t *image, uint32_t inode, const char *path)
{
    fs_event_t *event = fs_list_add(list, FS_SYNC);
    event->inode = inode;
    event->name = name_of(image, path);
}

static inline void add_entry(fs_list_t *list, image_t *image, fs_kind_t kind, uint32_t inode,
                             const char *path, const char *to)
{
    fs_event_t *event = fs_list_add(list, kind);
    event->inode = inode;
    event->name = name_of(image, path);
    event->name2 = to == NULL ? 0 : name_of(image, to);
}

static inline void add_sync_dir(fs_list_t *list, image_t *image, const char *dir)
{
    fs_event_t *event = fs_list_add(list, FS_SYNC_DIR);
    event->inode = IMAGE_NONE;
    event->name = name_of(image, dir);
}

#define BYTES_OF_MAX ((size_t)1 << 20)

/** All of a file, and zeros behind it; until the next call. */
static inline const uint8_t *bytes_of(const image_t *image, uint32_t inode)
{
    static uint8_t bytes[BYTES_OF_MAX];
    assert_true(image_size(image, inode) <= sizeof(bytes));
    image_read(image, inode, 0, bytes, sizeof(bytes));
    return bytes;
}

/** Content of a path is exactly this text. */
static inline void assert_file(image_t *image, const char *path, const char *text)
{
    uint32_t inode = image_lookup(image, name_of(image, path));
    assert_int_not_equal(inode, IMAGE_NONE);
    assert_int_equal(image_size(image, inode), strlen(text));
    if (text[0] != '\0') {
        assert_memory_equal(bytes_of(image, inode), text, strlen(text));
    }
}

/** What a crash leaves that loses all that waits. */
static inline void settle(persist_fixture_t *f)
{
    image_mark(f->image);
    image_settle(f->image);
}

static inline void add_dir(fs_list_t *list, image_t *image, fs_kind_t kind, const char *path)
{
    add_entry(list, image, kind, IMAGE_NONE, path, NULL);
    if (kind == FS_MKDIR && image_dir_state(image, name_of(image, path)) == DIR_IMPLIED) {
        image_set_dir(image, name_of(image, path), DIR_MISSING);
    }
}

static inline void assert_absent(image_t *image, const char *path)
{
    assert_int_equal(image_lookup(image, name_of(image, path)), IMAGE_NONE);
}

#endif
