/** Spaces with their page 0, for the fixtures from btr/ up. */
#ifndef TEST_FSP_FIXTURE_H
#define TEST_FSP_FIXTURE_H

#include "fsp/fsp.h"
#include "test_fil_fixture.h"

/** Writes page 0 of a space whose file has just been created. */
static inline void space_init(env_t *env, buf_pool_t *pool, space_id_t id)
{
    mtr_t mtr;
    mtr_start(&mtr, pool, MTR_LOG_ALL);
    ENV_OK(env, fsp_header_init(&mtr, id, FSP_INITIAL_PAGES));
    mtr_commit(&mtr);
}

static inline fil_space_t *space_create(env_t *env, fil_t *fil, buf_pool_t *pool, space_id_t id,
                                        const char *path)
{
    fil_space_t *space = NULL;
    ENV_OK(env, buf_log_free_check(pool));
    ENV_OK(env, fil_space_create(fil, id, path, FSP_INITIAL_PAGES, &space));
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
    ENV_OK(env, env_truncate(env, file, (uint64_t)FSP_INITIAL_PAGES * options->page_size));
    env_close(env, file);
    ENV_OK(env, fil_space_open(fil, SPACE_SYSTEM, FIL_SYSTEM_PATH, FSP_INITIAL_PAGES, &space));
    ENV_OK(env, buf_pool_create(env, log, fil, options, pool));
    space_init(env, *pool, SPACE_SYSTEM);
}

#endif
