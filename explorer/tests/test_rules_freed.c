/* Homes of freed pages: I15. Holes: I29. */
#include <stdlib.h>

#include "page/page_compress.h"

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

/** Given out and freed again by a log that is not durable, but never created. */
static void scrub_a_page_freed_twice(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_change_flushed(w, 4);
    (void)world_free(w, 4);
    world_log(w);
    (void)world_free(w, 4);
    world_log_write(w);
    scrub(w, 4);
}

static void scrub_a_page_created_in_between(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_change_flushed(w, 4);
    (void)world_free(w, 4);
    world_log(w);
    (void)world_init(w, 4);
    world_log(w);
    (void)world_free(w, 4);
    world_log_write(w);
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
        BREAKS(15, "scrubbed_page", scrub_before_the_log),
        BREAKS(15, "scrubbed_page", scrub_a_page_in_use),
        BREAKS(15, "scrubbed_page", scrub_a_page_given_out_again),
        KEEPS(scrub_a_page_freed_twice),
        BREAKS(15, "scrubbed_page", scrub_a_page_created_in_between),
    };
    static const scenario_t PHYSICAL[] = {BREAKS(15, "freed_page", freed_page_goes_home)};
    static const scenario_t LOGICAL[] = {KEEPS(freed_page_goes_home)};
    const char *format = getenv("WORLD_LOG_FORMAT");
    (void)state;
    RUN(SCENARIOS);
    scenario_run(format != NULL && strcmp(format, "10.5") == 0 ? PHYSICAL : LOGICAL, 1, true);
}

/* ---- I29 ---- */

/** Page 4 as it is stored, with its copy in the area; @return the number of its bytes. */
static uint32_t compressed_home(world_t *w, lsn_t lsn)
{
    byte bytes[WORLD_PAGE];
    world_page_bytes(bytes, 4, lsn, WORLD_INDEX);
    page_compress(bytes, WORLD_PAGE, PAGE_ALGORITHM_LZ4);
    uint32_t stored = page_stored_bytes(bytes, WORLD_PAGE);
    world_write(w, "ib_dblwr", 0, bytes, sizeof(bytes));
    world_sync(w, "ib_dblwr");
    world_write(w, "t.ibd", 4 * WORLD_PAGE, bytes, stored);
    return stored;
}

static uint32_t compressed_page(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_change_flushed(w, 4);
    return compressed_home(w, world_change_durable(w, 4));
}

static void hole_behind_what_is_durable(world_t *w)
{
    uint32_t stored = compressed_page(w);
    world_sync(w, "t.ibd");
    world_punch(w, 4, stored);
}

static void hole_behind_what_is_not(world_t *w)
{
    world_punch(w, 4, compressed_page(w));
}

static void hole_behind_what_is_not_before_another(world_t *w)
{
    uint32_t stored = compressed_page(w);
    world_copy_and_home(w, 1, 0, world_change_durable(w, 0));
    world_punch(w, 4, stored);
}

static void hole_in_what_is_stored(world_t *w)
{
    (void)compressed_page(w);
    world_sync(w, "t.ibd");
    world_punch(w, 4, 256);
}

static void hole_in_a_plain_page(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_change_flushed(w, 4);
    world_punch(w, 4, 2048);
}

static void hole_over_a_freed_page(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_change_flushed(w, 4);
    (void)world_free(w, 4);
    world_log(w);
    world_punch(w, 4, 0);
}

static void hole_before_the_log(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_change_flushed(w, 4);
    (void)world_free(w, 4);
    world_punch(w, 4, 0);
}

static void compressed_before_the_log(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_change_flushed(w, 4);
    (void)compressed_home(w, world_change(w, 4));
}

static void test_holes(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(hole_behind_what_is_durable),
        BREAKS(29, "hole", hole_behind_what_is_not),
        BREAKS(29, "hole", hole_behind_what_is_not_before_another),
        BREAKS(29, "hole", hole_in_what_is_stored),
        BREAKS(29, "hole", hole_in_a_plain_page),
        KEEPS(hole_over_a_freed_page),
        BREAKS(29, "hole", hole_before_the_log),
        BREAKS(4, "write_ahead", compressed_before_the_log),
    };
    (void)state;
    RUN(SCENARIOS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_freed),
        cmocka_unit_test(test_holes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
