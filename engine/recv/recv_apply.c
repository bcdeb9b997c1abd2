/** Apply: redo records onto pages, in batches of bounded memory.

Place: after the doublewrite restore; pages pass through the pool, so that their writes go through
doublewrite and the write-ahead rule like all others.

    scan --first batch--> batch (per page lists) --full or end--> pages in order of id
    log behind it --group by group--/            --not the last--> flush and evict all

What happens to a page in a batch, by its newest initialisation or freeing in the whole log:
    none                          read, apply what is newer than the page
    init, in this batch           created, never read (MDEV-12699); read if there is an
                                  INDEX_LOAD of the space anywhere in the log
    init, in a later batch        nothing: all of it is older than the initialisation
    init, in an earlier batch     read: that batch has created and flushed it
    freed                         10.4: created empty with the LSN of the free, never read (I15):
                                  written home like any freed page: the file then has a whole one
                                  10.4, and an INDEX_LOAD of the space anywhere: read, and
                                  left as it is, neither changed nor dirty
                                  10.5: neither read nor written; scrubbed later, if that is wanted
    freed, but changed later      read: a non-logged load that INDEX_LOAD vouches for initialised it
Records from before the TRIM_PAGES of their space are no part of this: what they say of a page is
void.

Invariants
1. (I14) a page that redo initialises is not read, unless its space has an INDEX_LOAD, and then it
   is always read, also if it was initialised, or freed, long after: what the log says may be of a
   previous life, and a non-logged load may have filled the page since. A torn page is refused
   there, without a second try from the initialisation: what a torn page may cost is the writer's
   business (I13);
2. a record is applied once. On a page that was created the newest initialisation tells. On a page
   that was read its LSN does, and where that is older than the newest initialisation, that is where
   it begins: the initialisation wipes what is there, and what comes before it may build on changes
   that the file never got. (Those of a page whose newest record was its free, for one, when an
   earlier recovery let C pass them.)
3. (I4) a page from beyond the end of the log is refused;
4. (I17, I18) a page's LSN tells how far it is, whichever batch or earlier recovery brought it
   there. */
#include <inttypes.h>

#include "recv/recv_int.h"

typedef enum recv_fate {
    FATE_NOTHING,
    FATE_FREE,
    FATE_CREATE,
    FATE_READ,
    FATE_READ_INDEX_LOAD, /**< an initialisation is in the batch, but the page may be newer */
    FATE_READ_FREED       /**< a free is: nothing to apply, but the page must be whole */
} recv_fate_t;

/** Is the newest thing the log says of the page that it is free? */
static bool recv_page_is_free(const recv_hist_t *hist)
{
    return hist->freed && hist->used_lsn == 0;
}

static recv_fate_t recv_page_fate(const recv_batch_t *batch, const recv_hist_t *hist,
                                  const fil_space_t *space)
{
    if (hist == NULL || hist->event_lsn <= batch->start_lsn) {
        return hist != NULL && recv_page_is_free(hist) ? FATE_NOTHING : FATE_READ;
    }
    if (hist->event_lsn > batch->end_lsn) {
        return FATE_NOTHING;
    }
    if (recv_page_is_free(hist)) {
        return space->enable_lsn == 0 ? FATE_FREE : FATE_READ_FREED;
    }
    if (hist->freed) {
        return FATE_READ;
    }
    return space->enable_lsn == 0 ? FATE_CREATE : FATE_READ_INDEX_LOAD;
}

static dberr_t recv_page_refuse(const recv_t *recv, const fil_space_t *space, page_no_t page_no,
                                page_verdict_t verdict)
{
    return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_TORN_PAGE,
                      "torn page %" PRIu32 " of %s: no doublewrite copy (%s)", page_no, space->path,
                      page_verdict_name(verdict));
}

/** Reads the page into its frame. *page_lsn = 0: it is all zero. */
static dberr_t recv_page_read(recv_t *recv, fil_space_t *space, buf_block_t *block,
                              const recv_hist_t *hist, recv_fate_t fate, lsn_t *page_lsn)
{
    bool index_load = fate == FATE_READ_INDEX_LOAD || fate == FATE_READ_FREED;
    env_t *env = recv->env;
    page_id_t id = block->id;
    PROBE_MARK(env->probe, "recv_read space=%" PRIu32 " page=%" PRIu32 " why=%s", id.space,
               id.page_no, index_load ? "index_load" : "redo");
    TRY(fil_page_read(recv->fil, space, id.page_no, block->frame));
    env->stats.recv_pages_read++;
    env->stats.recv_index_load_reads += index_load;
    env->stats.recv_freed_reads += fate == FATE_READ_FREED;
    page_verdict_t verdict = fil_page_verify(block->frame, recv->page_size, id);
    *page_lsn = 0;
    if (verdict == PAGE_ZERO && index_load) {
        /* Never written, so it holds no contents of a load: INDEX_LOAD follows the load's fsync. A
        page without an initialisation in the log was in its file at the checkpoint. */
        return DB_SUCCESS;
    }
    if (verdict != PAGE_OK) {
        return recv_page_refuse(recv, space, id.page_no, verdict);
    }
    *page_lsn = fil_page_get_lsn(block->frame);
    if (*page_lsn > recv->end_lsn) {
        return err_refuse(&env->err, DB_UNRECOVERABLE, REFUSAL_PAGE_BEYOND_LOG,
                          "page %" PRIu32 " of %s: LSN %" PRIu64
                          " is beyond the end of the log, %" PRIu64,
                          id.page_no, space->path, *page_lsn, recv->end_lsn);
    }
    if (hist != NULL && hist->used_lsn != 0 && *page_lsn < hist->event_lsn) {
        return err_refuse(&env->err, DB_UNRECOVERABLE, REFUSAL_PAGE_FREED,
                          "page %" PRIu32 " of %s: changed at %" PRIu64
                          " after it was freed at %" PRIu64 ", but never initialised",
                          id.page_no, space->path, hist->used_lsn, hist->event_lsn);
    }
    return DB_SUCCESS;
}

/** What of a page's records was applied. */
typedef struct recv_applied {
    lsn_t from_lsn;
    lsn_t to_lsn;
    uint32_t n;
} recv_applied_t;

static dberr_t recv_rec_apply(recv_t *recv, const buf_block_t *block, const fil_space_t *space,
                              const redo_rec_t *rec, lsn_t end_lsn)
{
    dberr_t err = log_rec_apply(rec, block->frame, recv->page_size);
    if (err == DB_CORRUPTION && rec->op == OP_PAGE_CHECKSUM) {
        err = err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_PAGE_DIFFERS,
                         "page %" PRIu32 " of %s is not what it was at %" PRIu64, block->id.page_no,
                         space->path, end_lsn);
    } else if (err == DB_CORRUPTION) {
        err = err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_BAD_RECORD,
                         "page %" PRIu32 " of %s cannot take the %s at %" PRIu64, block->id.page_no,
                         space->path, log_format(recv->log)->rec_name(rec), end_lsn);
    }
    return err;
}

/** page_lsn: of what is in the frame; init_lsn: of the initialisation to begin with, or 0. */
static dberr_t recv_page_apply(recv_t *recv, const recv_page_t *page, buf_block_t *block,
                               const fil_space_t *space, lsn_t init_lsn, lsn_t page_lsn,
                               recv_applied_t *done)
{
    const log_format_t *format = log_format(recv->log);
    for (const recv_rec_t *stored = page->first; stored != NULL; stored = stored->next) {
        if (stored->end_lsn <= page_lsn || stored->end_lsn < init_lsn) {
            continue;
        }
        redo_rec_t rec;
        redo_context_t at = {.n_recs = 0};
        size_t used = 0;
        bool last = false;
        dberr_t err = format->decode(&at, stored->bytes, stored->len, &rec, &used, &last);
        if (err != DB_SUCCESS) {
            return err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_BAD_RECORD,
                              "redo record at %" PRIu64 " cannot be decoded again",
                              stored->end_lsn);
        }
        TRY(recv_rec_apply(recv, block, space, &rec, stored->end_lsn));
        done->from_lsn = done->n == 0 ? stored->end_lsn : done->from_lsn;
        done->to_lsn = stored->end_lsn;
        done->n++;
        recv->env->stats.recv_pages_compared += rec.op == OP_PAGE_CHECKSUM;
    }
    return DB_SUCCESS;
}

static void recv_page_dirty(recv_t *recv, const recv_batch_t *batch, buf_block_t *block,
                            lsn_t page_lsn, const recv_applied_t *done)
{
    PROBE_MARK(recv->env->probe,
               "recv_apply space=%" PRIu32 " page=%" PRIu32 " from=%" PRIu64 " to=%" PRIu64
               " n=%" PRIu32 " page_lsn=%" PRIu64,
               block->id.space, block->id.page_no, done->from_lsn, done->to_lsn, done->n, page_lsn);
    fil_page_set_lsn(block->frame, recv->page_size, done->to_lsn);
    /* The batch's start stands for the first change: pages come in order of id, not of LSN, and the
    flush lists ascend. It is older than the truth, so no checkpoint can pass a change. */
    buf_block_set_dirty(recv->pool, block, batch->start_lsn, done->to_lsn);
    recv->env->stats.recv_records += done->n;
}

static dberr_t recv_page_load(recv_t *recv, const recv_batch_t *batch, const recv_page_t *page,
                              fil_space_t *space, const recv_hist_t *hist, recv_fate_t fate)
{
    buf_block_t *block = NULL;
    TRY(buf_page_create(recv->pool, page->id, &block));
    dberr_t err = DB_SUCCESS;
    lsn_t page_lsn = 0;
    lsn_t created_lsn = fate == FATE_CREATE ? hist->event_lsn : 0;
    lsn_t init_lsn = created_lsn;
    if (fate == FATE_CREATE) {
        PROBE_MARK(recv->env->probe,
                   "recv_create space=%" PRIu32 " page=%" PRIu32 " init_lsn=%" PRIu64,
                   page->id.space, page->id.page_no, hist->event_lsn);
        recv->env->stats.recv_pages_created++;
    } else {
        err = recv_page_read(recv, space, block, hist, fate, &page_lsn);
        if (fate == FATE_READ_INDEX_LOAD && page_lsn < hist->event_lsn) {
            init_lsn = hist->event_lsn;
        }
    }
    if (fate == FATE_READ_FREED) {
        init_lsn = LSN_MAX; /* nothing is applied */
        block->freed = page_lsn < hist->event_lsn;
    }
    recv_applied_t done = {.n = 0};
    AND_THEN(err, recv_page_apply(recv, page, block, space, init_lsn, page_lsn, &done));
    if (err == DB_SUCCESS && done.n > 0) {
        recv_page_dirty(recv, batch, block, page_lsn, &done);
        /* It can be created again, for as long as the checkpoint stays where it is. */
        block->init_lsn = created_lsn;
        block->init_on_flush = created_lsn != 0 && !buf_log_optimize_ddl(recv->pool);
        fil_space_torn(space, created_lsn); /* by the killed process, if its mode allowed that */
    }
    buf_block_unfix(recv->pool, block);
    return err;
}

/** The home page may be torn, with no copy, and lack changes from before the checkpoint. Nobody
asks for that now. But when the page is initialised again, and an INDEX_LOAD makes the next recovery
read it before it went home, somebody does. */
static dberr_t recv_page_free(recv_t *recv, const recv_batch_t *batch, fil_space_t *space,
                              page_id_t id, lsn_t lsn)
{
    PROBE_MARK(recv->env->probe, "recv_free space=%" PRIu32 " page=%" PRIu32 " lsn=%" PRIu64,
               id.space, id.page_no, lsn);
    if (log_format(recv->log)->all_frees) {
        buf_scrub_note(recv->pool, id, lsn);
        return DB_SUCCESS;
    }
    buf_block_t *block = NULL;
    TRY(buf_page_create(recv->pool, id, &block));
    fil_page_init(block->frame, recv->page_size, id, FIL_PAGE_TYPE_ALLOCATED);
    fil_page_set_lsn(block->frame, recv->page_size, lsn);
    buf_block_set_dirty(recv->pool, block, batch->start_lsn, lsn);
    block->freed = true;
    fil_space_torn(space, lsn);
    buf_block_unfix(recv->pool, block);
    return DB_SUCCESS;
}

static dberr_t recv_batch_page(recv_t *recv, const recv_batch_t *batch, recv_page_t *page)
{
    lsn_t trim_lsn = recv_space_find(recv, page->id.space)->trim_lsn;
    while (page->first != NULL && page->first->end_lsn < trim_lsn) {
        page->first = page->first->next; /* of a life that is over */
    }
    if (page->first == NULL) {
        return DB_SUCCESS;
    }
    fil_space_t *space = fil_space_get(recv->fil, page->id.space);
    if (space == NULL) {
        return DB_SUCCESS; /* it was deleted later */
    }
    const recv_hist_t *hist = recv_table_find(&recv->hist, page->id);
    recv_fate_t fate = recv_page_fate(batch, hist, space);
    switch (fate) {
    case FATE_NOTHING:
        return DB_SUCCESS;
    case FATE_FREE:
        return recv_page_free(recv, batch, space, page->id, hist->event_lsn);
    default:
        return recv_page_load(recv, batch, page, space, hist, fate);
    }
}

static dberr_t recv_batch_apply(recv_t *recv, recv_batch_t *batch, bool final)
{
    batch->no++;
    PROBE_MARK(recv->env->probe, "recv_batch n=%" PRIu32 " pages=%" PRIu32 " final=%d", batch->no,
               batch->pages.n, final);
    recv_table_sort(&batch->pages);
    for (uint32_t i = 0; i < batch->pages.n; i++) {
        TRY(recv_batch_page(recv, batch, recv_table_at(&batch->pages, i)));
    }
    recv->env->stats.recv_batches++;
    PROBE_POINT(recv->env->probe, "recv.batch_applied");
    if (final) {
        return DB_SUCCESS;
    }
    /* The next batch reads what this one has changed: its pages must be in the files by then. */
    TRY(buf_flush_and_evict_all(recv->pool));
    PROBE_POINT(recv->env->probe, "recv.batch_flushed");
    recv_batch_reset(batch);
    return DB_SUCCESS;
}

/** The next groups of the log, as many as there is memory for. */
static dberr_t recv_batch_fill(recv_t *recv, recv_batch_t *batch, log_reader_t *reader)
{
    while (batch->end_lsn < recv->end_lsn && batch->used_bytes < recv->memory_max) {
        log_group_t group;
        dberr_t err = log_reader_next(reader, &group);
        if (err == DB_SUCCESS) {
            err = recv_batch_add(recv->env, batch, log_format(recv->log), &group);
        } else if (err == DB_NOT_FOUND) {
            err = err_refuse(&recv->env->err, DB_UNRECOVERABLE, REFUSAL_LOG_DAMAGED,
                             "the log changed while it was read: it ended at %" PRIu64
                             ", and now at %" PRIu64,
                             recv->end_lsn, batch->end_lsn);
        }
        TRY(err);
    }
    return DB_SUCCESS;
}

static dberr_t recv_apply_batches(recv_t *recv, log_reader_t *reader)
{
    recv_batch_t *batch = &recv->batch;
    while (batch->end_lsn < recv->end_lsn) {
        TRY(recv_batch_apply(recv, batch, false));
        TRY(recv_batch_fill(recv, batch, reader));
    }
    return batch->pages.n > 0 || batch->no > 0 ? recv_batch_apply(recv, batch, true) : DB_SUCCESS;
}

dberr_t recv_apply(recv_t *recv)
{
    log_reader_t *reader = NULL;
    dberr_t err = DB_SUCCESS;
    if (recv->batch.end_lsn < recv->end_lsn) {
        err = log_reader_create(recv->log, recv->batch.end_lsn, &reader);
    }
    AND_THEN(err, recv_apply_batches(recv, reader));
    log_reader_free(reader);
    return err;
}
