/** The scan: which checkpoint, where the log ends, and what it says of pages, spaces and files.

Place: first step of recovery; reads the log only and changes nothing.

    slots --newest--> C ... marker(C) ... end
                      |<---- one pass ---->|

Invariants
1. the newest valid slot is the only candidate. It was written after its marker was durable, so a
   valid slot without its marker tells of a damaged log, and the older slot is no way out: the log
   before its C may have been overwritten since. A slot torn while it was written is not valid; then
   the older one is the newest, and its log is whole, because overwriting waits for the slot's fsync
   (I19, I20);
2. what the marker's group or anything before the soft end says is complete; nothing behind it is
   looked at (I21);
3. a page that changes after it was freed must have been initialised in between, by a logged record
   or by a non-logged load that an INDEX_LOAD behind the freeing vouches for (I15). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "recv/recv_int.h"

/** Latest initialisation or freeing of each page. */
static dberr_t recv_scan_hist(recv_t *recv, const redo_rec_t *rec, lsn_t end_lsn)
{
    page_id_t id = {rec->space, rec->page_no};
    if (rec->op == OP_INIT_PAGE || rec->op == OP_FREE_PAGE) {
        void *found = NULL;
        TRY(recv_table_put(recv->env, &recv->hist, id, &found));
        recv_hist_t *hist = found;
        hist->event_lsn = end_lsn;
        hist->used_lsn = 0;
        hist->freed = rec->op == OP_FREE_PAGE;
        return DB_SUCCESS;
    }
    recv_hist_t *hist = recv_table_find(&recv->hist, id);
    if (hist != NULL && hist->freed) {
        hist->used_lsn = end_lsn;
    }
    return DB_SUCCESS;
}

/** A committed size. What it may be after the one before it is known here; for the first one,
recv_space_check_growth() knows the file. */
static dberr_t recv_scan_size(recv_t *recv, recv_space_t *space, uint64_t size_pages, lsn_t end_lsn)
{
    uint32_t before = space->log_size_pages;
    if (size_pages == 0 || size_pages > FIL_PAGES_MAX
        || (before != 0 && size_pages > before + FSP_GROW_PAGES_MAX)) {
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_BAD_RECORD,
                          "redo record at %" PRIu64 ": impossible size of space %" PRIu32
                          ": %" PRIu64 " pages after %" PRIu32,
                          end_lsn, space->id.space, size_pages, before);
    }
    if (before == 0) {
        space->log_size_first = (uint32_t)size_pages;
    }
    space->log_size_pages = (uint32_t)size_pages;
    return DB_SUCCESS;
}

static dberr_t recv_scan_page(recv_t *recv, const redo_rec_t *rec, lsn_t end_lsn)
{
    if (rec->page_no >= FIL_PAGES_MAX) {
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_BAD_RECORD,
                          "redo record at %" PRIu64 ": impossible page number %" PRIu32, end_lsn,
                          rec->page_no);
    }
    recv_space_t *space = NULL;
    TRY(recv_space_put(recv, rec->space, &space));
    space->changed = true;
    uint64_t size_pages = 0;
    if (rec->page_no == 0 && redo_rec_writes(rec, FSP_SIZE, 4, &size_pages)) {
        TRY(recv_scan_size(recv, space, size_pages, end_lsn));
    }
    return recv_scan_hist(recv, rec, end_lsn);
}

/** May a record about a file of the space have this path? */
static bool recv_path_fits(space_id_t space, const char *path, uint32_t len)
{
    return os_path_is_valid(path, len) && fil_path_is_space(path, len)
           && fil_path_is_undo(path, len) == space_is_undo(space) && memchr(path, '/', len) == NULL;
}

static dberr_t recv_path_copy(recv_t *recv, const char *path, uint32_t len, char **out)
{
    free(*out);
    *out = strndup(path, len);
    return *out != NULL ? DB_SUCCESS
                        : err_set(&recv->env->err, DB_OUT_OF_MEMORY, "no memory for a file name");
}

static dberr_t recv_event_append(recv_t *recv, const redo_rec_t *rec, lsn_t end_lsn)
{
    recv_event_t *event = calloc(1, sizeof(*event));
    if (event == NULL) {
        return err_set(&recv->env->err, DB_OUT_OF_MEMORY, "no memory for file records");
    }
    event->op = rec->op;
    event->space = rec->space;
    event->lsn = end_lsn;
    *recv->events_tail = event;
    recv->events_tail = &event->next;
    TRY(recv_path_copy(recv, rec->path, rec->path_len, &event->path));
    if (rec->op == OP_FILE_RENAME) {
        TRY(recv_path_copy(recv, rec->path2, rec->path2_len, &event->path2));
    }
    return DB_SUCCESS;
}

static dberr_t recv_scan_file(recv_t *recv, const redo_rec_t *rec, lsn_t end_lsn)
{
    bool rename = rec->op == OP_FILE_RENAME;
    /* A damaged or hostile record must not reach for the log, the system space or another
    directory. */
    if (rec->space == SPACE_SYSTEM || !recv_path_fits(rec->space, rec->path, rec->path_len)
        || (rename && !recv_path_fits(rec->space, rec->path2, rec->path2_len))) {
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_BAD_RECORD,
                          "%s at %" PRIu64 " names no table file",
                          log_format(recv->log)->rec_name(rec), end_lsn);
    }
    recv_space_t *space = NULL;
    TRY(recv_space_put(recv, rec->space, &space));
    if (space->deleted) {
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_BAD_RECORD,
                          "%s at %" PRIu64 ": space %" PRIu32 " was deleted before",
                          log_format(recv->log)->rec_name(rec), end_lsn, rec->space);
    }
    if (rename) {
        space->rename_lsn = end_lsn;
    }
    if (rec->op == OP_FILE_DELETE) {
        space->deleted = true;
    } else if (rec->op != OP_FILE_CREATE) {
        space->named = true;
    }
    TRY(rename ? recv_path_copy(recv, rec->path2, rec->path2_len, &space->name)
               : recv_path_copy(recv, rec->path, rec->path_len, &space->name));
    return recv_event_append(recv, rec, end_lsn);
}

/** The space begins anew: what came before is void. Only undo tablespaces do that, and with one
size. */
static dberr_t recv_scan_trim(recv_t *recv, const redo_rec_t *rec, lsn_t end_lsn)
{
    if (!space_is_undo(rec->space) || rec->page_no != FSP_INITIAL_PAGES) {
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_BAD_RECORD,
                          "%s at %" PRIu64 " truncates space %" PRIu32 " to %" PRIu32 " pages",
                          log_format(recv->log)->rec_name(rec), end_lsn, rec->space, rec->page_no);
    }
    recv_space_t *space = NULL;
    TRY(recv_space_put(recv, rec->space, &space));
    space->changed = true;
    space->trim_lsn = end_lsn;
    space->log_size_first = 0;
    space->log_size_pages = 0;
    return DB_SUCCESS;
}

static dberr_t recv_scan_rec(recv_t *recv, const redo_rec_t *rec, lsn_t end_lsn)
{
    if (redo_op_is_page(rec->op)) {
        return recv_scan_page(recv, rec, end_lsn);
    }
    switch (rec->op) {
    case OP_FILE_CREATE:
    case OP_FILE_DELETE:
    case OP_FILE_RENAME:
    case OP_FILE_NAME:
        return recv_scan_file(recv, rec, end_lsn);
    case OP_TRIM_PAGES:
        return recv_scan_trim(recv, rec, end_lsn);
    case OP_INDEX_LOAD: {
        recv_space_t *space = NULL;
        TRY(recv_space_put(recv, rec->space, &space));
        space->changed = true;
        space->enable_lsn = end_lsn;
        return DB_SUCCESS;
    }
    default:
        return DB_SUCCESS;
    }
}

/** Everything that the group says; its changes of pages too, as long as there is memory for
them. */
static dberr_t recv_scan_group(recv_t *recv, const log_group_t *group)
{
    for (uint32_t i = 0; i < group->n_recs; i++) {
        TRY(recv_scan_rec(recv, &group->recs[i], group->end_lsn));
    }
    recv_batch_t *batch = &recv->batch;
    bool room = batch->end_lsn == group->start_lsn && batch->used_bytes < recv->memory_max;
    return room ? recv_batch_add(recv->env, batch, log_format(recv->log), group) : DB_SUCCESS;
}

/** Invariant 3, once everything is known. */
static dberr_t recv_scan_check_freed(recv_t *recv)
{
    for (uint32_t i = 0; i < recv->hist.n; i++) {
        const recv_hist_t *hist = recv_table_at(&recv->hist, i);
        if (!hist->freed || hist->used_lsn == 0) {
            continue;
        }
        const recv_space_t *space = recv_space_find(recv, hist->id.space);
        if (!space->deleted && space->enable_lsn <= hist->event_lsn) {
            char name[PATH_LEN_MAX + 1];
            return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_PAGE_FREED,
                              "page %" PRIu32 " of %s: changed at %" PRIu64
                              " although it was freed at %" PRIu64,
                              hist->id.page_no, recv_space_name(recv, hist->id.space, name),
                              hist->used_lsn, hist->event_lsn);
        }
    }
    return DB_SUCCESS;
}

static dberr_t recv_scan_groups(recv_t *recv, log_reader_t *reader)
{
    bool marker_found = false;
    for (;;) {
        log_group_t group;
        dberr_t err = log_reader_next(reader, &group);
        if (err == DB_NOT_FOUND) {
            break;
        }
        TRY(err);
        TRY(recv_scan_group(recv, &group));
        marker_found |= log_group_is_marker(&group, &recv->ckpt);
    }
    recv->end_lsn = log_reader_end_lsn(reader);
    if (!marker_found) {
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_MARKER_MISSING,
                          "the log is damaged: read from checkpoint %" PRIu64 " at %" PRIu64
                          ", it ends at %" PRIu64 " without the marker at %" PRIu64,
                          recv->ckpt.no, recv->ckpt.lsn, recv->end_lsn, recv->ckpt.marker_lsn);
    }
    return recv_scan_check_freed(recv);
}

dberr_t recv_scan(recv_t *recv)
{
    recv->ckpt = *log_last_checkpoint(recv->log); /* invariant 1 */
    recv->batch.start_lsn = recv->ckpt.lsn;
    recv->batch.end_lsn = recv->ckpt.lsn;
    log_reader_t *reader = NULL;
    dberr_t err = log_reader_create(recv->log, recv->ckpt.lsn, &reader);
    AND_THEN(err, recv_scan_groups(recv, reader));
    log_reader_free(reader);
    TRY(err);
    PROBE_MARK(recv->env->probe, "recv_start c=%" PRIu64 " marker=%" PRIu64 " end=%" PRIu64,
               recv->ckpt.lsn, recv->ckpt.marker_lsn, recv->end_lsn);
    PROBE_POINT(recv->env->probe, "recv.scanned");
    return DB_SUCCESS;
}
