/* ALTER TABLE ... IMPORT TABLESPACE: a table gets the pages of an exported one.

Place: ddl/, above ddl_rebuild.c, ddl_load.c and ddl_cfg.c. A build of a new table that copies pages
instead of rows.

    begin    NAME.cfg read and compared | rows of the new table INCOMPLETE, with roots | its file,
             as long as the other
    import   page by page: read, verified, made the new space's, put into the pool
    flush    as of a rebuild: all of them home, fsynced; INDEX_LOAD per index
    commit   the swap of a rebuild: the table has this file, its old one is deleted

Invariants
1. A page is believed when its checksum, its number and the exporting space fit and its records
   stand. What is wrong with the file fails the statement: nothing of it has been named yet.
2. Space id and index ids are the new ones wherever a page has them: envelope, page 0, index id,
   segment headers of a root, pages of long values and the references to them. LSNs are this
   database's.
3. (I16) Index pages and long values are a load: logged, or without redo and then flushed before
   INDEX_LOAD. Pages of space management are always logged, as in any load. (InnoDB writes all of
   them to the file directly, without doublewrite, and fsyncs; ours go the way that every page
   goes.)
4. Pages that no index of the table owns are left out: they are free, and old. */
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "ddl/ddl_build.h"
#include "ddl/ddl_cfg.h"
#include "fsp/fsp_format.h"
#include "page/page_compress.h"

typedef struct ddl_import {
    ddl_cfg_t cfg;
    dict_table_t *old; /**< the table as the exported pages have it: their space, ids and roots */
    char path[PATH_LEN_MAX + 1];
    os_file_t *file;
    page_no_t next;   /**< page to copy */
    uint32_t n_roots; /**< copied */
    byte *page;
    byte *xdes_page; /**< as exported: the descriptors of the page to copy */
} ddl_import_t;

/* ---- comparing ---- */

static bool import_index_fits(const dict_index_t *ours, const dict_index_t *theirs)
{
    bool fits = ours->unique == theirs->unique && ours->n_fields == theirs->n_fields;
    for (uint32_t i = 0; fits && i < ours->n_fields; i++) {
        fits = ours->fields[i].col == theirs->fields[i].col
               && ours->fields[i].prefix_len == theirs->fields[i].prefix_len;
    }
    return fits;
}

static const dict_index_t *import_find_index(const dict_table_t *table, const char *name)
{
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        if (strcmp(table->indexes[i].name, name) == 0) {
            return &table->indexes[i];
        }
    }
    return NULL;
}

static bool import_fits(const dict_table_t *ours, const dict_table_t *theirs)
{
    bool fits = ours->n_cols == theirs->n_cols && ours->n_indexes == theirs->n_indexes;
    for (uint32_t i = 0; fits && i < ours->n_cols; i++) {
        const dict_col_t *a = &ours->cols[i];
        const dict_col_t *b = &theirs->cols[i];
        fits = strcmp(a->name, b->name) == 0 && a->type == b->type && a->len == b->len
               && a->nullable == b->nullable;
    }
    for (uint32_t i = 0; fits && i < ours->n_indexes; i++) {
        const dict_index_t *index = import_find_index(theirs, ours->indexes[i].name);
        fits = index != NULL && import_index_fits(&ours->indexes[i], index);
    }
    return fits;
}

/** The pages are taken as they are: records are without the columns that theirs are without. */
static void import_take_instant(dict_table_t *table, const dict_table_t *theirs)
{
    for (uint32_t i = 0; i < table->n_cols; i++) {
        table->cols[i].instant = theirs->cols[i].instant;
    }
}

/** Reads the .cfg, compares it, and notes what the pages have. */
static dberr_t import_prepare(ddl_build_t *build, const char *from)
{
    ddl_import_t *import = build->own;
    err_sink_t *sink = &build_env(build)->err;
    dberr_t err = ddl_cfg_read(build_env(build), from, &import->cfg);
    if (err == DB_NOT_FOUND) {
        return err_set(sink, err, "table '%s' is not exported", from);
    }
    TRY(err);
    const dict_table_t *theirs = import->cfg.table;
    if (import->cfg.page_size != buf_page_size(build_pool(build))
        || import->cfg.size_pages < FSP_INITIAL_PAGES || import->cfg.size_pages > FIL_PAGES_MAX
        || !import_fits(build->source, theirs)) {
        return err_set(sink, DB_ERROR, "table '%s' and the exported table '%s' differ",
                       build->source->name, from);
    }
    import->page = malloc(import->cfg.page_size);
    import->xdes_page = malloc(import->cfg.page_size);
    TRY(dict_table_copy(trx_sys_dict(build->sys), build->source, &import->old));
    if (import->page == NULL || import->xdes_page == NULL) {
        return err_set(sink, DB_OUT_OF_MEMORY, "no memory for the import of a table");
    }
    import->old->space = theirs->space;
    import_take_instant(import->old, theirs);
    TRY(dict_table_layout(import->old, import->cfg.page_size, sink));
    for (uint32_t i = 0; i < import->old->n_indexes; i++) {
        dict_index_t *index = &import->old->indexes[i];
        const dict_index_t *is = import_find_index(theirs, index->name);
        index->id = is->id;
        index->tree.root = is->tree.root;
    }
    fil_path_of_table(from, import->path);
    return env_open(build_env(build), import->path, OS_OPEN, &import->file);
}

/* ---- pages ---- */

static dberr_t import_damaged(const ddl_build_t *build, const char *what)
{
    const ddl_import_t *import = build->own;
    return err_set(&build_env(build)->err, DB_ERROR, "page %u of %s: %s", import->next,
                   import->path, what);
}

/** Position of the index that a page names; n_indexes: of none. */
static uint32_t import_index_of(const ddl_import_t *import, uint64_t id)
{
    uint32_t i = 0;
    while (i < import->old->n_indexes && import->old->indexes[i].id != id) {
        i++;
    }
    return i;
}

/** The references in the records of a leaf of the clustered index. */
static dberr_t import_adjust_references(const ddl_build_t *build)
{
    const ddl_import_t *import = build->own;
    uint32_t page_size = import->cfg.page_size;
    byte *page = import->page;
    for (uint32_t slot = 0; slot < page_n_recs(page); slot++) {
        uint32_t len = page_rec_len(page, page_size, slot);
        uint32_t at = page_rec_offset(page, page_size, slot);
        if (dict_rec_check(import->old, page + at, len, &build_env(build)->err) != DB_SUCCESS) {
            return import_damaged(build, "a record is none of the table");
        }
        dict_ext_t ext;
        dict_rec_ext(import->old, page + at, &ext);
        for (uint32_t i = 0; i < import->old->n_cols; i++) {
            if (ext.is[i]) {
                mach_write_4(page + at + ext.offsets[i], build->table->space);
            }
        }
    }
    return DB_SUCCESS;
}

static dberr_t import_adjust_index_page(const ddl_build_t *build, uint32_t i)
{
    ddl_import_t *import = build->own;
    byte *page = import->page;
    uint32_t page_size = import->cfg.page_size;
    const char *why = NULL;
    if (page_index_validate(page, page_size, &why) != DB_SUCCESS) {
        return import_damaged(build, why);
    }
    const btr_t *tree = &import->old->indexes[i].tree;
    bool leftmost = page_level(page) == 0 && fil_page_get_prev(page) == FIL_NULL;
    bool meta = leftmost && page_n_recs(page) > 0 && rec_is_min(page_rec(page, page_size, 0));
    if (page_instant(page) != (import->next == tree->root ? tree->instant : 0)
        || (leftmost && meta != (tree->instant != 0))) {
        return import_damaged(build, "instant columns are not those of the .cfg");
    }
    mach_write_8(page + PAGE_INDEX_ID, build->table->indexes[i].id);
    if (import->next == tree->root) {
        import->n_roots +=
            mach_read_4(page + PAGE_SEG_LEAF + FSEG_HEADER_SPACE) == import->old->space;
        mach_write_4(page + PAGE_SEG_LEAF + FSEG_HEADER_SPACE, build->table->space);
        mach_write_4(page + PAGE_SEG_TOP + FSEG_HEADER_SPACE, build->table->space);
    }
    return i == 0 && page_level(page) == 0 ? import_adjust_references(build) : DB_SUCCESS;
}

/** Makes the page the new table's; *copied = false: it is none that has to be copied. */
static dberr_t import_adjust(const ddl_build_t *build, bool *copied, bool *managing)
{
    const ddl_import_t *import = build->own;
    byte *page = import->page;
    uint32_t n = import->old->n_indexes;
    uint32_t type = fil_page_get_type(page);
    uint32_t i = n;
    *managing =
        type == FIL_PAGE_TYPE_FSP_HDR || type == FIL_PAGE_TYPE_XDES || type == FIL_PAGE_INODE;
    *copied = *managing;
    if (type == FIL_PAGE_TYPE_FSP_HDR) {
        mach_write_4(page + FSP_SPACE_ID, build->table->space);
    } else if (type == FIL_PAGE_INDEX) {
        i = import_index_of(import, page_index_id(page));
        *copied = i < n;
    } else if (type == FIL_PAGE_TYPE_BLOB) {
        *copied = mach_read_8(page + BLOB_INDEX_ID) == import->old->indexes[0].id;
        mach_write_8(page + BLOB_INDEX_ID, build->table->indexes[0].id);
    }
    return i < n ? import_adjust_index_page(build, i) : DB_SUCCESS;
}

/** Puts the page into the pool, in a mini-transaction of its own. */
static dberr_t import_put(ddl_build_t *build, bool managing)
{
    const ddl_import_t *import = build->own;
    const byte *page = import->page;
    bool redo = managing || !build->unlogged;
    TRY(buf_log_free_check(build_pool(build)));
    mtr_t mtr;
    mtr_start(&mtr, build_pool(build), redo ? MTR_LOG_ALL : MTR_LOG_NO_REDO);
    if (!redo) {
        mtr_set_observer(&mtr, build->clustered->id);
        build->has_rows = true;
    }
    buf_block_t *block = NULL;
    dberr_t err = mtr_page_create(&mtr, (page_id_t){build->table->space, import->next},
                                  (page_type_t)fil_page_get_type(page), &block);
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    mtr_write_4(&mtr, block, FIL_PAGE_PREV, fil_page_get_prev(page));
    mtr_write_4(&mtr, block, FIL_PAGE_NEXT, fil_page_get_next(page));
    if (fil_page_get_type(page) == FIL_PAGE_TYPE_FSP_HDR) {
        mtr_write_4(&mtr, block, FSP_SIZE,
                    mach_read_4(page + FSP_SIZE)); /* recovery looks for it */
    }
    mtr_write_string(&mtr, block, FIL_PAGE_DATA, page + FIL_PAGE_DATA,
                     import->cfg.page_size - FIL_PAGE_DATA - FIL_PAGE_TRAILER);
    mtr_commit(&mtr);
    return DB_SUCCESS;
}

static dberr_t import_page(ddl_build_t *build)
{
    ddl_import_t *import = build->own;
    uint32_t page_size = import->cfg.page_size;
    size_t n_read = 0;
    TRY(env_read(build_env(build), import->file, (uint64_t)import->next * page_size, import->page,
                 page_size, &n_read));
    memset(import->page + n_read, 0, page_size - n_read);
    page_decompress(import->page, page_size);
    page_verdict_t verdict =
        fil_page_verify(import->page, page_size, (page_id_t){import->old->space, import->next});
    uint32_t extent_pages = log_info(buf_log(build_pool(build)))->extent_pages;
    if (import->next % xdes_page_covers(page_size, extent_pages) == 0) {
        memcpy(import->xdes_page, import->page, page_size);
    } else if (!xdes_frame_has_page(import->xdes_page, page_size, extent_pages, import->next)) {
        return DB_SUCCESS; /* free: old, never used, or torn at some time */
    }
    if (verdict == PAGE_ZERO && import->next > 0) {
        return DB_SUCCESS; /* never written */
    }
    if (verdict != PAGE_OK) {
        return import_damaged(build, page_verdict_name(verdict));
    }
    if (import->next == 0 && mach_read_4(import->page + FSP_EXTENT_PAGES) != extent_pages) {
        return import_damaged(build, "another extent size");
    }
    uint32_t size_pages = mach_read_4(import->page + FSP_SIZE);
    if (import->next == 0
        && (size_pages == 0 || size_pages > import->cfg.size_pages
            || fil_page_get_type(import->page) != FIL_PAGE_TYPE_FSP_HDR
            || mach_read_4(import->page + FSP_PAGE_SIZE) != page_size
            || mach_read_4(import->page + FSP_VERSION) != FSP_FORMAT_VERSION)) {
        return import_damaged(build, "not the header of such a space"); /* no start would take it */
    }
    bool copied = false;
    bool managing = false;
    TRY(import_adjust(build, &copied, &managing));
    return copied ? import_put(build, managing) : DB_SUCCESS;
}

static dberr_t ddl_step_import(ddl_build_t *build, uint32_t max_pages, bool *over)
{
    ddl_import_t *import = build->own;
    dberr_t err = DB_SUCCESS;
    for (uint32_t n = 0;
         err == DB_SUCCESS && n < max_pages && import->next < import->cfg.size_pages; n++) {
        err = import_page(build);
        import->next++;
    }
    if (err == DB_SUCCESS && import->next == import->cfg.size_pages) {
        if (import->n_roots < import->old->n_indexes) {
            return import_damaged(build, "a root is not where the .cfg has it");
        }
        PROBE_POINT(build_env(build)->probe, "ddl.imported");
        *over = true;
    }
    return err;
}

static dberr_t ddl_import_position(const ddl_build_t *build, uint32_t *out)
{
    const ddl_import_t *import = build->own;
    *out = (uint32_t)((uint64_t)import->next * PROGRESS_MAX / import->cfg.size_pages);
    return DB_SUCCESS;
}

/* ---- begin and commit ---- */

static dberr_t ddl_import_begin(ddl_build_t *build, const ddl_alter_t *alter)
{
    TRY(ddl_refuse_in_system(build->sys, build->source));
    ddl_import_t *import = calloc(1, sizeof(*import));
    if (import == NULL) {
        return err_set(&build_env(build)->err, DB_OUT_OF_MEMORY, "no memory for an import");
    }
    build->own = import;
    TRY(import_prepare(build, alter->name));
    TRY(ddl_rebuild_define(build, alter, REBUILD_PREFIX));
    import_take_instant(build->table, import->old);
    TRY(dict_table_layout(build->table, import->cfg.page_size, &build_env(build)->err));
    build->clustered = &build->table->indexes[0];
    for (uint32_t i = 0; i < build->table->n_indexes; i++) {
        build->table->indexes[i].tree.root = import->old->indexes[i].tree.root;
    }
    return ddl_rebuild_make(build, import->cfg.size_pages);
}

static dberr_t ddl_import_commit(ddl_build_t *build)
{
    return ddl_rebuild_swap(build, &build_env(build)->stats.tables_imported);
}

static void ddl_import_free(ddl_build_t *build)
{
    const ddl_import_t *import = build->own;
    env_close(build_env(build), import->file);
    free(import->cfg.table);
    free(import->old);
    free(import->page);
    free(import->xdes_page);
}

const ddl_statement_t DDL_IMPORT = {
    .begin = ddl_import_begin,
    .steps = {{ONCE, ddl_step_import, .share = 9, .position = ddl_import_position},
              {ONCE, ddl_step_flush, .wanted = build_is_unlogged},
              {ONCE, ddl_step_sync, .wanted = build_is_unlogged},
              {ONCE, ddl_step_index_load, .wanted = build_is_unlogged, .share = 1}},
    .commit = ddl_import_commit,
    .discard = ddl_rebuild_discard,
    .free = ddl_import_free,
};
