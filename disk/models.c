/* Crash models.

Place: above choice.c, below state.c.

Rules
1. A write is whole, dropped, or torn at units aligned in its file: sectors, or what the storage promises to write
   whole; other changes are whole or dropped.
2. Waiting events may be kept in any combination that choice.c calls coherent: the disk and the file system may write back
   in any order. What is kept is applied in order: of two kept writes of a sector the later one is there.
3. Bounded and fair: where a model singles out one event of many, it takes at most MODEL_PICKS_MAX
   of them, the newest always, one of each equal stretch of the others, chosen by the state's own
   stream. */
#include "disk/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* ---- how many ---- */

uint64_t model_sectors(const model_config_t *config, const fs_event_t *event)
{
    if (event->kind != FS_WRITE || event->length == 0) {
        return 1;
    }
    return (event->offset + event->length - 1) / config->sector - event->offset / config->sector
           + 1;
}

static bool can_tear(const model_config_t *config, const fs_event_t *event)
{
    return choice_units(config, event) > 1;
}

static uint32_t count_tearable(const model_config_t *config, const persist_t *persist)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        n += can_tear(config, persist_pending(persist, i));
    }
    return n;
}

/** The write that happened last, if it can be torn; NULL if something else did. */
static const fs_event_t *last_tearable(const model_config_t *config, const persist_t *persist)
{
    uint32_t n = persist->n_pending;
    if (n == 0 || persist->pending[n - 1] + 1 != persist->next) {
        return NULL;
    }
    const fs_event_t *event = persist_pending(persist, n - 1);
    return can_tear(config, event) ? event : NULL;
}

/** The sectors at which the write of the log that happened last can be cut. A log is read up to its first gap,
so each of them is another end of the log; there are few, and all are tried. */
static uint32_t count_cuts(const model_config_t *config, const persist_t *persist)
{
    const fs_event_t *event = last_tearable(config, persist);
    if (event == NULL || (config->log_sites >> event->site & 1U) == 0) {
        return 0;
    }
    uint64_t cuts = choice_units(config, event) - 1;
    return cuts < MODEL_CUTS_MAX ? (uint32_t)cuts : MODEL_CUTS_MAX;
}

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

static uint32_t count_overlapped(const persist_t *persist)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        n += persist_is_overlapped(persist, i);
    }
    return n;
}

/** What is waiting for the same fsync: a file's content, or names. */
static uint32_t file_of(const fs_event_t *event)
{
    return fs_changes_content(event) ? event->inode : IMAGE_NONE;
}

/** Nothing new where only one file waits: ordered and all or nothing of it are models of their own. */
static uint32_t count_by_file(const persist_t *persist)
{
    for (uint32_t i = 1; i < persist->n_pending; i++) {
        if (file_of(persist_pending(persist, i)) != file_of(persist_pending(persist, 0))) {
            return MODEL_FILE_DRAWS;
        }
    }
    return 0;
}

/** Writes of which a crash may leave the size alone. */
static uint32_t count_growing(const persist_t *persist)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        n += persist_growth(persist, persist_pending(persist, i)) > 0;
    }
    return n;
}

/** What is there in place of the bytes: zeros; or garbage, where the file system gives it. */
static uint32_t growth_kinds(const persist_t *persist)
{
    return persist_fs(persist)->growth == FS_SIZE_FIRST ? 2 : 1;
}

static uint32_t picks(uint32_t n)
{
    return n < MODEL_PICKS_MAX ? n : MODEL_PICKS_MAX;
}

uint32_t model_count(const model_config_t *config, model_t model, const persist_t *persist)
{
    uint32_t n = persist->n_pending;
    if ((config->enabled >> model & 1U) == 0) {
        return 0;
    }
    switch (model) {
    case MODEL_ALL_PERSISTED:
    case MODEL_NONE_PERSISTED:
        return 1;
    case MODEL_ONE_DROPPED:
    case MODEL_ONE_PERSISTED:
        return picks(n);
    case MODEL_ONE_TORN:
    case MODEL_ONE_PART:
        return picks(count_tearable(config, persist)) * TEAR_PARTS;
    case MODEL_SUBSET:
        return n == 0 ? 0 : n < 3 ? 1U << n : MODEL_SUBSETS;
    case MODEL_ORDERED:
        return picks(n) * 2;
    case MODEL_LOG_CUT:
        return count_cuts(config, persist);
    case MODEL_KILL:
        return last_tearable(config, persist) != NULL ? 2 : 1;
    case MODEL_BY_FILE:
        return count_by_file(persist);
    case MODEL_OVERLAPPED:
        n = count_overlapped(persist);
        return n < 2 ? n : 1 + picks(n);
    case MODEL_SIZE_FIRST:
        return picks(count_growing(persist)) * growth_kinds(persist);
    case MODEL_KINDS:
        break;
    }
    CHECK(false);
    return 0;
}

bool model_tears_newest(const model_config_t *config, model_t model, uint32_t k,
                        const persist_t *persist)
{
    return (model == MODEL_ONE_TORN || model == MODEL_ONE_PART) && k < TEAR_PARTS
           && last_tearable(config, persist) != NULL;
}

/* ---- what is kept ---- */

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

/** The waiting event that is the i-th that can be torn. */
static uint32_t nth_tearable(const model_config_t *config, const persist_t *persist, uint32_t i)
{
    for (uint32_t at = 0; at < persist->n_pending; at++) {
        if (can_tear(config, persist_pending(persist, at)) && i-- == 0) {
            return at;
        }
    }
    CHECK(false);
    return 0;
}

typedef struct chooser {
    choice_t choice;
    stream_t *stream;
} chooser_t;

void torn_add(torn_t *torn, const fs_event_t *event, tear_t tear)
{
    CHECK(event->site < FS_SITES_MAX);
    torn->n[event->site][event->first_flush ? 0 : 1][tear]++;
    uint32_t i = torn->n_places++ % MODEL_LOST_MAX;
    torn->places[i].inode = event->inode;
    torn->places[i].offset = event->offset;
    torn->places[i].length = event->length;
}

static uint32_t torn_places(const torn_t *torn)
{
    return torn->n_places < MODEL_LOST_MAX ? torn->n_places : MODEL_LOST_MAX;
}

uint64_t torn_hash(const torn_t *torn, uint64_t from)
{
    for (uint32_t i = 0; i < torn_places(torn); i++) {
        from =
            stream_mix(from, torn->places[i].inode, torn->places[i].offset, torn->places[i].length);
    }
    return from;
}

bool torn_overlaps(const torn_t *torn, const fs_event_t *event)
{
    for (uint32_t i = 0; i < torn_places(torn); i++) {
        if (torn->places[i].inode == event->inode
            && torn->places[i].offset < event->offset + event->length
            && event->offset < torn->places[i].offset + torn->places[i].length) {
            return true;
        }
    }
    return false;
}

static const fs_event_t *waiting(const chooser_t *chooser, uint32_t i)
{
    return persist_pending(chooser->choice.persist, i);
}

static void keep_range(chooser_t *chooser, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        choice_keep(&chooser->choice, i);
    }
}

/** At least one unit is kept and at least one is lost. */
static void keep_interior(chooser_t *chooser, uint32_t at, uint64_t n)
{
    uint64_t kept = stream_below(chooser->stream, n);
    uint64_t lost = (kept + 1 + stream_below(chooser->stream, n - 1)) % n;
    uint64_t bits = 0;
    for (uint64_t i = 0; i < n; i++) {
        bits = i % 64 == 0 ? stream_next(chooser->stream) : bits >> 1;
        if (i == kept || ((bits & 1) != 0 && i != lost)) {
            choice_keep_units(&chooser->choice, at, i, i + 1);
        }
    }
}

/** Of the i-th event, a write that was not kept so far, a part is. */
static void keep_part(chooser_t *chooser, uint32_t i, tear_t tear)
{
    uint64_t n = choice_units(chooser->choice.config, waiting(chooser, i));
    uint64_t cut = 1 + stream_below(chooser->stream, n - 1);
    if (tear == TEAR_PREFIX) {
        choice_keep_units(&chooser->choice, i, 0, cut);
    } else if (tear == TEAR_SUFFIX) {
        choice_keep_units(&chooser->choice, i, cut, n);
    } else {
        keep_interior(chooser, i, n);
    }
}

/** @param others are all other events there, or none? */
static void choose_one_torn(chooser_t *chooser, uint32_t k, bool others)
{
    const persist_t *persist = chooser->choice.persist;
    uint32_t n = count_tearable(chooser->choice.config, persist);
    uint32_t at =
        nth_tearable(chooser->choice.config, persist, pick(k / TEAR_PARTS, n, chooser->stream));
    keep_part(chooser, at, (tear_t)(k % TEAR_PARTS));
    if (others) {
        keep_range(chooser, 0, at);
        keep_range(chooser, at + 1, persist->n_pending);
    }
}

/** Even k: the picked event and all later ones are lost. Odd k: of the picked one a part is there. */
static void choose_ordered(chooser_t *chooser, uint32_t k)
{
    uint32_t at = pick(k / 2, chooser->choice.persist->n_pending, chooser->stream);
    keep_range(chooser, 0, at);
    if (k % 2 != 0 && can_tear(chooser->choice.config, waiting(chooser, at))) {
        keep_part(chooser, at, (tear_t)stream_below(chooser->stream, TEAR_PARTS));
    }
}

/** Everything before the last write, and k + 1 of its sectors. */
static void choose_log_cut(chooser_t *chooser, uint32_t k)
{
    uint32_t last = chooser->choice.persist->n_pending - 1;
    keep_range(chooser, 0, last);
    choice_keep_units(&chooser->choice, last, 0, k + 1U);
}

/** k = 1: a process was killed in the middle of its last write. @return units of it that were written */
static uint64_t killed_units(const model_config_t *config, const fs_event_t *last, stream_t *stream)
{
    return 1 + stream_below(stream, choice_units(config, last) - 1);
}

/** k = 0: every write of the killed process is there. */
static void choose_kill(chooser_t *chooser, uint32_t k)
{
    uint32_t n = chooser->choice.persist->n_pending;
    keep_range(chooser, 0, k == 0 ? n : n - 1);
    if (k > 0) {
        uint64_t units =
            killed_units(chooser->choice.config, waiting(chooser, n - 1), chooser->stream);
        choice_keep_units(&chooser->choice, n - 1, 0, units);
    }
}

/** A density per state, and a quarter of the kept writes torn. Few events: all combinations, by the
bits of k. */
static void choose_subset(chooser_t *chooser, uint32_t k)
{
    const persist_t *persist = chooser->choice.persist;
    uint64_t density = 1 + stream_below(chooser->stream, 7);
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        bool kept = persist->n_pending < 3 ? (k >> i & 1U) != 0
                                           : stream_below(chooser->stream, 8) < density;
        bool tear = stream_below(chooser->stream, 4) == 0;
        if (kept && tear && can_tear(chooser->choice.config, waiting(chooser, i))) {
            keep_part(chooser, i, (tear_t)stream_below(chooser->stream, TEAR_PARTS));
        } else if (kept) {
            choice_keep(&chooser->choice, i);
        }
    }
}

/** Each file has a fate of its own, drawn by its number: all of its waiting events are kept, none, or those up to one
of them. A disk may write back one file long before another. */
static void choose_by_file(chooser_t *chooser, uint64_t fate_seed)
{
    const persist_t *persist = chooser->choice.persist;
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        stream_t fate = {.state = stream_mix(fate_seed, file_of(waiting(chooser, i)), 0, 0)};
        uint32_t kind = (uint32_t)stream_below(&fate, 3);
        uint32_t last = (uint32_t)stream_below(&fate, persist->n_pending);
        if (kind == 0 || (kind == 1 && i <= last)) {
            choice_keep(&chooser->choice, i);
        }
    }
}

static stream_t state_stream(const model_config_t *config, model_t model, uint32_t k,
                             uint64_t point)
{
    return (stream_t){.state = stream_mix(config->seed, point, (uint64_t)model, k)};
}

/** k = 0: all that overlapped are lost; from 1 on one of them is, the newest first. */
static void choose_overlapped(chooser_t *chooser, uint32_t k)
{
    const persist_t *persist = chooser->choice.persist;
    uint32_t n = count_overlapped(persist);
    uint32_t lost = k == 0 ? 0 : pick(k - 1, n, chooser->stream);
    uint32_t overlapped = 0;
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        if (!persist_is_overlapped(persist, i) || (k > 0 && overlapped != lost)) {
            choice_keep(&chooser->choice, i);
        }
        overlapped += persist_is_overlapped(persist, i);
    }
}

/** Even k: zeros. */
static void choose_size_first(chooser_t *chooser, uint32_t k)
{
    const persist_t *persist = chooser->choice.persist;
    uint32_t kinds = growth_kinds(persist);
    uint32_t left = pick(k / kinds, count_growing(persist), chooser->stream);
    uint32_t at = 0;
    while (persist_growth(persist, waiting(chooser, at)) == 0 || left-- > 0) {
        at++;
    }
    keep_range(chooser, 0, persist->n_pending);
    choice_grow(&chooser->choice, at, k % kinds == 1, stream_next(chooser->stream));
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

/** Which of what waits the state keeps, as far as it was drawn; not all of these a disk can leave. */
static void choose(chooser_t *chooser, model_t model, uint32_t k)
{
    uint32_t n = chooser->choice.persist->n_pending;
    switch (model) {
    case MODEL_ALL_PERSISTED:
        keep_range(chooser, 0, n);
        break;
    case MODEL_NONE_PERSISTED:
        break;
    case MODEL_ONE_DROPPED:
        keep_range(chooser, 0, n);
        choice_lose(&chooser->choice, pick(k, n, chooser->stream));
        break;
    case MODEL_ONE_PERSISTED:
        choice_keep(&chooser->choice, pick(k, n, chooser->stream));
        break;
    case MODEL_ONE_TORN:
        choose_one_torn(chooser, k, true);
        break;
    case MODEL_SUBSET:
        choose_subset(chooser, k);
        break;
    case MODEL_ORDERED:
        choose_ordered(chooser, k);
        break;
    case MODEL_LOG_CUT:
        choose_log_cut(chooser, k);
        break;
    case MODEL_KILL:
        choose_kill(chooser, k);
        break;
    case MODEL_BY_FILE:
        choose_by_file(chooser, stream_next(chooser->stream));
        break;
    case MODEL_ONE_PART:
        choose_one_torn(chooser, k, false);
        break;
    case MODEL_OVERLAPPED:
        choose_overlapped(chooser, k);
        break;
    case MODEL_SIZE_FIRST:
        choose_size_first(chooser, k);
        break;
    case MODEL_KINDS:
        CHECK(false);
    }
}

/** A model that keeps little keeps what that needs; one that loses little loses what cannot be there without it. */
static choice_rule_t rule_of(model_t model, uint32_t k)
{
    bool keeps = model == MODEL_ONE_PERSISTED || model == MODEL_ONE_PART
                 || (model == MODEL_SUBSET && k % 2 == 1);
    return keeps ? CHOICE_KEEP_WINS : CHOICE_LOSS_WINS;
}

void model_apply(const model_config_t *config, model_t model, uint32_t k, uint64_t point,
                 const persist_t *persist, torn_t *torn)
{
    stream_t stream = state_stream(config, model, k, point);
    chooser_t chooser = {.stream = &stream};
    choice_begin(&chooser.choice, config, persist);
    choose(&chooser, model, k);
    choice_settle(&chooser.choice, rule_of(model, k));
    choice_apply(&chooser.choice, torn);
    choice_end(&chooser.choice);
}
