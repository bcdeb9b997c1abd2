/** Trees that no catalogue knows. */
#ifndef TEST_TREE_H
#define TEST_TREE_H

#include "btr/btr.h"
#include "test_env_fixture.h"

static inline void tree_create(env_t *env, buf_pool_t *pool, btr_t *btr)
{
    mtr_t mtr;
    ENV_OK(env, buf_log_free_check(pool));
    mtr_start(&mtr, pool, MTR_LOG_ALL);
    ENV_OK(env, btr_create(&mtr, btr));
    mtr_commit(&mtr);
}

static inline void tree_free(env_t *env, buf_pool_t *pool, const btr_t *btr)
{
    mtr_t mtr;
    ENV_OK(env, btr_free_but_root(pool, btr));
    mtr_start(&mtr, pool, MTR_LOG_ALL);
    ENV_OK(env, btr_free_root(&mtr, btr));
    mtr_commit(&mtr);
}

#endif
