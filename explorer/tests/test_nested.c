/* Which crashes of a recovery are looked at. */
#include "fixture.h"

#include "explorer/run/nested.h"

#define EVENTS 100U
#define FIRST 10U
#define PICKS 8U

static void record(fs_list_t *list)
{
    for (uint32_t i = 0; i < EVENTS; i++) {
        (void)fs_list_add(list, i % 3 == 0 ? FS_SYNC : FS_WRITE);
    }
}

static uint32_t count_at(const nested_pick_t *picks, uint32_t point)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < PICKS; i++) {
        n += picks[i].point == point;
    }
    return n;
}

/** Half of the crashes come right after what a rule complained of; without that none is drawn otherwise than before. */
static void test_suspects(void **state)
{
    fs_list_t list = {.n = 0};
    const torn_t torn = {.n = {{{0}}}};
    const nested_suspects_t none = {.n = 0};
    const nested_suspects_t one = {.n = 1, .at = {41}};
    const nested_suspects_t late = {.n = 1, .at = {EVENTS}};
    nested_pick_t picks[PICKS];
    nested_pick_t again[PICKS];
    (void)state;
    record(&list);
    nested_draw(&list, FIRST, &torn, &none, 7, picks, PICKS);
    for (uint32_t i = 0; i < PICKS; i++) {
        assert_in_range(picks[i].point, FIRST, EVENTS);
    }
    nested_draw(&list, FIRST, &torn, &none, 7, again, PICKS);
    assert_memory_equal(picks, again, sizeof(picks));
    nested_draw(&list, FIRST, &torn, &one, 7, picks, PICKS);
    assert_true(count_at(picks, FIRST + 42) >= PICKS / 2);
    assert_true(count_at(picks, EVENTS) >= 1);
    nested_draw(&list, FIRST, &torn, &late, 7, picks, PICKS);
    assert_true(count_at(picks, EVENTS) >= PICKS / 2);
    fs_list_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_suspects)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
