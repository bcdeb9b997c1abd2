/* See scenario.h. */
#include "scenario.h"

#include <stdlib.h>

static void expect_only(const world_t *w, const scenario_t *scenario)
{
    for (uint32_t k = 0; k < 32; k++) {
        if ((w->found[k] > 0) != (k != 0 && (k == scenario->invariant || k == scenario->also))) {
            fail_msg("%s: I%u found %u times, I%u and I%u expected; last: %s", scenario->name, k,
                     w->found[k], scenario->invariant, scenario->also, w->what);
        }
    }
    if (strcmp(w->told, scenario->rules) != 0) {
        fail_msg("%s: told by \"%s\", not by \"%s\"; last: %s", scenario->name, w->told,
                 scenario->rules, w->what);
    }
}

void scenario_run(const scenario_t *scenarios, size_t n, bool doublewrite)
{
    for (size_t i = 0; i < n; i++) {
        world_t *w = calloc(1, sizeof(*w));
        assert_non_null(w);
        world_begin(w, doublewrite);
        scenarios[i].play(w);
        expect_only(w, &scenarios[i]);
        world_end(w);
        free(w);
    }
}

void scenario_log_around(world_t *w)
{
    for (uint32_t i = 0; i < 5; i++) {
        world_fill_log(w, 200);
        world_flush(w, 0, w->end_lsn);
        world_checkpoint(w, w->end_lsn);
    }
}

lsn_t scenario_init_and_free(world_t *w)
{
    lsn_t lsn = world_init(w, 8);
    (void)world_init(w, 9);
    (void)world_free(w, 9);
    world_log(w);
    return lsn;
}
