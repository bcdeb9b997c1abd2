/* Index loads without redo: I16, and what INDEX_LOAD takes from pages that skipped doublewrite
(I13).

Place: beside rules_home.c; hears of INDEX_LOAD while the log is read.

What each rule sees
  I13  an INDEX_LOAD while a page of its space that skipped doublewrite rests on an initialisation
       at or after C
  I16  a record relies on a page that went home without one, and no INDEX_LOAD of its index lies
       before it; or that home write was not fsynced when INDEX_LOAD became durable, or came after
       that

Such a page may be one that nobody needs: of a load that was given up, or the last page of a load,
which became the root. So a finding is held until a record changes the page as it is; one that
initialises or frees it ends its life. Plain bytes at an offset are no such record: they are right
whatever the page held, and a tree that is given up gets them in its root while it is freed. */
#include "explorer/judge/rules_int.h"

#include <inttypes.h>

static rules_index_t *index_find(rules_t *rules, index_id_t id)
{
    for (uint32_t i = rules->indexes.n; i-- > 0;) {
        if (rules->indexes.items[i].id == id) {
            return &rules->indexes.items[i];
        }
    }
    return NULL;
}

/** NULL: no statements are told of, so that it is a recovery that writes. */
static rules_index_t *index_see(rules_t *rules, index_id_t id)
{
    rules_index_t *index = index_find(rules, id);
    if (index == NULL && rules->journal) {
        index = REDO_PUSH(&rules->indexes);
        *index = (rules_index_t){.id = id};
    }
    return index;
}

void rules_index_loaded(void *ctx, const redo_load_t *load)
{
    rules_t *rules = ctx;
    rules_index_t *index = index_see(rules, load->index);
    if (index != NULL) {
        index->load_lsn = load->end_lsn;
    }
    for (uint32_t i = 0; i < rules->skips.n; i++) {
        const rules_skip_t *skip = &rules->skips.items[i];
        if (key_space(skip->key) == load->space && skip->init_start >= rules_c(rules)) {
            rules_report(rules, skip->key, 13, "skip_drain",
                         "INDEX_LOAD of index %" PRIu64 " at %" PRIu64 ": page %" PRIu32 ":%" PRIu32
                         " went home without a copy, its initialisation at %" PRIu64
                         " is not behind the checkpoint at %" PRIu64,
                         load->index, load->end_lsn, key_space(skip->key), key_page(skip->key),
                         skip->init_end, rules_c(rules));
            return;
        }
    }
}

static bool index_is_durable(const rules_t *rules, const rules_index_t *index)
{
    return index->load_lsn != 0 && index->load_lsn <= rules->log.durable;
}

bool rules_index_written(rules_t *rules, index_id_t id)
{
    const rules_index_t *index = index_see(rules, id);
    return index != NULL && index_is_durable(rules, index);
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
            rules->pages.items[home->page].late |= home->unlogged == index->id;
        }
    }
}

void rules_index_changed(void *ctx, uint64_t key, const redo_touch_t *touch)
{
    rules_t *rules = ctx;
    bool plain = touch->kind == REDO_CHANGE && !touch->relies;
    if (!rules->journal || plain || rules_page_find(rules, key) == NULL) {
        return;
    }
    rules_page_t *page = rules_page(rules, key);
    const rules_index_t *index = page->unlogged == 0 ? NULL : index_find(rules, page->unlogged);
    page->unlogged = 0;
    if (index == NULL || touch->kind != REDO_CHANGE) {
        return;
    }
    bool vouched = index->load_lsn != 0 && index->load_lsn <= touch->start_lsn;
    if (!vouched || page->late) {
        rules_report(rules, key, 16, "index_load",
                     "index %" PRIu64 ": page %" PRIu32 ":%" PRIu32 " of LSN %" PRIu64
                     " went home without a record%s; a record changes it at %" PRIu64,
                     index->id, key_space(key), key_page(key), page->home_lsn,
                     vouched ? ", and was not fsynced when INDEX_LOAD became durable"
                             : ", and no INDEX_LOAD followed",
                     touch->start_lsn);
    }
}
