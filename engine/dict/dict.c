/* The catalogue's handle: DICT_HDR, id counters, look-ups. Above btr/; rows are changed by trx/ and
ddl/ only.

1. An id is given out once: its counter is raised by a logged change before the caller sees it, and
   a crash can only skip ids.
2. A root and its number in the catalogue come and go in one mtr, so that recovery drops an
   incomplete index from its row alone. No transaction changes that number.
3. The system tables' objects live as long as the handle; a user table's object until dict_load() or
   DDL on that table.
4. The cache holds what dict_load() would make of the catalogue pages whenever no DDL transaction is
   half done: DDL replaces whole objects (dict_table_put, dict_table_remove), and nobody changes one
   in place but for n_trx, building, exclusive, watch, and the root of an index that gets or loses
   its tree. */
#include "dict/dict.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "dict/dict_int.h"

static const page_id_t DICT_HDR_ID = {SPACE_SYSTEM, DICT_HDR_PAGE};

static const char *dict_hdr_fault(const byte *page)
{
    if (fil_page_get_type(page) != FIL_PAGE_TYPE_SYS
        || mach_read_4(page + DICT_HDR_MAGIC) != DICT_MAGIC) {
        return "not a catalogue header";
    }
    if (mach_read_4(page + DICT_HDR_VERSION) == 1) {
        return "format version 1, which has no unique indexes: this engine reads version 3";
    }
    if (mach_read_4(page + DICT_HDR_VERSION) == 2) {
        return "format version 2, whose records have one size: this engine reads version 3";
    }
    if (mach_read_4(page + DICT_HDR_VERSION) != DICT_VERSION) {
        return "unknown format version";
    }
    if (mach_read_8(page + DICT_HDR_TABLE_ID) < USER_TABLE_ID_FIRST
        || mach_read_8(page + DICT_HDR_TABLE_ID) > INT64_MAX) {
        return "next table id";
    }
    if (mach_read_8(page + DICT_HDR_INDEX_ID) < USER_INDEX_ID_FIRST
        || mach_read_8(page + DICT_HDR_INDEX_ID) > UINT32_MAX) {
        return "next index id";
    }
    if (mach_read_8(page + DICT_HDR_SPACE_ID) < USER_SPACE_ID_FIRST
        || mach_read_8(page + DICT_HDR_SPACE_ID) > UINT32_MAX) {
        return "next space id";
    }
    return NULL;
}

/** Pins DICT_HDR and checks it. */
static dberr_t dict_hdr_get(buf_pool_t *pool, mtr_t *mtr, buf_block_t **out)
{
    buf_block_t *block = NULL;
    TRY(mtr_page_get(mtr, DICT_HDR_ID, &block));
    const char *fault = dict_hdr_fault(block->frame);
    if (fault != NULL) {
        return err_set(&buf_env(pool)->err, DB_CORRUPTION, "catalogue header, space %u page %u: %s",
                       SPACE_SYSTEM, DICT_HDR_PAGE, fault);
    }
    *out = block;
    return DB_SUCCESS;
}

/* ---- bootstrap ---- */

static dberr_t dict_hdr_create(buf_pool_t *pool)
{
    TRY(buf_log_free_check(pool));
    mtr_t mtr;
    mtr_start(&mtr, pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    dberr_t err = mtr_page_create(&mtr, DICT_HDR_ID, FIL_PAGE_TYPE_SYS, &block);
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    mtr_write_8(&mtr, block, DICT_HDR_TABLE_ID, USER_TABLE_ID_FIRST);
    mtr_write_8(&mtr, block, DICT_HDR_INDEX_ID, USER_INDEX_ID_FIRST);
    mtr_write_8(&mtr, block, DICT_HDR_SPACE_ID, USER_SPACE_ID_FIRST);
    mtr_write_4(&mtr, block, DICT_HDR_MAGIC, DICT_MAGIC);
    mtr_write_4(&mtr, block, DICT_HDR_VERSION, DICT_VERSION);
    mtr_commit(&mtr);
    return DB_SUCCESS;
}

static dberr_t dict_root_create(buf_pool_t *pool, sys_table_t which, dict_table_t *table)
{
    TRY(dict_sys_define(which, buf_page_size(pool), table, &buf_env(pool)->err));
    TRY(buf_log_free_check(pool));
    mtr_t mtr;
    mtr_start(&mtr, pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    dberr_t err = dict_hdr_get(pool, &mtr, &block);
    AND_THEN(err, btr_create(&mtr, &table->indexes[0].tree));
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    mtr_write_4(&mtr, block, DICT_HDR_ROOTS + 4 * (uint32_t)which, table->indexes[0].tree.root);
    mtr_commit(&mtr);
    return DB_SUCCESS;
}

dberr_t dict_bootstrap(buf_pool_t *pool)
{
    dict_table_t *table = malloc(sizeof(*table));
    dberr_t err;
    if (table == NULL) {
        return err_set(&buf_env(pool)->err, DB_OUT_OF_MEMORY, "no memory for the catalogue");
    }
    err = dict_hdr_create(pool);
    for (uint32_t which = 0; which < SYS_N && err == DB_SUCCESS; which++) {
        err = dict_root_create(pool, (sys_table_t)which, table);
    }
    free(table);
    return err;
}

/* ---- trees of user indexes ---- */

/** Pins the index's row in SYS_INDEXES; *offset is that of ROOT in the record. */
static dberr_t dict_index_row(dict_t *dict, mtr_t *mtr, const dict_index_t *index,
                              buf_block_t **block, uint32_t *slot, uint32_t *offset)
{
    const dict_table_t *table = &dict->sys[SYS_INDEXES];
    byte row[SYS_ROW_MAX];
    dict_sys_indexes_row(index, row);
    byte key[SYS_ROW_MAX];
    dict_row_to_pk(table, row, key);
    *offset = table->cols[SYS_INDEXES_COL_ROOT].rec_offset;
    dberr_t err = btr_rec_find(mtr, &table->indexes[0].tree, key, block, slot);
    if (err == DB_NOT_FOUND
        || (err == DB_SUCCESS
            && rec_is_deleted(page_rec((*block)->frame, buf_page_size(dict->pool), *slot)))) {
        err = err_set(&buf_env(dict->pool)->err, DB_CORRUPTION,
                      "index %" PRIu64 " has no row in SYS_INDEXES", index->id);
    }
    return err;
}

/** Invariant 4: the cached object of an index, if there is one, gets its root. */
static void dict_cache_root(dict_t *dict, const dict_index_t *index)
{
    dict_table_t *table = dict_table_by_id(dict, index->table->id);
    for (uint32_t i = 0; table != NULL && i < table->n_indexes; i++) {
        if (table->indexes[i].id == index->id) {
            table->indexes[i].tree.root = index->tree.root;
        }
    }
}

/** Creates or frees the root, and writes its number into the row: one mtr. */
static dberr_t dict_index_root_change(dict_t *dict, dict_index_t *index, bool create)
{
    TRY(buf_log_free_check(dict->pool));
    mtr_t mtr;
    mtr_start(&mtr, dict->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    uint32_t slot = 0;
    uint32_t offset = 0;
    dberr_t err = dict_index_row(dict, &mtr, index, &block, &slot, &offset);
    AND_THEN(err, create ? btr_create(&mtr, &index->tree) : btr_free_root(&mtr, &index->tree));
    byte root[8];
    if (err == DB_SUCCESS) {
        mach_write_8(root, dict_bigint_encode(create ? index->tree.root : FIL_NULL));
        err = mtr_rec_update(&mtr, block, slot, offset, root, sizeof(root));
    }
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    mtr_commit(&mtr);
    index->tree.root = create ? index->tree.root : FIL_NULL;
    dict_cache_root(dict, index);
    return DB_SUCCESS;
}

dberr_t dict_index_tree_create(dict_t *dict, dict_index_t *index)
{
    CHECK(index->tree.root == FIL_NULL);
    return dict_index_root_change(dict, index, true);
}

dberr_t dict_index_tree_free(dict_t *dict, dict_index_t *index)
{
    if (index->tree.root == FIL_NULL) {
        return DB_SUCCESS;
    }
    TRY(btr_free_but_root(dict->pool, &index->tree));
    return dict_index_root_change(dict, index, false);
}

/* ---- open and close ---- */

static dberr_t dict_open_sys(dict_t *dict)
{
    env_t *env = buf_env(dict->pool);
    const fil_space_t *space = fil_space_get(buf_fil(dict->pool), SPACE_SYSTEM);
    mtr_t mtr;
    mtr_start(&mtr, dict->pool, MTR_READ_ONLY);
    buf_block_t *block = NULL;
    dberr_t err = dict_hdr_get(dict->pool, &mtr, &block);
    for (uint32_t which = 0; which < SYS_N && err == DB_SUCCESS; which++) {
        page_no_t root = mach_read_4(block->frame + DICT_HDR_ROOTS + 4 * which);
        dict_table_t *table = &dict->sys[which];
        err = dict_sys_define((sys_table_t)which, buf_page_size(dict->pool), table, &env->err);
        if (err == DB_SUCCESS
            && (space == NULL || root <= RSEG_PAGE || root >= space->size_pages)) {
            err = err_set(&env->err, DB_CORRUPTION,
                          "catalogue header: %s cannot have its root at page %" PRIu32, table->name,
                          root);
        }
        table->indexes[0].tree.root = root;
    }
    mtr_commit(&mtr);
    return err;
}

dberr_t dict_open(buf_pool_t *pool, dict_t **out)
{
    dict_t *dict = calloc(1, sizeof(*dict));
    dberr_t err;
    if (dict == NULL) {
        return err_set(&buf_env(pool)->err, DB_OUT_OF_MEMORY, "no memory for the catalogue");
    }
    dict->pool = pool;
    err = dict_open_sys(dict);
    if (err != DB_SUCCESS) {
        dict_close(dict);
        return err;
    }
    *out = dict;
    return DB_SUCCESS;
}

void dict_tables_free(dict_table_t *first)
{
    while (first != NULL) {
        dict_table_t *next = first->next;
        free(first);
        first = next;
    }
}

void dict_close(dict_t *dict)
{
    if (dict != NULL) {
        dict_tables_free(dict->first);
        free(dict);
    }
}

/* ---- look-ups ---- */

dict_table_t *dict_table_get(dict_t *dict, const char *name)
{
    for (dict_table_t *table = dict->first; table != NULL; table = table->next) {
        if (table->status == DICT_READY && strcmp(table->name, name) == 0) {
            return table;
        }
    }
    return NULL;
}

dict_table_t *dict_table_by_id(dict_t *dict, table_id_t id)
{
    dict_table_t *table = dict->first;
    if (id >= SYS_TABLE_ID_FIRST && id < SYS_TABLE_ID_FIRST + SYS_N) {
        return &dict->sys[id - SYS_TABLE_ID_FIRST];
    }
    while (table != NULL && table->id != id) {
        table = table->next;
    }
    return table;
}

dict_table_t *dict_first(dict_t *dict)
{
    return dict->first;
}

dict_table_t *dict_sys_table(dict_t *dict, sys_table_t which)
{
    CHECK(which < SYS_N);
    return &dict->sys[which];
}

dict_index_t *dict_index_get(dict_table_t *table, const char *name)
{
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        dict_index_t *index = &table->indexes[i];
        if (index->status == DICT_READY && strcmp(index->name, name) == 0) {
            return index;
        }
    }
    return NULL;
}

void dict_table_set_building(dict_t *dict, table_id_t id, bool building)
{
    dict_table_t *table = dict_table_by_id(dict, id);
    CHECK(table != NULL);
    table->building = building;
    table->exclusive = false;
    table->watch = NULL;
}

void dict_table_set_exclusive(dict_t *dict, table_id_t id)
{
    dict_table_t *table = dict_table_by_id(dict, id);
    CHECK(table != NULL && table->building);
    table->exclusive = true;
}

void dict_table_set_watch(dict_t *dict, table_id_t id, const dict_row_watch_t *watch)
{
    dict_table_t *table = dict_table_by_id(dict, id);
    CHECK(table != NULL);
    table->watch = watch;
}

bool dict_has_build(const dict_t *dict)
{
    for (const dict_table_t *table = dict->first; table != NULL; table = table->next) {
        if (table->building) {
            return true;
        }
    }
    return false;
}

/* ---- replacing objects ---- */

dberr_t dict_table_copy(dict_t *dict, const dict_table_t *table, dict_table_t **out)
{
    dict_table_t *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return err_set(&buf_env(dict->pool)->err, DB_OUT_OF_MEMORY, "no memory for the catalogue");
    }
    *copy = *table;
    copy->next = NULL;
    for (uint32_t i = 0; i < copy->n_indexes; i++) {
        copy->indexes[i].table = copy;
    }
    *out = copy;
    return DB_SUCCESS;
}

void dict_table_put(dict_t *dict, dict_table_t *table)
{
    dict_table_t **link = &dict->first;
    if (dict->last != NULL && dict->last->id < table->id) {
        link = &dict->last->next; /* ids ascend: a new table is the last one */
    }
    while (*link != NULL && (*link)->id < table->id) {
        link = &(*link)->next;
    }
    dict_table_t *old = *link;
    if (old != NULL && old->id == table->id) {
        table->n_trx = old->n_trx;
        table->building = old->building;
        table->exclusive = old->exclusive;
        table->watch = old->watch;
        table->next = old->next;
    } else {
        table->n_trx = 0;
        table->building = false;
        table->exclusive = false;
        table->watch = NULL;
        table->next = old;
        old = NULL;
        dict->n_tables++;
    }
    *link = table;
    if (table->next == NULL) {
        dict->last = table;
    }
    free(old);
}

void dict_table_remove(dict_t *dict, table_id_t id)
{
    dict_table_t **link = &dict->first;
    dict_table_t *before = NULL;
    while (*link != NULL && (*link)->id < id) {
        before = *link;
        link = &before->next;
    }
    if (*link != NULL && (*link)->id == id) {
        dict_table_t *gone = *link;
        *link = gone->next;
        if (gone->next == NULL) {
            dict->last = before;
        }
        dict->n_tables--;
        free(gone);
    }
}

/* ---- counters ---- */

dberr_t dict_counters_read(dict_t *dict, dict_counters_t *out)
{
    mtr_t mtr;
    mtr_start(&mtr, dict->pool, MTR_READ_ONLY);
    buf_block_t *block = NULL;
    dberr_t err = dict_hdr_get(dict->pool, &mtr, &block);
    if (err == DB_SUCCESS) {
        out->table_id = mach_read_8(block->frame + DICT_HDR_TABLE_ID);
        out->index_id = mach_read_8(block->frame + DICT_HDR_INDEX_ID);
        out->space_id = mach_read_8(block->frame + DICT_HDR_SPACE_ID);
    }
    mtr_commit(&mtr);
    return err;
}

/** Takes the id in a counter of DICT_HDR, which stays at most max. */
static dberr_t dict_new_id(dict_t *dict, uint32_t offset, uint64_t max, uint64_t *out)
{
    TRY(buf_log_free_check(dict->pool));
    mtr_t mtr;
    mtr_start(&mtr, dict->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    dberr_t err = dict_hdr_get(dict->pool, &mtr, &block);
    uint64_t id = 0;
    if (err == DB_SUCCESS) {
        id = mach_read_8(block->frame + offset);
        if (id >= max) {
            err = err_set(&buf_env(dict->pool)->err, DB_OUT_OF_SPACE,
                          "the catalogue has no ids left");
        }
    }
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    mtr_write_8(&mtr, block, offset, id + 1);
    mtr_commit(&mtr);
    *out = id;
    return DB_SUCCESS;
}

dberr_t dict_new_table_id(dict_t *dict, table_id_t *out)
{
    if (dict->n_tables >= DICT_TABLES_MAX) {
        return err_set(&buf_env(dict->pool)->err, DB_OUT_OF_SPACE,
                       "a database has at most %u tables", DICT_TABLES_MAX);
    }
    return dict_new_id(dict, DICT_HDR_TABLE_ID, INT64_MAX, out);
}

dberr_t dict_new_index_id(dict_t *dict, index_id_t *out)
{
    return dict_new_id(dict, DICT_HDR_INDEX_ID, UINT32_MAX, out);
}

dberr_t dict_new_space_id(dict_t *dict, space_id_t *out)
{
    uint64_t id = 0;
    TRY(dict_new_id(dict, DICT_HDR_SPACE_ID, UINT32_MAX, &id));
    *out = (space_id_t)id;
    return DB_SUCCESS;
}
