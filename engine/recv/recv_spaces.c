/** Spaces: which file is which, file operations that a crash split, and what is registered in fil.

Place: after the scan and before any page is written; below fil/ it reads page 0 by itself, because
a torn page 0 cannot be asked for its space id.

A file's space id comes from its page 0; if that is damaged or zero, from the first undamaged page
behind it; if there is none, from the last record of the log that gives a space this name.

Invariants
1. file operations are repeated in the order of the log, each only if the file at that name carries
   that space id: a name may be created again with another id (I24). Of the renames of a space only
   the last is: the directory was synced after each before it, and the names that those used may
   belong to others now;
2. repeating any of it is harmless: a crash here leaves an earlier or a later step, never another
   one (I17);
3. a space that the log names is never skipped: its file is there, or FILE_DELETE says why not, or
   recovery refuses (I30);
4. only what the log says makes a file grow, in steps that the engine takes; a file that is shorter
   than its own page 0 says is damaged;
5. what a killed process left in the page cache is not durable, though it can be read: directory
   entries, the log behind a file operation, and data files are fsynced before anything relies on
   them. A page that redo finds up to date is not written again, so nobody else would do it
   (I17). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "page/page_compress.h"
#include "recv/recv_int.h"

#define RECV_ID_PAGES_MAX 64U /**< pages asked for their space id when page 0 does not tell */

recv_space_t *recv_space_find(const recv_t *recv, space_id_t id)
{
    return recv_table_find(&recv->spaces, (page_id_t){id, 0});
}

dberr_t recv_space_put(recv_t *recv, space_id_t id, recv_space_t **out)
{
    void *found = NULL;
    TRY(recv_table_put(recv->env, &recv->spaces, (page_id_t){id, 0}, &found));
    *out = found;
    return DB_SUCCESS;
}

const char *recv_space_name(const recv_t *recv, space_id_t id, char buf[PATH_LEN_MAX + 1])
{
    const recv_space_t *space = recv_space_find(recv, id);
    if (id == SPACE_SYSTEM) {
        return FIL_SYSTEM_PATH;
    }
    if (space != NULL && (space->path != NULL || space->name != NULL)) {
        return space->path != NULL ? space->path : space->name;
    }
    snprintf(buf, PATH_LEN_MAX + 1, "space %" PRIu32, id);
    return buf;
}

uint32_t recv_page0_size(const recv_t *recv, const byte *page)
{
    uint32_t size_pages = mach_read_4(page + FSP_SIZE);
    bool plausible = fil_page_get_type(page) == FIL_PAGE_TYPE_FSP_HDR
                     && mach_read_4(page + FSP_SPACE_ID) == fil_page_get_id(page).space
                     && mach_read_4(page + FSP_PAGE_SIZE) == recv->page_size
                     && size_pages <= FIL_PAGES_MAX;
    return plausible ? size_pages : 0;
}

/** What a file tells of itself. */
typedef struct recv_file {
    bool known; /**< id is */
    space_id_t id;
    page_verdict_t page0;
    uint32_t size_pages; /**< by an undamaged page 0 */
} recv_file_t;

static dberr_t recv_file_page(recv_t *recv, os_file_t *file, page_no_t page_no, bool *whole)
{
    size_t n_read = 0;
    TRY(env_read(recv->env, file, (uint64_t)page_no * recv->page_size, recv->page_buf,
                 recv->page_size, &n_read));
    memset(recv->page_buf + n_read, 0, recv->page_size - n_read);
    page_decompress(recv->page_buf, recv->page_size);
    *whole = n_read == recv->page_size;
    return DB_SUCCESS;
}

static dberr_t recv_file_page0(recv_t *recv, os_file_t *file, const char *path, recv_file_t *out)
{
    bool whole = false;
    TRY(recv_file_page(recv, file, 0, &whole));
    page_id_t id = {fil_page_get_id(recv->page_buf).space, 0};
    out->page0 = fil_page_verify(recv->page_buf, recv->page_size, id);
    if (out->page0 != PAGE_OK) {
        return DB_SUCCESS;
    }
    if (fil_page_get_lsn(recv->page_buf) > recv->end_lsn) {
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_PAGE_BEYOND_LOG,
                          "page 0 of %s: LSN %" PRIu64 " is beyond the end of the log, %" PRIu64,
                          path, fil_page_get_lsn(recv->page_buf), recv->end_lsn);
    }
    out->size_pages = recv_page0_size(recv, recv->page_buf);
    if (out->size_pages == 0) {
        return err_set(&recv->env->err, DB_UNRECOVERABLE, "page 0 of %s: impossible space header",
                       path);
    }
    out->known = true;
    out->id = id.space;
    return DB_SUCCESS;
}

/** The space id of the first undamaged page behind page 0. */
static dberr_t recv_file_later_pages(recv_t *recv, os_file_t *file, recv_file_t *out)
{
    for (page_no_t page_no = 1; page_no < RECV_ID_PAGES_MAX && !out->known; page_no++) {
        bool whole = false;
        dberr_t err = recv_file_page(recv, file, page_no, &whole);
        if (err != DB_SUCCESS || !whole) {
            return err;
        }
        page_id_t id = {fil_page_get_id(recv->page_buf).space, page_no};
        if (fil_page_verify(recv->page_buf, recv->page_size, id) == PAGE_OK) {
            out->known = true;
            out->id = id.space;
        }
    }
    return DB_SUCCESS;
}

/** The space that the log last gave this name to (or took this name from and did not give it on).
*/
static void recv_file_by_log(const recv_t *recv, const char *path, recv_file_t *out)
{
    for (const recv_event_t *event = recv->events; event != NULL; event = event->next) {
        if (strcmp(event->path, path) == 0
            || (event->path2 != NULL && strcmp(event->path2, path) == 0)) {
            out->known = true;
            out->id = event->space;
        }
    }
}

static dberr_t recv_file_identify(recv_t *recv, const char *path, recv_file_t *out)
{
    os_file_t *file = NULL;
    dberr_t err = env_open(recv->env, path, OS_OPEN, &file);
    AND_THEN(err, recv_file_page0(recv, file, path, out));
    if (err == DB_SUCCESS && !out->known) {
        err = recv_file_later_pages(recv, file, out);
    }
    env_close(recv->env, file);
    if (err == DB_SUCCESS && !out->known) {
        recv_file_by_log(recv, path, out);
    }
    return err;
}

static dberr_t recv_path_set(recv_t *recv, recv_space_t *space, const char *path)
{
    char *copy = strdup(path);
    if (copy == NULL) {
        return err_set(&recv->env->err, DB_OUT_OF_MEMORY, "no memory for a file name");
    }
    free(space->path);
    space->path = copy;
    return DB_SUCCESS;
}

static dberr_t recv_file_enter(recv_t *recv, const char *path, const recv_file_t *file)
{
    recv_space_t *space = NULL;
    TRY(recv_space_put(recv, file->id, &space));
    if (space->path != NULL) {
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_FILE_CONFLICT,
                          "%s and %s both carry space id %" PRIu32, space->path, path, file->id);
    }
    space->page0_zero = file->page0 == PAGE_ZERO;
    space->file_size_pages = file->size_pages;
    return recv_path_set(recv, space, path);
}

static dberr_t recv_list_entry(void *ctx, const char *name)
{
    recv_t *recv = ctx;
    size_t len = strlen(name);
    if (len > PATH_LEN_MAX || name[0] == '.' || !fil_path_is_space(name, len)) {
        return DB_SUCCESS;
    }
    recv_file_t file = {.known = false};
    dberr_t err = recv_file_identify(recv, name, &file);
    if (err != DB_SUCCESS || !file.known) {
        return err; /* nobody's file: the catalogue decides what becomes of it */
    }
    if (file.id == SPACE_SYSTEM || space_is_undo(file.id) != fil_path_is_undo(name, len)) {
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_FILE_CONFLICT,
                          "%s carries the id of %s", name,
                          file.id == SPACE_SYSTEM ? "the system space" : "another kind of space");
    }
    return recv_file_enter(recv, name, &file);
}

static dberr_t recv_system_file(recv_t *recv)
{
    bool exists = false;
    dberr_t err = env_exists(recv->env, FIL_SYSTEM_PATH, &exists);
    if (err == DB_SUCCESS && !exists) {
        err = err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_FILE_MISSING, "%s is missing",
                         FIL_SYSTEM_PATH);
    }
    recv_file_t file = {.known = false};
    AND_THEN(err, recv_file_identify(recv, FIL_SYSTEM_PATH, &file));
    if (err == DB_SUCCESS && file.known && file.id != SPACE_SYSTEM) {
        err = err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_FILE_CONFLICT,
                         "%s carries space id %" PRIu32, FIL_SYSTEM_PATH, file.id);
    }
    file.id = SPACE_SYSTEM;
    TRY(err);
    return recv_file_enter(recv, FIL_SYSTEM_PATH, &file);
}

/* ---- file operations again ---- */

static dberr_t recv_redo_create(recv_t *recv, const recv_event_t *event, recv_space_t *space)
{
    if (space->deleted || space->path != NULL) {
        return DB_SUCCESS;
    }
    bool exists = false;
    TRY(env_exists(recv->env, event->path, &exists));
    if (exists || space->enable_lsn != 0) {
        /* Another space's file, or contents that no log could bring back. */
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_FILE_MISSING,
                          "the file %s of space %" PRIu32 " is missing", space->name, event->space);
    }
    TRY(log_sync_found(recv->log));
    PROBE_MARK(recv->env->probe, "file_op op=create path=%s lsn=%" PRIu64, event->path, event->lsn);
    fil_space_t *created = NULL;
    TRY(fil_space_recreate(recv->fil, event->space, event->path, &created));
    PROBE_MARK(recv->env->probe, "file_op_done op=create path=%s", event->path);
    space->page0_zero = true;
    return recv_path_set(recv, space, event->path);
}

static dberr_t recv_redo_delete(recv_t *recv, const recv_event_t *event, recv_space_t *space)
{
    if (space->path == NULL || strcmp(space->path, event->path) != 0) {
        return DB_SUCCESS;
    }
    env_t *env = recv->env;
    TRY(log_sync_found(recv->log));
    PROBE_MARK(env->probe, "file_op op=delete path=%s lsn=%" PRIu64, event->path, event->lsn);
    TRY(env_unlink(env, event->path));
    PROBE_POINT(env->probe, "fil.delete.unlinked");
    TRY(env_sync_dir(env));
    PROBE_MARK(env->probe, "file_op_done op=delete path=%s", event->path);
    free(space->path);
    space->path = NULL;
    return DB_SUCCESS;
}

static dberr_t recv_redo_rename(recv_t *recv, const recv_event_t *event, recv_space_t *space)
{
    if (space->path == NULL || strcmp(space->path, event->path) != 0
        || event->lsn != space->rename_lsn) {
        return DB_SUCCESS;
    }
    env_t *env = recv->env;
    bool exists = false;
    TRY(env_exists(env, event->path2, &exists));
    if (exists) {
        return err_refuse(&env->err, DB_UNRECOVERABLE, REFUSAL_FILE_CONFLICT,
                          "%s cannot be renamed to %s: another space has this file", event->path,
                          event->path2);
    }
    TRY(log_sync_found(recv->log));
    PROBE_MARK(env->probe, "file_op op=rename path=%s lsn=%" PRIu64 " to=%s", event->path,
               event->lsn, event->path2);
    TRY(env_rename(env, event->path, event->path2));
    PROBE_POINT(env->probe, "fil.rename.renamed");
    TRY(env_sync_dir(env));
    PROBE_MARK(env->probe, "file_op_done op=rename path=%s", event->path);
    return recv_path_set(recv, space, event->path2);
}

static dberr_t recv_redo_files(recv_t *recv)
{
    for (const recv_event_t *event = recv->events; event != NULL; event = event->next) {
        recv_space_t *space = recv_space_find(recv, event->space);
        if (event->op == OP_FILE_CREATE) {
            TRY(recv_redo_create(recv, event, space));
        } else if (event->op == OP_FILE_DELETE) {
            TRY(recv_redo_delete(recv, event, space));
        } else if (event->op == OP_FILE_RENAME) {
            TRY(recv_redo_rename(recv, event, space));
        }
    }
    return DB_SUCCESS;
}

/* ---- registration ---- */

/** The committed size of a space: what the log said last, else page 0, else its doublewrite copy. A
file whose page 0 was never written and is not in the log either is an empty creation: *size_pages =
0. */
static dberr_t recv_space_size(recv_t *recv, const recv_space_t *space, uint32_t *size_pages)
{
    *size_pages = space->log_size_pages;
    if (*size_pages == 0) {
        *size_pages = space->file_size_pages;
    }
    for (uint32_t i = 0; *size_pages == 0 && i < recv->n_copies; i++) {
        if (page_id_eq(recv->copies[i].id, space->id)) {
            *size_pages = recv->copies[i].fsp_size;
        }
    }
    bool empty = space->page0_zero && !space->changed && space->id.space != SPACE_SYSTEM;
    if (*size_pages == 0 && !empty) {
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_TORN_PAGE,
                          "torn page 0 of %s: no doublewrite copy", space->path);
    }
    return DB_SUCCESS;
}

/** Is the first size in the log one step from the file that the checkpoint left? Page 0 is no
witness of that: it may be damaged, and with a size of its own choice it would be one more thing to
forge. */
static dberr_t recv_space_check_growth(recv_t *recv, const recv_space_t *space, fil_space_t *opened)
{
    uint64_t size_bytes = 0;
    TRY(fil_space_length(recv->fil, opened, &size_bytes));
    uint64_t pages = size_bytes / recv->page_size;
    if (space->log_size_first > pages + FSP_GROW_PAGES_MAX) {
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_BAD_RECORD,
                          "%s: the redo log makes its %" PRIu64 " pages %" PRIu32 " in one step",
                          space->path, pages, space->log_size_first);
    }
    return DB_SUCCESS;
}

static dberr_t recv_space_register(recv_t *recv, const recv_space_t *space)
{
    uint32_t size_pages = 0;
    TRY(recv_space_size(recv, space, &size_pages));
    /* A space created again is there already, under the name of its creation. */
    fil_space_t *opened = fil_space_get(recv->fil, space->id.space);
    if (opened == NULL) {
        TRY(fil_space_open(recv->fil, space->id.space, space->path, size_pages, &opened));
    }
    TRY(recv_space_check_growth(recv, space, opened));
    fil_space_set_path(recv->fil, opened, space->path);
    opened->enable_lsn = space->enable_lsn;
    fil_mark_unsynced(opened); /* invariant 5 */
    if (space->named || space->changed) {
        /* C stays: its name in the log goes on to count, and the next marker's group repeats it. */
        opened->named = space->named;
        opened->max_lsn = recv->end_lsn;
    }
    return DB_SUCCESS;
}

dberr_t recv_spaces_open(recv_t *recv)
{
    TRY(env_sync_dir(recv->env));
    TRY(recv_system_file(recv));
    TRY(env_list(recv->env, recv_list_entry, recv));
    TRY(recv_redo_files(recv));
    for (uint32_t i = 0; i < recv->spaces.n; i++) {
        const recv_space_t *space = recv_table_at(&recv->spaces, i);
        if (space->path != NULL && !space->deleted) {
            TRY(recv_space_register(recv, space));
        } else if ((space->named || space->changed) && !space->deleted) {
            char name[PATH_LEN_MAX + 1];
            return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_FILE_MISSING,
                              "the file of %s (space id %" PRIu32
                              ") is missing, and the log has no "
                              "record of its deletion",
                              recv_space_name(recv, space->id.space, name), space->id.space);
        }
    }
    return DB_SUCCESS;
}

static dberr_t recv_space_check_length(recv_t *recv, fil_space_t *space)
{
    uint64_t size_bytes = 0;
    TRY(fil_space_length(recv->fil, space, &size_bytes));
    if (size_bytes < (uint64_t)space->size_pages * recv->page_size) {
        return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_FILE_SHORT,
                          "%s is cut short: %" PRIu64 " bytes instead of %" PRIu32 " pages",
                          space->path, size_bytes, space->size_pages);
    }
    return DB_SUCCESS;
}

dberr_t recv_spaces_extend(recv_t *recv)
{
    for (fil_space_t *space = fil_first(recv->fil); space != NULL; space = space->next) {
        const recv_space_t *known = recv_space_find(recv, space->id);
        if (known->trim_lsn != 0) {
            /* What the new life wrote behind its first pages goes too: all of it is in the log. */
            TRY(fil_space_shrink(recv->fil, space, FSP_INITIAL_PAGES));
        }
        TRY(known->log_size_pages != 0 ? fil_space_extend(recv->fil, space, known->log_size_pages)
                                       : recv_space_check_length(recv, space));
    }
    return DB_SUCCESS;
}
