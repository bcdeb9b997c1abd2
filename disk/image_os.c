/* The engine's back end (os/os.h) on an image.

Place: above image.c; the engine calls it through the vtable and knows nothing of it.

1. Everything written is there at once; what would survive a power loss is persist.c's business,
   from the recorded events.
2. An event is recorded after the change, with the data as written.
3. A file that an engine has open stays valid when its name goes, as on POSIX, and what happens to
   it is told with the name that it has by then. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "disk/calls.h"
#include "disk/image_int.h"

typedef struct image_file {
    os_file_t base;
    uint32_t inode;
} image_file_t;

static image_os_t *os_of(os_t *os)
{
    return (image_os_t *)os;
}

static image_file_t *file_of(os_file_t *file)
{
    return (image_file_t *)file;
}

/** Hands the event to whoever listens. Its data is copied only if it is kept. */
static void os_event(image_os_t *os, fs_event_t event)
{
    if (os->watch != NULL) {
        os->watch->event(os->watch->ctx, &event, image_name_text(os->image, event.name));
    }
    if (os->record != NULL) {
        fs_event_t *kept = fs_list_add(os->record, event.kind);
        event.seq = kept->seq;
        event.issued_line = os->issued;
        event.acked_line = os->acked;
        event.calls = os->record->with_calls ? calls_take(os->record) : NULL;
        *kept = event;
        if (event.kind == FS_WRITE) {
            kept->data = fs_list_copy(os->record, event.data, event.length);
        }
    }
}

/** base.path is the name by which it was opened. */
static uint32_t file_name(const image_file_t *file)
{
    return os_of(file->base.os)->names[file->inode];
}

static void set_name(image_os_t *os, uint32_t inode, uint32_t name)
{
    if (inode >= os->n_names) {
        os->n_names = 2 * inode + 1;
        os->names = mem_grow(os->names, os->n_names * sizeof(*os->names));
    }
    os->names[inode] = name;
}

static const char *file_path(os_file_t *file)
{
    return image_name_text(os_of(file->os)->image, file_name(file_of(file)));
}

static void file_event(const image_file_t *file, fs_event_t event)
{
    image_os_t *os = os_of(file->base.os);
    if (os->record == NULL && os->watch == NULL) {
        return;
    }
    event.inode = file->inode;
    event.name = file_name(file);
    os_event(os, event);
}

/** As the POSIX back end, which makes the folder of a file that it creates. */
static void make_folder(image_os_t *os, uint32_t dir)
{
    if (image_dir_state(os->image, dir) == DIR_MISSING) {
        image_set_dir(os->image, dir, DIR_THERE);
        os_event(os, (fs_event_t){.kind = FS_MKDIR, .inode = IMAGE_NONE, .name = dir});
    }
}

/** The inode of this path, or IMAGE_NONE; *name gets its number. */
static uint32_t io_find(os_t *os, const char *path, uint32_t *name)
{
    image_t *image = os_of(os)->image;
    os->last_errno = 0;
    *name = image_name(image, path, strlen(path));
    return image_lookup(image, *name);
}

static dberr_t io_open(os_t *os, const char *path, os_open_mode_t mode, os_file_t **out)
{
    image_t *image = os_of(os)->image;
    uint32_t name = IMAGE_NONE;
    uint32_t inode = io_find(os, path, &name);
    if (mode == OS_OPEN && inode == IMAGE_NONE) {
        return DB_NOT_FOUND;
    }
    if (mode == OS_CREATE_NEW && inode != IMAGE_NONE) {
        return DB_ALREADY_EXISTS;
    }
    if (inode == IMAGE_NONE) {
        make_folder(os_of(os), image_name_dir(image, name));
        inode = image_inode_create(image);
        image_link(image, name, inode);
        os_event(os_of(os), (fs_event_t){.kind = FS_LINK, .inode = inode, .name = name});
    } else if (mode == OS_CREATE_TRUNC && image_size(image, inode) > 0) {
        uint64_t size = image_size(image, inode);
        (void)image_truncate(image, inode, 0);
        os_event(os_of(os),
                 (fs_event_t){.kind = FS_TRUNCATE, .inode = inode, .name = name, .old_size = size});
    }
    image_file_t *file = mem_alloc(sizeof(*file));
    file->base.os = os;
    file->inode = inode;
    os_of(os)->n_open++;
    set_name(os_of(os), inode, name);
    *out = &file->base;
    return DB_SUCCESS;
}

static dberr_t io_read(os_file_t *file, uint64_t offset, void *buf, size_t len, size_t *n_read)
{
    const image_t *image = os_of(file->os)->image;
    const image_watch_t *watch = os_of(file->os)->watch;
    uint64_t size = image_size(image, file_of(file)->inode);
    if (watch != NULL && watch->read != NULL) {
        watch->read(watch->ctx, file_of(file)->inode, file_path(file), offset, len);
    }
    uint64_t n = offset >= size ? 0 : size - offset;
    n = n < len ? n : len;
    if (n > 0) {
        image_read(image, file_of(file)->inode, offset, buf, n);
    }
    *n_read = n;
    return DB_SUCCESS;
}

static bool io_view(os_file_t *file, uint64_t offset, size_t len, os_view_t *out)
{
    image_os_t *os = os_of(file->os);
    const image_t *image = os->image;
    uint32_t inode = file_of(file)->inode;
    uint64_t size = image_size(image, inode);
    if (len == 0 || len > size || offset > size - len || offset % CHUNK_BYTES != 0
        || len % CHUNK_BYTES != 0) {
        return false;
    }
    if (len > os->view_bytes) {
        os->view = mem_grow(os->view, len);
        os->view_bytes = len;
    }
    *out = (os_view_t){.bytes = image_view(image, inode, offset, len, os->view),
                       .version = image_version(image, inode, offset, len)};
    return true;
}

static dberr_t io_too_large(os_t *os)
{
    os->last_errno = EFBIG;
    return DB_IO_ERROR;
}

static void tell_before(os_file_t *file, uint64_t offset, uint64_t len)
{
    const image_watch_t *watch = os_of(file->os)->watch;
    if (watch != NULL && watch->before != NULL) {
        watch->before(watch->ctx, file_of(file)->inode, file_path(file), offset, len);
    }
}

static dberr_t io_write(os_file_t *file, uint64_t offset, const void *buf, size_t len)
{
    tell_before(file, offset, len);
    image_t *image = os_of(file->os)->image;
    fs_event_t event = {.kind = FS_WRITE,
                        .offset = offset,
                        .length = len,
                        .data = buf,
                        .old_size = image_size(image, file_of(file)->inode)};
    if (!image_write(image, file_of(file)->inode, offset, buf, len)) {
        return io_too_large(file->os);
    }
    file_event(file_of(file), event);
    return DB_SUCCESS;
}

static dberr_t io_sync(os_file_t *file)
{
    file_event(file_of(file), (fs_event_t){.kind = FS_SYNC});
    return DB_SUCCESS;
}

static dberr_t io_truncate(os_file_t *file, uint64_t size_bytes)
{
    image_t *image = os_of(file->os)->image;
    fs_event_t event = {.kind = FS_TRUNCATE,
                        .offset = size_bytes,
                        .old_size = image_size(image, file_of(file)->inode)};
    tell_before(file, 0, 0);
    if (!image_truncate(image, file_of(file)->inode, size_bytes)) {
        return io_too_large(file->os);
    }
    file_event(file_of(file), event);
    return DB_SUCCESS;
}

static dberr_t io_punch(os_file_t *file, uint64_t offset, uint64_t len, bool *done)
{
    image_zero(os_of(file->os)->image, file_of(file)->inode, offset, len);
    file_event(file_of(file), (fs_event_t){.kind = FS_ZERO, .offset = offset, .length = len});
    *done = true;
    return DB_SUCCESS;
}

static dberr_t io_size(os_file_t *file, uint64_t *size_bytes)
{
    *size_bytes = image_size(os_of(file->os)->image, file_of(file)->inode);
    return DB_SUCCESS;
}

static void io_close(os_file_t *file)
{
    os_of(file->os)->n_open--;
    free(file_of(file));
}

static dberr_t io_rename(os_t *os, const char *from, const char *to)
{
    image_t *image = os_of(os)->image;
    uint32_t name = IMAGE_NONE;
    uint32_t inode = io_find(os, from, &name);
    if (inode == IMAGE_NONE) {
        return DB_NOT_FOUND;
    }
    uint32_t name2 = image_name(image, to, strlen(to));
    if (name2 == name) {
        return DB_SUCCESS;
    }
    fs_event_t event = {.kind = FS_RENAME,
                        .inode = inode,
                        .name = name,
                        .name2 = name2,
                        .over = image_lookup(image, name2) + 1U /* IMAGE_NONE + 1 is none */};
    image_link(image, name, IMAGE_NONE);
    image_link(image, name2, inode);
    set_name(os_of(os), inode, name2);
    os_event(os_of(os), event);
    return DB_SUCCESS;
}

static dberr_t io_unlink(os_t *os, const char *path)
{
    uint32_t name = IMAGE_NONE;
    uint32_t inode = io_find(os, path, &name);
    if (inode == IMAGE_NONE) {
        return DB_NOT_FOUND;
    }
    image_link(os_of(os)->image, name, IMAGE_NONE);
    os_event(os_of(os), (fs_event_t){.kind = FS_UNLINK, .inode = inode, .name = name});
    return DB_SUCCESS;
}

static dberr_t io_sync_dir(os_t *os, const char *dir)
{
    image_t *image = os_of(os)->image;
    os_event(os_of(os), (fs_event_t){.kind = FS_SYNC_DIR,
                                     .inode = IMAGE_NONE,
                                     .name = image_name(image, dir, strlen(dir))});
    return DB_SUCCESS;
}

static dberr_t io_exists(os_t *os, const char *path, bool *exists)
{
    image_t *image = os_of(os)->image;
    *exists = image_lookup(image, image_name(image, path, strlen(path))) != IMAGE_NONE;
    return DB_SUCCESS;
}

/** An entry of a directory: what a path has behind the directory's, up to the next slash. */
typedef struct entry {
    const char *text;
    size_t len;
} entry_t;

static int compare_entries(const entry_t *a, const entry_t *b)
{
    int order = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);
    return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

/** False: the path does not lie below dir. */
static bool entry_of(const char *path, const char *dir, entry_t *out)
{
    size_t skip = strcmp(dir, OS_ROOT) == 0 ? 0 : strlen(dir) + 1;
    if (skip > 0 && (strncmp(path, dir, skip - 1) != 0 || path[skip - 1] != '/')) {
        return false;
    }
    out->text = path + skip;
    out->len = strcspn(out->text, "/");
    return true;
}

/** Enters it where it belongs, once: paths come in order, and entries nearly do. @return how many
there are */
static size_t entry_add(entry_t *entries, size_t n, const entry_t *entry)
{
    size_t at = n;
    int order = 1;
    while (at > 0 && (order = compare_entries(entry, &entries[at - 1])) < 0) {
        at--;
    }
    if (at > 0 && order == 0) {
        return n;
    }
    memmove(entries + at + 1, entries + at, (n - at) * sizeof(*entries));
    entries[at] = *entry;
    return n + 1;
}

/** Tells of one: by its name, where that ends with the path. */
static dberr_t entry_tell(const entry_t *entry, os_list_fn fn, void *ctx)
{
    if (entry->text[entry->len] == '\0') {
        return fn(ctx, entry->text);
    }
    char *name = mem_alloc(entry->len + 1);
    memcpy(name, entry->text, entry->len);
    dberr_t err = fn(ctx, name);
    free(name);
    return err;
}

/** The entries of the directory itself, sorted: of "tmp/a" and "tmp/b" it has one, "tmp". */
static dberr_t io_list(os_t *os, const char *dir, os_list_fn fn, void *ctx)
{
    image_t *image = os_of(os)->image;
    const uint32_t *order = image_names_in_order(image);
    entry_t *entries = mem_grow(NULL, (image->n_names + 1U) * sizeof(*entries));
    size_t n = 0;
    for (uint32_t i = 0; i < image->n_names; i++) {
        const image_name_t *name = &image->names[order[i]];
        entry_t entry;
        if (name->inode != IMAGE_NONE && entry_of(name->text, dir, &entry)) {
            n = entry_add(entries, n, &entry);
        }
    }
    dberr_t err = DB_SUCCESS;
    for (size_t i = 0; i < n && err == DB_SUCCESS; i++) {
        err = entry_tell(&entries[i], fn, ctx);
    }
    free(entries);
    return err;
}

static dberr_t io_lock(os_t *os)
{
    if (os_of(os)->locked) {
        return DB_DIR_LOCKED;
    }
    os_of(os)->locked = true;
    return DB_SUCCESS;
}

static void io_unlock(os_t *os)
{
    os_of(os)->locked = false;
}

static void io_destroy(os_t *os)
{
    if (os_of(os)->owner) {
        CHECK(os_of(os)->n_open == 0);
        image_destroy(os_of(os)->image);
    }
}

static const os_vtable_t IMAGE_VTABLE = {
    .open = io_open,
    .read = io_read,
    .view = io_view,
    .write = io_write,
    .sync = io_sync,
    .truncate = io_truncate,
    .punch = io_punch,
    .size = io_size,
    .close = io_close,
    .rename = io_rename,
    .unlink = io_unlink,
    .sync_dir = io_sync_dir,
    .exists = io_exists,
    .list = io_list,
    .lock = io_lock,
    .unlock = io_unlock,
    .destroy = io_destroy,
};

os_t *image_os(image_t *image)
{
    image->os.base.vt = &IMAGE_VTABLE;
    image->os.image = image;
    return &image->os.base;
}

void image_os_record(image_t *image, fs_list_t *record)
{
    image->os.record = record;
    image->os.issued = 0;
    image->os.acked = 0;
}

void image_os_promise(image_t *image, uint32_t issued, uint32_t acked)
{
    image_os_t *os = &image->os;
    os->issued = issued;
    os->acked = acked;
    if (os->record != NULL && os->record->n > 0) {
        os->record->events[os->record->n - 1].acked_line = acked;
    }
}

void image_os_watch(image_t *image, const image_watch_t *watch)
{
    image->os.watch = watch;
}

os_t *image_os_create(void)
{
    image_t *image = image_create();
    image_set_hashing(image, false);
    image->os.owner = true;
    return image_os(image);
}

os_t *image_os_clone(os_t *os)
{
    CHECK(os->vt == &IMAGE_VTABLE);
    os_t *copy = image_os_create();
    image_t *image = os_of(copy)->image;
    image_set_hashing(image, true);
    image_copy(image, os_of(os)->image);
    os_of(copy)->taken = image_hash(image);
    image_set_hashing(image, false);
    return copy;
}

uint64_t image_os_taken(const os_t *os)
{
    CHECK(os->vt == &IMAGE_VTABLE);
    return ((const image_os_t *)os)->taken;
}

byte *image_os_bytes(os_t *os, const char *path, uint64_t *size_bytes)
{
    CHECK(os->vt == &IMAGE_VTABLE);
    image_t *image = os_of(os)->image;
    uint32_t name = image_name_find(image, path);
    uint32_t inode = name == IMAGE_NONE ? IMAGE_NONE : image_lookup(image, name);
    if (inode == IMAGE_NONE) {
        return NULL;
    }
    *size_bytes = image_size(image, inode);
    return image_bytes(image, inode);
}
