/* The stream of one process, handed to the rules.

Place: above rules_*.c, which hold the rules of one subject each; below judge.c and the trace
reader.

    log file   --> rules_log.c (I20, I21), rules_slot.c (I19)   area --> rules_area.c (I22)
    data files --> rules_home.c (I4, I5, I13, I22)              names --> rules_file.c (I24)
    index loads -> rules_index.c (I13, I16)                     reads --> rules_recv.c (I14, I15)

Rules
1. What is known comes from bytes: of the files found, and of what was written since. The journal of
   statements is the harness's own, and says when something was promised.
2. The rules are about the database: what lies in a folder of its directory (a backup) is judged by
   what comes of it.
3. Nothing that the bytes hold can stop the judge: what does not decode is not there, or is the
   finding. */
#include "explorer/judge/rules_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** In a folder of the data directory: no file of the database. */
static bool is_elsewhere(const char *path)
{
    return strchr(path, '/') != NULL;
}

bool rules_is_undo_file(const char *path)
{
    return strncmp(path, UNDO_PREFIX, UNDO_PREFIX_LEN) == 0
           && strspn(path + UNDO_PREFIX_LEN, "0123456789") == UNDO_DIGITS
           && path[UNDO_PREFIX_LEN + UNDO_DIGITS] == '\0';
}

bool rules_is_table_file(const char *path)
{
    size_t len = strlen(path);
    bool ibd = len > 4 && strcmp(path + len - 4, ".ibd") == 0;
    return (ibd || rules_is_undo_file(path)) && !is_elsewhere(path);
}

bool rules_is_data_file(const char *path)
{
    return strcmp(path, SYSTEM_PATH) == 0 || rules_is_table_file(path);
}

/** Of the database or of a copy of it in a folder: what the storage promises of pages holds for
both. */
static bool holds_pages(const char *path)
{
    const char *slash = strrchr(path, '/');
    return rules_is_data_file(slash != NULL ? slash + 1 : path);
}

/** A database that is being created has its log under another name. */
bool rules_is_log_file(const char *path)
{
    return strncmp(path, "ib_logfile", 10) == 0;
}

void rules_report(const rules_t *rules, uint64_t page, uint32_t invariant, const char *rule,
                  const char *format, ...)
{
    if (rules->config.found == NULL) {
        return;
    }
    va_list args;
    va_start(args, format);
    char what[VERDICT_WHAT_MAX];
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    rules->config.found(rules->config.ctx, invariant, rule, page, what);
}

static uint32_t inode_at(const image_t *image, const char *path)
{
    uint32_t name = image_name_find(image, path);
    return name == IMAGE_NONE ? IMAGE_NONE : image_lookup(image, name);
}

static void on_write(rules_t *rules, fs_event_t *event, const char *path)
{
    event->site = site_of_path(path, event->offset);
    event->unit = holds_pages(path) ? rules->config.atomic_unit : 0;
    if (rules_is_log_file(path)) {
        rules_log_write(rules, event);
    } else if (strcmp(path, AREA_PATH) == 0) {
        rules->area_inode = event->inode;
        rules_area_write(rules, event);
    } else if (rules_is_data_file(path)) {
        rules_home_write(rules, event, path);
    } else if (holds_pages(path)) {
        rules_home_elsewhere(rules, event);
    }
}

static void on_sync(rules_t *rules, uint32_t inode, const char *path)
{
    if (inode == rules->log.inode) {
        rules_log_sync(rules);
    } else if (inode == rules->area_inode) {
        rules_area_sync(rules);
    } else if (rules_is_data_file(path)) {
        rules_datafile(rules, inode, path)->synced = true;
        rules_home_sync(rules, inode);
    }
}

void rules_event(rules_t *rules, fs_event_t *event, const char *path)
{
    switch (event->kind) {
    case FS_WRITE:
        on_write(rules, event, path);
        break;
    case FS_SYNC:
        on_sync(rules, event->inode, path);
        break;
    case FS_UNLINK:
        rules_home_gone(rules, event->inode);
        rules_file_event(rules, event, path);
        break;
    case FS_LINK:
    case FS_RENAME:
        rules_file_event(rules, event, path);
        break;
    case FS_SYNC_DIR:
        rules->entries.n = strcmp(path, ".") == 0 ? 0 : rules->entries.n;
        break;
    case FS_ZERO:
        if (rules_is_data_file(path)) {
            rules_home_punch(rules, event, path);
        }
        break;
    case FS_TRUNCATE:
        if (event->offset < event->old_size && rules_is_table_file(path)) {
            rules_file_cut(rules, event, path);
        }
        break;
    case FS_MOVE_DIR:
    case FS_MKDIR:
    case FS_RMDIR:
        break;
    }
}

void rules_before(rules_t *rules, uint32_t inode, const char *path, uint64_t offset, uint64_t len)
{
    uint32_t page_size = rules->page_size;
    if (page_size == 0 || !rules_is_data_file(path)) {
        return;
    }
    (void)rules_datafile(rules, inode, path); /* whose it is may stand in what will be gone */
    for (uint64_t no = offset / page_size; len > 0 && no <= (offset + len - 1) / page_size; no++) {
        rules_home_before(rules, inode, path, (page_no_t)no);
    }
}

void rules_read(rules_t *rules, uint32_t inode, const char *path, uint64_t offset, uint64_t len)
{
    uint32_t page_size = rules->page_size;
    if (!rules->log.found || rules->closed || page_size == 0 || len == 0
        || !rules_is_data_file(path)) {
        return;
    }
    const rules_datafile_t *file = rules_datafile(rules, inode, path);
    if (!file->known) {
        return;
    }
    space_id_t space = file->space;
    for (uint64_t no = offset / page_size; no <= (offset + len - 1) / page_size; no++) {
        rules_recv_read(rules, inode, redo_key(space, (page_no_t)no));
    }
}

void rules_failed(rules_t *rules, const char *path)
{
    bool lasts = strncmp(path, SORT_FILE_PREFIX, strlen(SORT_FILE_PREFIX)) != 0;
    if (lasts && !is_elsewhere(path) && rules->failed[0] == '\0') {
        (void)snprintf(rules->failed, sizeof(rules->failed), "%s", path);
    }
}

void rules_closed(rules_t *rules, const char *path)
{
    rules->closed |= rules_is_log_file(path);
}

void rules_opened(rules_t *rules, const char *path)
{
    if (!rules->closed || rules->page_size == 0 || !rules_is_log_file(path)) {
        return;
    }
    rules->closed = rules->journal = false;
    rules_pages_again(rules);
    rules_area_again(rules);
    rules_log_again(rules);
}

void rules_journal(rules_t *rules, journal_kind_t kind, uint32_t line)
{
    rules->journal = true;
    switch (kind) {
    case JOURNAL_ISSUE:
        break;
    case JOURNAL_ACK: {
        char what[64];
        (void)snprintf(what, sizeof(what), "line %u is acknowledged", line);
        if (rules->failed[0] != '\0') {
            rules_report(rules, RULES_NO_PAGE, 23, "failed_io", "%s after a failed operation on %s",
                         what, rules->failed);
        }
        rules_file_check(rules, LSN_MAX, what);
        break;
    }
    }
}

rules_t *rules_create(const rules_config_t *config)
{
    rules_t *rules = mem_alloc(sizeof(*rules));
    rules->config = *config;
    rules->plain = mem_alloc(PAGE_SIZE_MAX);
    rules->home = mem_alloc(PAGE_SIZE_MAX);
    rules->copy = mem_alloc(PAGE_SIZE_MAX);
    rules->other = mem_alloc(PAGE_SIZE_MAX);
    redo_init(&rules->redo, config->keep_history);
    rules->redo.ctx = rules;
    return rules;
}

void rules_destroy(rules_t *rules)
{
    redo_free(&rules->redo);
    free(rules->plain);
    free(rules->home);
    free(rules->copy);
    free(rules->other);
    free(rules->pages.items);
    key_table_free(&rules->page_table);
    free(rules->homes.items);
    free(rules->skips.items);
    free(rules->indexes.items);
    free(rules->entries.items);
    free(rules->files.items);
    free(rules->copies.items);
    free(rules->fresh_copies.items);
    free(rules);
}

void rules_start(rules_t *rules, const image_t *image, bool cold, const rules_t *history)
{
    rules->image = image;
    rules->cold = cold;
    rules->page_size = 0;
    rules_pages_clear(rules);
    rules->homes.n = 0;
    rules->skips.n = 0;
    rules->indexes.n = 0;
    rules->entries.n = 0;
    rules->files.n = 0;
    rules->copies.n = 0;
    rules->fresh_copies.n = 0;
    rules->area_synced = false;
    rules->journal = rules->closed = false;
    rules->failed[0] = '\0';
    rules->area_inode = inode_at(image, AREA_PATH);
    rules_log_start(rules, inode_at(image, LOG_FILE_NAME), history);
}

void rules_log_facts(const rules_t *rules, rules_log_facts_t *out)
{
    *out = (rules_log_facts_t){.found = rules->log.found,
                               .checkpoint = rules->log.found_c,
                               .end_lsn = rules->log.found_end,
                               .last_lsn = rules->redo.end_lsn};
}
