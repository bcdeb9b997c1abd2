/** Tablespaces: the registry, page I/O and fsync.

Place: above log/ (file operations are logged, fil_ops.c), below buf/, which is the only reader and
writer of pages in normal work; recovery and tools read pages here before the pool can.

Invariants
1. page I/O is bounded by the committed size: a page number from a damaged image never makes a file
   grow or reads outside of it;
2. (I19) writes are counted when they begin. An fsync covers those that were done when it began, by
   their number: what is written while it runs still needs one, whoever asked for the first;
3. the registry is ordered by id: a walk over it, and so the I/O of a checkpoint, is deterministic;
4. at most n_open_max files are open. The one used longest ago gives way, which depends on nothing
   but the order of uses. It is fsynced first if it needs that: an error that the system keeps
   for a closed file can be lost, and an fsync on a new descriptor would then report success
   (I19);
5. a space is found by its id in a few steps, however many there are: every page write asks for
   one. */
#include "fil/fil_int.h"
#include "page/page_compress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

dberr_t fil_create(env_t *env, log_t *log, uint32_t page_size, uint32_t open_files, fil_t **out)
{
    CHECK(page_size_is_valid(page_size) && open_files > 0);
    fil_t *fil = calloc(1, sizeof(*fil));
    if (fil == NULL) {
        return err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for the tablespace registry");
    }
    fil->env = env;
    fil->log = log;
    fil->page_size = page_size;
    fil->n_open_max = open_files;
    *out = fil;
    return DB_SUCCESS;
}

void fil_close(fil_t *fil)
{
    if (fil == NULL) {
        return;
    }
    while (fil->first != NULL) {
        fil_space_forget(fil, fil->first);
    }
    free(fil);
}

/** Start of the chain that a space of this id is in. */
static fil_space_t **fil_chain(fil_t *fil, space_id_t id)
{
    return &fil->chains[id & (FIL_HASH_CHAINS - 1)];
}

fil_space_t *fil_space_get(fil_t *fil, space_id_t id)
{
    fil_space_t *space = *fil_chain(fil, id);
    while (space != NULL && space->id != id) {
        fil->env->stats.spaces_passed++;
        space = space->hash_next;
    }
    return space;
}

fil_space_t *fil_space_by_path(fil_t *fil, const char *path)
{
    for (fil_space_t *space = fil->first; space != NULL; space = space->next) {
        if (strcmp(space->path, path) == 0) {
            return space;
        }
    }
    return NULL;
}

fil_space_t *fil_first(fil_t *fil)
{
    return fil->first;
}

uint32_t fil_page_size(const fil_t *fil)
{
    return fil->page_size;
}

env_t *fil_env(const fil_t *fil)
{
    return fil->env;
}

/* ---- open files ---- */

static void fil_lru_remove(fil_t *fil, fil_space_t *space)
{
    *(space->lru_prev != NULL ? &space->lru_prev->lru_next : &fil->lru_first) = space->lru_next;
    *(space->lru_next != NULL ? &space->lru_next->lru_prev : &fil->lru_last) = space->lru_prev;
}

static void fil_lru_push(fil_t *fil, fil_space_t *space)
{
    space->lru_prev = NULL;
    space->lru_next = fil->lru_first;
    *(fil->lru_first != NULL ? &fil->lru_first->lru_prev : &fil->lru_last) = space;
    fil->lru_first = space;
}

static void fil_file_set(fil_t *fil, fil_space_t *space, os_file_t *file)
{
    space->file = file;
    fil->n_open++;
    fil_lru_push(fil, space);
}

static void fil_file_close(fil_t *fil, fil_space_t *space)
{
    if (space->file != NULL) {
        fil_lru_remove(fil, space);
        fil->n_open--;
        env_close(fil->env, space->file);
        space->file = NULL;
    }
}

dberr_t fil_make_room(fil_t *fil)
{
    while (fil->n_open >= fil->n_open_max) {
        fil_space_t *space = fil->lru_last;
        /* Of a poisoned handle nothing is fsynced any more, and nothing relies on it: recovery
        fsyncs every file (I23). */
        TRY(fil->env->io_failed ? DB_SUCCESS : fil_sync(fil, space));
        fil_file_close(fil, space);
    }
    return DB_SUCCESS;
}

dberr_t fil_space_file(fil_t *fil, fil_space_t *space, os_file_t **out)
{
    if (space->file == NULL) {
        os_file_t *file = NULL;
        dberr_t err = fil_make_room(fil);
        AND_THEN(err, env_open(fil->env, space->path, OS_OPEN, &file));
        if (err != DB_SUCCESS) {
            /* A file of an open database that is gone is no answer to whoever asked for a page. */
            return err == DB_NOT_FOUND ? DB_IO_ERROR : err;
        }
        fil_file_set(fil, space, file);
    } else if (fil->lru_first != space) {
        fil_lru_remove(fil, space);
        fil_lru_push(fil, space);
    }
    *out = space->file;
    return DB_SUCCESS;
}

/* ---- the registry ---- */

fil_names_t fil_names(const fil_t *fil)
{
    return fil->names;
}

void fil_space_set_path(fil_t *fil, fil_space_t *space, const char *path)
{
    size_t len = strlen(path);
    CHECK(len <= PATH_LEN_MAX);
    fil->names.path_bytes += len - strlen(space->path);
    memcpy(space->path, path, len + 1);
}

dberr_t fil_space_register(fil_t *fil, space_id_t id, const char *path, os_file_t *file,
                           uint32_t size_pages, fil_space_t **out)
{
    fil_space_t *space = calloc(1, sizeof(*space));
    if (space == NULL) {
        return err_set(&fil->env->err, DB_OUT_OF_MEMORY, "no memory to open %s", path);
    }
    space->id = id;
    fil->names.n++;
    fil_space_set_path(fil, space, path);
    fil_file_set(fil, space, file);
    space->size_pages = size_pages;
    fil_space_t **link = &fil->first;
    while (*link != NULL && (*link)->id < id) {
        link = &(*link)->next;
    }
    space->next = *link;
    *link = space;
    fil_space_t **chain = fil_chain(fil, id);
    space->hash_next = *chain;
    *chain = space;
    *out = space;
    return DB_SUCCESS;
}

void fil_space_forget(fil_t *fil, fil_space_t *space)
{
    fil_space_t **link = &fil->first;
    while (*link != space) {
        CHECK(*link != NULL);
        link = &(*link)->next;
    }
    *link = space->next;
    link = fil_chain(fil, space->id);
    while (*link != space) {
        CHECK(*link != NULL);
        link = &(*link)->hash_next;
    }
    *link = space->hash_next;
    fil->names.n--;
    fil->names.path_bytes -= strlen(space->path);
    fil_file_close(fil, space);
    free(space);
}

static bool fil_page_in_space(const fil_space_t *space, page_no_t page_no)
{
    return page_no < space->size_pages;
}

static dberr_t fil_page_beyond(fil_t *fil, const fil_space_t *space, page_no_t page_no)
{
    return err_set(&fil->env->err, DB_CORRUPTION,
                   "page %" PRIu32 " lies beyond the %" PRIu32 " pages of %s", page_no,
                   space->size_pages, space->path);
}

dberr_t fil_page_read(fil_t *fil, fil_space_t *space, page_no_t page_no, byte *page)
{
    if (!fil_page_in_space(space, page_no)) {
        return fil_page_beyond(fil, space, page_no);
    }
    os_file_t *file = NULL;
    TRY(fil_space_file(fil, space, &file));
    size_t n_read = 0;
    TRY(env_read(fil->env, file, (uint64_t)page_no * fil->page_size, page, fil->page_size,
                 &n_read));
    memset(page + n_read, 0, fil->page_size - n_read);
    page_decompress(page, fil->page_size);
    fil->env->stats.data_reads++;
    return DB_SUCCESS;
}

dberr_t fil_page_write(fil_t *fil, fil_space_t *space, page_no_t page_no, const byte *page)
{
    if (!fil_page_in_space(space, page_no)) {
        return fil_page_beyond(fil, space, page_no);
    }
    os_file_t *file = NULL;
    TRY(fil_space_file(fil, space, &file));
    fil_mark_unsynced(space);
    fil->env->stats.writes_amid_fsync += space->n_syncing > 0;
    TRY(env_write(fil->env, file, (uint64_t)page_no * fil->page_size, page,
                  page_stored_bytes(page, fil->page_size)));
    fil->env->stats.data_writes++;
    return DB_SUCCESS;
}

dberr_t fil_page_punch(fil_t *fil, fil_space_t *space, page_no_t page_no, uint32_t from, bool *done)
{
    CHECK(from < fil->page_size);
    if (!fil_page_in_space(space, page_no)) {
        return fil_page_beyond(fil, space, page_no);
    }
    os_file_t *file = NULL;
    TRY(fil_space_file(fil, space, &file));
    fil_mark_unsynced(space);
    dberr_t err = env_punch(fil->env, file, (uint64_t)page_no * fil->page_size + from,
                            fil->page_size - from, done);
    fil->no_punch = err == DB_SUCCESS && !*done;
    return err;
}

bool fil_can_punch(const fil_t *fil)
{
    return !fil->no_punch;
}

bool fil_needs_sync(const fil_space_t *space)
{
    return space->n_synced < space->n_writes;
}

void fil_mark_unsynced(fil_space_t *space)
{
    space->n_writes++;
}

bool fil_is_synced(const fil_space_t *space, uint64_t n)
{
    return n <= space->n_synced;
}

static dberr_t fil_sync_issue(fil_t *fil, fil_sync_t *sync)
{
    os_file_t *file = NULL;
    TRY(fil_space_file(fil, sync->space, &file));
    TRY(env_sync(fil->env, file));
    sync->issued = true;
    fil->env->stats.data_fsyncs++;
    return DB_SUCCESS;
}

static void fil_sync_start(fil_space_t *space, fil_sync_t *sync)
{
    *sync = (fil_sync_t){.space = space, .n_writes = space->n_writes};
    space->n_syncing++;
}

dberr_t fil_sync_begin(fil_t *fil, fil_space_t *space, fil_sync_t *sync)
{
    *sync = (fil_sync_t){.space = NULL};
    if (!fil_needs_sync(space)) {
        return DB_SUCCESS;
    }
    fil_sync_start(space, sync);
    return sched_draw(&fil->env->sched, 2) == 0 ? fil_sync_issue(fil, sync) : DB_SUCCESS;
}

dberr_t fil_sync_end(fil_t *fil, fil_sync_t *sync)
{
    fil_space_t *space = sync->space;
    if (space == NULL) {
        return DB_SUCCESS;
    }
    TRY(sync->issued ? DB_SUCCESS : fil_sync_issue(fil, sync));
    if (space->n_synced < sync->n_writes) {
        space->n_synced = sync->n_writes;
    }
    space->n_syncing--;
    sync->space = NULL;
    return DB_SUCCESS;
}

dberr_t fil_sync(fil_t *fil, fil_space_t *space)
{
    fil_sync_t sync = {.space = NULL};
    if (fil_needs_sync(space)) {
        fil_sync_start(space, &sync);
    }
    return fil_sync_end(fil, &sync);
}

dberr_t fil_sync_all(fil_t *fil)
{
    for (fil_space_t *space = fil->first; space != NULL; space = space->next) {
        TRY(fil_sync(fil, space));
    }
    return DB_SUCCESS;
}

void fil_path_of_table(const char *table, char path[PATH_LEN_MAX + 1])
{
    size_t len = strlen(table);
    CHECK(len <= NAME_LEN_MAX);
    memcpy(path, table, len);
    memcpy(path + len, FIL_IBD_SUFFIX, sizeof(FIL_IBD_SUFFIX));
}

bool fil_path_is_undo(const char *path, size_t len)
{
    size_t prefix = sizeof(FIL_UNDO_PREFIX) - 1;
    bool is_undo = len == prefix + 3 && memcmp(path, FIL_UNDO_PREFIX, prefix) == 0;
    for (size_t i = prefix; is_undo && i < len; i++) {
        is_undo = path[i] >= '0' && path[i] <= '9';
    }
    return is_undo;
}

bool fil_path_is_space(const char *path, size_t len)
{
    size_t suffix = sizeof(FIL_IBD_SUFFIX) - 1;
    bool is_table = len > suffix && memcmp(path + len - suffix, FIL_IBD_SUFFIX, suffix) == 0;
    return is_table || fil_path_is_undo(path, len);
}

void fil_path_of_undo(uint32_t number, char path[PATH_LEN_MAX + 1])
{
    CHECK(number <= 999);
    (void)snprintf(path, PATH_LEN_MAX + 1, FIL_UNDO_PREFIX "%03" PRIu32, number);
}
