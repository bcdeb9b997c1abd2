/** Checkpoints, the page cleaning that keeps the log from running into them, and the points at
which others work: a checkpoint waits at yield points, and at a yield point a checkpoint may be
taken.

Place: above buf_flush.c and buf_batch.c; the log module only writes the slot that this file tells
it to.

A yield point is a place at which a thread would wait, or could be passed by another. What happens
there is drawn from the schedule: nothing, one step of the batch in flight, a new batch of the
oldest dirty pages, or a checkpoint, as InnoDB's master thread takes them at any moment; now and
then a full one, whose C no dirty page holds back. So other work, half-finished batches and
checkpoints meet in every order, and in the same one when the run is repeated.

Invariants
1. (I19) the order is: C; fsync of all data files; FILE_NAME records and CHECKPOINT(C) as one
   record group; log fsync; slot write; slot fsync. C comes first: a change older than C was
   written home before C was chosen, so the fsync that follows covers it. Choosing C later would
   count in pages that the cleaner has written after the fsync: it works between the steps here;
2. every space with a change at or after C has its FILE_NAME at or after C: in the marker's group,
   or in front of the first later mtr that touches it (fil_space->named);
3. (I20) no mtr and no file operation starts unless its records fit between the end of the log and
   the checkpoint;
4. a yield point changes nothing that a caller without the page's latch could see: pages go home,
   and may leave the pool if nobody has pinned them; their contents do not change;
5. no page is pinned where a checkpoint is taken, and none is taken within another. */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "buf/buf_int.h"

static bool buf_checkpoint_names(const fil_space_t *space, lsn_t c)
{
    return space->id != SPACE_SYSTEM && space->max_lsn >= c;
}

/** Upper bound of the bytes of a marker group, log block overhead excluded. */
static size_t buf_checkpoint_group_max(const buf_pool_t *pool)
{
    fil_names_t names = fil_names(pool->fil);
    return (size_t)(names.n + 2) * LOG_REC_OVERHEAD_MAX + names.path_bytes;
}

static dberr_t buf_checkpoint_log_marker(buf_pool_t *pool, lsn_t c, lsn_t *marker_lsn)
{
    redo_group_t group;
    redo_group_init(&group, log_format(pool->log));
    pool->ckpt_names = false;
    for (fil_space_t *space = fil_first(pool->fil); space != NULL; space = space->next) {
        space->named = !pool->ends && buf_checkpoint_names(space, c);
        pool->ckpt_names |= space->named;
        if (space->named) {
            redo_rec_t name = {.op = OP_FILE_NAME,
                               .space = space->id,
                               .path = space->path,
                               .path_len = (uint32_t)strlen(space->path)};
            redo_group_add(&group, &name);
        }
    }
    redo_rec_t marker = {.op = OP_CHECKPOINT, .value = c};
    redo_group_add(&group, &marker);
    redo_group_finish(&group);
    log_append(pool->log, group.bytes, group.len, marker_lsn, &pool->ckpt_end_lsn);
    redo_group_free(&group);
    return log_write_up_to(pool->log, pool->ckpt_end_lsn, true);
}

/** What a slot says. */
static log_loads_t buf_slot_loads(const buf_pool_t *pool)
{
    if (pool->ddl_mixed) {
        return LOG_LOADS_MIXED;
    }
    return pool->log_optimize_ddl ? LOG_LOADS_UNLOGGED : LOG_LOADS_LOGGED;
}

/** Would a checkpoint now say nothing new? */
static bool buf_checkpoint_is_current(const buf_pool_t *pool)
{
    if (log_lsn(pool->log) != pool->ckpt_end_lsn || (pool->ends && pool->ckpt_names)
        || log_last_checkpoint(pool->log)->loads != buf_slot_loads(pool)) {
        return false;
    }
    lsn_t oldest = buf_oldest_modification(pool);
    return oldest == 0 ? pool->ckpt_sharp : oldest == log_checkpoint_lsn(pool->log);
}

dberr_t buf_sync_wait(buf_pool_t *pool, fil_space_t *space)
{
    fil_sync_t sync;
    dberr_t err = fil_sync_begin(pool->fil, space, &sync);
    uint32_t n = sync.space != NULL ? 1 + sched_draw(&pool->env->sched, 2 * BUF_SYNC_STEPS) : 0;
    TRY(err);
    for (uint32_t i = 0; i < n; i++) {
        TRY(buf_yield(pool));
    }
    return fil_sync_end(pool->fil, &sync);
}

static dberr_t buf_checkpoint_sync(buf_pool_t *pool)
{
    fil_space_t *space = fil_first(pool->fil);
    while (space != NULL) {
        TRY(buf_sync_wait(pool, space));
        space = space->next;
    }
    return DB_SUCCESS;
}

/** What must be durable before the slot says C: the data files, then the marker. */
static dberr_t buf_checkpoint_prepare(buf_pool_t *pool, lsn_t c, lsn_t *marker_lsn)
{
    TRY(buf_yield(pool));
    TRY(buf_checkpoint_sync(pool));
    PROBE_POINT(pool->env->probe, "ckpt.data_synced");
    TRY(buf_yield(pool));
    TRY(buf_checkpoint_log_marker(pool, c, marker_lsn));
    PROBE_POINT(pool->env->probe, "ckpt.marker_durable");
    return buf_yield(pool);
}

dberr_t buf_checkpoint(buf_pool_t *pool)
{
    CHECK(pool->n_fixed == 0);
    env_t *env = pool->env;
    if (env->io_failed) {
        return err_set(&env->err, DB_IO_ERROR, "no checkpoint after a failed file operation");
    }
    if (buf_checkpoint_is_current(pool)) {
        return DB_SUCCESS;
    }
    lsn_t oldest = buf_oldest_modification(pool);
    lsn_t c = oldest != 0 ? oldest : log_lsn(pool->log);
    pool->in_checkpoint = true;
    lsn_t marker_lsn = 0;
    dberr_t err = buf_checkpoint_prepare(pool, c, &marker_lsn);
    pool->in_checkpoint = false;
    if (err == DB_SUCCESS && pool->copier.step != NULL) {
        pool->copier.before_slot(pool->copier.ctx);
    }
    TRY(err);
    env->stats.checkpoints_amid_batch += pool->batch.state != BATCH_NONE;
    TRY(log_checkpoint_write(pool->log, c, marker_lsn, buf_slot_loads(pool)));
    pool->ckpt_sharp = oldest == 0;
    return DB_SUCCESS;
}

dberr_t buf_checkpoint_full(buf_pool_t *pool)
{
    TRY(buf_flush_all(pool));
    return buf_checkpoint(pool);
}

dberr_t buf_checkpoint_last(buf_pool_t *pool)
{
    pool->ends = true;
    return buf_checkpoint_full(pool);
}

/** Bytes of log, block overhead included, that one mtr, an allocation mtr beside it and the next
checkpoint's marker may need. */
static uint64_t buf_log_reserve(const buf_pool_t *pool)
{
    uint64_t payload = 2ULL * MTR_LOG_MAX_PAGES * pool->page_size + buf_checkpoint_group_max(pool);
    return (payload / LOG_BLOCK_PAYLOAD + 2) * LOG_BLOCK_SIZE;
}

static uint64_t buf_log_age(const buf_pool_t *pool)
{
    return log_lsn(pool->log) - log_checkpoint_lsn(pool->log);
}

/** Brings the age below what leaves room for the reserve: flushes as far as half of the capacity,
so that the next checkpoint is not due at once. */
static dberr_t buf_log_make_room(buf_pool_t *pool, uint64_t reserve)
{
    uint64_t capacity = log_capacity(pool->log);
    uint64_t keep = capacity / 2 < capacity - reserve ? capacity / 2 : capacity - reserve;
    lsn_t lsn = log_lsn(pool->log);
    lsn_t limit = lsn > keep ? lsn - keep : 0;
    pool->env->stats.log_room_waits++;
    uint32_t n = 0;
    do {
        TRY(buf_flush_list(pool, BUF_CLEANER_STEP_PAGES, limit, &n));
    } while (n > 0);
    return buf_checkpoint(pool);
}

/** One step ahead of need: writes some of the oldest pages, and checkpoints once that is worth its
fsyncs. */
static dberr_t buf_log_clean_ahead(buf_pool_t *pool)
{
    uint64_t capacity = log_capacity(pool->log);
    lsn_t limit = log_lsn(pool->log) - capacity / 2;
    dberr_t err = buf_flush_list(pool, BUF_CLEANER_STEP_PAGES, limit, NULL);
    lsn_t oldest = buf_oldest_modification(pool);
    TRY(err);
    if (oldest == 0 || oldest >= limit) {
        TRY(buf_checkpoint(pool));
    }
    return DB_SUCCESS;
}

/** Makes room for the reserve, if need be. */
static dberr_t buf_log_ask(buf_pool_t *pool)
{
    CHECK(pool->n_fixed == 0);
    if (pool->env->io_failed) {
        return err_set(&pool->env->err, DB_IO_ERROR, "no changes after a failed file operation");
    }
    TRY(buf_yield(pool));
    uint64_t capacity = log_capacity(pool->log);
    uint64_t reserve = buf_log_reserve(pool);
    if (reserve >= capacity) {
        return err_set(&pool->env->err, DB_OUT_OF_SPACE,
                       "the log's %" PRIu64 " bytes are too few for this number of tables",
                       capacity);
    }
    if (buf_log_age(pool) + reserve > capacity) {
        TRY(buf_log_make_room(pool, reserve));
        /* The marker itself took some room; a second, sharp one leaves nothing but itself. */
        if (buf_log_age(pool) + reserve > capacity) {
            TRY(buf_checkpoint_full(pool));
        }
        if (buf_log_age(pool) + reserve > capacity) {
            return err_set(&pool->env->err, DB_OUT_OF_SPACE,
                           "the log's %" PRIu64 " bytes are too few for this number of tables",
                           capacity);
        }
        return DB_SUCCESS;
    }
    if (buf_log_age(pool) > capacity / 4 * 3) {
        return buf_log_clean_ahead(pool);
    }
    return DB_SUCCESS;
}

dberr_t buf_log_free_check(buf_pool_t *pool)
{
    TRY(buf_log_ask(pool));
    log_reserve(pool->log, buf_log_reserve(pool));
    return DB_SUCCESS;
}

/* ---- yield points ---- */

/** Pages that a batch of the page cleaner has at most. */
static uint32_t buf_cleaner_max(const buf_pool_t *pool)
{
    return pool->dblwr_pages < BUF_CLEANER_STEP_PAGES ? pool->dblwr_pages : BUF_CLEANER_STEP_PAGES;
}

/** Starts a batch of the oldest dirty pages, if there are any. */
static void buf_cleaner_start(buf_pool_t *pool, uint32_t wanted)
{
    buf_block_t *chosen[BUF_CLEANER_STEP_PAGES];
    uint32_t n = 0;
    for (buf_block_t *block = pool->flush_first; block != NULL && n < wanted;
         block = block->flush_next) {
        if (block->fix_count == 0) {
            chosen[n++] = block;
        }
    }
    if (n > 0) {
        buf_batch_submit(pool, chosen, n);
    }
}

/** An fsync under way takes its time: the step that ends it may have to wait for several turns. */
static dberr_t buf_cleaner_step(buf_pool_t *pool)
{
    if (pool->scrub.n > 0 && sched_draw(&pool->env->sched, BUF_SCRUB_STEPS) == 0) {
        return buf_scrub_pages(pool, 1 + sched_draw(&pool->env->sched, BUF_SCRUB_STEPS));
    }
    if (pool->batch.state == BATCH_NONE) {
        buf_cleaner_start(pool, 1 + sched_draw(&pool->env->sched, buf_cleaner_max(pool)));
        return DB_SUCCESS;
    }
    if (pool->batch.state == BATCH_SYNCING && sched_draw(&pool->env->sched, BUF_SYNC_STEPS) != 0) {
        return DB_SUCCESS;
    }
    return buf_batch_step(pool);
}

void buf_set_copier(buf_pool_t *pool, const buf_copier_t *copier)
{
    pool->copier = copier != NULL ? *copier : (buf_copier_t){.step = NULL};
}

void buf_place(buf_pool_t *pool, buf_act_t act, uint32_t n)
{
    CHECK(n > 0);
    pool->placed.act = act;
    pool->placed.left = n;
}

/** Starts a batch that makes a step at each yield point from here on. */
static dberr_t buf_placed_clean(buf_pool_t *pool)
{
    pool->placed.cleans = true;
    if (pool->batch.state == BATCH_NONE) {
        buf_cleaner_start(pool, buf_cleaner_max(pool));
        return DB_SUCCESS;
    }
    return buf_batch_step(pool);
}

/** Fills the log with groups that change nothing, as far as others could have: the next who asks
for room gets it by a checkpoint. Room for that one's marker stays. */
static void buf_placed_fill(buf_pool_t *pool)
{
    redo_group_t group;
    redo_group_init(&group, log_format(pool->log));
    for (const fil_space_t *space = fil_first(pool->fil); space != NULL; space = space->next) {
        redo_rec_t name = {.op = OP_FILE_NAME,
                           .space = space->id,
                           .path = space->path,
                           .path_len = (uint32_t)strlen(space->path)};
        for (uint32_t i = 0; space->id != SPACE_SYSTEM && i < BUF_FILL_NAMES; i++) {
            redo_group_add(&group, &name);
        }
    }
    if (group.len == 0) {
        return; /* no table has a file: nothing to name, and nobody to fill it */
    }
    redo_group_finish(&group);
    uint64_t kept =
        buf_checkpoint_group_max(pool) + group.len + (uint64_t)BUF_FILL_BLOCKS * LOG_BLOCK_SIZE;
    while (buf_log_age(pool) + kept <= log_age_max(pool->log)) {
        log_append(pool->log, group.bytes, group.len, NULL, NULL);
    }
    redo_group_free(&group);
}

/** Does what was placed here, unless it must wait for a checkpoint's end, or for a page. */
static dberr_t buf_placed_do(buf_pool_t *pool)
{
    stats_t *stats = &pool->env->stats;
    buf_act_t act = pool->placed.act;
    bool is_checkpoint = act == BUF_ACT_CHECKPOINT || act == BUF_ACT_CHECKPOINT_FULL;
    bool waits = is_checkpoint || act == BUF_ACT_FILL;
    if (waits && (pool->in_checkpoint || pool->n_fixed > 0)) {
        return DB_SUCCESS;
    }
    pool->placed.act = BUF_ACT_NONE;
    PROBE_MARK(pool->env->probe, "placed act=%d", (int)act);
    stats->placed_checkpoints += is_checkpoint;
    stats->placed_cleans += act == BUF_ACT_CLEAN;
    stats->placed_evictions += act == BUF_ACT_EVICT;
    stats->placed_fills += act == BUF_ACT_FILL;
    stats->full_checkpoints_amid += act == BUF_ACT_CHECKPOINT_FULL;
    if (is_checkpoint) {
        return act == BUF_ACT_CHECKPOINT ? buf_checkpoint(pool) : buf_checkpoint_full(pool);
    }
    if (act == BUF_ACT_FILL) {
        buf_placed_fill(pool);
        return DB_SUCCESS;
    }
    return act == BUF_ACT_CLEAN ? buf_placed_clean(pool) : buf_lru_evict_all(pool);
}

/** What a script has placed: now, or at one of the next yield points. True: that is all here. */
static bool buf_placed_turn(buf_pool_t *pool, dberr_t *err)
{
    pool->placed.left -= pool->placed.left > 0;
    if (pool->placed.act != BUF_ACT_NONE && pool->placed.left == 0) {
        *err = buf_placed_do(pool);
        return true;
    }
    pool->placed.cleans = pool->placed.cleans && pool->batch.state != BATCH_NONE;
    if (pool->placed.cleans) {
        *err = buf_batch_step(pool);
    }
    return pool->placed.cleans;
}

dberr_t buf_yield(buf_pool_t *pool)
{
    sched_t *sched = &pool->env->sched;
    pool->env->stats.yield_points++;
    if (pool->copier.step != NULL) {
        pool->copier.step(pool->copier.ctx);
    }
    dberr_t err = DB_SUCCESS;
    if (buf_placed_turn(pool, &err)) {
        return err;
    }
    if (pool->cleaner_interval == 0 || sched_draw(sched, pool->cleaner_interval) != 0) {
        return DB_SUCCESS;
    }
    bool is_turn = sched_draw(sched, BUF_CLEANER_CHECKPOINT) == 0;
    if (!is_turn || pool->in_checkpoint || pool->n_fixed > 0) {
        return buf_cleaner_step(pool);
    }
    if (sched_draw(sched, BUF_CLEANER_FULL) != 0) {
        return buf_checkpoint(pool);
    }
    pool->env->stats.full_checkpoints_amid++;
    return buf_checkpoint_full(pool);
}

/** Until the log is durable up to lsn, or it is this caller's turn to fsync it. */
static dberr_t buf_log_sync_turns(buf_pool_t *pool, lsn_t lsn)
{
    stats_t *stats = &pool->env->stats;
    uint64_t before = stats->data_writes + stats->os_log_written;
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = 0; err == DB_SUCCESS && i < BUF_SYNC_STEPS; i++) {
        if (log_flushed_lsn(pool->log) >= lsn) {
            break;
        }
        err = buf_yield(pool);
    }
    stats->log_waits_overtaken += stats->data_writes + stats->os_log_written != before;
    return err;
}

dberr_t buf_log_wait(buf_pool_t *pool, lsn_t lsn, bool sync)
{
    TRY(buf_yield(pool));
    TRY(log_write_up_to(pool->log, lsn, false));
    if (!sync) {
        return DB_SUCCESS;
    }
    TRY(buf_log_sync_turns(pool, lsn));
    return log_write_up_to(pool->log, lsn, true);
}
