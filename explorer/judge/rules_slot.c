/* A checkpoint slot is written: I19, and what I23 and I24 ask of it.

Place: beside rules_log.c.

What the rule sees
  I19  a slot that is no slot, the one in force, or not newer; a marker that is not in the durable
       log; a C that is no start of a group; an epoch before the one in force; a page whose newest
       record before C is in no fsynced home write
What it does not ask for: pages that the durable log initialises or frees later, by themselves, with
their extent or with all of their space. A load that is given up leaves its pages unwritten when its
tree is freed. */
#include "explorer/judge/rules_int.h"

#include <inttypes.h>

typedef struct page_check {
    rules_t *rules;
    uint32_t n; /**< pages that are missing */
    uint64_t key;
    lsn_t wanted;
    lsn_t found;
} page_check_t;

/** Is what the record did needed no more? */
static bool record_is_dead(const rules_t *rules, uint64_t key, const redo_entry_t *last)
{
    const redo_entry_t *defined = redo_defined(&rules->redo, key, rules->log.durable);
    bool defined_later = defined != NULL
                         && (defined->end_lsn > last->end_lsn
                             || (defined->end_lsn == last->end_lsn && defined->kind == REDO_FREE));
    space_id_t space = key_space(key);
    return defined_later || redo_extent_freed(&rules->redo, key, last->end_lsn, rules->log.durable)
           || redo_trim_lsn(&rules->redo, space, rules->log.durable) > last->end_lsn
           || redo_space_deleted(&rules->redo, space, last->end_lsn, rules->log.durable);
}

static void check_page(void *ctx, uint64_t key, const redo_entry_t *last)
{
    page_check_t *check = ctx;
    const rules_page_t *page = rules_page_find(check->rules, key);
    lsn_t lsn = page != NULL ? page->durable_lsn : 0;
    if (lsn >= last->end_lsn) {
        return;
    }
    if (page == NULL || !page->written) {
        lsn = rules_home_in_image(check->rules, key);
    }
    if (lsn < last->end_lsn && !record_is_dead(check->rules, key, last)) {
        check->n++;
        check->key = key;
        check->wanted = last->end_lsn;
        check->found = lsn;
    }
}

static void check_pages(rules_t *rules, lsn_t c)
{
    page_check_t check = {.rules = rules};
    if (c > rules_c(rules)) {
        redo_each_page(&rules->redo, rules_c(rules), c, check_page, &check);
    }
    if (check.n > 0) {
        rules_report(
            rules, check.key, 19, "ckpt_pages",
            "the checkpoint at %" PRIu64 " passes page %" PRIu32 ":%" PRIu32 ", changed at %" PRIu64
            ", whose durable home has LSN %" PRIu64 " (%" PRIu32 " such pages)",
            c, key_space(check.key), key_page(check.key), check.wanted, check.found, check.n);
    }
}

static void check_slot(const rules_t *rules, uint32_t slot, const log_checkpoint_t *ckpt)
{
    const rules_log_t *log = &rules->log;
    bool in_force = log->slot.lsn != 0;
    if (ckpt->no % 2 != slot
        || (in_force
            && (ckpt->no <= log->slot.no || ckpt->no % 2 == log->slot.no % 2
                || ckpt->epoch < log->slot.epoch))) {
        rules_report(rules, RULES_NO_PAGE, 19, "ckpt_slot",
                     "checkpoint %" PRIu64 " of epoch %" PRIu32 " is written to slot %" PRIu32
                     "; the one in force is %" PRIu64 " of epoch %" PRIu32,
                     ckpt->no, ckpt->epoch, slot, log->slot.no, log->slot.epoch);
    }
    lsn_t marker_end = redo_marker_end(&rules->redo, ckpt->marker_lsn, ckpt->lsn);
    if (marker_end == 0 || marker_end > log->durable) {
        rules_report(rules, RULES_NO_PAGE, 19, "ckpt_marker",
                     "the marker of the checkpoint at %" PRIu64 " is not in the log at %" PRIu64
                     ", which is durable to %" PRIu64,
                     ckpt->lsn, ckpt->marker_lsn, log->durable);
    }
    if (ckpt->lsn < rules_c(rules) || !redo_is_boundary(&rules->redo, ckpt->lsn)) {
        rules_report(rules, RULES_NO_PAGE, 19, "ckpt_lsn",
                     "the checkpoint at %" PRIu64 " is behind the last one, %" PRIu64
                     ", or no start of a record group",
                     ckpt->lsn, rules_c(rules));
    }
}

void rules_slot_write(rules_t *rules, uint32_t slot, const byte *block)
{
    log_checkpoint_t ckpt;
    if (!log_checkpoint_decode(block, &ckpt)) {
        rules_report(rules, RULES_NO_PAGE, 19, "ckpt_slot",
                     "what is written to checkpoint slot %" PRIu32 " is no slot", slot);
        return;
    }
    if (rules->failed[0] != '\0') {
        rules_report(rules, RULES_NO_PAGE, 23, "failed_io",
                     "checkpoint %" PRIu64 " after a failed operation on %s", ckpt.no,
                     rules->failed);
    }
    check_slot(rules, slot, &ckpt);
    check_pages(rules, ckpt.lsn);
    rules_file_check(rules, ckpt.lsn, "the checkpoint passes its record");
    rules->log.slot_written = ckpt;
    rules->log.slot_pending = true;
}
