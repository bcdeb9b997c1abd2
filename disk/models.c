/* Crash models.

Place: above choice.c. What a model is stands in one row of MODELS.

Rules
1. A write is whole, dropped, or torn at units aligned in its file: sectors, or what the storage
   promises to write whole; other changes are whole or dropped.
2. Waiting events may be kept in any combination that choice.c calls coherent: the disk and the file
   system may write back in any order. What is kept is applied in order: of two kept writes of a
   sector the later one is there.
3. Bounded and fair: where a model singles out one event of many, it takes at most MODEL_PICKS_MAX
   of them, the newest always, one of each equal stretch of the others, chosen by the state's own
   stream. */
#include "disk/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define FEW_EVENTS 3U /**< of fewer all combinations are tried */

/** A mask with a hole, or an island, needs three sectors. */
void torn_possible(const model_config_t *config, const fs_list_t *list, torn_t *torn)
{
    static const uint64_t SECTORS_MIN[TEAR_KINDS] = {2, 2, 3, 1};
    for (uint32_t i = 0; i < list->n; i++) {
        const fs_event_t *event = &list->events[i];
        if (event->kind != FS_WRITE || event->length == 0) {
            continue;
        }
        for (uint32_t tear = 0; tear < TEAR_KINDS; tear++) {
            torn->n[event->site][event->first_flush ? 0 : 1][tear] +=
                choice_units(config, event) >= SECTORS_MIN[tear];
        }
    }
}

/* ---- events that are singled out ---- */

/** Is the i-th event that waits one of those? */
typedef bool (*is_t)(const choice_t *choice, uint32_t i);

static const fs_event_t *waiting(const choice_t *choice, uint32_t i)
{
    return persist_pending(choice->persist, i);
}

static bool is_any(const choice_t *choice, uint32_t i)
{
    return i < choice->persist->n_pending;
}

static bool is_tearable(const choice_t *choice, uint32_t i)
{
    return choice_units(choice->config, waiting(choice, i)) > 1;
}

static bool is_overlapped(const choice_t *choice, uint32_t i)
{
    return persist_is_overlapped(choice->persist, i);
}

/** A crash may leave the size alone that it gave its file. */
static bool is_growing(const choice_t *choice, uint32_t i)
{
    return persist_growth(choice->persist, waiting(choice, i)) > 0;
}

static uint32_t count_of(const choice_t *choice, is_t is)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < choice->persist->n_pending; i++) {
        n += is(choice, i);
    }
    return n;
}

static uint32_t picks(uint32_t n)
{
    return n < MODEL_PICKS_MAX ? n : MODEL_PICKS_MAX;
}

/** The k-th choice out of n: 0 is the newest; rule 3. */
static uint32_t pick(uint32_t k, uint32_t n, stream_t *stream)
{
    CHECK(k < picks(n));
    if (n <= MODEL_PICKS_MAX || k == 0) {
        return n - 1 - k;
    }
    uint64_t from = (uint64_t)(n - 1) * (k - 1) / (MODEL_PICKS_MAX - 1);
    uint64_t to = (uint64_t)(n - 1) * k / (MODEL_PICKS_MAX - 1);
    return (uint32_t)(from + stream_below(stream, to - from));
}

/** The waiting event that is the k-th choice out of those. */
static uint32_t single_out(const choice_t *choice, is_t is, uint32_t k, stream_t *stream)
{
    uint32_t left = pick(k, count_of(choice, is), stream);
    uint32_t at = 0;
    while (!is(choice, at) || left-- > 0) {
        at++;
    }
    return at;
}

/** State k of a model that singles out one event: which. */
typedef uint32_t (*single_t)(const choice_t *choice, uint32_t k, stream_t *stream);

static uint32_t one_event(const choice_t *choice, uint32_t k, stream_t *stream)
{
    return single_out(choice, is_any, k, stream);
}

/** k % TEAR_PARTS says how it is torn. */
static uint32_t one_tearable(const choice_t *choice, uint32_t k, stream_t *stream)
{
    return single_out(choice, is_tearable, k / TEAR_PARTS, stream);
}

/** The write that happened last, if it can be torn; NULL if something else did. */
static const fs_event_t *last_tearable(const choice_t *choice)
{
    const persist_t *persist = choice->persist;
    uint32_t n = persist->n_pending;
    bool last = n > 0 && persist->pending[n - 1] + 1 == persist->next && is_tearable(choice, n - 1);
    return last ? waiting(choice, n - 1) : NULL;
}

/** What is waiting for the same fsync: a file's content, or names. */
static uint32_t file_of(const fs_event_t *event)
{
    return fs_changes_content(event) ? event->inode : IMAGE_NONE;
}

/** What is there in place of the bytes: zeros; or garbage, where the file system gives it. */
static uint32_t growth_kinds(const persist_t *persist)
{
    return persist_fs(persist)->growth == FS_SIZE_FIRST ? 2 : 1;
}

/* ---- how many states ---- */

static uint32_t one_state(const choice_t *choice)
{
    (void)choice;
    return 1;
}

static uint32_t each_event(const choice_t *choice)
{
    return picks(choice->persist->n_pending);
}

static uint32_t each_event_twice(const choice_t *choice)
{
    return 2 * each_event(choice);
}

static uint32_t each_tear(const choice_t *choice)
{
    return picks(count_of(choice, is_tearable)) * TEAR_PARTS;
}

/** All combinations of few events. */
static uint32_t subsets(const choice_t *choice)
{
    uint32_t n = choice->persist->n_pending;
    return n == 0 ? 0 : n < FEW_EVENTS ? 1U << n : MODEL_SUBSETS;
}

/** The sectors at which the write of the log that happened last can be cut. A log is read up to its
first gap, so each of them is another end of the log; there are few, and all are tried. */
static uint32_t each_cut(const choice_t *choice)
{
    const fs_event_t *event = last_tearable(choice);
    if (event == NULL || (choice->config->log_sites >> event->site & 1U) == 0) {
        return 0;
    }
    uint64_t cuts = choice_units(choice->config, event) - 1;
    return cuts < MODEL_CUTS_MAX ? (uint32_t)cuts : MODEL_CUTS_MAX;
}

static uint32_t whole_and_cut(const choice_t *choice)
{
    return last_tearable(choice) != NULL ? 2 : 1;
}

/** Nothing new where only one file waits: ordered and all or nothing of it are models of their
own. */
static uint32_t draws_by_file(const choice_t *choice)
{
    for (uint32_t i = 1; i < choice->persist->n_pending; i++) {
        if (file_of(waiting(choice, i)) != file_of(waiting(choice, 0))) {
            return MODEL_FILE_DRAWS;
        }
    }
    return 0;
}

static uint32_t each_overlapped(const choice_t *choice)
{
    uint32_t n = count_of(choice, is_overlapped);
    return n < 2 ? n : 1 + picks(n);
}

static uint32_t each_chosen(const choice_t *choice)
{
    return choice->config->chosen != NULL ? choice->config->chosen->n : 0;
}

static uint32_t each_growing(const choice_t *choice)
{
    return picks(count_of(choice, is_growing)) * growth_kinds(choice->persist);
}

/* ---- what a state keeps ---- */

static void keep_range(choice_t *choice, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        choice_keep(choice, i);
    }
}

/** At least one unit is kept and at least one is lost. */
static void keep_interior(choice_t *choice, uint32_t at, uint64_t n, stream_t *stream)
{
    uint64_t kept = stream_below(stream, n);
    uint64_t lost = (kept + 1 + stream_below(stream, n - 1)) % n;
    uint64_t bits = 0;
    for (uint64_t i = 0; i < n; i++) {
        bits = i % 64 == 0 ? stream_next(stream) : bits >> 1;
        if (i == kept || ((bits & 1) != 0 && i != lost)) {
            choice_keep_units(choice, at, i, i + 1);
        }
    }
}

/** Of the i-th event, a write that was not kept so far, a part is. */
static void keep_part(choice_t *choice, uint32_t i, tear_t tear, stream_t *stream)
{
    uint64_t n = choice_units(choice->config, waiting(choice, i));
    uint64_t cut = 1 + stream_below(stream, n - 1);
    if (tear == TEAR_PREFIX) {
        choice_keep_units(choice, i, 0, cut);
    } else if (tear == TEAR_SUFFIX) {
        choice_keep_units(choice, i, cut, n);
    } else {
        keep_interior(choice, i, n, stream);
    }
}

static void choose_all(choice_t *choice, uint32_t k, stream_t *stream)
{
    (void)k;
    (void)stream;
    keep_range(choice, 0, choice->persist->n_pending);
}

static void choose_none(choice_t *choice, uint32_t k, stream_t *stream)
{
    (void)choice;
    (void)k;
    (void)stream;
}

static void choose_one_dropped(choice_t *choice, uint32_t k, stream_t *stream)
{
    choose_all(choice, k, stream);
    choice_lose(choice, one_event(choice, k, stream));
}

static void choose_one_persisted(choice_t *choice, uint32_t k, stream_t *stream)
{
    choice_keep(choice, one_event(choice, k, stream));
}

static void choose_one_part(choice_t *choice, uint32_t k, stream_t *stream)
{
    uint32_t at = one_tearable(choice, k, stream);
    keep_part(choice, at, (tear_t)(k % TEAR_PARTS), stream);
}

static void choose_one_torn(choice_t *choice, uint32_t k, stream_t *stream)
{
    uint32_t at = one_tearable(choice, k, stream);
    keep_part(choice, at, (tear_t)(k % TEAR_PARTS), stream);
    keep_range(choice, 0, at);
    keep_range(choice, at + 1, choice->persist->n_pending);
}

/** Even k: the picked event and all later ones are lost. Odd k: of the picked one a part is
there. */
static void choose_ordered(choice_t *choice, uint32_t k, stream_t *stream)
{
    uint32_t at = single_out(choice, is_any, k / 2, stream);
    keep_range(choice, 0, at);
    if (k % 2 != 0 && is_tearable(choice, at)) {
        keep_part(choice, at, (tear_t)stream_below(stream, TEAR_PARTS), stream);
    }
}

/** Everything before the last write, and k + 1 of its sectors. */
static void choose_log_cut(choice_t *choice, uint32_t k, stream_t *stream)
{
    uint32_t last = choice->persist->n_pending - 1;
    (void)stream;
    keep_range(choice, 0, last);
    choice_keep_units(choice, last, 0, k + 1U);
}

/** k = 1: a process was killed in the middle of its last write. @return units of it that were
written */
static uint64_t killed_units(const model_config_t *config, const fs_event_t *last, stream_t *stream)
{
    return 1 + stream_below(stream, choice_units(config, last) - 1);
}

/** k = 0: every write of the killed process is there. */
static void choose_kill(choice_t *choice, uint32_t k, stream_t *stream)
{
    uint32_t n = choice->persist->n_pending;
    keep_range(choice, 0, k == 0 ? n : n - 1);
    if (k > 0) {
        uint64_t units = killed_units(choice->config, waiting(choice, n - 1), stream);
        choice_keep_units(choice, n - 1, 0, units);
    }
}

/** A density per state, and a quarter of the kept writes torn. Few events: all combinations, by the
bits of k. */
static void choose_subset(choice_t *choice, uint32_t k, stream_t *stream)
{
    uint32_t n = choice->persist->n_pending;
    uint64_t density = 1 + stream_below(stream, 7);
    for (uint32_t i = 0; i < n; i++) {
        bool kept = n < FEW_EVENTS ? (k >> i & 1U) != 0 : stream_below(stream, 8) < density;
        bool tear = stream_below(stream, 4) == 0;
        if (kept && tear && is_tearable(choice, i)) {
            keep_part(choice, i, (tear_t)stream_below(stream, TEAR_PARTS), stream);
        } else if (kept) {
            choice_keep(choice, i);
        }
    }
}

/** Each file has a fate of its own, drawn by its number: all of its waiting events are kept, none,
or those up to one of them. A disk may write back one file long before another. */
static void choose_by_file(choice_t *choice, uint32_t k, stream_t *stream)
{
    uint32_t n = choice->persist->n_pending;
    uint64_t seed = stream_next(stream);
    (void)k;
    for (uint32_t i = 0; i < n; i++) {
        stream_t fate = {.state = stream_mix(seed, file_of(waiting(choice, i)), 0, 0)};
        uint32_t kind = (uint32_t)stream_below(&fate, 3);
        uint32_t last = (uint32_t)stream_below(&fate, n);
        if (kind == 0 || (kind == 1 && i <= last)) {
            choice_keep(choice, i);
        }
    }
}

/** k = 0: all that overlapped are lost; from 1 on one of them is, the newest first. */
static void choose_overlapped(choice_t *choice, uint32_t k, stream_t *stream)
{
    uint32_t lost = k == 0 ? 0 : single_out(choice, is_overlapped, k - 1, stream);
    for (uint32_t i = 0; i < choice->persist->n_pending; i++) {
        if (!is_overlapped(choice, i) || (k > 0 && i != lost)) {
            choice_keep(choice, i);
        }
    }
}

/** Even k: zeros. */
static void choose_size_first(choice_t *choice, uint32_t k, stream_t *stream)
{
    uint32_t kinds = growth_kinds(choice->persist);
    uint32_t at = single_out(choice, is_growing, k / kinds, stream);
    choose_all(choice, k, stream);
    choice_grow(choice, at, k % kinds == 1, stream_next(stream));
}

/** Of a write only the sectors that are named; a unit of several is there if its first one is. */
static void choose_sectors(choice_t *choice, uint32_t i, const char *kept)
{
    const fs_event_t *event = waiting(choice, i);
    uint64_t sectors_per_unit = choice_unit(choice->config, event) / choice->config->sector;
    uint64_t first = event->offset / choice->config->sector;
    choice_lose(choice, i);
    uint64_t n = model_sectors(choice->config, event);
    for (uint64_t at = 0; at < n && kept[at] != '\0'; at++) {
        uint64_t unit = (first + at) / sectors_per_unit - first / sectors_per_unit;
        bool begins = at == 0 || (first + at) % sectors_per_unit == 0;
        if (begins && kept[at] == '1') {
            choice_keep_units(choice, i, unit, unit + 1);
        }
    }
}

static void choose_chosen(choice_t *choice, uint32_t k, stream_t *stream)
{
    const chosen_state_t *state = &choice->config->chosen->states[k];
    (void)stream;
    for (uint32_t i = 0; i < choice->persist->n_pending; i++) {
        const chosen_item_t *item = chosen_find(state, waiting(choice, i)->seq);
        if ((item != NULL) == state->keeps) {
            choice_keep(choice, i);
        }
        if (item == NULL || item->kept == NULL) {
            continue;
        }
        if (waiting(choice, i)->kind == FS_WRITE) {
            choose_sectors(choice, i, item->kept);
        } else if (item->kept[0] == '1') {
            choice_keep(choice, i);
        } else {
            choice_lose(choice, i);
        }
    }
}

/* ---- the models ---- */

/** How what was chosen becomes a state that a disk can leave: who keeps little keeps what that
needs; who loses little loses what cannot be there without it. */
typedef enum model_leaning {
    LOSES_LITTLE,
    KEEPS_LITTLE,
    IN_TURN, /**< odd k: KEEPS_LITTLE */
    AS_CHOSEN
} model_leaning_t;

typedef struct model_row {
    const char *name;
    const char *what; /**< kept is of what was not fsynced, in the words of docs/FAULT_MODEL.md */
    /** How many states a crash point has. Of choice there are config and persist. */
    uint32_t (*count)(const choice_t *choice);
    /** Which of what waits state k keeps, as far as it was drawn; not all of that a disk can
       leave. */
    void (*choose)(choice_t *choice, uint32_t k, stream_t *stream);
    model_leaning_t leaning;
    single_t single; /**< of a model that loses or keeps one event, or a part of it; or NULL */
} model_row_t;

static const model_row_t MODELS[MODEL_KINDS + 1] = {
    [MODEL_ALL_PERSISTED] = {"all-persisted", "everything: the kill model", one_state, choose_all,
                             LOSES_LITTLE, NULL},
    [MODEL_NONE_PERSISTED] = {"none-persisted", "nothing", one_state, choose_none, LOSES_LITTLE,
                              NULL},
    [MODEL_ONE_DROPPED] = {"one-dropped", "all but one", each_event, choose_one_dropped,
                           LOSES_LITTLE, one_event},
    [MODEL_ONE_PERSISTED] = {"one-persisted", "one alone", each_event, choose_one_persisted,
                             KEEPS_LITTLE, one_event},
    [MODEL_ONE_TORN] = {"one-torn",
                        "all, with one write torn: a prefix, a suffix, a mask with a hole",
                        each_tear, choose_one_torn, LOSES_LITTLE, one_tearable},
    [MODEL_SUBSET] = {"subset", "each with a probability drawn by seed, some of it torn", subsets,
                      choose_subset, IN_TURN, NULL},
    [MODEL_ORDERED] = {"ordered", "all up to one write, in order", each_event_twice, choose_ordered,
                       LOSES_LITTLE, NULL},
    [MODEL_LOG_CUT] = {"log-cut",
                       "all, but only the first sectors of the last log write: every possible end "
                       "of the log is tried",
                       each_cut, choose_log_cut, LOSES_LITTLE, NULL},
    [MODEL_KILL] =
        {"kill",
         "all, or only the first sectors of the last write; with --depth: none of it has become "
         "durable, and a power loss during the recovery may take it",
         whole_and_cut, choose_kill, LOSES_LITTLE, NULL},
    [MODEL_BY_FILE] = {"by-file", "per file: all, nothing, or all up to one write", draws_by_file,
                       choose_by_file, LOSES_LITTLE, NULL},
    [MODEL_ONE_PART] = {"one-part",
                        "only a part of one write: a prefix, a suffix, a mask with a hole",
                        each_tear, choose_one_part, KEEPS_LITTLE, one_tearable},
    [MODEL_OVERLAPPED] =
        {"overlapped",
         "all, but none, or all but one, of the writes that overlapped an fsync of their file",
         each_overlapped, choose_overlapped, LOSES_LITTLE, NULL},
    [MODEL_SIZE_FIRST] = {"size-first",
                          "all, but only the new size of one append: zeros or old bytes fill it, "
                          "depending on the file system",
                          each_growing, choose_size_first, LOSES_LITTLE, NULL},
    [MODEL_CHOSEN] = {"chosen", "what is chosen", each_chosen, choose_chosen, AS_CHOSEN, NULL},
};

static const model_row_t *row_of(model_t model)
{
    CHECK(model <= MODEL_CHOSEN);
    return &MODELS[model];
}

const char *model_name(model_t model)
{
    return row_of(model)->name;
}

const char *model_what(model_t model)
{
    return row_of(model)->what;
}

bool model_parse(const char *text, size_t len, model_t *out)
{
    for (uint32_t i = 0; i <= MODEL_CHOSEN; i++) {
        if (strlen(MODELS[i].name) == len && memcmp(MODELS[i].name, text, len) == 0) {
            *out = (model_t)i;
            return true;
        }
    }
    return false;
}

uint32_t model_count(const model_config_t *config, model_t model, const persist_t *persist)
{
    bool enabled = model == MODEL_CHOSEN || (config->enabled >> model & 1U) != 0;
    const choice_t choice = {.config = config, .persist = persist};
    return enabled ? row_of(model)->count(&choice) : 0;
}

bool model_tears_newest(const model_config_t *config, model_t model, uint32_t k,
                        const persist_t *persist)
{
    const choice_t choice = {.config = config, .persist = persist};
    bool tears_one = row_of(model)->single == one_tearable;
    return tears_one && k < TEAR_PARTS && last_tearable(&choice) != NULL;
}

static stream_t state_stream(const model_config_t *config, model_t model, uint32_t k,
                             uint64_t point)
{
    return (stream_t){.state = stream_mix(config->seed, point, (uint64_t)model, k)};
}

const fs_event_t *model_single(const model_config_t *config, model_t model, uint32_t k,
                               uint64_t point, const persist_t *persist)
{
    const choice_t choice = {.config = config, .persist = persist};
    stream_t stream = state_stream(config, model, k, point);
    single_t single = row_of(model)->single;
    return single != NULL ? waiting(&choice, single(&choice, k, &stream)) : NULL;
}

void model_apply(const model_config_t *config, model_t model, uint32_t k, uint64_t point,
                 const persist_t *persist, torn_t *torn)
{
    const model_row_t *row = row_of(model);
    bool keeps = row->leaning == KEEPS_LITTLE || (row->leaning == IN_TURN && k % 2 == 1)
                 || (row->leaning == AS_CHOSEN && config->chosen->states[k].keeps);
    stream_t stream = state_stream(config, model, k, point);
    choice_t choice;
    choice_begin(&choice, config, persist);
    row->choose(&choice, k, &stream);
    choice_settle(&choice, keeps ? CHOICE_KEEP_WINS : CHOICE_LOSS_WINS);
    choice_apply(&choice, torn);
    choice_end(&choice);
}

void model_kill_waiting(const model_config_t *config, uint32_t k, uint64_t point,
                        const persist_t *persist, fs_list_t *list)
{
    stream_t stream = state_stream(config, MODEL_KILL, k, point);
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        fs_event_t *event = fs_list_add(list, FS_WRITE);
        *event = *persist_pending(persist, i);
        event->late = 0; /* what overlapped it may not wait any more */
    }
    if (k > 0) {
        fs_event_t *last = &list->events[list->n - 1];
        uint64_t unit = choice_unit(config, last);
        uint64_t end = last->offset / unit + killed_units(config, last, &stream);
        last->length = end * unit - last->offset;
    }
}
