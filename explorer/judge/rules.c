/* Recovery-time rules.

Place: beside allowed.c, above rules_log.c, below judge.c, which hears markers and file operations for
them.

What each rule sees
  I4   a page goes home with an LSN beyond the durable log
  I13  a page goes home without doublewrite although doublewrite is on: not at its first write since its
       initialisation, that one not behind the checkpoint, or in a space that was non-logged
  I14  a page that recovery made from its initialisation is read by recovery after all
  I15  a freed page is read, changed or written before it is initialised again; of pages that the
       log calls free, until redo is applied and checkpointed; or it is given up before its free is
       durable
  I19  a checkpoint while a data file has unsynced writes; more in rules_log.c, and I20, I21
  I22  a home write while its copy is not synced; the area is written again while home writes are
       not synced
  I24  a table file is created, renamed or removed without an announcement, or before its record is
       durable; an operation ends while the directory is not synced
What they do not see: whether C was chosen right, and what a later recovery would make of it; the
states at the next depth do. */
#include "explorer/judge/rules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* ---- markers ---- */

/** Where the page sets hold a space: as the page 0 of it. */
static uint64_t marker_space(const char *text)
{
    return (marker_fact(text, " space=") << 32) + 1;
}

static void check_not_freed(rules_t *rules, const char *text, uint64_t key)
{
    if (page_set_has(&rules->freed, key)) {
        verdict_add(rules->verdict, 15, "recovery: a freed page is used: %.160s", text);
    }
}

/** A page that goes home without doublewrite. */
static void check_skip(rules_t *rules, const char *text)
{
    const char *what = NULL;
    if (strstr(text, " why=off") != NULL) {
        what = rules->doublewrite ? "doublewrite is on" : NULL;
    } else if (page_set_has(&rules->nonlogged, marker_space(text))) {
        what = "the space has non-logged pages";
    } else if (!rules->first_flush) {
        what = "not initialised since its last write";
    } else if (marker_fact(text, " init_lsn=") <= rules->log.checkpoint) {
        what = "its initialisation is behind the checkpoint";
    }
    if (what != NULL) {
        verdict_add(rules->verdict, 13, "recovery: doublewrite skipped, %s: %.150s", what, text);
    }
}

static void mark_page_write(rules_t *rules, const char *text)
{
    memcpy(rules->page_write, text, strlen(text) + 1);
    if (marker_fact(text, " lsn=") > rules->log.durable) {
        verdict_add(rules->verdict, 4,
                    "recovery: a page goes home, but the log is durable up to %" PRIu64
                    " only: %.120s",
                    rules->log.durable, text);
    }
    if (rules->area_dirty && strstr(text, " dblwr=used") != NULL) {
        verdict_add(rules->verdict, 22, "recovery: a home write before the area is synced: %.120s",
                    text);
    }
    uint64_t page = marker_page(text);
    check_not_freed(rules, text, page);
    rules->first_flush = flush_is_first(&rules->unwritten, page);
    if (strstr(text, " dblwr=skip") != NULL) {
        check_skip(rules, text);
    }
}

static void mark_checkpoint(rules_t *rules, const char *text)
{
    if (strstr(text, " start=1") == NULL && rules->n_dirty > 0) {
        verdict_add(rules->verdict, 19, "recovery: %u data files are not synced: %.160s",
                    rules->n_dirty, text);
    }
}

static void mark_file_op(rules_t *rules, const char *text)
{
    memcpy(rules->file_op, text, strlen(text) + 1);
    if (marker_fact(text, " lsn=") > rules->log.durable) {
        verdict_add(rules->verdict, 24, "recovery: not durable yet: %.160s", text);
    }
}

/** Markers about recovery's own steps. */
static void mark_recv(rules_t *rules, const char *text)
{
    uint64_t key = marker_page(text);
    if (marker_is(text, "recv_batch")) {
        page_set_clear(
            &rules->created); /* what an earlier batch made is on disk, and may be read */
    } else if (marker_is(text, "recv_free")) {
        page_set_add(&rules->freed, key);
    } else if (marker_is(text, "recv_create")) {
        page_set_remove(&rules->freed, key);
        page_set_add(&rules->created, key);
        page_set_add(&rules->unwritten, key);
    } else if (marker_is(text, "recv_read")) {
        check_not_freed(rules, text, key);
        if (strstr(text, " why=index_load") != NULL) {
            page_set_add(&rules->nonlogged, marker_space(text));
        }
        if (page_set_has(&rules->created, key)) {
            verdict_add(rules->verdict, 14, "recovery: read after it was created: %.160s", text);
        }
    } else if (marker_is(text, "recv_apply")) {
        check_not_freed(rules, text, key);
    }
}

void rules_mark(rules_t *rules, const char *bytes, size_t len)
{
    char text[RULES_MARKER_MAX];
    if (len == 0 || len >= sizeof(text)) {
        return;
    }
    memcpy(text, bytes, len);
    text[len] = '\0';
    rules_log_mark(&rules->log, text);
    if (marker_is(text, "point")) {
        rules->applied |= strcmp(text, "point name=recv.applied") == 0;
    } else if (marker_is(text, "checkpoint_done") && rules->applied) {
        /* Redo is over. A page whose last record is a free may be in use by now: a load without
        redo took it again, and INDEX_LOAD vouches for its contents. */
        page_set_clear(&rules->freed);
        rules->applied = false;
    } else if (strncmp(text, "recv_", 5) == 0) {
        mark_recv(rules, text);
    } else if (marker_is(text, "page_write")) {
        mark_page_write(rules, text);
    } else if (marker_is(text, "page_noredo")) {
        page_set_remove(&rules->freed, marker_page(text));
        page_set_remove(&rules->unwritten, marker_page(text));
        page_set_add(&rules->nonlogged, marker_space(text));
    } else if (marker_is(text, "nonlogged")) {
        page_set_add(&rules->nonlogged, marker_space(text));
    } else if (marker_is(text, "page_init")) {
        uint64_t page = marker_page(text);
        page_set_remove(&rules->freed, page);
        page_set_add(&rules->unwritten, page);
    } else if (marker_is(text, "page_free")) {
        uint64_t page = marker_page(text);
        page_set_add(&rules->freed, page);
        page_set_add(&rules->unwritten, page);
    } else if (marker_is(text, "page_drop_freed")
               && marker_fact(text, " lsn=") > rules->log.durable) {
        verdict_add(rules->verdict, 15, "recovery: dropped, its free is not durable: %.160s", text);
    } else if (marker_is(text, "checkpoint")) {
        mark_checkpoint(rules, text);
    } else if (marker_is(text, "file_op")) {
        mark_file_op(rules, text);
    } else if (marker_is(text, "file_op_done") && rules->dir_dirty) {
        verdict_add(rules->verdict, 24, "recovery: the directory is not synced: %.160s", text);
    }
}

/* ---- file operations ---- */

static bool is_table_file(const char *path)
{
    size_t len = strlen(path);
    return len > 4 && strcmp(path + len - 4, ".ibd") == 0;
}

/** A database that is being created has its log under another name. */
static bool is_log_file(const char *path)
{
    return strncmp(path, "ib_logfile", 10) == 0;
}

static void dirty_add(rules_t *rules, uint32_t inode)
{
    for (uint32_t i = 0; i < rules->n_dirty; i++) {
        if (rules->dirty[i] == inode) {
            return;
        }
    }
    if (rules->n_dirty == rules->dirty_capacity) {
        rules->dirty_capacity = rules->dirty_capacity == 0 ? 16 : rules->dirty_capacity * 2;
        rules->dirty = mem_grow(rules->dirty, rules->dirty_capacity * sizeof(*rules->dirty));
    }
    rules->dirty[rules->n_dirty++] = inode;
}

static void dirty_remove(rules_t *rules, uint32_t inode)
{
    for (uint32_t i = 0; i < rules->n_dirty; i++) {
        if (rules->dirty[i] == inode) {
            rules->dirty[i] = rules->dirty[--rules->n_dirty];
            return;
        }
    }
}

static void event_write(rules_t *rules, fs_event_t *event, const char *path)
{
    const char *marker = rules->page_write[0] != '\0' ? rules->page_write : NULL;
    event->site = fs_site_of(path, event->offset, marker);
    event->first_flush = marker != NULL && rules->first_flush;
    rules->page_write[0] = '\0';
    if (event->site == SITE_DOUBLEWRITE) {
        if (rules->n_dirty > 0) {
            verdict_add(rules->verdict, 22,
                        "recovery: the area is written while %u data files are not synced",
                        rules->n_dirty);
        }
        rules->area_dirty = true;
    } else if (is_log_file(path)) {
        rules_log_write(&rules->log, event->offset, event->length);
    } else if (strcmp(path, "ibdata1") == 0 || is_table_file(path)) {
        dirty_add(rules, event->inode);
    }
}

static void event_entry(rules_t *rules, const fs_event_t *event, const char *path)
{
    rules->dir_dirty = true;
    if (event->kind == FS_UNLINK) {
        dirty_remove(rules, event->inode);
    }
    if (is_table_file(path) && strstr(rules->file_op, path) == NULL) {
        verdict_add(rules->verdict, 24, "recovery: an operation on %.160s was not announced", path);
    }
}

void rules_event(rules_t *rules, fs_event_t *event, const char *path)
{
    switch (event->kind) {
    case FS_WRITE:
        event_write(rules, event, path);
        break;
    case FS_SYNC:
        dirty_remove(rules, event->inode);
        if (strcmp(path, "ib_dblwr") == 0) {
            rules->area_dirty = false;
        } else if (is_log_file(path)) {
            rules_log_sync(&rules->log);
        }
        break;
    case FS_LINK:
    case FS_RENAME:
    case FS_UNLINK:
        event_entry(rules, event, path);
        break;
    case FS_SYNC_DIR:
        rules->dir_dirty = false;
        break;
    case FS_TRUNCATE:
        break;
    }
}

void rules_init(rules_t *rules, bool doublewrite)
{
    *rules = (rules_t){.doublewrite = doublewrite};
}

void rules_free(rules_t *rules)
{
    free(rules->dirty);
    page_set_free(&rules->freed);
    page_set_free(&rules->created);
    page_set_free(&rules->unwritten);
    page_set_free(&rules->nonlogged);
}

void rules_start(rules_t *rules, verdict_t *verdict, uint64_t log_size)
{
    rules->verdict = verdict;
    rules_log_start(&rules->log, verdict, log_size);
    rules->area_dirty = false;
    rules->n_dirty = 0;
    rules->dir_dirty = false;
    page_set_clear(&rules->freed);
    page_set_clear(&rules->created);
    page_set_clear(&rules->unwritten);
    page_set_clear(&rules->nonlogged);
    rules->applied = false;
    rules->file_op[0] = '\0';
    rules->page_write[0] = '\0';
}
