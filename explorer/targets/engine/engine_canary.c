/* Canaries of the engine.

Place: beside judge.c, below engine_target.c.

    image at the end of a run --recovered, closed, without copies--> damaged: the judge must see it
                              \--a page is written--> the rules must hear of it

What is damaged then no log brings back. */
#include "explorer/targets/engine/engine_canary.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "disk/persist.h"
#include "fsp/fsp_format.h"
#include "log/log.h"
#include "log/log_block.h"
#include "page/fil_page.h"
#include "page/page_compress.h"
#include "page/page_index.h"

#define DAMAGED_MAX 16U /**< pages; the root of the first tree is one of the first of its file */
#define FAR_LSN ((lsn_t)1 << 40) /* no log has so much */
#define FAR_TRX_ID ((uint64_t)1 << 40)
#define AREA "ib_dblwr"
#define SYSTEM "ibdata1"
#define NO_END "the end cannot be recovered"
#define NO_TABLE "the run ends without a table"

/** Recovers and closes: what is damaged then no log brings back. */
static bool settle(judge_t *judge)
{
    engine_options_t options = judge->options;
    options.log_format = 0; /* as it is */
    engine_t *engine = NULL;
    return engine_open(image_os(judge->image), &judge->probe, &options, true, &engine, NULL)
               == DB_SUCCESS
           && engine_close(engine, true, NULL) == DB_SUCCESS;
}

static uint32_t inode_of(const image_t *image, const char *path)
{
    uint32_t name = image_name_find(image, path);
    return name == IMAGE_NONE ? IMAGE_NONE : image_lookup(image, name);
}

/** As the log has it, of a database that was opened. */
static uint32_t page_size_of(const image_t *image)
{
    uint32_t inode = inode_of(image, LOG_FILE_NAME);
    CHECK(inode != IMAGE_NONE);
    log_file_info_t info;
    CHECK(log_info_decode(image_view(image, inode, LOG_HDR_OFFSET, LOG_BLOCK_SIZE, NULL), &info)
          == DB_SUCCESS);
    return info.page_size;
}

/** Table files, the first two. */
typedef struct tables {
    const image_t *image;
    uint32_t n;
    uint32_t names[2];
} tables_t;

static void see_table(void *ctx, uint32_t name, uint32_t inode)
{
    tables_t *tables = ctx;
    const char *path = image_name_text(tables->image, name);
    size_t len = strlen(path);
    (void)inode;
    if (tables->n < 2 && len > 4 && strcmp(path + len - 4, ".ibd") == 0
        && strchr(path, '/') == NULL) {
        tables->names[tables->n++] = name;
    }
}

static tables_t find_tables(const image_t *image)
{
    tables_t tables = {.image = image};
    image_each(image, see_table, &tables);
    return tables;
}

/** Pages of a table that are in use: page 0, and of its first tree the root, the way down to its
first leaf, and the leaves behind that. Others may be free, and what they hold is nobody's. */
typedef struct table {
    uint32_t page_size;
    uint32_t inode;
    uint32_t n;
    page_no_t pages[DAMAGED_MAX];
    byte *page; /**< the one that was read last, as it is when it is not stored compressed */
} table_t;

static bool is_tree(const byte *page)
{
    return fil_page_get_type(page) == FIL_PAGE_INDEX;
}

static bool is_in_file(const image_t *image, const table_t *table, page_no_t page_no)
{
    return page_no < image_size(image, table->inode) / table->page_size;
}

static void read_page(const image_t *image, table_t *table, page_no_t page_no)
{
    image_read(image, table->inode, (uint64_t)page_no * table->page_size, table->page,
               table->page_size);
    page_decompress(table->page, table->page_size); /* a plain one is right there too */
}

/** The page behind this one on the way; FIL_NULL: there is none. */
static page_no_t next_page(const table_t *table)
{
    const byte *page = table->page;
    if (page_level(page) == 0) {
        return fil_page_get_next(page);
    }
    return page_n_recs(page) == 0
               ? FIL_NULL
               : mach_read_4(page_rec(page, table->page_size, 0) + 1 + page_key_len(page));
}

/** The root is the first page of a tree: a table begins with it. */
static void table_walk(const image_t *image, table_t *table)
{
    table->pages[table->n++] = 0;
    page_no_t at = 0;
    do {
        at++;
        if (!is_in_file(image, table, at)) {
            return;
        }
        read_page(image, table, at);
    } while (!is_tree(table->page));
    while (table->n < DAMAGED_MAX && is_in_file(image, table, at)) {
        read_page(image, table, at);
        if (!is_tree(table->page)
            || page_index_validate(table->page, table->page_size, NULL) != DB_SUCCESS) {
            return;
        }
        table->pages[table->n++] = at;
        at = next_page(table);
    }
}

/** Damages a page of a table. @return false: not this one; it is as it was */
typedef bool (*damage_t)(byte *page, const table_t *table);

/** A page of rows with so many of them. */
static bool is_leaf(const byte *page, uint32_t n_recs)
{
    return is_tree(page) && page_level(page) == 0 && page_n_recs(page) >= n_recs;
}

static bool into_another_space(byte *page, const table_t *table)
{
    (void)table;
    mach_write_4(page + FIL_PAGE_SPACE_ID, mach_read_4(page + FIL_PAGE_SPACE_ID) + 1);
    return is_tree(page);
}

static bool beyond_the_log(byte *page, const table_t *table)
{
    fil_page_set_lsn(page, table->page_size, fil_page_get_lsn(page) + FAR_LSN);
    return is_tree(page);
}

static bool raise_heap_top(byte *page, const table_t *table)
{
    (void)table;
    mach_write_2(page + PAGE_HEAP_TOP, UINT16_MAX);
    return is_tree(page);
}

/** The last two rows of a leaf change their places; the metadata of instant columns is none. */
static bool swap_rows(byte *page, const table_t *table)
{
    if (!is_leaf(page, 2) || rec_is_min(page_rec(page, table->page_size, page_n_recs(page) - 2U))) {
        return false;
    }
    byte *last = page + table->page_size - FIL_PAGE_TRAILER - (size_t)2 * page_n_recs(page);
    uint32_t of_last = mach_read_2(last);
    mach_write_2(last, mach_read_2(last + 2));
    mach_write_2(last + 2, of_last);
    return true;
}

/** A leaf: above, what is leftmost has another shape too. */
static bool link_to_itself(byte *page, const table_t *table)
{
    (void)table;
    mach_write_4(page + FIL_PAGE_PREV, fil_page_get_id(page).page_no);
    return is_leaf(page, 0);
}

/** Two node pointers of a page lead to one child. */
static bool adopt_twice(byte *page, const table_t *table)
{
    if (!is_tree(page) || page_level(page) == 0 || page_n_recs(page) < 2) {
        return false;
    }
    size_t child = 1U + page_key_len(page);
    const byte *first = page_rec(page, table->page_size, 0);
    uint32_t second = page_rec_offset(page, table->page_size, 1);
    memcpy(page + second + child, first + child, sizeof(page_no_t));
    return true;
}

static bool raise_used_pages(byte *page, const table_t *table)
{
    (void)table;
    mach_write_4(page + FSP_FRAG_N_USED, mach_read_4(page + FSP_FRAG_N_USED) + 1);
    return fil_page_get_type(page) == FIL_PAGE_TYPE_FSP_HDR;
}

/** A row was changed by a transaction that there has not been. */
static bool raise_trx_id(byte *page, const table_t *table)
{
    if (!is_leaf(page, 1)) {
        return false;
    }
    uint32_t rec = page_rec_offset(page, table->page_size, 0);
    mach_write_6(page + rec + 1 + page_key_len(page), FAR_TRX_ID);
    return true;
}

static bool tear(byte *page, const table_t *table)
{
    fil_page_stamp(page, table->page_size);
    for (uint32_t i = table->page_size / 2; i < table->page_size - FIL_PAGE_TRAILER; i++) {
        page[i] ^= 0xFF;
    }
    return is_tree(page);
}

static const damage_t DAMAGES[] = {
    [CANARY_FOREIGN_PAGE] = into_another_space,
    [CANARY_TORN_PAGE] = tear,
    [CANARY_FUTURE_PAGE] = beyond_the_log,
    [CANARY_PAGE_SHAPE] = raise_heap_top,
    [CANARY_ROW_ORDER] = swap_rows,
    [CANARY_SIBLINGS] = link_to_itself,
    [CANARY_ONE_PARENT] = adopt_twice,

    [CANARY_EXTENTS] = raise_used_pages,
    [CANARY_TRX_ID] = raise_trx_id,
};

/** @return how many pages */
static uint32_t damage_pages(image_t *image, uint32_t inode, canary_pages_t which)
{
    table_t table = {.page_size = page_size_of(image), .inode = inode};
    table.page = mem_alloc(table.page_size);
    table_walk(image, &table);
    uint32_t done = 0;
    for (uint32_t i = 0; i < table.n; i++) {
        read_page(image, &table, table.pages[i]);
        if (DAMAGES[which](table.page, &table)) {
            if (which != CANARY_TORN_PAGE) {
                fil_page_stamp(table.page, table.page_size);
            }
            done += image_write(image, inode, (uint64_t)table.pages[i] * table.page_size,
                                table.page, table.page_size);
        }
    }
    free(table.page);
    return done;
}

/** Pages of a table that is there, in a database without copies. */
const char *canary_damaged_pages(judge_t *judge, canary_pages_t which)
{
    if (!settle(judge)) {
        return NO_END;
    }
    tables_t tables = find_tables(judge->image);
    uint32_t area = inode_of(judge->image, AREA);
    if (tables.n == 0) {
        return NO_TABLE;
    }
    if (area != IMAGE_NONE) {
        (void)image_truncate(judge->image, area, 0);
    }
    uint32_t table = image_lookup(judge->image, tables.names[0]);
    return damage_pages(judge->image, table, which) == 0 ? "the table has no such page" : NULL;
}

/** No checkpoint slot is one. */
const char *canary_no_checkpoint(judge_t *judge)
{
    static const byte ZEROS[LOG_BLOCK_SIZE];
    if (!settle(judge)) {
        return NO_END;
    }
    uint32_t log = inode_of(judge->image, LOG_FILE_NAME);
    for (uint32_t slot = 0; slot < 2; slot++) {
        CHECK(image_write(judge->image, log, LOG_SLOT_OFFSET(slot), ZEROS, sizeof(ZEROS)));
    }
    return NULL;
}

/** Two tables' files change their names; the only one loses it, since recovery gives it back from
another. */
const char *canary_swapped_name(judge_t *judge)
{
    image_t *image = judge->image;
    if (!settle(judge)) {
        return NO_END;
    }
    tables_t tables = find_tables(image);
    if (tables.n == 0) {
        return NO_TABLE;
    }
    uint32_t first = image_lookup(image, tables.names[0]);
    if (tables.n == 1) {
        image_link(image, tables.names[0], IMAGE_NONE);
    } else {
        image_link(image, tables.names[0], image_lookup(image, tables.names[1]));
        image_link(image, tables.names[1], first);
    }
    return NULL;
}

/** A page of the system tablespace goes home with an LSN that the log does not have. */
const char *canary_unlogged_page(judge_t *judge, outcome_t *outcome)
{
    image_t *image = judge->image;
    if (!settle(judge)) {
        return NO_END;
    }
    uint32_t page_size = page_size_of(image);
    byte *page = mem_alloc(page_size);
    fs_event_t event = {.kind = FS_WRITE,
                        .name = image_name_find(image, SYSTEM),
                        .inode = inode_of(image, SYSTEM),
                        .length = page_size,
                        .data = page};
    image_read(image, event.inode, 0, page, page_size);
    page_decompress(page, page_size);
    fil_page_set_lsn(page, page_size, fil_page_get_lsn(page) + FAR_LSN);
    fil_page_stamp(page, page_size);
    judge->verdict = &outcome->verdict;
    rules_start(judge->rules, image, false, judge->history);
    rules_before(judge->rules, event.inode, SYSTEM, 0, page_size);
    persist_apply(image, &event);
    rules_event(judge->rules, &event, SYSTEM);
    free(page);
    return NULL;
}
