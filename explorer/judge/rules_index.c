/* Index loads without redo: I16, and what INDEX_LOAD takes from pages that skipped doublewrite (I13).

Place: beside rules_home.c; hears of INDEX_LOAD while the log is read.

What each rule sees
  I13  an INDEX_LOAD while a page of its space that skipped doublewrite rests on an initialisation at or after C
  I16  when INDEX_LOAD becomes durable, a page of the index that was written without a record and is not fsynced; such a
       write after that; a record that changes such a page without an INDEX_LOAD before it

A build may take many statements, and one that is given up leaves pages unwritten, logs INDEX_LOAD too, and its index is
dropped. So the first two are held until the index is known to live: a statement that began and finished it is
acknowledged, or a record changes a page of it. A page that the log frees or initialises later is not asked for. */
#include "explorer/judge/rules_int.h"

#include <inttypes.h>
#include <stdio.h>

static rules_index_t *index_find(rules_t *rules, index_id_t id)
{
    for (uint32_t i = rules->indexes.n; i-- > 0;) {
        if (rules->indexes.items[i].id == id) {
            return &rules->indexes.items[i];
        }
    }
    return NULL;
}

/** The index, which belongs to the statement under way if it was not heard of before. NULL: no statements are told
of. */
static rules_index_t *index_see(rules_t *rules, index_id_t id)
{
    rules_index_t *index = index_find(rules, id);
    if (index == NULL && rules->journal) {
        index = REDO_PUSH(&rules->indexes);
        *index = (rules_index_t){.id = id, .line = rules->line};
    }
    return index;
}

void rules_index_created(void *ctx, index_id_t id)
{
    (void)index_see(ctx, id);
}

void rules_index_loaded(void *ctx, const redo_load_t *load)
{
    rules_t *rules = ctx;
    rules_index_t *index = index_see(rules, load->index);
    if (index != NULL) {
        index->load_lsn = load->end_lsn;
        index->load_line = rules->line;
    }
    for (uint32_t i = 0; i < rules->skips.n; i++) {
        const rules_skip_t *skip = &rules->skips.items[i];
        if (key_space(skip->key) == load->space && skip->init_start >= rules_c(rules)) {
            rules_report(rules, 13, "skip_drain",
                         "INDEX_LOAD of index %" PRIu64 " at %" PRIu64 ": page %" PRIu32 ":%" PRIu32
                         " went home without a copy, its initialisation at %" PRIu64
                         " is not behind the checkpoint at %" PRIu64,
                         load->index, load->end_lsn, key_space(skip->key), key_page(skip->key),
                         skip->init_end, rules_c(rules));
            return;
        }
    }
}

/** What is wrong with the index counts once it is known to live. */
static void index_wrong(const rules_t *rules, rules_index_t *index, const char *what)
{
    if (index->fate == INDEX_LIVES) {
        rules_report(rules, 16, "index_load", "index %" PRIu64 ": %s", index->id, what);
    } else if (index->wrong[0] == '\0') {
        (void)snprintf(index->wrong, sizeof(index->wrong), "%s", what);
    }
}

static bool index_is_durable(const rules_t *rules, const rules_index_t *index)
{
    return index->load_lsn != 0 && index->load_lsn <= rules->log.durable;
}

void rules_index_written(rules_t *rules, index_id_t id, uint64_t key, lsn_t lsn)
{
    rules_index_t *index = index_see(rules, id);
    const redo_entry_t *defined = redo_defined(&rules->redo, key, LSN_MAX);
    char what[VERDICT_WHAT_MAX];
    if (index == NULL || index->fate == INDEX_FAILED
        || (defined != NULL && defined->end_lsn > lsn)) {
        return;
    }
    if (index_is_durable(rules, index)) {
        (void)snprintf(what, sizeof(what),
                       "page %" PRIu32 ":%" PRIu32 " of LSN %" PRIu64
                       " is written without a record, after INDEX_LOAD became durable",
                       key_space(key), key_page(key), lsn);
        index_wrong(rules, index, what);
    }
}

void rules_index_durable(rules_t *rules)
{
    for (uint32_t i = 0; i < rules->indexes.n; i++) {
        rules_index_t *index = &rules->indexes.items[i];
        if (index->load_seen || !index_is_durable(rules, index)) {
            continue;
        }
        index->load_seen = true;
        for (uint32_t k = 0; k < rules->homes.n; k++) {
            const rules_home_t *home = &rules->homes.items[k];
            if (home->unlogged == index->id) {
                char what[VERDICT_WHAT_MAX];
                uint64_t key = rules->pages.items[home->page].key;
                (void)snprintf(what, sizeof(what),
                               "page %" PRIu32 ":%" PRIu32 " of LSN %" PRIu64
                               ", written without a record, is not fsynced when INDEX_LOAD is "
                               "durable",
                               key_space(key), key_page(key), home->lsn);
                index_wrong(rules, index, what);
            }
        }
    }
}

/** What was held is true of an index that lives. */
static void index_lives(const rules_t *rules, rules_index_t *index)
{
    index->fate = INDEX_LIVES;
    if (index->wrong[0] != '\0') {
        index_wrong(rules, index, index->wrong);
        index->wrong[0] = '\0';
    }
}

void rules_index_changed(void *ctx, uint64_t key, redo_kind_t kind, lsn_t start_lsn)
{
    rules_t *rules = ctx;
    const rules_page_t *page = rules->journal ? rules_page_find(rules, key) : NULL;
    if (page == NULL || page->unlogged == 0) {
        return;
    }
    rules_index_t *index = index_find(rules, page->unlogged);
    rules_page(rules, key)->unlogged = 0;
    if (index == NULL || kind != REDO_CHANGE) {
        return;
    }
    if (index->load_lsn == 0 || index->load_lsn > start_lsn) {
        rules_report(rules, 16, "index_load",
                     "index %" PRIu64 ": page %" PRIu32 ":%" PRIu32
                     " went home without a record, and is changed by one at %" PRIu64
                     " without an INDEX_LOAD before it",
                     index->id, key_space(key), key_page(key), start_lsn);
    } else {
        index_lives(rules, index);
    }
}

void rules_index_finished(rules_t *rules, uint32_t line, bool acked)
{
    for (uint32_t i = 0; i < rules->indexes.n; i++) {
        rules_index_t *index = &rules->indexes.items[i];
        if (index->line != line || index->fate != INDEX_UNKNOWN) {
            continue;
        }
        if (!acked) {
            index->fate = INDEX_FAILED;
        } else if (index->load_lsn != 0 && index->load_line == line) {
            index_lives(rules, index);
        }
    }
}
