/** The recorded creation of a database, and an explorer of it. */
#ifndef EXPLORER_TESTS_RUNNER_FIXTURE_H
#define EXPLORER_TESTS_RUNNER_FIXTURE_H

#include "disk/tests/fixture.h"

#include "explorer/run/runner.h"
#include "explorer/targets/engine/engine_target.h"

/** Nothing is known of the statements. */
static const kinds_t ALIKE = {.n = 1};

typedef struct fixture {
    image_t *image;
    trace_t trace;
    allowed_t allowed;
    allowed_prefix_t prefix;
    engine_config_t engine;
    campaign_t campaign;
    state_plan_t plan;
    order_t order;
    shared_t *shared;
    explorer_t explorer;
} fixture_t;

static inline uint32_t count_inodes(const fs_list_t *list)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        n += list->events[i].kind == FS_LINK;
    }
    return n;
}

/** What the recorded process does besides; NULL: nothing. */
static void (*fixture_work)(engine_t *engine);

/** Of the rows that the recorded process has left. */
static inline uint64_t fixture_digest(image_t *image)
{
    check_report_t report;
    assert_int_equal(check_run(image_os(image), &report, NULL), DB_SUCCESS);
    uint64_t digest = allowed_digest(report.tables, report.n_tables);
    check_report_free(&report);
    return digest;
}

/** All states, anew. */
static inline void fixture_plan(fixture_t *f)
{
    const plan_range_t all = {.to_seq = UINT64_MAX};
    const order_limits_t limits = {.kinds = &ALIKE};
    order_free(&f->order);
    plan_free(&f->plan);
    plan_create(&f->plan, &f->campaign, &f->trace, f->image, &all);
    order_create(&f->order, &f->plan, &f->campaign, &f->trace, f->image, &limits);
}

static inline int setup(void **state)
{
    static fixture_t f;
    probe_t probe = {.point = NULL};
    engine_t *engine = NULL;
    err_sink_t err = {.msg = ""};
    f = (fixture_t){.image = image_create(), .engine = {.in_full = 1}};
    options_set_defaults(&f.engine.options);
    f.engine.options.buffer_pool_pages = 32;
    f.engine.options.dblwr_pages = 8;
    image_mark(f.image);
    image_os_record(f.image, &f.trace.list);
    assert_int_equal(engine_open(image_os(f.image), &probe, &f.engine.options, true, &engine, &err),
                     DB_SUCCESS);
    if (fixture_work != NULL) {
        fixture_work(engine);
    }
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    image_os_record(f.image, NULL);
    f.prefix = (allowed_prefix_t){.digest = fixture_digest(f.image)};
    image_undo(f.image);
    for (uint32_t n = count_inodes(&f.trace.list); n > 0; n--) {
        (void)image_inode_create(f.image);
    }
    f.allowed = (allowed_t){.prefixes = &f.prefix, .n = 1};
    f.campaign = (campaign_t){.models = {.enabled = MODELS_ALL, .sector = 512, .seed = 1},
                              .depth = 1,
                              .nested = 4,
                              .target = engine_target(&f.engine)};
    fixture_plan(&f);
    f.shared = shared_create(1U << 14, false);
    assert_non_null(f.shared);
    explorer_init(&f.explorer, &f.campaign, &f.trace, f.image, &f.allowed, f.shared);
    *state = &f;
    return 0;
}

static inline int teardown(void **state)
{
    fixture_t *f = *state;
    explorer_free(&f->explorer);
    shared_destroy(f->shared);
    order_free(&f->order);
    plan_free(&f->plan);
    fs_list_free(&f->trace.list);
    image_destroy(f->image);
    return 0;
}

static inline const canary_t *find(const canaries_t *canaries, const char *name)
{
    for (uint32_t i = 0; i < canaries->n; i++) {
        if (strcmp(canaries->list[i].name, name) == 0) {
            return &canaries->list[i];
        }
    }
    fail_msg("no canary %s", name);
    return NULL;
}

#endif
