/* Data files, copied page by page.

Place: below backup.c; reads files through fil/, never the frames of the pages it copies.

Rules
1. A page is taken when it is undamaged, or all zero. One that is not and is being written right now
   was torn by that: it is read again later. One that is not and is not being written is damaged:
   zeros are taken if nobody needs its home, else it fails the backup, as its copy could not be
   restored.
2. No page in a file is newer than the durable log, so none in the copy is newer than the log that
   is copied later.
3. A file grows and shrinks in its registry entry only: pages that come to a file behind its copy
   are in the log. One whose space is gone has no copy at the end.
4. A copy is fsynced when its last page is written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backup/backup_int.h"
#include "fsp/fsp_format.h"

#define COPY_NAME_MAX 32

static void copy_name(const backup_file_t *file, char name[COPY_NAME_MAX])
{
    (void)snprintf(name, COPY_NAME_MAX, "copy_%" PRIu32, file->id);
}

/** The link that holds the file of this space, or the end of the list. */
static backup_file_t **file_link(backup_t *backup, space_id_t id)
{
    backup_file_t **link = &backup->files;

    while (*link != NULL && (*link)->id != id) {
        link = &(*link)->next;
    }
    return link;
}

dberr_t backup_files_list(backup_t *backup)
{
    const fil_space_t *space = fil_first(buf_fil(backup->pool));

    for (; space != NULL; space = space->next) {
        backup_file_t **link = file_link(backup, space->id);

        if (*link == NULL) {
            *link = calloc(1, sizeof(**link));
            if (*link == NULL) {
                return err_set(&backup->env.err, DB_OUT_OF_MEMORY, "no memory for a backup");
            }
            (*link)->id = space->id;
            memcpy((*link)->path, space->path, strlen(space->path) + 1);
        }
    }
    return DB_SUCCESS;
}

void backup_files_free(backup_t *backup)
{
    env_close(&backup->env, backup->open);
    backup->open = NULL;
    while (backup->files != NULL) {
        backup_file_t *next = backup->files->next;

        free(backup->files);
        backup->files = next;
    }
}

/* ---- pages ---- */

/** A home that a crash has torn, and that recovery left, as the log did not lead to it any more:
nobody needs it while the page is free, nor before the first write of one that was created anew, by
a record of the copied log or by a load whose file is copied again. */
static dberr_t page_is_needed(const backup_t *backup, page_id_t id, bool *needed)
{
    uint32_t page_size = buf_page_size(backup->pool);
    uint32_t extent_pages = log_info(buf_log(backup->pool))->extent_pages;
    page_no_t at = id.page_no - id.page_no % xdes_page_covers(page_size, extent_pages);
    buf_block_t *block = buf_page_peek(backup->pool, id);
    *needed = block == NULL || block->oldest_modification == 0
              || (block->init_lsn == 0 && block->observer == 0 && !block->freed);
    if (*needed && at != id.page_no) {
        TRY(buf_page_get(backup->pool, (page_id_t){id.space, at}, &block));
        *needed = xdes_frame_has_page(block->frame, page_size, extent_pages, id.page_no);
        buf_block_unfix(backup->pool, block);
    }
    return DB_SUCCESS;
}

/** Reads the next page. *torn: it is being written, nothing was taken. */
static dberr_t page_read(backup_t *backup, const backup_file_t *file, fil_space_t *space,
                         bool *torn)
{
    fil_t *fil = buf_fil(backup->pool);
    env_t *env = fil_env(fil);
    page_id_t id = {.space = file->id, .page_no = file->next_page};
    dberr_t err = fil_page_read(fil, space, id.page_no, backup->page);

    *torn = false;
    if (err != DB_SUCCESS) {
        return err_set(&backup->env.err, err, "%s", env->err.msg);
    }
    bool in_flight = buf_page_tear(backup->pool, id, backup->page);
    page_verdict_t verdict = fil_page_verify(backup->page, fil_page_size(fil), id);
    if (verdict == PAGE_OK || verdict == PAGE_ZERO) {
        return DB_SUCCESS;
    }
    if (in_flight) {
        env->stats.backup_rereads++;
        *torn = true;
        return DB_SUCCESS;
    }
    bool needed = true;
    err = page_is_needed(backup, id, &needed);
    if (err == DB_SUCCESS && !needed) {
        memset(backup->page, 0, fil_page_size(fil));
        return DB_SUCCESS;
    }
    return err_set(&backup->env.err, DB_CORRUPTION, "%s: page %" PRIu32 " is damaged: %s",
                   space->path, id.page_no, page_verdict_name(verdict));
}

static dberr_t page_copy(backup_t *backup, backup_file_t *file, fil_space_t *space, bool *torn)
{
    fil_t *fil = buf_fil(backup->pool);
    uint32_t page_size = fil_page_size(fil);
    dberr_t err = page_read(backup, file, space, torn);

    if (err != DB_SUCCESS || *torn) {
        return err;
    }
    TRY(env_write(&backup->env, backup->open, (uint64_t)file->next_page * page_size, backup->page,
                  page_size));
    fil_env(fil)->stats.backup_pages++;
    file->next_page++;
    return DB_SUCCESS;
}

/* ---- files ---- */

static dberr_t file_begin(backup_t *backup, backup_file_t *file)
{
    char name[COPY_NAME_MAX];

    copy_name(file, name);
    file->begin_lsn = log_lsn(buf_log(backup->pool));
    file->next_page = 0;
    return env_open(&backup->env, name, OS_CREATE_TRUNC, &backup->open);
}

static dberr_t file_end(backup_t *backup, backup_file_t *file)
{
    dberr_t err = backup->open != NULL ? env_sync(&backup->env, backup->open) : DB_SUCCESS;

    env_close(&backup->env, backup->open);
    backup->open = NULL;
    file->done = true;
    return err;
}

/** Up to *n_pages pages of the file, and its end. */
static dberr_t file_copy(backup_t *backup, backup_file_t *file, uint32_t *n_pages, bool *torn)
{
    fil_space_t *space = fil_space_get(buf_fil(backup->pool), file->id);
    *torn = false;
    if (space != NULL && backup->open == NULL) {
        TRY(file_begin(backup, file));
    }
    while (!*torn && *n_pages > 0 && space != NULL && file->next_page < space->size_pages) {
        dberr_t err = page_copy(backup, file, space, torn);
        --*n_pages;
        TRY(err);
    }
    if (space == NULL || file->next_page >= space->size_pages) {
        TRY(file_end(backup, file));
    }
    return DB_SUCCESS;
}

static backup_file_t *file_to_copy(const backup_t *backup)
{
    backup_file_t *file = backup->files;

    while (file != NULL && file->done) {
        file = file->next;
    }
    return file;
}

dberr_t backup_files_copy(backup_t *backup, uint32_t *n_pages)
{
    bool torn = false;
    backup_file_t *file = file_to_copy(backup);
    while (file != NULL && *n_pages > 0 && !torn) {
        TRY(file_copy(backup, file, n_pages, &torn));
        file = file_to_copy(backup);
    }
    return DB_SUCCESS;
}

/** Until the page that is to be copied next is not being written any more. */
static dberr_t page_wait(backup_t *backup, const backup_file_t *file)
{
    page_id_t id = {.space = file->id, .page_no = file->next_page};
    buf_block_t *block = buf_page_peek(backup->pool, id);

    return block != NULL ? buf_block_wait(backup->pool, block) : DB_SUCCESS;
}

dberr_t backup_files_finish(backup_t *backup)
{
    backup_file_t *file;

    while ((file = file_to_copy(backup)) != NULL) {
        TRY(buf_yield(backup->pool));
        uint32_t n_pages = BACKUP_YIELD_PAGES;
        bool torn = false;
        TRY(file_copy(backup, file, &n_pages, &torn));
        if (torn) {
            TRY(page_wait(backup, file));
        }
    }
    return DB_SUCCESS;
}

dberr_t backup_file_loaded(backup_t *backup, space_id_t id, lsn_t load_lsn)
{
    env_t *env = buf_env(backup->pool);
    const fil_space_t *space = fil_space_get(buf_fil(backup->pool), id);
    backup_file_t *file = *file_link(backup, id);

    if (space == NULL || file == NULL || !file->done || load_lsn <= file->begin_lsn) {
        return DB_SUCCESS;
    }
    if (backup->config.no_lock) {
        return err_set(
            &backup->env.err, DB_BACKUP_ABORTED,
            "an index was loaded into %s without redo after the file was copied, and lock=none "
            "lets it not be copied again",
            space->path);
    }
    file->done = false;
    env->stats.backup_files_again++;
    return DB_SUCCESS;
}

dberr_t backup_files_name(backup_t *backup)
{
    env_t *env = &backup->env;
    fil_t *fil = buf_fil(backup->pool);
    for (const backup_file_t *file = backup->files; file != NULL; file = file->next) {
        const fil_space_t *space = fil_space_get(fil, file->id);
        char name[COPY_NAME_MAX];

        copy_name(file, name);
        fil_env(fil)->stats.backup_files_moved +=
            space == NULL || strcmp(space->path, file->path) != 0;
        if (space != NULL) {
            TRY(env_rename(env, name, space->path));
        } else if (file->begin_lsn != 0) {
            TRY(env_unlink(env, name));
        }
    }
    return DB_SUCCESS;
}

dberr_t backup_files_remove(backup_t *backup)
{
    env_close(&backup->env, backup->open);
    backup->open = NULL;
    for (const backup_file_t *file = backup->files; file != NULL; file = file->next) {
        char name[COPY_NAME_MAX];

        copy_name(file, name);
        if (file->begin_lsn != 0) {
            TRY(env_unlink(&backup->env, name));
        }
    }
    return DB_SUCCESS;
}
