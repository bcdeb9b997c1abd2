/** Spaces with their page 0, for the fixtures from btr/ up. */
#ifndef TEST_FSP_FIXTURE_H
#define TEST_FSP_FIXTURE_H

#include "base/mach.h"
#include "fsp/fsp.h"
#include "test_fil_fixture.h"

/** A copy of page no of a space in `page`. */
static inline void page_copy(env_t *env, buf_pool_t *pool, page_id_t id, byte *page)
{
    buf_block_t *block = NULL;
    ENV_OK(env, buf_page_get(pool, id, &block));
    memcpy(page, block->frame, buf_page_size(pool));
    buf_block_unfix(pool, block);
}

/** Descriptor of the extent of a page, in page (a copy of its descriptor page). */
static inline const byte *xdes_in(const byte *page, uint32_t page_size, page_no_t page_no)
{
    uint32_t covers = xdes_page_covers(page_size, FX_EXTENT_PAGES);
    return page + FSP_XDES + page_no % covers / FX_EXTENT_PAGES * xdes_size(FX_EXTENT_PAGES);
}

static inline bool page_is_used(env_t *env, buf_pool_t *pool, page_id_t id)
{
    uint32_t page_size = buf_page_size(pool);
    uint32_t covers = xdes_page_covers(page_size, FX_EXTENT_PAGES);
    byte page[PAGE_SIZE_MAX];
    page_copy(env, pool, (page_id_t){id.space, id.page_no - id.page_no % covers}, page);
    uint32_t bit = id.page_no % FX_EXTENT_PAGES;
    return (xdes_in(page, page_size, id.page_no)[XDES_BITMAP + bit / 8] >> bit % 8 & 1) != 0;
}

static inline uint32_t space_field(env_t *env, buf_pool_t *pool, space_id_t space, uint32_t offset)
{
    byte page[PAGE_SIZE_MAX];
    page_copy(env, pool, (page_id_t){space, 0}, page);
    return mach_read_4(page + offset);
}

/** Used pages of a space. */
static inline uint32_t space_n_used(env_t *env, buf_pool_t *pool, space_id_t space)
{
    uint32_t limit = space_field(env, pool, space, FSP_FREE_LIMIT);
    uint32_t n = 0;
    for (page_no_t page_no = 0; page_no < limit; page_no++) {
        n += page_is_used(env, pool, (page_id_t){space, page_no});
    }
    return n;
}

/** Pages that a segment uses, by its inode; 0 if its header is zero. */
static inline uint32_t segment_n_used(env_t *env, buf_pool_t *pool, page_id_t header_page,
                                      uint32_t header_offset)
{
    byte page[PAGE_SIZE_MAX];
    page_copy(env, pool, header_page, page);
    page_no_t inode_page = mach_read_4(page + header_offset + FSEG_HEADER_PAGE);
    uint32_t at = mach_read_2(page + header_offset + FSEG_HEADER_OFFSET);
    if (at == 0) {
        return 0;
    }
    page_copy(env, pool, (page_id_t){header_page.space, inode_page}, page);
    uint32_t n = mach_read_4(page + at + FSEG_NOT_FULL_N_USED)
                 + FX_EXTENT_PAGES * mach_read_4(page + at + FSEG_FULL + FLST_LEN);
    for (uint32_t slot = 0; slot < FX_EXTENT_PAGES / 2; slot++) {
        n += mach_read_4(page + at + FSEG_FRAGS + 4 * slot) != FIL_NULL;
    }
    return n;
}

/** Writes page 0 of a space whose file has just been created. */
static inline void space_init(env_t *env, buf_pool_t *pool, space_id_t id)
{
    mtr_t mtr;
    mtr_start(&mtr, pool, MTR_LOG_ALL);
    ENV_OK(env, fsp_header_init(&mtr, id, FX_EXTENT_PAGES));
    mtr_commit(&mtr);
}

static inline fil_space_t *space_create(env_t *env, fil_t *fil, buf_pool_t *pool, space_id_t id,
                                        const char *path)
{
    fil_space_t *space = NULL;
    ENV_OK(env, buf_log_free_check(pool));
    ENV_OK(env, fil_space_create(fil, id, path, FX_EXTENT_PAGES, &space));
    space_init(env, pool, id);
    return space;
}

/** In a directory with a log only: the system space with its page 0, and a pool. */
static inline void system_create(env_t *env, log_t *log, fil_t *fil,
                                 const engine_options_t *options, buf_pool_t **pool)
{
    os_file_t *file = NULL;
    fil_space_t *space = NULL;
    ENV_OK(env, env_open(env, FIL_SYSTEM_PATH, OS_CREATE_NEW, &file));
    ENV_OK(env, env_truncate(env, file, (uint64_t)FX_EXTENT_PAGES * options->page_size));
    env_close(env, file);
    ENV_OK(env, fil_space_open(fil, SPACE_SYSTEM, FIL_SYSTEM_PATH, FX_EXTENT_PAGES, &space));
    ENV_OK(env, buf_pool_create(env, log, fil, options, pool));
    space_init(env, *pool, SPACE_SYSTEM);
}

#endif
