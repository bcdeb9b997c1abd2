/* Which of the two ways to an outcome.

Place: above judge.c and external.c; state.c knows no other way. */
#include "explorer/targets/target.h"

#include <stdio.h>
#include <unistd.h>

static _Noreturn void end_without_verdict(const err_sink_t *err)
{
    (void)fprintf(stderr, "ERROR: %s\n", err->msg);
    (void)fflush(stderr);
    _exit(EXIT_MACHINE);
}

/** The directory is named after the worker, whose children follow one another: each clears what the
last one left, however that ended. */
static void judge_external(target_t *target, const judge_case_t *c, outcome_t *outcome)
{
    const judge_t *judge = &target->judge;
    err_sink_t err = {.msg = ""};
    dberr_t status = DB_SUCCESS;
    if (target->directory.config == NULL) {
        char dir[PATH_LEN_MAX + 1];
        (void)snprintf(dir, sizeof(dir), "%.200s/%ld", target->external->base, (long)getppid());
        status = external_open(&target->directory, target->external, dir, &err);
    }
    if (status == DB_SUCCESS) {
        const external_case_t what = {
            .expected = c->expected, .twice = c->twice, .record = c->record};
        status = external_judge(&target->directory, judge->image, &what, outcome, &err);
    }
    if (status != DB_SUCCESS) {
        end_without_verdict(&err);
    }
}

void target_judge(target_t *target, const judge_case_t *c, outcome_t *outcome, stats_t *stats)
{
    if (target->external != NULL) {
        *stats = (stats_t){.data_reads = 0};
        judge_external(target, c, outcome);
    } else {
        judge_state(&target->judge, c, outcome, stats);
        if (target->judge.failed.msg[0] != '\0') {
            end_without_verdict(&target->judge.failed);
        }
    }
}

void target_init(target_t *target, image_t *image, const engine_options_t *options,
                 const external_config_t *external, const rules_t *history)
{
    *target = (target_t){.external = external};
    judge_init(&target->judge, image, options, history);
}

void target_free(target_t *target)
{
    err_sink_t err = {.msg = ""};
    if (target->directory.config != NULL
        && external_close(&target->directory, &err) != DB_SUCCESS) {
        end_without_verdict(&err);
    }
    judge_free(&target->judge);
}
