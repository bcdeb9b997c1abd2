/* Home writes: I4, I5, I13, I22.

Place: above rules_area.c and rules_pages.c, below rules.c.

What each rule sees
  I4   a page goes home with an LSN beyond the durable log
  I5   what goes home is no page of its place; a write of a part of a page is left to the crash
       states
  I13  a page goes home, doublewrite is on, the storage promises no whole pages, and the area holds
       no identical copy: not at the first home write since an initialisation in the log, that one
       not at or after C, an INDEX_LOAD of the space at or after C, or an LSN at which no record of
       the page ends. rules_index.c sees an INDEX_LOAD that comes later.
  I15  zeros go over a page that the durable log does not free; with a log of all frees, a page
       whose free is in the log goes home all the same (the 10.4 format has that), unless recovery
       restores it
  I29  a hole is punched that is neither over a page that the durable log frees nor behind what the
       durable home of a compressed page stores
  I22  the identical copy is not fsynced, also one that was found after a kill; rules_area.c sees
       one that is overwritten too early */
#include "explorer/judge/rules_int.h"

#include <inttypes.h>
#include <string.h>

#include "base/mach.h"
#include "page/page_blob.h"
#include "page/page_compress.h"
#include "page/page_index.h"

#define DICT_INDEX_MAX 32U /* ids below belong to the catalogue's own trees */

void rules_home_before(rules_t *rules, uint32_t inode, const char *path, page_no_t page_no)
{
    rules_datafile_t *file = rules_datafile(rules, inode, path);
    file->written = true;
    if (!file->known) {
        return;
    }
    rules_page_t *page = rules_page(rules, redo_key(file->space, page_no));
    if (!page->written) {
        page->durable_lsn = rules_home_in_image(rules, page->key);
    }
}

/** The initialisation or free of a page as it was when it was copied: a page in flight may be
freed, and given out again, before it is home. */
static const redo_entry_t *defined_at(const rules_t *rules, const rules_page_t *page, lsn_t lsn)
{
    return redo_defined(&rules->redo, page->key, lsn);
}

/** Why doublewrite must not be skipped; NULL: it may be. */
static const char *skip_is_wrong(const rules_t *rules, const rules_page_t *page, lsn_t lsn)
{
    const redo_t *redo = &rules->redo;
    const rules_log_t *log = &rules->log;
    const redo_entry_t *init = defined_at(rules, page, lsn);
    lsn_t c = log->slot_pending && log->slot_written.lsn > log->slot.lsn ? log->slot_written.lsn
                                                                         : log->slot.lsn;
    if (init == NULL || init->kind != REDO_INIT) {
        return "the log does not initialise it";
    }
    if (init->start_lsn < c) {
        return "its initialisation is behind the checkpoint";
    }
    if (!redo_has_record(redo, page->key, lsn)) {
        return "it was changed without a record";
    }
    /* What a recovery found initialised behind C it builds from there, whatever the home page is,
    and so would the next one: the page may go home without a copy again, also after its restore
    from an older one. */
    bool rebuilt = log->found && init->end_lsn <= log->found_end;
    if (page->written && page->home_lsn >= init->end_lsn && !rebuilt) {
        return "it was written since its initialisation";
    }
    if (redo_space_load(redo, key_space(page->key), rules_c(rules), LSN_MAX) != 0) {
        return "its space has an INDEX_LOAD behind the checkpoint";
    }
    return NULL;
}

/** What recovery builds from the log, or a new database begins with, may equal a copy that was
found, and does not need it. @return whether the write relies on a copy */
static bool check_copy(rules_t *rules, const rules_page_t *page, lsn_t lsn,
                       const copy_match_t *copy)
{
    space_id_t space = key_space(page->key);
    page_no_t page_no = key_page(page->key);
    const char *wrong = copy->exists && !copy->found ? NULL : skip_is_wrong(rules, page, lsn);
    bool needed = copy->exists && !(copy->found && wrong == NULL);
    if (wrong == NULL && !needed && !copy->durable) {
        const redo_entry_t *init = defined_at(rules, page, lsn);
        *REDO_PUSH(&rules->skips) = (rules_skip_t){page->key, init->start_lsn, init->end_lsn};
    }
    if (wrong != NULL && !copy->exists) {
        rules_report(rules, page->key, 13, "dblwr_skip",
                     "page %" PRIu32 ":%" PRIu32 " of LSN %" PRIu64
                     " goes home without a copy in the area: %s (C is %" PRIu64 ")",
                     space, page_no, lsn, wrong, rules_c(rules));
    }
    if (needed && !copy->durable) {
        rules_report(rules, page->key, 22, "area_sync",
                     "page %" PRIu32 ":%" PRIu32 " of LSN %" PRIu64
                     " goes home before its copy in the area is fsynced",
                     space, page_no, lsn);
    }
    return needed;
}

/** The index that a page belongs to. */
static index_id_t index_of(const byte *bytes)
{
    return fil_page_get_type(bytes) == FIL_PAGE_TYPE_BLOB ? mach_read_8(bytes + BLOB_INDEX_ID)
                                                          : page_index_id(bytes);
}

static fs_site_t site_of(const byte *bytes, bool unlogged)
{
    uint32_t type = fil_page_get_type(bytes);
    if (type == FIL_PAGE_UNDO_LOG) {
        return SITE_UNDO_PAGE;
    }
    if (type != FIL_PAGE_INDEX && type != FIL_PAGE_TYPE_BLOB) {
        return SITE_SYSTEM_PAGE;
    }
    if (unlogged) {
        return SITE_INDEX_LOAD_PAGE;
    }
    if (type == FIL_PAGE_TYPE_BLOB) {
        return SITE_DATA_PAGE;
    }
    if (page_index_id(bytes) < DICT_INDEX_MAX) {
        return SITE_DICT_PAGE;
    }
    return page_level(bytes) > 0 ? SITE_INTERNAL_PAGE : SITE_DATA_PAGE;
}

/** The page as it was before it was compressed, if it is. */
static const byte *plain_of(const rules_t *rules, const byte *stored)
{
    if (fil_page_get_type(stored) != FIL_PAGE_PAGE_COMPRESSED) {
        return stored;
    }
    memcpy(rules->plain, stored, rules->page_size);
    page_decompress(rules->plain, rules->page_size);
    return rules->plain;
}

void rules_home_elsewhere(rules_t *rules, fs_event_t *event)
{
    uint32_t page_size = rules->page_size;
    if (page_size == 0 || event->length != page_size || event->offset % page_size != 0) {
        return;
    }
    uint64_t no = event->offset / page_size;
    const byte *bytes = plain_of(rules, rules_stored(rules, event->inode, no, rules->home));
    event->site = no == 0 ? SITE_PAGE0 : site_of(bytes, false);
}

/** The page was initialised or freed since its place was written last. */
static bool is_first_flush(const rules_t *rules, const rules_page_t *page)
{
    const redo_entry_t *defined = redo_defined(&rules->redo, page->key, rules->redo.end_lsn);
    lsn_t last = page->written ? page->home_lsn : page->durable_lsn;
    return defined != NULL && defined->end_lsn > last;
}

static void home_add(rules_t *rules, rules_page_t *page, uint32_t inode, uint32_t copy, lsn_t lsn,
                     index_id_t unlogged)
{
    rules_home_t *home = REDO_PUSH(&rules->homes);
    *home = (rules_home_t){.page = (uint32_t)(page - rules->pages.items),
                           .inode = inode,
                           .copy = copy,
                           .lsn = lsn,
                           .unlogged = unlogged};
    if (copy != 0) {
        rules_copy_pin(rules, copy - 1, page->key);
    }
    page->written = page->touched = true;
    page->read = false;
    page->home_lsn = lsn;
    if (unlogged != 0) { /* stays so until a record relies on the page, or defines it */
        page->unlogged = unlogged;
        page->late = rules_index_written(rules, unlogged);
    }
}

static bool is_free_at(const rules_t *rules, uint64_t key, lsn_t limit)
{
    const redo_entry_t *last = redo_last(&rules->redo, key, limit);
    return last != NULL && last->kind == REDO_FREE;
}

/** Now, and to a recovery. A page that was given out, and freed once more before anybody created
it, has been free to both all the while. */
static bool is_durably_free(const rules_t *rules, const rules_datafile_t *file, page_no_t page_no)
{
    uint64_t key = redo_key(file->space, page_no);
    return file->known && is_free_at(rules, key, LSN_MAX)
           && is_free_at(rules, key, rules->log.durable);
}

/** Zeros: the page must be free, and stay so after a crash. */
static void judge_scrub(rules_t *rules, fs_event_t *event, const char *path, page_no_t page_no)
{
    const rules_datafile_t *file = rules_datafile(rules, event->inode, path);
    event->site = SITE_FREED_PAGE;
    if (!is_durably_free(rules, file, page_no)) {
        rules_report(rules, RULES_NO_PAGE, 15, "scrubbed_page",
                     "zeros are written over page %" PRIu32 " of %.120s, which the log, durable to "
                     "%" PRIu64 ", does not free",
                     page_no, path, rules->log.durable);
    }
}

/** Does the page's home, all of it durable, need less than `from` bytes? */
static bool is_behind_payload(rules_t *rules, uint32_t inode, uint64_t key, uint32_t from)
{
    uint64_t at = (uint64_t)key_page(key) * rules->page_size;
    bool durable = true;
    for (uint32_t i = 0; durable && i < rules->homes.n; i++) {
        durable = rules->pages.items[rules->homes.items[i].page].key != key;
    }
    return durable && image_size(rules->image, inode) >= at + rules->page_size
           && page_stored_bytes(rules_stored(rules, inode, key_page(key), rules->home),
                                rules->page_size)
                  <= from;
}

void rules_home_punch(rules_t *rules, const fs_event_t *event, const char *path)
{
    const rules_datafile_t *file = rules_datafile(rules, event->inode, path);
    uint32_t page_size = rules->page_size;
    if (page_size == 0) {
        return;
    }
    page_no_t page_no = (page_no_t)(event->offset / page_size);
    uint32_t from = (uint32_t)(event->offset % page_size);
    bool one = from + event->length == page_size;
    bool free = one && is_durably_free(rules, file, page_no);
    if (!free
        && !(one && file->known
             && is_behind_payload(rules, event->inode, redo_key(file->space, page_no), from))) {
        rules_report(rules, RULES_NO_PAGE, 29, "hole",
                     "a hole of %" PRIu64 " bytes at byte %" PRIu32 " of page %" PRIu32
                     " of %.120s, which is not free, and whose durable home may need them",
                     event->length, from, page_no, path);
    }
}

/** Only a recovery that restores it may write a page that the log frees, if the log says that of
all of them. */
static void check_freed(const rules_t *rules, uint64_t key, bool restored)
{
    const redo_entry_t *last = redo_last(&rules->redo, key, LSN_MAX);
    if (last != NULL && last->kind == REDO_FREE && rules->redo.format->all_frees && !restored) {
        rules_report(rules, key, 15, "freed_page",
                     "page %" PRIu32 ":%" PRIu32 " goes home, and the log frees it at %" PRIu64,
                     key_space(key), key_page(key), last->end_lsn);
    }
}

static void report_no_page(const rules_t *rules, const rules_datafile_t *file, const char *path,
                           page_no_t page_no, page_verdict_t verdict)
{
    if (file->known) {
        rules_report(rules, redo_key(file->space, page_no), 5, "home_page",
                     "what is written to page %" PRIu32 " of %.120s is not page %" PRIu32
                     ":%" PRIu32 ": %s",
                     page_no, path, file->space, page_no, page_verdict_name(verdict));
    } else {
        rules_report(rules, RULES_NO_PAGE, 5, "home_page",
                     "page %" PRIu32 " of %.120s is written, and whose file that is neither the "
                     "log says nor the page 0 that was found in it",
                     page_no, path);
    }
}

static void judge_home(rules_t *rules, fs_event_t *event, const char *path, page_no_t page_no)
{
    const byte *stored = rules_stored(rules, event->inode, page_no, rules->home);
    const byte *bytes = plain_of(rules, stored);
    const rules_datafile_t *file = rules_datafile(rules, event->inode, path);
    page_id_t id = {file->space, page_no};
    page_verdict_t verdict = fil_page_verify(bytes, rules->page_size, id);
    if (verdict == PAGE_ZERO) {
        judge_scrub(rules, event, path, page_no);
        return;
    }
    if (!file->known || verdict != PAGE_OK) {
        report_no_page(rules, file, path, page_no, verdict);
        return;
    }
    rules_page_t *page = rules_page(rules, redo_key(id.space, page_no));
    lsn_t lsn = fil_page_get_lsn(bytes);
    rules_log_ahead(rules, id, lsn, "home");
    copy_match_t copy = {.exists = false};
    bool needed = false;
    if (rules->config.doublewrite && rules->config.atomic_unit < rules->page_size) {
        copy = rules_copy_match(rules, page, stored);
        needed = check_copy(rules, page, lsn, &copy);
    }
    bool restored = copy.found;
    check_freed(rules, page->key, restored);
    if (rules->log.found && !page->touched) {
        rules_recv_write(rules, page, restored);
    }
    uint32_t type = fil_page_get_type(bytes);
    bool of_index = type == FIL_PAGE_INDEX || type == FIL_PAGE_TYPE_BLOB;
    bool unlogged = rules->journal && of_index && lsn >= rules->redo.from_lsn
                    && !redo_has_record(&rules->redo, page->key, lsn);
    event->site = page_no == 0 ? SITE_PAGE0 : restored ? SITE_OTHER : site_of(bytes, unlogged);
    event->first_flush = is_first_flush(rules, page);
    home_add(rules, page, event->inode, needed ? copy.position + 1 : 0, lsn,
             unlogged ? index_of(bytes) : 0);
}

/** Less than a page is written: all that has to be stored of a compressed one? */
static bool is_whole_compressed(const rules_t *rules, const fs_event_t *event)
{
    uint64_t size = image_size(rules->image, event->inode);
    return size - event->offset >= rules->page_size
           && page_stored_bytes(
                  rules_stored(rules, event->inode, event->offset / rules->page_size, rules->home),
                  rules->page_size)
                  == event->length;
}

void rules_home_write(rules_t *rules, fs_event_t *event, const char *path)
{
    uint32_t page_size = rules->page_size;
    if (page_size == 0 || event->length == 0) {
        rules_datafile(rules, event->inode, path)->written |= event->length > 0;
        return;
    }
    uint64_t end = event->offset + event->length;
    uint64_t no = event->offset / page_size;
    for (; (no + 1) * page_size <= end; no++) {
        judge_home(rules, event, path, (page_no_t)no);
    }
    if (event->offset == no * page_size && is_whole_compressed(rules, event)) {
        judge_home(rules, event, path, (page_no_t)no);
    }
}

/** Drops home writes of an inode from the list. */
static void homes_drop(rules_t *rules, uint32_t inode, bool durable)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rules->homes.n; i++) {
        const rules_home_t *home = &rules->homes.items[i];
        if (home->inode != inode) {
            rules->homes.items[kept++] = *home;
            continue;
        }
        rules_page_t *page = &rules->pages.items[home->page];
        if (home->copy != 0 && rules->copies.items[home->copy - 1].pins > 0) {
            rules->copies.items[home->copy - 1].pins--;
        }
        page->durable_lsn = durable ? home->lsn : page->durable_lsn;
    }
    rules->homes.n = kept;
}

void rules_home_sync(rules_t *rules, uint32_t inode)
{
    homes_drop(rules, inode, true);
}

void rules_home_gone(rules_t *rules, uint32_t inode)
{
    homes_drop(rules, inode, false);
}

void rules_skips_passed(rules_t *rules)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rules->skips.n; i++) {
        if (rules->skips.items[i].init_start >= rules_c(rules)) {
            rules->skips.items[kept++] = rules->skips.items[i];
        }
    }
    rules->skips.n = kept;
}
