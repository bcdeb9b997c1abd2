/* The persistence model.

Place: above image.c, below models.c, which chooses what of the waiting events a crash keeps.

Rules
1. fsync of a file makes its earlier content changes durable: writes and sizes, in order. Not its
   name.
2. fsync of a directory makes its earlier entries durable: creations, renames, removals. Not the
   content.
3. A rename is one change: never both names gone, never both there by its doing. And a change of a
   name is not there without the earlier ones of the same name or of the same file: journals, soft
   updates and copying file systems all keep that. So a file is under two names by a link only, and
   under none only if it was removed. An exchange is a rename of two files at once.
4. Nothing becomes durable by itself. What reached the disk early anyway is one of the crash states.
5. Content that no durable or waiting name leads to can never be seen again, and is forgotten: files
   that are never synced and soon removed (sort runs) do not make the waiting set grow.
6. An ignored fsync does nothing at all.
7. A sync covers what had ended when it began. What overlapped it waits on: it may be there or not.
8. A write that is durable by itself is there when it has ended, and with it what waited of the same
   sectors, or of the size. It has ended when something else happens: at the crash point right
   behind it, it is under way.
9. The move of a directory becomes durable with its parents' fsync, or with that of the directory
   itself at its new place, and takes along what waited of the names below. Where it is lost, what
   came later of these names is lost too. Likewise the removal of a directory takes along what
   waited in it, and becomes durable also with an fsync in a directory that was made anew under its
   name; where it is lost, so is what came later of these names.
10. The file system says what else an fsync takes along (fs_profile.h): nothing; the changes of its
    file's name; or, where names are one
   journal, all that are older than the newest waiting change of the size or name of what is synced.
   Where nothing but bytes has changed there, nothing is committed to the journal, and no name is
   durable by it. Of a journal a crash keeps a beginning (choice.c). Where a rename over an existing
   file flushes, it is not there without what was written to the file before.
11. A directory is made and removed as a name is. While its creation waits, what is in it, durable
    or not, waits with it: a crash that
   loses the directory loses all of that (image_settle()). A rename into it that becomes durable
   takes its creation along; where the creation is lost, that rename is. */
#include "disk/persist.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void persist_init(persist_t *persist, const fs_list_t *list, image_t *image,
                  const disk_profile_t *disk)
{
    *persist = (persist_t){.image = image, .list = list, .disk = disk};
}

void persist_free(persist_t *persist)
{
    free(persist->pending);
    free(persist->covered);
    free(persist->overlapped);
    *persist = (persist_t){.image = NULL};
}

const fs_event_t *persist_pending(const persist_t *persist, uint32_t i)
{
    CHECK(i < persist->n_pending);
    return &persist->list->events[persist->pending[i]];
}

bool persist_is_overlapped(const persist_t *persist, uint32_t i)
{
    CHECK(i < persist->n_pending);
    uint32_t event = persist->pending[i];
    return event < persist->n_overlapped && persist->overlapped[event];
}

void persist_apply(image_t *image, const fs_event_t *event)
{
    bool fits = true;
    switch (event->kind) {
    case FS_WRITE:
        fits = event->chunks != NULL
                   ? image_write_kept(image, event->inode, event->offset, event->data,
                                      event->length, event->chunks)
                   : image_write(image, event->inode, event->offset, event->data, event->length);
        break;
    case FS_TRUNCATE:
        fits = image_truncate(image, event->inode, event->offset);
        break;
    case FS_ZERO:
        image_zero(image, event->inode, event->offset, event->length);
        break;
    case FS_LINK:
        image_link(image, event->name, event->inode);
        break;
    case FS_MOVE_DIR:
        image_move_dir(image, event->name, event->name2);
        break;
    case FS_MKDIR:
        image_set_dir(image, event->name, DIR_THERE);
        break;
    case FS_RMDIR:
        image_remove_dir(image, event->name);
        break;
    case FS_RENAME:
        if (event->swaps) {
            image_link(image, event->name, event->over - 1U);
        } else if (image_lookup(image, event->name) == event->inode) {
            image_link(image, event->name, IMAGE_NONE);
        }
        image_link(image, event->name2, event->inode);
        break;
    case FS_UNLINK:
        if (image_lookup(image, event->name) == event->inode) {
            image_link(image, event->name, IMAGE_NONE);
        }
        break;
    case FS_SYNC:
    case FS_SYNC_DIR:
        break;
    }
    CHECK(fits);
}

const fs_profile_t *persist_fs(const persist_t *persist)
{
    return persist->disk != NULL && persist->disk->fs != NULL ? persist->disk->fs
                                                              : fs_profile_default();
}

static bool grows(const fs_event_t *event)
{
    return event->kind == FS_WRITE && event->offset + event->length > event->old_size;
}

uint64_t persist_growth(const persist_t *persist, const fs_event_t *write)
{
    fs_growth_t growth = persist_fs(persist)->growth;
    if (!grows(write) || growth == FS_WITH_BYTES) {
        return 0;
    }
    uint64_t end = write->offset + write->length;
    uint64_t block_end = (write->old_size + FS_BLOCK_BYTES - 1) / FS_BLOCK_BYTES * FS_BLOCK_BYTES;
    if (growth == FS_IN_LAST_BLOCK && end > block_end) {
        end = block_end;
    }
    return end > write->old_size ? end : 0;
}

/** Is it a change of the name, in the directory or of the directory itself? */
static bool is_in_dir(const persist_t *persist, const fs_event_t *event, uint32_t dir)
{
    return fs_changes_name(event)
           && (image_name_dir(persist->image, event->name) == dir
               || (fs_renames(event) && image_name_dir(persist->image, event->name2) == dir)
               || (event->kind == FS_MOVE_DIR
                   && image_name_is_within(persist->image, dir, event->name2))
               || (event->kind == FS_RMDIR
                   && image_name_is_within(persist->image, dir, event->name)));
}

/** Is it about the file or directory that is synced, and more than the bytes of a file? */
static bool is_own_change(const persist_t *persist, const fs_event_t *sync, const fs_event_t *event)
{
    if (sync->kind == FS_SYNC_DIR) {
        return is_in_dir(persist, event, sync->name);
    }
    return fs_is_of(event, sync->inode)
           && (fs_changes_name(event) || event->kind != FS_WRITE || grows(event));
}

#define SECTOR_BYTES 512U

static bool shares_sector(const persist_t *persist, const fs_event_t *a, const fs_event_t *b)
{
    uint64_t sector =
        persist->disk != NULL && persist->disk->sector > 0 ? persist->disk->sector : SECTOR_BYTES;
    return a->offset / sector <= (b->offset + b->length - 1) / sector
           && b->offset / sector <= (a->offset + a->length - 1) / sector;
}

/** What an fsync, or the end of a durable write, covers of the pending events: */
typedef struct reach {
    const fs_event_t *sync;
    uint32_t ended; /**< of the list: those before it, rule 7 */
    uint32_t along; /**< names in [0, along), rule 10 */
    uint32_t sizes; /**< of a durable write: content of its file in [0, sizes), rule 8 */
} reach_t;

static reach_t reach_of(const persist_t *persist, uint32_t index)
{
    const fs_event_t *sync = &persist->list->events[index];
    reach_t reach = {.sync = sync, .ended = sync->late < index ? index - sync->late : 0};
    if (sync->kind == FS_WRITE) {
        reach.ended = index + 1;
        for (uint32_t i = 0; i < persist->n_pending; i++) {
            const fs_event_t *event = persist_pending(persist, i);
            bool size = event->kind == FS_TRUNCATE && event->inode == sync->inode;
            reach.sizes = size ? i + 1 : reach.sizes;
        }
    }
    uint32_t n = persist_fs(persist)->along == FS_EARLIER_NAMES ? persist->n_pending : 0;
    while (n > 0
           && (persist->pending[n - 1] >= reach.ended
               || !is_own_change(persist, sync, persist_pending(persist, n - 1)))) {
        n--;
    }
    reach.along = n;
    return reach;
}

/** Does it make the i-th pending event durable by itself? */
static bool sync_covers(const persist_t *persist, const reach_t *reach, uint32_t i)
{
    const fs_event_t *event = persist_pending(persist, i);
    const fs_event_t *sync = reach->sync;
    if (persist->pending[i] >= reach->ended) {
        return false;
    }
    if (fs_changes_name(event)) {
        return i < reach->along
               || (sync->kind == FS_SYNC_DIR
                       ? is_in_dir(persist, event, sync->name)
                       : persist_fs(persist)->along == FS_OWN_NAMES && sync->kind == FS_SYNC
                             && fs_is_of(event, sync->inode));
    }
    return sync->kind != FS_SYNC_DIR && event->inode == sync->inode
           && (sync->kind == FS_SYNC || i < reach->sizes || shares_sector(persist, event, sync));
}

/** Is one of the event's names that of the directory, or below it? */
static bool is_about(const persist_t *persist, const fs_event_t *event, uint32_t dir)
{
    return image_name_is_within(persist->image, event->name, dir)
           || (fs_renames(event) && image_name_is_within(persist->image, event->name2, dir));
}

/** Is the event a change of a name in the directory that the other one moves or removes? */
static bool is_in_changed(const persist_t *persist, const fs_event_t *event, const fs_event_t *dir)
{
    return (dir->kind == FS_MOVE_DIR || dir->kind == FS_RMDIR)
           && (is_about(persist, event, dir->name)
               || (dir->kind == FS_MOVE_DIR && is_about(persist, event, dir->name2)));
}

/** Does a rename take a file from elsewhere into the directory that the other event makes or
removes? */
static bool leads_into(const persist_t *persist, const fs_event_t *rename, const fs_event_t *dir)
{
    if ((dir->kind != FS_MKDIR && dir->kind != FS_RMDIR) || !fs_renames(rename)) {
        return false;
    }
    bool from = image_name_is_within(persist->image, rename->name, dir->name);
    bool to = image_name_is_within(persist->image, rename->name2, dir->name);
    return (to && !from) || (rename->swaps && from && !to);
}

/** Does a rename lead out of the directory? */
static bool leads_out_of(const persist_t *persist, const fs_event_t *rename, uint32_t dir)
{
    return fs_renames(rename)
           && (image_name_is_within(persist->image, rename->name, dir)
               || (rename->swaps && image_name_is_within(persist->image, rename->name2, dir)));
}

/** Rule 3. A rename is about the file whose name it takes as well. */
static bool is_about_same(const fs_event_t *a, const fs_event_t *b)
{
    bool name = a->name == b->name || (fs_renames(a) && a->name2 == b->name)
                || (fs_renames(b) && b->name2 == a->name)
                || (fs_renames(a) && fs_renames(b) && a->name2 == b->name2);
    bool file = a->inode != IMAGE_NONE && a->inode == b->inode;
    bool gone = (a->over > 0 && (a->over == b->inode + 1U || a->over == b->over))
                || (b->over > 0 && b->over == a->inode + 1U);
    return name || file || gone;
}

/** Rule 10. */
static bool is_flushed_by(const persist_t *persist, const fs_event_t *later,
                          const fs_event_t *content)
{
    return persist_fs(persist)->replace_flushes && later->over > 0 && !later->swaps
           && later->inode == content->inode;
}

bool persist_needs(const persist_t *persist, const fs_event_t *later, const fs_event_t *earlier)
{
    if (!fs_changes_name(later)) {
        return false;
    }
    if (fs_changes_content(earlier)) {
        return is_flushed_by(persist, later, earlier);
    }
    bool moves = earlier->kind == FS_MOVE_DIR && later->kind == FS_MOVE_DIR;
    bool moved_out = later->kind == FS_RMDIR && leads_out_of(persist, earlier, later->name);
    return is_about_same(later, earlier) || moves || moved_out
           || is_in_changed(persist, later, earlier) || leads_into(persist, later, earlier);
}

/** Rules 3, 9, 10 and 11: does a later change of a name that becomes durable take this one
along? */
static bool takes_along(const persist_t *persist, const fs_event_t *later,
                        const fs_event_t *earlier)
{
    if (fs_changes_content(earlier)) {
        return is_flushed_by(persist, later, earlier);
    }
    return fs_changes_name(earlier)
           && (is_about_same(later, earlier) || is_in_changed(persist, earlier, later)
               || leads_into(persist, later, earlier));
}

/** Which of the pending events the sync makes durable. Later ones first: they decide over earlier
ones. */
static void find_covered(persist_t *persist, uint32_t index)
{
    uint32_t n = persist->n_pending;
    reach_t reach = reach_of(persist, index);
    uint32_t first_carrier = n; /* among [first_carrier, n) are all that may take others along */
    for (uint32_t i = n; i-- > 0;) {
        const fs_event_t *event = persist_pending(persist, i);
        bool covered = sync_covers(persist, &reach, i);
        for (uint32_t at = first_carrier; !covered && at < n; at++) {
            covered =
                persist->covered[at] && takes_along(persist, persist_pending(persist, at), event);
        }
        persist->covered[i] = covered;
        first_carrier = covered && fs_changes_name(event) ? i : first_carrier;
    }
}

/** Rule 7, of the content that waits on. */
static void persist_overlap(persist_t *persist, const fs_event_t *sync, uint32_t event)
{
    const fs_event_t *change = &persist->list->events[event];
    if (sync->kind != FS_SYNC || !fs_changes_content(change) || change->inode != sync->inode) {
        return;
    }
    if (event >= persist->n_overlapped) {
        uint32_t n = persist->list->n;
        persist->overlapped = mem_grow(persist->overlapped, n * sizeof(bool));
        memset(persist->overlapped + persist->n_overlapped, 0,
               (n - persist->n_overlapped) * sizeof(bool));
        persist->n_overlapped = n;
    }
    persist->overlapped[event] = true;
}

static bool sync_is_ignored(const persist_t *persist, const fs_event_t *sync)
{
    return persist->disk != NULL
           && path_set_has(&persist->disk->lies, image_name_text(persist->image, sync->name));
}

/** Event number `index` of the list is an fsync, or a durable write that has ended. */
static void persist_sync(persist_t *persist, uint32_t index)
{
    find_covered(persist, index);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        if (persist->covered[i]) {
            persist_apply(persist->image, persist_pending(persist, i));
        } else {
            persist_overlap(persist, &persist->list->events[index], persist->pending[i]);
            persist->pending[kept++] = persist->pending[i];
        }
    }
    persist->n_pending = kept;
}

bool persist_is_under_way(const persist_t *persist)
{
    return persist->under_way;
}

static bool inode_may_be_seen(const persist_t *persist, uint32_t inode)
{
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        const fs_event_t *event = persist_pending(persist, i);
        if (fs_is_of(event, inode) && (event->kind == FS_LINK || event->kind == FS_RENAME)) {
            return true;
        }
    }
    return image_inode_is_linked(persist->image, inode);
}

/** Rule 5. */
static void persist_forget(persist_t *persist)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        const fs_event_t *event = persist_pending(persist, i);
        if (!fs_changes_content(event) || inode_may_be_seen(persist, event->inode)) {
            persist->pending[kept++] = persist->pending[i];
        }
    }
    persist->n_pending = kept;
}

static void persist_wait(persist_t *persist, uint32_t index)
{
    if (persist->n_pending == persist->capacity) {
        persist->capacity = persist->capacity == 0 ? 64 : persist->capacity * 2;
        persist->pending =
            mem_grow(persist->pending, persist->capacity * sizeof(*persist->pending));
        persist->covered = mem_grow(persist->covered, persist->capacity * sizeof(bool));
    }
    persist->pending[persist->n_pending++] = index;
}

static void persist_step(persist_t *persist, uint32_t index)
{
    const fs_event_t *event = &persist->list->events[index];
    if (persist->under_way) {
        persist_sync(persist, index - 1);
    }
    persist->under_way = event->kind == FS_WRITE && event->durable && event->length > 0
                         && !sync_is_ignored(persist, event);
    if (event->kind != FS_SYNC && event->kind != FS_SYNC_DIR) {
        persist_wait(persist, index);
    } else if (!sync_is_ignored(persist, event)) {
        persist_sync(persist, index);
        if (event->kind == FS_SYNC_DIR || persist_fs(persist)->along != FS_NOTHING) {
            persist_forget(persist);
        }
    }
}

void persist_advance(persist_t *persist, uint32_t to)
{
    CHECK(to >= persist->next && to <= persist->list->n);
    while (persist->next < to) {
        persist_step(persist, persist->next++);
    }
}

void persist_init_waiting(persist_t *persist, const fs_list_t *list, image_t *image,
                          const disk_profile_t *disk, uint32_t n_waiting)
{
    persist_init(persist, list, image, disk);
    for (uint32_t i = 0; i < n_waiting; i++) {
        persist_wait(persist, i);
    }
    persist->n_before = n_waiting;
    persist->next = n_waiting;
}
