/* The order of states.

Place: above plan_states.c, which numbers them; below runner.c.

    root - part - place - kind of statement - model: a leaf

1. A node gives its turns to its children by weight (stride scheduling): who has had the least for
   its weight is next. One that has no state left has no turn, and the others share on. So of the
   first N states each has its share of N, or all it has.
2. The states of a leaf, numbered along the trace, have their turns in steps of the golden ratio,
   and so do the turns with which one node or leaf after the other begins, the first one drawn by
   seed: every beginning is spread evenly.
3. It depends on seed, trace and range only: the first N are the first N of any longer one. */
#include "explorer/run/order.h"

#include <stdlib.h>

#include "base/check.h"
#include "disk/stream.h"

#define PLACE_NAMES SITE_KINDS
#define PLACE_HOLES (SITE_KINDS + 1U)
#define PLACES (SITE_KINDS + 2U)
#define STRIDE ((uint64_t)1 << 40)
#define HEAD_BYTES 4096U           /**< of a file: what names it, or leads to all the rest */
#define GOLDEN 0x9E3779B97F4A7C15U /**< the golden ratio, of 2^64 parts */

enum {
    PART_BASIC,
    PART_NEWEST,
    PART_OTHER,
    PART_SUSPECT,
    PART_ACCUSED,
    PART_BOTH,
    PART_HEAD,
    PART_WHOLE,
    PARTS
};
enum { LEVEL_PART, LEVEL_PLACE, LEVEL_KIND, LEVEL_MODEL, LEVELS };

/** Weights of the parts: where no recovery is crashed again, and where they are. */
static const uint64_t PART_WEIGHTS[2][PARTS] = {
    {36, 3, 9, 16, 8, 8, 36, STRIDE >> 8},
    {12, 3, 9, 8, 4, 4, 12, STRIDE >> 8},
};

typedef struct node {
    uint64_t total; /**< states below it */
    uint64_t left;  /**< of these, without a turn */
    uint64_t weight;
    uint64_t pass; /**< when its next turn is */
} node_t;

/** Which of the states of a leaf has turn r: the one at (r * step + shift) mod total. */
typedef struct leaf {
    uint64_t seen; /**< states, along the trace */
    uint64_t shift;
    uint64_t inverse; /**< of step */
    uint64_t first;   /**< of its turns, in turns */
} leaf_t;

typedef struct drawing {
    const state_plan_t *plan;
    const model_config_t *models;
    const order_limits_t *limits;
    const trace_t *trace;
    persist_t *persist;
    uint32_t widths[LEVELS];
    node_t *nodes[LEVELS]; /**< child c of node i of the level above: i * width + c */
    uint32_t n_leaves;
    leaf_t *leaves;
    uint64_t wanted; /**< states: the first so many */
    uint64_t *turns; /**< if hurried, by leaf: the position in the order */
    order_t *order;
    uint64_t from;  /**< position of its first state among those that are wanted */
    uint64_t n_put; /**< of those, along the trace */
    uint32_t point;
    uint32_t place;
    uint32_t kind;
    bool suspect;
    uint64_t start; /**< of the next node or leaf, by seed, in 2^64 parts of what it has */
} drawing_t;

/* ---- what a state is ---- */

static bool is_sync(const fs_event_t *event)
{
    return event->kind == FS_SYNC || event->kind == FS_SYNC_DIR;
}

/** Is a name the next thing that changes? Then what happened last is what its change relies on. */
static bool name_comes_next(const fs_list_t *list, uint32_t point)
{
    while (point < list->n && is_sync(&list->events[point])) {
        point++;
    }
    return point < list->n && fs_changes_name(&list->events[point]);
}

uint32_t order_place(const fs_list_t *list, uint32_t point)
{
    if (name_comes_next(list, point)) {
        return PLACE_NAMES;
    }
    for (; point > 0; point--) {
        const fs_event_t *event = &list->events[point - 1];
        if (event->kind == FS_WRITE) {
            return (uint32_t)event->site;
        }
        if (event->kind == FS_ZERO) {
            return PLACE_HOLES;
        }
        if (fs_changes_name(event)) {
            return PLACE_NAMES;
        }
    }
    return SITE_OTHER;
}

/** Does it tear, lose or keep one write of a page that is accused? */
static bool is_accused(const drawing_t *d, model_t model, uint32_t k)
{
    const order_limits_t *limits = d->limits;
    const fs_event_t *event =
        limits->n_accused > 0 ? model_single(d->models, model, k, d->point, d->persist) : NULL;
    bool is = false;
    for (uint32_t i = 0; event != NULL && event->kind == FS_WRITE && i < limits->n_accused; i++) {
        const order_page_t *page = &limits->accused[i];
        is |= event->inode == page->inode && event->offset <= page->offset
              && page->offset - event->offset < event->length;
    }
    return is;
}

/** Of each write of a file's head one state: it tears the write while it happens. */
static bool is_head(const drawing_t *d, model_t model, uint32_t k)
{
    const fs_event_t *event = d->point > 0 ? &d->trace->list.events[d->point - 1] : NULL;
    return d->limits->heads && event != NULL && event->kind == FS_WRITE
           && event->offset < HEAD_BYTES && model == MODEL_ONE_TORN && k == d->point % TEAR_PARTS
           && model_tears_newest(d->models, model, k, d->persist);
}

static uint32_t leaf_of(const drawing_t *d, model_t model, uint32_t k)
{
    bool accused = is_accused(d, model, k);
    bool basic = model_is_basic(d->models->enabled, model);
    uint32_t part = basic && d->limits->whole                             ? PART_WHOLE
                    : d->suspect && accused                               ? PART_BOTH
                    : d->suspect                                          ? PART_SUSPECT
                    : accused                                             ? PART_ACCUSED
                    : is_head(d, model, k)                                ? PART_HEAD
                    : basic                                               ? PART_BASIC
                    : model_tears_newest(d->models, model, k, d->persist) ? PART_NEWEST
                                                                          : PART_OTHER;
    return ((part * PLACES + d->place) * d->limits->kinds->n + d->kind) * MODEL_KINDS
           + (uint32_t)model;
}

static void at_point(drawing_t *d, uint32_t point, persist_t *persist)
{
    const fs_list_t *list = &d->trace->list;
    uint32_t line = point == 0 ? 0 : list->events[point - 1].issued_line;
    d->persist = persist;
    d->point = point;
    d->place = order_place(list, point);
    d->kind = kinds_of(d->limits->kinds, line);
    d->suspect = plan_is_among(d->limits->suspects, d->limits->n_suspects, point_seq(list, point));
}

/* ---- the tree ---- */

static void count_state(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    drawing_t *d = ctx;
    uint32_t i = leaf_of(d, model, k);
    (void)number;
    for (uint32_t level = LEVELS; level-- > 0; i /= d->widths[level]) {
        d->nodes[level][i].total++;
    }
}

static void count_point(void *ctx, uint32_t point, persist_t *persist)
{
    drawing_t *d = ctx;
    at_point(d, point, persist);
    plan_each(d->plan, d->models, persist, count_state, d);
}

static uint64_t square_root(uint64_t n)
{
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit > 0; bit >>= 1) {
        root += (root + bit) * (root + bit) <= n ? bit : 0;
    }
    return root;
}

/** Of n, which has 2^64 parts, so many. */
static uint64_t part_of(uint64_t n, uint64_t parts)
{
    return (uint64_t)((unsigned __int128)n * parts >> 64);
}

/** Of the children of one node. The first turn of each is at a time of its own. */
static void weigh(drawing_t *d, uint32_t level, node_t *nodes)
{
    uint64_t all = 0;
    uint64_t n_any = 0;
    for (uint32_t i = 0; i < d->widths[level]; i++) {
        nodes[i].weight = level == LEVEL_PART
                              ? PART_WEIGHTS[models_go_deeper(d->models->enabled)][i]
                              : square_root(nodes[i].total);
        all += nodes[i].weight;
        n_any += nodes[i].total > 0;
    }
    for (uint32_t i = 0; i < d->widths[level]; i++) {
        nodes[i].weight += level == LEVEL_PLACE && nodes[i].total > 0 ? all / n_any : 0;
        nodes[i].left = nodes[i].total;
        if (nodes[i].total > 0) {
            nodes[i].pass = part_of(STRIDE / nodes[i].weight, d->start);
            d->start += GOLDEN;
        }
    }
}

/** The leaf that has the next turn. There is one. */
static uint32_t next_leaf(drawing_t *d)
{
    uint32_t i = 0;
    for (uint32_t level = 0; level < LEVELS; level++) {
        node_t *children = d->nodes[level] + (size_t)i * d->widths[level];
        uint32_t best = d->widths[level];
        for (uint32_t c = 0; c < d->widths[level]; c++) {
            if (children[c].left > 0
                && (best == d->widths[level] || children[c].pass < children[best].pass)) {
                best = c;
            }
        }
        CHECK(best < d->widths[level]);
        children[best].pass += STRIDE / children[best].weight;
        children[best].left--;
        i = i * d->widths[level] + best;
    }
    return i;
}

/* ---- the states of a leaf ---- */

static uint64_t gcd(uint64_t a, uint64_t b)
{
    return b == 0 ? a : gcd(b, a % b);
}

static uint64_t multiply(uint64_t a, uint64_t b, uint64_t n)
{
    return (uint64_t)((unsigned __int128)a * b % n);
}

/** Of a modulo n, which have no common factor. */
static uint64_t inverse_of(uint64_t a, uint64_t n)
{
    uint64_t rest = n;
    uint64_t x = 0;
    uint64_t y = 1 % n;
    while (a > 1) {
        uint64_t next = (y + multiply(n - x, a / rest, n)) % n;
        uint64_t remainder = a % rest;
        a = rest;
        rest = remainder;
        y = x;
        x = next;
    }
    return y;
}

/** start: where its first turn is, of 2^64 parts. */
static void leaf_init(leaf_t *leaf, uint64_t total, uint64_t start)
{
    uint64_t step = part_of(total, GOLDEN);
    step = step == 0 ? 1 : step;
    while (gcd(step, total) != 1) {
        step++;
    }
    leaf->shift = part_of(total, start);
    leaf->inverse = inverse_of(step, total);
}

/** If it belongs to the slice. */
static void put(drawing_t *d, uint64_t position, uint64_t number)
{
    if (position >= d->from && position - d->from < d->order->n) {
        d->order->states[position - d->from] = (order_state_t){.number = number, .point = d->point};
    }
}

static void put_any(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    drawing_t *d = ctx;
    (void)model;
    (void)k;
    put(d, d->n_put++, number);
}

static void put_drawn(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    drawing_t *d = ctx;
    uint32_t i = leaf_of(d, model, k);
    const node_t *node = &d->nodes[LEVEL_MODEL][i];
    leaf_t *leaf = &d->leaves[i];
    uint64_t from_shift = (leaf->seen++ + node->total - leaf->shift) % node->total;
    uint64_t turn = multiply(from_shift, leaf->inverse, node->total);
    if (turn < node->total - node->left) {
        put(d, d->turns != NULL ? d->turns[leaf->first + turn] : d->n_put++, number);
    }
}

static void put_point(void *ctx, uint32_t point, persist_t *persist)
{
    drawing_t *d = ctx;
    at_point(d, point, persist);
    plan_each(d->plan, d->models, persist, d->leaves != NULL ? put_drawn : put_any, d);
}

/** Gives the turns, and says of each, if hurried, which position in the order it is. */
static void draw(drawing_t *d)
{
    uint32_t *leaf_at = mem_alloc(d->wanted * sizeof(*leaf_at));
    uint64_t *taken = mem_alloc(d->n_leaves * sizeof(*taken));
    for (uint64_t i = 0; i < d->wanted; i++) {
        leaf_at[i] = next_leaf(d);
    }
    uint64_t first = 0;
    for (uint32_t i = 0; i < d->n_leaves; i++) {
        const node_t *node = &d->nodes[LEVEL_MODEL][i];
        if (node->total > 0) {
            leaf_init(&d->leaves[i], node->total, d->start);
            d->start += GOLDEN;
        }
        d->leaves[i].first = taken[i] = first;
        first += node->total - node->left;
    }
    for (uint64_t i = 0; d->turns != NULL && i < d->wanted; i++) {
        d->turns[taken[leaf_at[i]]++] = i;
    }
    free(leaf_at);
    free(taken);
}

uint64_t order_states_per_tree(const campaign_t *campaign)
{
    uint64_t n = 1;
    for (uint32_t i = 1; i < campaign->depth; i++) {
        n = 1 + n * campaign->nested;
    }
    return n;
}

static uint64_t basic_states(const state_plan_t *plan, const model_config_t *models)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < MODEL_KINDS; i++) {
        n += model_is_basic(models->enabled, (model_t)i) ? plan->of_model[i] : 0;
    }
    return n;
}

static uint64_t states_wanted(const state_plan_t *plan, const campaign_t *campaign,
                              const order_limits_t *limits)
{
    uint64_t per_tree = order_states_per_tree(campaign);
    uint64_t wanted =
        limits->states == 0 ? plan->total : (limits->states + per_tree - 1) / per_tree;
    if (limits->whole) { /* and a half of the others at least */
        uint64_t basic = basic_states(plan, &campaign->models);
        wanted = wanted < basic + wanted / 2 ? basic + wanted / 2 : wanted;
    }
    wanted = limits->hurried && wanted > ORDER_STATES_MAX ? ORDER_STATES_MAX : wanted;
    return wanted < plan->total ? wanted : plan->total;
}

/** Counts the states of each leaf and gives their turns. */
static void drawing_draw(drawing_t *d, const campaign_t *campaign, image_t *image)
{
    d->n_leaves = 1;
    for (uint32_t level = 0; level < LEVELS; level++) {
        d->n_leaves *= d->widths[level];
        d->nodes[level] = mem_alloc(d->n_leaves * sizeof(*d->nodes[level]));
    }
    d->leaves = mem_alloc(d->n_leaves * sizeof(*d->leaves));
    d->turns = d->limits->hurried ? mem_alloc(d->wanted * sizeof(*d->turns)) : NULL;
    plan_each_point(d->plan, campaign, d->trace, image, count_point, d);
    for (uint32_t level = 0, n = 1; level < LEVELS; n *= d->widths[level++]) {
        for (uint32_t i = 0; i < n; i++) {
            weigh(d, level, d->nodes[level] + (size_t)i * d->widths[level]);
        }
    }
    draw(d);
}

void order_create(order_t *order, const state_plan_t *plan, const campaign_t *campaign,
                  const trace_t *trace, image_t *image, const order_limits_t *limits)
{
    CHECK(limits->n_slices == 0
          || (!limits->hurried && limits->slice >= 1 && limits->slice <= limits->n_slices));
    drawing_t d = {.plan = plan,
                   .models = &campaign->models,
                   .limits = limits,
                   .trace = trace,
                   .widths = {PARTS, PLACES, limits->kinds->n, MODEL_KINDS},
                   .start = stream_mix(campaign->models.seed, 2, 0, 0),
                   .wanted = states_wanted(plan, campaign, limits),
                   .order = order};
    uint64_t end = d.wanted;
    if (limits->n_slices > 0) {
        d.from = d.wanted * (limits->slice - 1) / limits->n_slices;
        end = d.wanted * limits->slice / limits->n_slices;
    }
    *order = (order_t){.n = end - d.from};
    order->states = mem_alloc(order->n * sizeof(*order->states));
    if (limits->hurried || d.wanted < plan->total) {
        drawing_draw(&d, campaign, image);
    }
    plan_each_point(plan, campaign, trace, image, put_point, &d);
    for (uint32_t level = 0; level < LEVELS; level++) {
        free(d.nodes[level]);
    }
    free(d.leaves);
    free(d.turns);
}

void order_free(order_t *order)
{
    free(order->states);
    *order = (order_t){.n = 0};
}

static int by_number(const void *left, const void *right)
{
    const order_state_t *a = left;
    const order_state_t *b = right;
    return a->number < b->number ? -1 : a->number > b->number;
}

void order_by_trace(order_t *order, uint64_t from, uint64_t n)
{
    CHECK(from <= order->n && n <= order->n - from);
    qsort(order->states + from, n, sizeof(*order->states), by_number);
}
