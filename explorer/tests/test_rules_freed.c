/* Homes of freed pages: I15. */
#include <stdlib.h>

#include "scenario.h"

static void scrub(world_t *w, uint32_t page)
{
    static const byte ZEROS[WORLD_PAGE];
    world_write(w, "t.ibd", (uint64_t)page * WORLD_PAGE, ZEROS, sizeof(ZEROS));
}

static void scrub_a_freed_page(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_change_flushed(w, 4);
    (void)world_free(w, 4);
    world_log(w);
    scrub(w, 4);
}

static void scrub_before_the_log(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_change_flushed(w, 4);
    (void)world_free(w, 4);
    world_log_write(w);
    scrub(w, 4);
}

static void scrub_a_page_in_use(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_change_flushed(w, 4);
    scrub(w, 4);
}

static void scrub_a_page_given_out_again(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_free(w, 4);
    (void)world_init(w, 4);
    (void)world_change_flushed(w, 4);
    scrub(w, 4);
}

static void freed_page_goes_home(world_t *w)
{
    (void)world_init(w, 4);
    lsn_t lsn = world_change_durable(w, 4);
    world_copy_durable(w, 0, 4, lsn);
    (void)world_free(w, 4);
    world_log(w);
    world_home(w, 4, lsn);
}

static void test_freed(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(scrub_a_freed_page),
        BREAKS(15, scrub_before_the_log),
        BREAKS(15, scrub_a_page_in_use),
        BREAKS(15, scrub_a_page_given_out_again),
    };
    static const scenario_t PHYSICAL[] = {BREAKS(15, freed_page_goes_home)};
    static const scenario_t LOGICAL[] = {KEEPS(freed_page_goes_home)};
    const char *format = getenv("WORLD_LOG_FORMAT");
    (void)state;
    RUN(SCENARIOS);
    scenario_run(format != NULL && strcmp(format, "10.5") == 0 ? PHYSICAL : LOGICAL, 1, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
