/* The bundled engine as a target. Place: above judge.c and target.c.

What is looked at besides the first recovery is drawn by the image: each draw takes what the one
before it has left of the number. */
#include "explorer/targets/engine/engine_target.h"

#include <stdlib.h>

#include "disk/models.h"
#include "explorer/targets/engine/engine_canary.h"
#include "explorer/targets/engine/torn_table.h"

#define BATCHES_EVERY 16U
#define CONVERTED_EVERY 16U
#define CONVERTED_TORN_EVERY 2U
#define PURGE_EVERY 4U
#define SMALL_EVERY 4U
#define WORK_EVERY 4U
#define WORK_TORN_EVERY 1U /**< where there is a torn page to be met */

typedef struct engine_self {
    const engine_config_t *config;
    judge_t judge;
} engine_self_t;

static const char *const COUNTERS[ENGINE_COUNTERS] = {
    "dblwr_restored",       "redo_records",    "pages_created",  "index_load_reads",
    "freed_reads",          "indexes_dropped", "tables_dropped", "trx_rolled_back",
    "several_batches",      "swaps_finished",  "pages_compared", "backups_prepared",
    "recovered_in_batches", "purged",          "worked",         "exports_judged"};

static void *engine_open_images(const void *config, image_t *image, const rules_t *history)
{
    engine_self_t *self = mem_alloc(sizeof(*self));
    self->config = config;
    judge_init(&self->judge, image, &self->config->options, history);
    return self;
}

/** One in so many. */
static bool draw(uint64_t *drawn, uint32_t every)
{
    bool is_it = *drawn % every == 0;
    *drawn /= every;
    return is_it;
}

static dberr_t engine_judge(void *of, const target_case_t *c, outcome_t *outcome, err_sink_t *err)
{
    engine_self_t *self = of;
    uint64_t drawn = c->sample / TARGET_TWICE_EVERY;
    judge_case_t what = {.expected = c->expected,
                         .record = c->record,
                         .exported = c->exported,
                         .export_acked = c->export_acked,
                         .killed = c->killed,
                         .twice = target_case_is_twice(c),
                         .seed = stream_mix(c->sample, 0, 0, 1)};
    what.in_batches = draw(&drawn, BATCHES_EVERY);
    what.purged = draw(&drawn, PURGE_EVERY);
    what.small = draw(&drawn, SMALL_EVERY);
    bool torn = torn_table_find(self->judge.image, what.torn);
    what.worked = draw(&drawn, torn ? WORK_TORN_EVERY : WORK_EVERY);
    what.converted = draw(&drawn, torn ? CONVERTED_TORN_EVERY : CONVERTED_EVERY);
    what.in_full = draw(&drawn, self->config->in_full);
    judge_state(&self->judge, &what, outcome);
    *err = self->judge.failed;
    return self->judge.failed.msg[0] == '\0' ? DB_SUCCESS : DB_ERROR;
}

static dberr_t engine_close_images(void *of, err_sink_t *err)
{
    engine_self_t *self = of;
    (void)err;
    judge_free(&self->judge);
    free(self);
    return DB_SUCCESS;
}

/* ---- canaries ---- */

static const char *damaged_pages(void *of, uint32_t number, outcome_t *outcome)
{
    engine_self_t *self = of;
    (void)outcome;
    return canary_damaged_pages(&self->judge, (canary_pages_t)number);
}

static const char *swapped_name(void *of, uint32_t number, outcome_t *outcome)
{
    engine_self_t *self = of;
    (void)number;
    (void)outcome;
    return canary_swapped_name(&self->judge);
}

static const char *no_checkpoint(void *of, uint32_t number, outcome_t *outcome)
{
    engine_self_t *self = of;
    (void)number;
    (void)outcome;
    return canary_no_checkpoint(&self->judge);
}

static const char *unlogged_page(void *of, uint32_t number, outcome_t *outcome)
{
    engine_self_t *self = of;
    (void)number;
    return canary_unlogged_page(&self->judge, outcome);
}

#define BIT(invariant) ((uint64_t)1 << (invariant))
#define OF_PAGES(n, i, which)                                                                      \
    {                                                                                              \
        .name = (n), .invariant = (i), .shows_as = BIT(i), .make = damaged_pages,                  \
        .number = (which)                                                                          \
    }

static const target_canary_t CANARIES[] = {
    OF_PAGES("foreign_page", 5, CANARY_FOREIGN_PAGE),
    OF_PAGES("torn_page", 5, CANARY_TORN_PAGE),
    OF_PAGES("future_page", 4, CANARY_FUTURE_PAGE),
    OF_PAGES("page_shape", 6, CANARY_PAGE_SHAPE),
    OF_PAGES("row_order", 7, CANARY_ROW_ORDER),
    OF_PAGES("siblings", 8, CANARY_SIBLINGS),
    OF_PAGES("one_parent", 9, CANARY_ONE_PARENT),
    OF_PAGES("extents", 11, CANARY_EXTENTS),
    OF_PAGES("trx_id", 25, CANARY_TRX_ID),
    {.name = "swapped_name", .invariant = 12, .shows_as = BIT(12) | BIT(30), .make = swapped_name},
    {.name = "no_checkpoint", .invariant = 30, .shows_as = BIT(30), .make = no_checkpoint},
    {.name = "unlogged_page",
     .invariant = 4,
     .shows_as = BIT(4),
     .is_judged = true,
     .make = unlogged_page},
};

target_kind_t engine_target(const engine_config_t *config)
{
    return (target_kind_t){.name = "engine",
                           .config = config,
                           .counters = COUNTERS,
                           .n_counters = ENGINE_COUNTERS,
                           .keeps_all = true,
                           .canaries = CANARIES,
                           .n_canaries = sizeof(CANARIES) / sizeof(CANARIES[0]),
                           .open = engine_open_images,
                           .judge = engine_judge,
                           .close = engine_close_images};
}

judge_t *engine_target_judge(const target_t *target)
{
    engine_self_t *self = target->self;
    return &self->judge;
}
