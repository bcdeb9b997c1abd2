/* Crash models.

Place: above persist.c, below state.c.

Rules
1. A write is whole, dropped, or torn at units aligned in its file: sectors, or what the storage promises to write
   whole; other changes are whole or dropped.
2. Waiting events may be kept in any combination: the disk and the file system may write back in any
   order. What is kept is applied in order: of two kept writes of a sector the later one is there.
3. Bounded and fair: where a model singles out one event of many, it takes at most MODEL_PICKS_MAX
   of them, the newest always, one of each equal stretch of the others, chosen by the state's own
   stream. */
#include "explorer/model/models.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* ---- numbers ---- */

uint64_t stream_below(stream_t *stream, uint64_t bound)
{
    CHECK(bound > 0);
    return stream_next(stream) % bound;
}

uint64_t stream_mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    stream_t s = {.state = a};
    s.state = stream_next(&s) ^ b;
    s.state = stream_next(&s) ^ c;
    s.state = stream_next(&s) ^ d;
    return stream_next(&s);
}

/* ---- how many ---- */

/** What is persisted whole of the write: sectors, or more. */
static uint64_t unit_of(const model_config_t *config, const fs_event_t *event)
{
    return event->unit > config->sector ? event->unit : config->sector;
}

/** Aligned parts of `bytes` bytes that the write touches. */
static uint64_t parts_of(const fs_event_t *event, uint64_t bytes)
{
    return (event->offset + event->length - 1) / bytes - event->offset / bytes + 1;
}

static uint64_t units_of(const model_config_t *config, const fs_event_t *event)
{
    return parts_of(event, unit_of(config, event));
}

uint64_t model_sectors(const model_config_t *config, const fs_event_t *event)
{
    return event->kind == FS_WRITE && event->length > 0 ? parts_of(event, config->sector) : 1;
}

static bool can_tear(const model_config_t *config, const fs_event_t *event)
{
    return event->kind == FS_WRITE && event->length > 0 && units_of(config, event) > 1;
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
    if (event == NULL || event->site != SITE_REDO) {
        return 0;
    }
    uint64_t cuts = units_of(config, event) - 1;
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
                units_of(config, event) >= SECTORS_MIN[tear];
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

/** The changes of names before the present event that are lost. */
typedef struct lost_names {
    const fs_event_t **events;
    uint32_t n;
} lost_names_t;

typedef struct applier {
    const model_config_t *config;
    const persist_t *persist;
    stream_t *stream;
    torn_t *torn;
    lost_names_t *lost;
} applier_t;

static void torn_add(torn_t *torn, const fs_event_t *event, tear_t tear)
{
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

static void tell_kept(const applier_t *applier, uint32_t pending, uint64_t first, uint64_t end)
{
    const model_watch_t *watch = applier->config->watch;
    if (watch != NULL) {
        watch->kept(watch->ctx, pending, first, end);
    }
}

/** Units [first, end) of the i-th event that waits, a write. */
static void write_units(const applier_t *applier, uint32_t i, uint64_t first, uint64_t end)
{
    const fs_event_t *event = persist_pending(applier->persist, i);
    uint64_t sector = applier->config->sector;
    uint64_t unit = unit_of(applier->config, event);
    uint64_t base = event->offset / unit;
    uint64_t from = (base + first) * unit;
    uint64_t to = (base + end) * unit;
    from = from > event->offset ? from : event->offset;
    to = to < event->offset + event->length ? to : event->offset + event->length;
    CHECK(image_write(applier->persist->image, event->inode, from,
                      event->data + (from - event->offset), to - from));
    base = event->offset / sector;
    tell_kept(applier, i, from / sector - base, (to - 1) / sector - base + 1);
}

/** At least one sector is kept and at least one is lost. @return what that came to: a mask that changes only
once is a prefix or a suffix */
static tear_t apply_interior(const applier_t *applier, uint32_t at, uint64_t n)
{
    uint64_t kept = stream_below(applier->stream, n);
    uint64_t lost = (kept + 1 + stream_below(applier->stream, n - 1)) % n;
    uint64_t bits = 0;
    uint64_t changes = 0;
    bool first_there = false;
    bool last_there = false;
    for (uint64_t i = 0; i < n; i++) {
        bits = i % 64 == 0 ? stream_next(applier->stream) : bits >> 1;
        bool there = i == kept || ((bits & 1) != 0 && i != lost);
        if (there) {
            write_units(applier, at, i, i + 1);
        }
        first_there = i == 0 ? there : first_there;
        changes += i > 0 && there != last_there;
        last_there = there;
    }
    return changes > 1 ? TEAR_INTERIOR : first_there ? TEAR_PREFIX : TEAR_SUFFIX;
}

static void apply_torn(const applier_t *applier, uint32_t i, tear_t tear)
{
    const fs_event_t *event = persist_pending(applier->persist, i);
    uint64_t n = units_of(applier->config, event);
    uint64_t cut = 1 + stream_below(applier->stream, n - 1);
    if (tear == TEAR_PREFIX) {
        write_units(applier, i, 0, cut);
    } else if (tear == TEAR_SUFFIX) {
        write_units(applier, i, cut, n);
    } else {
        tear = apply_interior(applier, i, n);
    }
    torn_add(applier->torn, event, tear);
}

static void lose_name(const applier_t *applier, const fs_event_t *event)
{
    lost_names_t *lost = applier->lost;
    if (lost->events == NULL) {
        lost->events = mem_alloc(applier->persist->n_pending * sizeof(const fs_event_t *));
    }
    lost->events[lost->n++] = event;
}

/** These are lost. */
static void drop_range(const applier_t *applier, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const fs_event_t *event = persist_pending(applier->persist, i);
        if (event->kind == FS_WRITE) {
            torn_add(applier->torn, event, TEAR_DROPPED);
        }
        if (fs_changes_name(event)) {
            lose_name(applier, event);
        }
    }
}

/** The change of a name cannot be there without one that is lost. */
static bool is_cut_off(const applier_t *applier, const fs_event_t *event)
{
    const lost_names_t *lost = applier->lost;
    if (lost->n == 0 || !fs_changes_name(event)) {
        return false;
    }
    bool needs = persist_is_ordered(applier->persist);
    for (uint32_t i = 0; i < lost->n && !needs; i++) {
        needs = persist_needs(applier->persist, event, lost->events[i]);
    }
    return needs;
}

static void apply_range(const applier_t *applier, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const fs_event_t *event = persist_pending(applier->persist, i);
        if (is_cut_off(applier, event)) {
            lose_name(applier, event);
            continue;
        }
        persist_apply(applier->persist->image, event);
        tell_kept(applier, i, 0, model_sectors(applier->config, event));
    }
}

/** @param others keeps or loses what else waits */
static void apply_one_torn(const applier_t *applier, uint32_t k,
                           void (*others)(const applier_t *, uint32_t from, uint32_t to))
{
    const persist_t *persist = applier->persist;
    uint32_t n = count_tearable(applier->config, persist);
    uint32_t at = nth_tearable(applier->config, persist, pick(k / TEAR_PARTS, n, applier->stream));
    others(applier, 0, at);
    apply_torn(applier, at, (tear_t)(k % TEAR_PARTS));
    others(applier, at + 1, persist->n_pending);
}

/** Even k: the picked event and all later ones are lost. Odd k: of the picked one a part is there.
*/
static void apply_ordered(const applier_t *applier, uint32_t k)
{
    const persist_t *persist = applier->persist;
    uint32_t at = pick(k / 2, persist->n_pending, applier->stream);
    const fs_event_t *event = persist_pending(persist, at);
    apply_range(applier, 0, at);
    if (k % 2 != 0 && can_tear(applier->config, event)) {
        apply_torn(applier, at, (tear_t)stream_below(applier->stream, TEAR_PARTS));
    } else {
        drop_range(applier, at, at + 1);
    }
    drop_range(applier, at + 1, persist->n_pending);
}

/** Everything before the last write, and k + 1 of its sectors. */
static void apply_log_cut(const applier_t *applier, uint32_t k)
{
    uint32_t last = applier->persist->n_pending - 1;
    const fs_event_t *event = persist_pending(applier->persist, last);
    apply_range(applier, 0, last);
    write_units(applier, last, 0, k + 1U);
    torn_add(applier->torn, event, TEAR_PREFIX);
}

/** k = 0: every write of the killed process is there. k = 1: it was killed in the middle of the last one.
@return that one as far as it came */
static fs_event_t killed_write(const model_config_t *config, uint32_t k, stream_t *stream,
                               const persist_t *persist)
{
    fs_event_t event = *persist_pending(persist, persist->n_pending - 1);
    if (k > 0) {
        uint64_t unit = unit_of(config, &event);
        uint64_t cut = 1 + stream_below(stream, units_of(config, &event) - 1);
        event.length = (event.offset / unit + cut) * unit - event.offset;
    }
    return event;
}

static void apply_kill(const applier_t *applier, uint32_t k)
{
    const persist_t *persist = applier->persist;
    uint32_t n = persist->n_pending;
    if (n == 0) {
        return;
    }
    fs_event_t last = killed_write(applier->config, k, applier->stream, persist);
    apply_range(applier, 0, n - 1);
    persist_apply(persist->image, &last);
    tell_kept(applier, n - 1, 0, model_sectors(applier->config, &last));
    if (k > 0) {
        torn_add(applier->torn, persist_pending(persist, n - 1), TEAR_PREFIX);
    }
}

/** A density per state, and a quarter of the kept writes torn. Few events: all combinations, by the
bits of k. */
static void apply_subset(const applier_t *applier, uint32_t k)
{
    const persist_t *persist = applier->persist;
    uint64_t density = 1 + stream_below(applier->stream, 7);
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        const fs_event_t *event = persist_pending(persist, i);
        bool kept = persist->n_pending < 3 ? (k >> i & 1U) != 0
                                           : stream_below(applier->stream, 8) < density;
        bool tear = stream_below(applier->stream, 4) == 0;
        if (kept && tear && can_tear(applier->config, event)) {
            apply_torn(applier, i, (tear_t)stream_below(applier->stream, TEAR_PARTS));
        } else if (kept) {
            apply_range(applier, i, i + 1);
        } else {
            drop_range(applier, i, i + 1);
        }
    }
}

/** Each file has a fate of its own, drawn by its number: all of its waiting events are kept, none, or those up to one
of them. A disk may write back one file long before another. */
static void apply_by_file(const applier_t *applier, uint64_t fate_seed)
{
    const persist_t *persist = applier->persist;
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        const fs_event_t *event = persist_pending(persist, i);
        stream_t fate = {.state = stream_mix(fate_seed, file_of(event), 0, 0)};
        uint32_t kind = (uint32_t)stream_below(&fate, 3);
        uint32_t last = (uint32_t)stream_below(&fate, persist->n_pending);
        if (kind == 0 || (kind == 1 && i <= last)) {
            apply_range(applier, i, i + 1);
        } else {
            drop_range(applier, i, i + 1);
        }
    }
}

static stream_t state_stream(const model_config_t *config, model_t model, uint32_t k,
                             uint64_t point)
{
    return (stream_t){.state = stream_mix(config->seed, point, (uint64_t)model, k)};
}

/** k = 0: all that overlapped are lost; from 1 on one of them is, the newest first. */
static void apply_overlapped(const applier_t *applier, uint32_t k)
{
    const persist_t *persist = applier->persist;
    uint32_t n = count_overlapped(persist);
    uint32_t lost = k == 0 ? 0 : pick(k - 1, n, applier->stream);
    uint32_t overlapped = 0;
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        bool is_lost = persist_is_overlapped(persist, i) && (k == 0 || overlapped == lost);
        overlapped += persist_is_overlapped(persist, i);
        (is_lost ? drop_range : apply_range)(applier, i, i + 1);
    }
}

void model_kill_waiting(const model_config_t *config, uint32_t k, uint64_t point,
                        const persist_t *persist, fs_list_t *list)
{
    stream_t stream = state_stream(config, MODEL_KILL, k, point);
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        bool last = i + 1 == persist->n_pending;
        *fs_list_add(list, FS_WRITE) =
            last ? killed_write(config, k, &stream, persist) : *persist_pending(persist, i);
    }
}

void model_apply(const model_config_t *config, model_t model, uint32_t k, uint64_t point,
                 const persist_t *persist, torn_t *torn)
{
    stream_t stream = state_stream(config, model, k, point);
    lost_names_t lost = {.n = 0};
    applier_t applier = {
        .config = config, .persist = persist, .stream = &stream, .torn = torn, .lost = &lost};
    uint32_t n = persist->n_pending;
    uint32_t at;
    switch (model) {
    case MODEL_ALL_PERSISTED:
        apply_range(&applier, 0, n);
        break;
    case MODEL_NONE_PERSISTED:
        drop_range(&applier, 0, n);
        break;
    case MODEL_ONE_DROPPED:
        at = pick(k, n, &stream);
        apply_range(&applier, 0, at);
        drop_range(&applier, at, at + 1);
        apply_range(&applier, at + 1, n);
        break;
    case MODEL_ONE_PERSISTED:
        at = pick(k, n, &stream);
        drop_range(&applier, 0, at);
        apply_range(&applier, at, at + 1);
        drop_range(&applier, at + 1, n);
        break;
    case MODEL_ONE_TORN:
        apply_one_torn(&applier, k, apply_range);
        break;
    case MODEL_SUBSET:
        apply_subset(&applier, k);
        break;
    case MODEL_ORDERED:
        apply_ordered(&applier, k);
        break;
    case MODEL_LOG_CUT:
        apply_log_cut(&applier, k);
        break;
    case MODEL_KILL:
        apply_kill(&applier, k);
        break;
    case MODEL_BY_FILE:
        apply_by_file(&applier, stream_next(&stream));
        break;
    case MODEL_ONE_PART:
        apply_one_torn(&applier, k, drop_range);
        break;
    case MODEL_OVERLAPPED:
        apply_overlapped(&applier, k);
        break;
    case MODEL_KINDS:
        CHECK(false);
    }
    free(lost.events);
    image_settle(persist->image);
}
