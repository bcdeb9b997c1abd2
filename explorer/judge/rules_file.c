/* Names of files: I24.

Place: beside rules_log.c.

What the rule sees
  I24  a table's file is created, renamed or removed, and no record that says so is in the durable
       log; a statement is acknowledged, or a checkpoint passes the record, while the directory is
       not fsynced; a statement is acknowledged while a log, which no record tells of, lies under a
       name that is not fsynced; a file is cut, and no record in the durable log says that its space
       began anew, or pages beyond its new end were changed behind that record

The record must be of the space whose file it is. A recovery repeats what its log says, in its own
order: any such record of the operation will do. In a run it must be the newest about that name,
since names are used again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "explorer/judge/rules_int.h"

static const redo_file_t *record_of(const rules_t *rules, redo_op_t op, space_id_t space,
                                    const char *path, const char *path2)
{
    const redo_file_t *file = redo_file(&rules->redo, op, space, path, path2, rules->log.durable);
    const redo_file_t *newest = redo_file_about(&rules->redo, path2 != NULL ? path2 : path);
    bool repeated = rules->log.found && file != NULL && file->end_lsn <= rules->log.found_end;
    return file == newest || repeated ? file : NULL;
}

static void entry_add(rules_t *rules, const char *path, lsn_t record_lsn)
{
    rules_entry_t *entry = REDO_PUSH(&rules->entries);
    entry->record_lsn = record_lsn;
    (void)snprintf(entry->path, sizeof(entry->path), "%s", path);
}

void rules_file_event(rules_t *rules, const fs_event_t *event, const char *path)
{
    static const char *const WHAT[] = {
        [FS_LINK] = "created", [FS_RENAME] = "renamed", [FS_UNLINK] = "removed"};
    static const redo_op_t OPS[] = {
        [FS_LINK] = OP_FILE_CREATE, [FS_RENAME] = OP_FILE_RENAME, [FS_UNLINK] = OP_FILE_DELETE};
    if (rules_is_log_file(path) && event->kind != FS_UNLINK) {
        entry_add(rules, path, LSN_MAX);
    }
    /* Where there is no log yet, what an interrupted creation left is removed: a database begins
       without tables. */
    bool leftover = event->kind == FS_UNLINK && rules->log.inode == IMAGE_NONE;
    const char *to = event->kind == FS_RENAME ? image_name_text(rules->image, event->name2) : NULL;
    bool of_table = rules_is_table_file(path) || (to != NULL && rules_is_table_file(to));
    if (!of_table || (leftover && rules_is_undo_file(path))) {
        return;
    }
    rules_datafile_t *file = rules_datafile(rules, event->inode, path);
    file->written |= event->kind == FS_LINK;
    space_id_t space = file->known ? file->space : REDO_ANY_SPACE;
    const redo_file_t *record = record_of(rules, OPS[event->kind], space, path, to);
    if (record == NULL) {
        rules_report(rules, RULES_NO_PAGE, 24, "file_record",
                     "%.120s of space %" PRId64 " is %s, and the durable log does not say so", path,
                     file->known ? (int64_t)space : -1, WHAT[event->kind]);
    }
    entry_add(rules, path, record != NULL ? record->end_lsn : 0);
}

typedef struct cut {
    uint64_t from; /**< key of the first page that is gone */
    uint64_t to;   /**< and of the last one that can be */
    uint32_t n;
} cut_t;

static void cut_see(void *ctx, uint64_t key, const redo_entry_t *last)
{
    cut_t *cut = ctx;
    (void)last;
    cut->n += key >= cut->from && key <= cut->to;
}

void rules_file_cut(rules_t *rules, const fs_event_t *event, const char *path)
{
    const rules_datafile_t *file = rules_datafile(rules, event->inode, path);
    if (!file->known || rules->page_size == 0) {
        return;
    }
    lsn_t trim_lsn = redo_trim_lsn(&rules->redo, file->space, rules->log.durable);
    bool repeated = rules->log.found && trim_lsn <= rules->log.found_end;
    cut_t cut = {.from = redo_key(file->space, (page_no_t)(event->offset / rules->page_size)),
                 .to = redo_key(file->space, FIL_NULL)};
    if (trim_lsn != 0 && !repeated) {
        redo_each_page(&rules->redo, trim_lsn, LSN_MAX, cut_see, &cut);
    }
    if (trim_lsn == 0 || cut.n > 0) {
        rules_report(rules, RULES_NO_PAGE, 24, "file_record",
                     "%.120s is cut to %" PRIu64 " bytes, and the durable log does not say so",
                     path, event->offset);
    }
}

void rules_file_check(rules_t *rules, lsn_t limit, const char *what)
{
    for (uint32_t i = 0; i < rules->entries.n; i++) {
        const rules_entry_t *entry = &rules->entries.items[i];
        if (entry->record_lsn <= limit) {
            rules_report(rules, RULES_NO_PAGE, 24, "file_sync",
                         "%s, and the directory entry of %.120s is not fsynced", what, entry->path);
            return;
        }
    }
}
