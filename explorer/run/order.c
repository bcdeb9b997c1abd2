/* The order of states.

Place: beside plan_states.c, which selects them; below runner.c.

1. It depends on the seed and on what is selected only. A class has a site, a model and a mask; states that tear the write
   that happened last are one of their own.
2. Three sorts make it: by class and statement, which gives each state its turn; by turn and place of the statement in a
   spread order, which gives each its rank in the class; by rank. */
#include "explorer/run/order.h"

#include <stdlib.h>

#include "base/check.h"

#define MASKS TEAR_PARTS

typedef struct entry {
    order_state_t state;
    uint32_t class;
    uint32_t statement; /**< its line; then its place in the spread order */
    uint32_t turn;      /**< among the states of class and statement; then rank in the class */
    uint32_t draw;      /**< by seed */
} entry_t;

typedef struct entries {
    const model_config_t *models;
    persist_t *persist;
    entry_t *all;
    uint32_t n;
    uint32_t capacity;
    uint64_t seed;
    uint32_t point;
    uint32_t place;
    uint32_t statement;
} entries_t;

static void add_entry(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    entries_t *entries = ctx;
    if (entries->n == entries->capacity) {
        entries->capacity = entries->capacity == 0 ? 1024 : entries->capacity * 2;
        entries->all = mem_grow(entries->all, entries->capacity * sizeof(*entries->all));
    }
    uint32_t class =
        (entries->place * MODEL_KINDS + (uint32_t)model) * MASKS + model_part(model, k);
    class = 2 * class + model_tears_newest(entries->models, model, k, entries->persist);
    entries->all[entries->n++] = (entry_t){
        .state = {.number = number, .point = entries->point},
        .class = class,
        .statement = entries->statement,
        .draw = (uint32_t)stream_mix(entries->seed, number, 3, 0),
    };
}

static void list_entries(entries_t *entries, const state_plan_t *plan, const campaign_t *campaign,
                         const trace_t *trace, image_t *image)
{
    image_mark(image);
    image_set_hashing(image, false);
    persist_init(entries->persist, &trace->list, image, &campaign->disk);
    for (uint32_t point = 0; point < plan->n_points; point++) {
        if (plan_number(plan, point) == plan_number(plan, point + 1)) {
            continue;
        }
        persist_advance(entries->persist, point);
        entries->point = point;
        entries->place = plan_place(&trace->list, point);
        entries->statement = point == 0 ? 0 : trace->list.events[point - 1].issued_line;
        plan_each(plan, &campaign->models, entries->persist, add_entry, entries);
    }
    persist_free(entries->persist);
    image_undo(image);
    image_set_hashing(image, true);
}

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_statement(const void *left, const void *right)
{
    const entry_t *a = left;
    const entry_t *b = right;
    int c = compare(a->class, b->class);
    c = c != 0 ? c : compare(a->statement, b->statement);
    c = c != 0 ? c : compare(a->draw, b->draw);
    return c != 0 ? c : compare(a->state.number, b->state.number);
}

static int by_turn(const void *left, const void *right)
{
    const entry_t *a = left;
    const entry_t *b = right;
    int c = compare(a->class, b->class);
    c = c != 0 ? c : compare(a->turn, b->turn);
    return c != 0 ? c : compare(a->statement, b->statement);
}

static int by_rank(const void *left, const void *right)
{
    const entry_t *a = left;
    const entry_t *b = right;
    int c = compare(a->turn, b->turn);
    return c != 0 ? c : compare(a->class, b->class);
}

static int by_number(const void *left, const void *right)
{
    return compare(((const order_state_t *)left)->number, ((const order_state_t *)right)->number);
}

static void sort(entries_t *entries, int (*how)(const void *, const void *))
{
    qsort(entries->all, entries->n, sizeof(*entries->all), how);
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
    return b == 0 ? a : gcd(b, a % b);
}

/** Of n numbers the place of each in an order of which every beginning is spread evenly: steps of the golden ratio. */
static void spread(uint32_t *place, uint32_t n)
{
    uint32_t step = (uint32_t)((uint64_t)n * 618034U / 1000000U);
    step = step == 0 ? 1 : step;
    while (gcd(step, n) != 1) {
        step++;
    }
    for (uint32_t i = 0; i < n; i++) {
        place[(uint64_t)i * step % n] = i;
    }
}

/** One past the last entry of the class that begins at `from`. *statements: how many it has; each entry has the number of its
statement and its turn in it then. */
static uint32_t number_class(entries_t *entries, uint32_t from, uint32_t *statements)
{
    uint32_t turn = 0;
    uint32_t line = entries->all[from].statement;
    uint32_t i = from;
    *statements = 0;
    for (; i < entries->n && entries->all[i].class == entries->all[from].class; i++) {
        entry_t *entry = &entries->all[i];
        if (entry->statement != line) {
            line = entry->statement;
            turn = 0;
            ++*statements;
        }
        entry->statement = *statements;
        entry->turn = turn++;
    }
    ++*statements;
    return i;
}

static void give_turns(entries_t *entries)
{
    uint32_t *place = mem_alloc((entries->n + 1U) * sizeof(*place));
    for (uint32_t from = 0; from < entries->n;) {
        uint32_t statements;
        uint32_t end = number_class(entries, from, &statements);
        spread(place, statements);
        for (; from < end; from++) {
            entries->all[from].statement = place[entries->all[from].statement];
        }
    }
    free(place);
}

static void give_ranks(entries_t *entries)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < entries->n; i++) {
        first = entries->all[i].class == entries->all[first].class ? first : i;
        entries->all[i].turn = i - first;
    }
}

void order_create(order_t *order, const state_plan_t *plan, const campaign_t *campaign,
                  const trace_t *trace, image_t *image)
{
    persist_t persist;
    entries_t entries = {.models = &campaign->models, .persist = &persist, .seed = plan->seed};
    list_entries(&entries, plan, campaign, trace, image);
    sort(&entries, by_statement);
    give_turns(&entries);
    sort(&entries, by_turn);
    give_ranks(&entries);
    sort(&entries, by_rank);
    *order = (order_t){.n = entries.n};
    order->states = mem_alloc((entries.n + 1U) * sizeof(*order->states));
    for (uint32_t i = 0; i < entries.n; i++) {
        order->states[i] = entries.all[i].state;
    }
    free(entries.all);
}

void order_free(order_t *order)
{
    free(order->states);
    *order = (order_t){.n = 0};
}

void order_by_trace(const order_t *order, uint32_t from, uint32_t n)
{
    CHECK(from <= order->n && n <= order->n - from);
    qsort(order->states + from, n, sizeof(*order->states), by_number);
}
