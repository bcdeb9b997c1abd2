/* A target that reads real files. Place: above external.c and target.c. */
#include "explorer/targets/external_target.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/** A verifier whose answers go wrong on their way. */
typedef struct liar {
    const verifier_t *real;
    bool refuses;
    uint32_t n_answers;
} liar_t;

typedef struct files {
    const external_config_t *config;
    image_t *image;
    external_t directory; /**< of this process, opened at its first state */
    liar_t liar;          /**< of a canary, and what makes it the verifier */
    verifier_t lying;
    external_config_t lying_config;
} files_t;

static void *files_open(const void *config, image_t *image, const rules_t *history)
{
    files_t *files = mem_alloc(sizeof(*files));
    (void)history;
    *files = (files_t){.config = config, .image = image};
    return files;
}

/** The directory is named after the worker, whose children follow one another: each clears what the
last one left, however that ended. */
static dberr_t files_judge(void *self, const target_case_t *c, outcome_t *outcome, err_sink_t *err)
{
    files_t *files = self;
    dberr_t status = DB_SUCCESS;
    if (files->directory.config == NULL) {
        char dir[PATH_LEN_MAX + 1];
        (void)snprintf(dir, sizeof(dir), "%.200s/%ld", files->config->base, (long)getppid());
        status = external_open(&files->directory, files->config, dir, err);
    }
    const external_case_t what = {
        .expected = c->expected, .twice = target_case_is_twice(c), .record = c->record};
    TRY(status);
    return external_judge(&files->directory, files->image, &what, outcome, err);
}

static dberr_t files_close(void *self, err_sink_t *err)
{
    files_t *files = self;
    dberr_t status =
        files->directory.config != NULL ? external_close(&files->directory, err) : DB_SUCCESS;
    free(files);
    return status;
}

/* ---- canaries ---- */

static dberr_t liar_run(void *self, const char *dir, check_report_t *report, err_sink_t *err)
{
    liar_t *liar = self;
    if (liar->refuses) {
        return err_set(err, DB_UNRECOVERABLE, "the canary");
    }
    dberr_t status = liar->real->run(liar->real->self, dir, report, err);
    bool lies = status == DB_SUCCESS && ++liar->n_answers > 1;
    if (lies && report->n_tables == 0) { /* of nothing there is no other digest */
        check_report_free(report);
        return err_set(err, DB_UNRECOVERABLE, "the canary");
    }
    for (uint32_t i = 0; lies && i < report->n_tables; i++) {
        report->tables[i].hash = ~report->tables[i].hash;
    }
    return status;
}

static dberr_t liar_stop(void *self, err_sink_t *err)
{
    liar_t *liar = self;
    return liar->real->stop != NULL ? liar->real->stop(liar->real->self, err) : DB_SUCCESS;
}

/** From here on the verifier is heard through it. */
static void put_liar(files_t *files, bool refuses)
{
    files->liar = (liar_t){.real = files->config->verifier, .refuses = refuses};
    files->lying =
        (verifier_t){.name = "canary", .self = &files->liar, .run = liar_run, .stop = liar_stop};
    files->lying_config = *files->config;
    files->lying_config.verifier = &files->lying;
    files->config = &files->lying_config;
}

static const char *refusal(void *self, uint32_t number, outcome_t *outcome)
{
    (void)number;
    (void)outcome;
    put_liar(self, true);
    return NULL;
}

static const char *second_answer(void *self, uint32_t number, outcome_t *outcome)
{
    (void)number;
    (void)outcome;
    put_liar(self, false);
    return NULL;
}

static const target_canary_t CANARIES[] = {
    {.name = "refusal", .invariant = 30, .shows_as = (uint64_t)1 << 30, .make = refusal},
    {.name = "second_answer",
     .invariant = 17,
     .shows_as = (uint64_t)1 << 17,
     .twice = true,
     .make = second_answer},
};

target_kind_t external_target(const external_config_t *config)
{
    return (target_kind_t){.name = config->verifier->name,
                           .config = config,
                           .has_deadline = true,
                           .any_state = config->any_state,
                           .canaries = CANARIES,
                           .n_canaries = sizeof(CANARIES) / sizeof(CANARIES[0]),
                           .open = files_open,
                           .judge = files_judge,
                           .close = files_close};
}
