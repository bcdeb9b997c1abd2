/* The redo log's blocks: I20, I21.

Place: beside rules_slot.c, which judges the slots; above redo.c.

What each rule sees
  I20  a block that does not belong where it is written; one over [C of the durable checkpoint,
       end); one that takes back what the log held durably
  I21  a start that goes on without an epoch of its own, or with one that no durable slot has; a
       first block of an epoch that is not the one in which the log ends, cut there; more blocks
       before that one is fsynced

How far the log is durable: to the end of the last complete group that was there when the file was
fsynced last. */
#include "explorer/judge/rules_int.h"

#include <inttypes.h>
#include <string.h>

#include "base/mach.h"

static void tail_save(rules_t *rules)
{
    const byte *block =
        redo_block(&rules->redo, redo_offset(&rules->redo, lsn_block(rules->redo.end_lsn)));
    memcpy(rules->log.tail, block, LOG_BLOCK_SIZE);
}

static void log_listen(rules_t *rules, bool on)
{
    rules->redo.on_load = on ? rules_index_loaded : NULL;
    rules->redo.on_page = on ? rules_index_changed : NULL;
}

/** Opens what the file holds now. False: no log. */
static bool log_open_bytes(rules_t *rules, uint32_t inode, const redo_t *shared,
                           log_checkpoint_t *slot)
{
    log_listen(rules, false);
    if (!redo_open(&rules->redo, rules->image, inode, shared) || !redo_slot(&rules->redo, slot)) {
        return false;
    }
    rules->log.inode = inode;
    rules->page_size = rules->redo.info.page_size;
    redo_start(&rules->redo, slot->lsn);
    tail_save(rules);
    log_listen(rules, true);
    return true;
}

void rules_log_start(rules_t *rules, uint32_t inode, const rules_t *history)
{
    rules_log_t *log = &rules->log;
    *log = (rules_log_t){.inode = IMAGE_NONE};
    log_checkpoint_t slot;
    if (inode == IMAGE_NONE
        || !log_open_bytes(rules, inode, history != NULL ? &history->redo : NULL, &slot)) {
        return;
    }
    log->found = true;
    log->found_c = slot.lsn;
    log->found_end = rules->redo.end_lsn;
    /* The slot was written when its marker was durable. */
    log->durable =
        rules->cold ? redo_marker_end(&rules->redo, slot.marker_lsn, slot.lsn) : log->found_end;
    log->slot = slot;
    log->epoch = rules->redo.epoch > slot.epoch ? rules->redo.epoch : slot.epoch;
}

void rules_log_again(rules_t *rules)
{
    rules_log_t *log = &rules->log;
    log->found = true;
    log->found_c = log->slot_pending ? log->slot_written.lsn : log->slot.lsn;
    log->found_end = rules->redo.end_lsn;
    log->epoch_taken = false;
}

/** The header was written: a log of this process's own. */
static void log_created(rules_t *rules, uint32_t inode)
{
    rules_log_t *log = &rules->log;
    log_checkpoint_t slot;
    if (!log_open_bytes(rules, inode, NULL, &slot)) {
        return;
    }
    log->found = false;
    log->durable = 0;
    log->slot = (log_checkpoint_t){.no = 0};
    log->slot_written = slot;
    log->slot_pending = true;
    log->epoch = slot.epoch;
    log->epoch_taken = true;
    log->cut_unsynced = false;
}

/** The LSN that a block has which is written there next: the first one behind the end. */
static lsn_t next_lsn_at(const rules_t *rules, uint64_t offset)
{
    uint64_t area = rules->redo.info.file_size - LOG_FILE_HDR_SIZE;
    lsn_t end = lsn_block(rules->redo.end_lsn);
    uint64_t end_offset = redo_offset(&rules->redo, end);
    return end + (offset + area - end_offset) % area;
}

static void check_place(const rules_t *rules, uint64_t offset, lsn_t lsn, const byte *block)
{
    uint64_t area = rules->redo.info.file_size - LOG_FILE_HDR_SIZE;
    lsn_t end = rules->redo.end_lsn;
    lsn_t c = rules_c(rules);
    uint32_t kept = lsn == lsn_block(end) ? lsn_offset(end) : 0;
    if (mach_read_4(block + LOG_BLOCK_NO) != (uint32_t)(lsn / LOG_BLOCK_SIZE)) {
        rules_report(rules, RULES_NO_PAGE, 20, "log_place",
                     "block number %" PRIu32 " is written at %" PRIu64
                     " of the log, where LSN %" PRIu64 " belongs; its end is %" PRIu64,
                     mach_read_4(block + LOG_BLOCK_NO), offset, lsn, end);
    } else if (c != 0 && lsn - lsn_block(c) >= area) {
        rules_report(rules, RULES_NO_PAGE, 20, "log_overwrite",
                     "the log block of LSN %" PRIu64 " overwrites the checkpoint's LSN %" PRIu64,
                     lsn, c);
    } else if (kept > LOG_BLOCK_HDR_SIZE
               && (mach_read_2(block + LOG_BLOCK_USED) < kept
                   || memcmp(block + LOG_BLOCK_HDR_SIZE, rules->log.tail + LOG_BLOCK_HDR_SIZE,
                             kept - LOG_BLOCK_HDR_SIZE)
                          != 0)) {
        rules_report(rules, RULES_NO_PAGE, 20, "log_rewritten",
                     "the log block of LSN %" PRIu64
                     " takes back what lies before the end, %" PRIu64,
                     lsn, end);
    }
}

static void check_epoch(rules_t *rules, lsn_t lsn, const byte *block)
{
    rules_log_t *log = &rules->log;
    lsn_t end = rules->redo.end_lsn;
    uint32_t epoch = mach_read_4(block + LOG_BLOCK_EPOCH);
    bool is_cut = lsn == lsn_block(end) && mach_read_2(block + LOG_BLOCK_USED) == lsn_offset(end);
    if (epoch > log->slot.epoch) {
        rules_report(rules, RULES_NO_PAGE, 21, "log_epoch",
                     "the log block of LSN %" PRIu64 " has epoch %" PRIu32
                     ", the durable checkpoint slot %" PRIu32,
                     lsn, epoch, log->slot.epoch);
    } else if (epoch < log->epoch || (epoch == log->epoch && !log->epoch_taken)) {
        rules_report(rules, RULES_NO_PAGE, 21, "log_epoch",
                     "the log block of LSN %" PRIu64 " has epoch %" PRIu32
                     ", and the log had %" PRIu32 " before this start",
                     lsn, epoch, log->epoch);
    } else if (epoch > log->epoch && !is_cut) {
        rules_report(rules, RULES_NO_PAGE, 21, "log_cut",
                     "the log goes on at LSN %" PRIu64 " before its end at %" PRIu64 " was cut",
                     lsn, end);
    } else if (epoch == log->epoch && log->cut_unsynced) {
        rules_report(rules, RULES_NO_PAGE, 21, "log_cut",
                     "the log goes on at LSN %" PRIu64 " before the cut at its end is fsynced",
                     lsn);
    }
    log->cut_unsynced |= epoch > log->epoch;
    log->epoch_taken = true;
    log->epoch = epoch > log->epoch ? epoch : log->epoch;
}

static void blocks_written(rules_t *rules, uint64_t from, uint64_t end)
{
    uint64_t limit = rules->redo.info.file_size;
    end = end < limit ? end : limit;
    for (uint64_t at = from; at + LOG_BLOCK_SIZE <= end; at += LOG_BLOCK_SIZE) {
        const byte *block = redo_block(&rules->redo, at);
        lsn_t lsn = next_lsn_at(rules, at);
        check_place(rules, at, lsn, block);
        check_epoch(rules, lsn, block);
        redo_keep(&rules->redo, lsn, block);
    }
    redo_extend(&rules->redo);
    tail_save(rules);
}

/** Does [from, end) hold the last byte of the block? What was written in parts counts when that
comes. */
static bool block_ends_in(uint64_t block, uint64_t from, uint64_t end)
{
    return from < block + LOG_BLOCK_SIZE && block + LOG_BLOCK_SIZE <= end;
}

void rules_log_write(rules_t *rules, const fs_event_t *event)
{
    uint64_t from = event->offset;
    uint64_t end = event->offset + event->length;
    if (block_ends_in(LOG_HDR_OFFSET, from, end)) {
        log_created(rules, event->inode);
        for (uint64_t at = LOG_FILE_HDR_SIZE;
             rules->log.inode == event->inode && at + LOG_BLOCK_SIZE <= end; at += LOG_BLOCK_SIZE) {
            redo_keep(&rules->redo, rules->redo.info.start_lsn + (at - LOG_FILE_HDR_SIZE),
                      redo_block(&rules->redo, at));
        }
        return;
    }
    if (event->inode != rules->log.inode
        || image_size(rules->image, event->inode) < rules->redo.info.file_size) {
        return;
    }
    for (uint32_t slot = 0; slot < 2; slot++) {
        if (block_ends_in(LOG_SLOT_OFFSET(slot), from, end)) {
            rules_slot_write(rules, slot, redo_block(&rules->redo, LOG_SLOT_OFFSET(slot)));
        }
    }
    if (end > LOG_FILE_HDR_SIZE) {
        from = from < LOG_FILE_HDR_SIZE ? LOG_FILE_HDR_SIZE : from - from % LOG_BLOCK_SIZE;
        blocks_written(rules, from, end);
    }
}

void rules_log_sync(rules_t *rules)
{
    rules_log_t *log = &rules->log;
    log->durable = rules->redo.end_lsn;
    log->cut_unsynced = false;
    if (log->slot_pending) {
        log->slot = log->slot_written;
        log->slot_pending = false;
        rules_skips_passed(rules);
    }
    rules_index_durable(rules);
}

void rules_log_ahead(rules_t *rules, page_id_t id, lsn_t lsn, const char *where)
{
    if (lsn > rules->log.durable) {
        rules_report(rules, redo_key(id.space, id.page_no), 4, "write_ahead",
                     "page %" PRIu32 ":%" PRIu32 " of LSN %" PRIu64
                     " goes %s, and the log is durable to %" PRIu64,
                     id.space, id.page_no, lsn, where, rules->log.durable);
    }
}
