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
#include "explorer/image/persist.h"
#include "log/log.h"
#include "page/fil_page.h"
#include "page/page_compress.h"

#define DAMAGED_MAX 16U /**< pages; the root of the first tree is one of the first of its file */
#define FAR_LSN ((lsn_t)1 << 40) /* no log has so much */
#define AREA "ib_dblwr"
#define SYSTEM "ibdata1"
#define NO_END "the end cannot be recovered"
#define NO_TABLE "the run ends without a table"

/** Recovers and closes: what is damaged then no log brings back. */
static bool settle(judge_t *judge)
{
    engine_options_t options = judge->options;
    engine_t *engine = NULL;
    options.log_format = 0; /* as it is */
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
    log_file_info_t info;
    uint32_t inode = inode_of(image, LOG_FILE_NAME);
    CHECK(inode != IMAGE_NONE);
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

typedef void (*damage_t)(byte *page, uint32_t page_size);

static void into_another_space(byte *page, uint32_t page_size)
{
    mach_write_4(page + FIL_PAGE_SPACE_ID, mach_read_4(page + FIL_PAGE_SPACE_ID) + 1);
    fil_page_stamp(page, page_size);
}

static void tear(byte *page, uint32_t page_size)
{
    for (uint32_t i = page_size / 2; i < page_size - FIL_PAGE_TRAILER; i++) {
        page[i] ^= 0xFF;
    }
}

static void beyond_the_log(byte *page, uint32_t page_size)
{
    fil_page_set_lsn(page, page_size, fil_page_get_lsn(page) + FAR_LSN);
    fil_page_stamp(page, page_size);
}

/** The first pages of trees in the file of a table. @return how many */
static uint32_t damage_pages(image_t *image, uint32_t inode, damage_t damage)
{
    uint32_t page_size = page_size_of(image);
    uint64_t n = image_size(image, inode) / page_size;
    byte *page = mem_alloc(page_size);
    uint32_t done = 0;
    for (uint64_t i = 1; i < n && done < DAMAGED_MAX; i++) {
        image_read(image, inode, i * page_size, page, page_size);
        page_decompress(page, page_size); /* a plain one is right there too */
        if (fil_page_get_type(page) == FIL_PAGE_INDEX) {
            damage(page, page_size);
            done += image_write(image, inode, i * page_size, page, page_size);
        }
    }
    free(page);
    return done;
}

/** Pages of a table that is there, in a database without copies. */
static const char *damaged(judge_t *judge, damage_t damage)
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
    return damage_pages(judge->image, table, damage) == 0 ? "the table has no tree" : NULL;
}

const char *canary_foreign_page(judge_t *judge)
{
    return damaged(judge, into_another_space);
}

const char *canary_torn_page(judge_t *judge)
{
    return damaged(judge, tear);
}

const char *canary_future_page(judge_t *judge)
{
    return damaged(judge, beyond_the_log);
}

/** Two tables' files change their names; the only one loses it, since recovery gives it back from another. */
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
    beyond_the_log(page, page_size);
    judge->verdict = &outcome->verdict;
    rules_start(judge->rules, image, false, judge->history);
    rules_before(judge->rules, event.inode, SYSTEM, 0, page_size);
    persist_apply(image, &event);
    rules_event(judge->rules, &event, SYSTEM);
    free(page);
    return NULL;
}
