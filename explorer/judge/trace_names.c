/* What a trace says of names: renames, unlinks, directories.

Place: below trace_read.c, which reads the records. */
#include <stdio.h>
#include <string.h>

#include "disk/persist.h"
#include "explorer/judge/trace_int.h"

#define DIRS_MAX 4096U /* that one sync of everything writes */

static void files_rename(reader_t *reader, uint32_t inode, uint32_t name)
{
    for (uint32_t i = 0; i < reader->n_files; i++) {
        if (reader->files[i].known && reader->files[i].inode == inode) {
            reader->files[i].name = name;
        }
    }
}

/** What a name is called when the directory that it is in has another one. */
static uint32_t moved_name(reader_t *reader, uint32_t name, uint32_t from, uint32_t to)
{
    char path[2 * PATH_ROOM];
    size_t len = strlen(image_name_text(reader->image, from));
    int n = snprintf(path, sizeof(path), "%s%s", image_name_text(reader->image, to),
                     image_name_text(reader->image, name) + len);
    return n > 0 && (size_t)n < sizeof(path) ? reader_name(reader, path) : name;
}

static void on_move_dir(reader_t *reader, uint32_t from, uint32_t to)
{
    fs_event_t *event = reader_event(reader, FS_MOVE_DIR);
    event->name = from;
    event->name2 = to;
    persist_apply(reader->image, event);
    for (uint32_t i = 0; i < reader->n_files; i++) {
        file_map_t *file = &reader->files[i];
        if (file->known && image_name_is_within(reader->image, file->name, from)) {
            file->name = moved_name(reader, file->name, from, to);
        }
    }
}

/** A rename over another file, of which nothing is left, or an exchange. */
static void on_move_file(reader_t *reader, uint32_t name, uint32_t name2, bool swaps)
{
    uint32_t inode = image_lookup(reader->image, name);
    uint32_t other = image_lookup(reader->image, name2);
    fs_event_t *event = reader_event(reader, FS_RENAME);
    event->inode = inode;
    event->name = name;
    event->name2 = name2;
    event->over = other + 1U; /* IMAGE_NONE + 1 is none */
    event->swaps = swaps;
    persist_apply(reader->image, event);
    if (swaps) {
        files_rename(reader, other, name);
    }
    files_rename(reader, inode, name2);
    rules_event(reader->rules, event, image_name_text(reader->image, name));
}

dberr_t reader_on_rename(reader_t *reader)
{
    char from[PATH_ROOM];
    char to[PATH_ROOM];
    if (!reader_path(reader, 0, from) || !reader_path(reader, strlen(from) + 1, to)) {
        return reader_refuse(reader, "a rename out of or into the directory");
    }
    if (reader_ignores(reader, from) && reader_ignores(reader, to)) {
        return DB_SUCCESS;
    }
    bool swaps = (reader->rec.flags & RENAME_EXCHANGE) != 0;
    uint32_t name = reader_name(reader, from);
    uint32_t name2 = reader_name(reader, to);
    uint32_t inode = image_lookup(reader->image, name);
    if (swaps && (inode == IMAGE_NONE || image_lookup(reader->image, name2) == IMAGE_NONE)) {
        return reader_refuse(reader,
                             "an exchange with a folder or an unknown file is not modelled");
    }
    if (inode == IMAGE_NONE && image_dir_is_there(reader->image, name)) {
        if (image_dir_is_there(reader->image, name2)) {
            return reader_refuse(reader, "the rename of a folder over another one is not modelled");
        }
        on_move_dir(reader, name, name2);
        return DB_SUCCESS;
    }
    if (inode == IMAGE_NONE) {
        return reader_refuse(reader, "a rename of an unknown file or folder");
    }
    if (inode == image_lookup(reader->image, name2)) {
        return DB_SUCCESS; /* two names of one file: both stay */
    }
    on_move_file(reader, name, name2, swaps);
    return DB_SUCCESS;
}

/** The inode that a record's file id, or else its path, stands for. */
static uint32_t linked_inode(reader_t *reader, const char *from)
{
    const file_map_t *file = reader_file(reader);
    uint32_t name = image_name_find(reader->image, from);
    if (reader->rec.file != 0 && file != NULL && file->known) {
        return file->inode;
    }
    return name == IMAGE_NONE ? IMAGE_NONE : image_lookup(reader->image, name);
}

dberr_t reader_on_link(reader_t *reader)
{
    char from[PATH_ROOM];
    char to[PATH_ROOM];
    if (!reader_path(reader, 0, from) || !reader_path(reader, strlen(from) + 1, to)) {
        return reader_refuse(reader, "damaged");
    }
    if (reader_ignores(reader, to)) {
        return DB_SUCCESS;
    }
    uint32_t inode = linked_inode(reader, from);
    if (inode == IMAGE_NONE) {
        return reader_refuse(reader, "a link to an unknown file");
    }
    fs_event_t *event = reader_event(reader, FS_LINK);
    event->inode = inode;
    event->name = reader_name(reader, to);
    persist_apply(reader->image, event);
    files_rename(reader, inode, event->name);
    rules_event(reader->rules, event, to);
    return DB_SUCCESS;
}

/** A directory is made or removed. The data directory itself is always there. */
static dberr_t on_dir(reader_t *reader, fs_kind_t kind)
{
    char path[PATH_ROOM];
    if (!reader_path(reader, 0, path)) {
        return reader_refuse(reader, "damaged");
    }
    if (strcmp(path, ".") != 0 && !reader_ignores(reader, path)) {
        fs_event_t *event = reader_event(reader, kind);
        event->name = reader_name(reader, path);
        persist_apply(reader->image, event);
    }
    return DB_SUCCESS;
}

dberr_t reader_on_mkdir(reader_t *reader)
{
    return on_dir(reader, FS_MKDIR);
}

typedef struct other_name {
    uint32_t inode;
    uint32_t name;
} other_name_t;

static void see_name(void *ctx, uint32_t name, uint32_t inode)
{
    other_name_t *other = ctx;
    other->name = inode == other->inode ? name : other->name;
}

/** Of a file with several names that was called by this one: it is called by another from now
on. */
static void name_lost(reader_t *reader, uint32_t inode, uint32_t name)
{
    other_name_t other = {.inode = inode, .name = IMAGE_NONE};
    if (!image_inode_is_linked(reader->image, inode)) {
        return;
    }
    image_each(reader->image, see_name, &other);
    for (uint32_t i = 0; i < reader->n_files; i++) {
        file_map_t *file = &reader->files[i];
        if (file->known && file->inode == inode && file->name == name) {
            file->name = other.name;
        }
    }
}

dberr_t reader_on_unlink(reader_t *reader)
{
    if ((reader->rec.flags & TP_UNLINK_DIRECTORY) != 0) {
        return on_dir(reader, FS_RMDIR);
    }
    char path[PATH_ROOM];
    if (!reader_path(reader, 0, path)) {
        return reader_refuse(reader, "damaged");
    }
    if (reader_ignores(reader, path)) {
        return DB_SUCCESS;
    }
    uint32_t name = reader_name(reader, path);
    uint32_t inode = image_lookup(reader->image, name);
    if (inode == IMAGE_NONE) {
        return reader_refuse(reader, "an unlink of an unknown file");
    }
    fs_event_t *event = reader_event(reader, FS_UNLINK);
    event->inode = inode;
    event->name = name;
    image_link(reader->image, name, IMAGE_NONE);
    name_lost(reader, inode, name);
    rules_event(reader->rules, event, path);
    return DB_SUCCESS;
}

dberr_t reader_on_sync_dir(reader_t *reader)
{
    char path[PATH_ROOM];
    if (!reader_path(reader, 0, path)) {
        return reader_refuse(reader, "damaged");
    }
    const file_map_t *folder =
        reader_file(reader); /* another process may have renamed it since it was opened */
    fs_event_t *event = reader_event(reader, FS_SYNC_DIR);
    event->name = folder != NULL && folder->known ? folder->name : reader_name(reader, path);
    rules_event(reader->rules, event, path);
    return DB_SUCCESS;
}

typedef struct sync_all {
    reader_t *reader;
    uint32_t dirs[DIRS_MAX];
    uint32_t n_dirs;
} sync_all_t;

static void sync_file(void *ctx, uint32_t name, uint32_t inode)
{
    sync_all_t *all = ctx;
    fs_event_t *event = reader_event(all->reader, FS_SYNC);
    event->inode = inode;
    event->name = name;
    rules_event(all->reader->rules, event, image_name_text(all->reader->image, name));
}

static bool sync_note_dir(sync_all_t *all, uint32_t dir)
{
    for (uint32_t i = 0; i < all->n_dirs; i++) {
        if (all->dirs[i] == dir) {
            return true;
        }
    }
    if (all->n_dirs == DIRS_MAX) {
        return false;
    }
    all->dirs[all->n_dirs++] = dir;
    return true;
}

/** Every file, and every folder in which a name has changed: one fsync each. A crash in between
finds a part of them done. */
dberr_t reader_on_sync_all(reader_t *reader)
{
    sync_all_t all = {.reader = reader};
    const fs_list_t *list = &reader->trace->list;
    for (uint32_t i = 0; i < list->n; i++) {
        const fs_event_t *event = &list->events[i];
        if (fs_changes_name(event)
            && (!sync_note_dir(&all, image_name_dir(reader->image, event->name))
                || (fs_renames(event)
                    && !sync_note_dir(&all, image_name_dir(reader->image, event->name2))))) {
            return reader_refuse(reader, "a sync of more folders than are followed");
        }
    }
    image_each(reader->image, sync_file, &all);
    for (uint32_t i = 0; i < all.n_dirs; i++) {
        fs_event_t *event = reader_event(reader, FS_SYNC_DIR);
        event->name = all.dirs[i];
        rules_event(reader->rules, event, image_name_text(reader->image, event->name));
    }
    return DB_SUCCESS;
}

/** Which directories there were: one that is made, or gets its name by a move, was missing; one
that is removed or moved was there. The first event of a name decides. */
void reader_set_dirs(image_t *image, const fs_list_t *list)
{
    for (uint32_t i = list->n; i-- > 0;) {
        const fs_event_t *event = &list->events[i];
        if (event->kind == FS_MKDIR) {
            image_set_dir(image, event->name, DIR_MISSING);
        } else if (event->kind == FS_RMDIR) {
            image_set_dir(image, event->name, DIR_THERE);
        } else if (event->kind == FS_MOVE_DIR) {
            image_set_dir(image, event->name2, DIR_MISSING);
            image_set_dir(image, event->name, DIR_THERE);
        }
    }
}
