/** Memory of recovery: tables keyed by page id, and the parsed records of one batch.

Place: lowest of recv/; knows neither files nor the pool.

Invariants
1. memory is bounded by the log: an entry needs a record in a valid log block, and the records of a
   batch are counted against recv_memory (recv_apply.c);
2. the order of a walk depends on page ids only, never on the hash (determinism). */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "recv/recv_int.h"

#define RECV_TABLE_MIN 64U
#define RECV_CHUNK_BYTES (64U * 1024)

typedef struct recv_chunk {
    struct recv_chunk *next;
    size_t used;
    size_t size;
    byte bytes[];
} recv_chunk_t;

/** Each record of the log asks for its page several times: these are inline, and check nothing. */
static inline byte *recv_entry(const recv_table_t *table, uint32_t i)
{
    return table->entries + (size_t)i * table->entry_size;
}

void *recv_table_at(const recv_table_t *table, uint32_t i)
{
    CHECK(i < table->n);
    return recv_entry(table, i);
}

static inline bool recv_entry_is(const recv_table_t *table, uint32_t i, page_id_t id)
{
    page_id_t found;
    memcpy(&found, recv_entry(table, i), sizeof(found));
    return page_id_eq(found, id);
}

/** The slot that holds id, or the empty one where it belongs. */
static inline uint32_t recv_table_slot(const recv_table_t *table, page_id_t id)
{
    uint32_t h = id.space * 0x9E3779B1U + id.page_no;
    h = (h ^ h >> 15) * 0x85EBCA6BU;
    uint32_t slot = (h ^ h >> 13) & (table->n_slots - 1);
    while (table->slots[slot] != 0 && !recv_entry_is(table, table->slots[slot] - 1, id)) {
        slot = (slot + 1) & (table->n_slots - 1);
    }
    return slot;
}

void *recv_table_find(const recv_table_t *table, page_id_t id)
{
    if (table->n == 0) {
        return NULL;
    }
    if (recv_entry_is(table, table->last, id)) {
        return recv_entry(table, table->last);
    }
    uint32_t slot = recv_table_slot(table, id);
    return table->slots[slot] != 0 ? recv_entry(table, table->slots[slot] - 1) : NULL;
}

static dberr_t recv_table_grow(env_t *env, recv_table_t *table)
{
    uint32_t capacity = table->capacity != 0 ? table->capacity * 2 : RECV_TABLE_MIN;
    if (capacity > 1U << 30) {
        return err_set(&env->err, DB_OUT_OF_MEMORY, "the log names too many pages");
    }
    uint32_t *slots = calloc((size_t)capacity * 2, sizeof(*slots));
    byte *entries = realloc(table->entries, capacity * table->entry_size);
    if (entries != NULL) {
        table->entries = entries;
    }
    if (slots == NULL || entries == NULL) {
        free(slots);
        return err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for the pages that the log names");
    }
    free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    table->n_slots = capacity * 2;
    for (uint32_t i = 0; i < table->n; i++) {
        page_id_t id;
        memcpy(&id, recv_entry(table, i), sizeof(id));
        table->slots[recv_table_slot(table, id)] = i + 1;
    }
    return DB_SUCCESS;
}

dberr_t recv_table_put(env_t *env, recv_table_t *table, page_id_t id, void **out)
{
    uint32_t slot = 0;
    if (table->n > 0) {
        if (recv_entry_is(table, table->last, id)) {
            *out = recv_entry(table, table->last);
            return DB_SUCCESS;
        }
        slot = recv_table_slot(table, id);
        if (table->slots[slot] != 0) {
            table->last = table->slots[slot] - 1;
            *out = recv_entry(table, table->last);
            return DB_SUCCESS;
        }
    }
    if (table->n == table->capacity) {
        TRY(recv_table_grow(env, table));
        slot = recv_table_slot(table, id);
    }
    byte *entry = recv_entry(table, table->n);
    memset(entry, 0, table->entry_size);
    memcpy(entry, &id, sizeof(id));
    table->last = table->n;
    table->slots[slot] = ++table->n;
    *out = entry;
    return DB_SUCCESS;
}

static int recv_entry_cmp(const void *a, const void *b)
{
    page_id_t x;
    memcpy(&x, a, sizeof(x));
    page_id_t y;
    memcpy(&y, b, sizeof(y));
    if (x.space != y.space) {
        return x.space < y.space ? -1 : 1;
    }
    return x.page_no < y.page_no ? -1 : x.page_no > y.page_no;
}

void recv_table_sort(recv_table_t *table)
{
    if (table->n > 1) {
        qsort(table->entries, table->n, table->entry_size, recv_entry_cmp);
    }
}

void recv_table_reset(recv_table_t *table)
{
    free(table->entries);
    free(table->slots);
    *table = (recv_table_t){.entry_size = table->entry_size};
}

static size_t recv_rec_bytes(size_t len)
{
    size_t align = _Alignof(recv_rec_t);
    return (sizeof(recv_rec_t) + len + align - 1) & ~(align - 1);
}

/** The place of the next record, with room for len bytes; recv_batch_take() says how many it took.
*/
static recv_rec_t *recv_batch_room(recv_batch_t *batch, size_t len)
{
    size_t size = recv_rec_bytes(len);
    recv_chunk_t *chunk = batch->chunks;
    if (chunk == NULL || chunk->size - chunk->used < size) {
        size_t chunk_size = size > RECV_CHUNK_BYTES ? size : RECV_CHUNK_BYTES;
        chunk = malloc(sizeof(*chunk) + chunk_size);
        if (chunk == NULL) {
            return NULL;
        }
        chunk->next = batch->chunks;
        chunk->used = 0;
        chunk->size = chunk_size;
        batch->chunks = chunk;
    }
    void *rec = chunk->bytes + chunk->used;
    return rec;
}

static void recv_batch_take(recv_batch_t *batch, const recv_rec_t *rec)
{
    size_t size = recv_rec_bytes(rec->len);
    batch->chunks->used += size;
    batch->used_bytes += size;
}

/** room: bytes there, as many as it may take. */
static void recv_rec_keep(recv_rec_t *stored, const log_format_t *format, const redo_rec_t *rec,
                          size_t room)
{
    stored->len = 0;
    if (rec->raw != NULL) {
        memcpy(stored->bytes, rec->raw, rec->raw_len);
        stored->len = rec->raw_len;
    } else {
        redo_context_t at = {.n_recs = 0};
        format->encode(&at, rec, stored->bytes, room, &stored->len);
    }
}

static dberr_t recv_batch_add_rec(env_t *env, recv_batch_t *batch, const log_format_t *format,
                                  const redo_rec_t *rec, lsn_t end_lsn)
{
    void *found = NULL;
    uint32_t n_before = batch->pages.n;
    page_id_t id = {rec->space, rec->page_no};
    TRY(recv_table_put(env, &batch->pages, id, &found));
    recv_page_t *page = found;
    batch->used_bytes += batch->pages.n != n_before ? 2 * sizeof(*page) : 0;
    size_t room = rec->raw != NULL ? rec->raw_len : LOG_REC_OVERHEAD_MAX + rec->len;
    recv_rec_t *stored = recv_batch_room(batch, room);
    if (stored == NULL) {
        return err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for redo records");
    }
    stored->next = NULL;
    stored->end_lsn = end_lsn;
    recv_rec_keep(stored, format, rec, room);
    recv_batch_take(batch, stored);
    if (page->last != NULL) {
        page->last->next = stored;
    } else {
        page->first = stored;
    }
    page->last = stored;
    return DB_SUCCESS;
}

dberr_t recv_batch_add(env_t *env, recv_batch_t *batch, const log_format_t *format,
                       const log_group_t *group)
{
    for (uint32_t i = 0; i < group->n_recs; i++) {
        const redo_rec_t *rec = &group->recs[i];
        if (redo_op_is_page(rec->op)) {
            TRY(recv_batch_add_rec(env, batch, format, rec, group->end_lsn));
        }
    }
    batch->end_lsn = group->end_lsn;
    return DB_SUCCESS;
}

void recv_batch_reset(recv_batch_t *batch)
{
    while (batch->chunks != NULL) {
        recv_chunk_t *next = batch->chunks->next;
        free(batch->chunks);
        batch->chunks = next;
    }
    recv_table_reset(&batch->pages);
    batch->used_bytes = 0;
    batch->start_lsn = batch->end_lsn;
}
