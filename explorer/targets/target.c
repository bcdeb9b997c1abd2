/* The one way to an outcome. Place: below the kinds of targets; state.c knows no other way. */
#include "explorer/targets/target.h"

#include <stdio.h>
#include <unistd.h>

#include "base/check.h"

/** Unless all went well. */
static void end_without_verdict(dberr_t status, const err_sink_t *err)
{
    if (status != DB_SUCCESS) {
        (void)fprintf(stderr, "ERROR: %s\n", err->msg);
        (void)fflush(stderr);
        _exit(EXIT_MACHINE);
    }
}

void target_open(target_t *target, const target_kind_t *kind, image_t *image,
                 const rules_t *history)
{
    CHECK(kind->n_counters <= OUTCOME_COUNTERS_MAX);
    *target = (target_t){.kind = kind, .self = kind->open(kind->config, image, history)};
}

void target_judge(target_t *target, const target_case_t *c, outcome_t *outcome)
{
    err_sink_t err = {.msg = ""};
    end_without_verdict(target->kind->judge(target->self, c, outcome, &err), &err);
}

void target_close(target_t *target)
{
    err_sink_t err = {.msg = ""};
    if (target->self != NULL) {
        void *self = target->self;
        target->self = NULL;
        end_without_verdict(target->kind->close(self, &err), &err);
    }
}
