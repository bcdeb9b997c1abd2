/* What one crash keeps of what waits.

Place: below models.c, which chooses; above persist.c.

    choose: each event lost, kept, or units of it  ->  settle: coherent  ->  apply, in order

Rules
1. A sector holds some beginning of the changes that touched it since it was durable: a page cache,
   a disk's cache and a disk hold sectors, not writes. So what changes only a part of a sector is
   not there without the changes of it that came before. What covers it whole may be: nobody sees
   what was below.
2. What lies behind a truncation, or behind the size that a file had before it grew, is not there
   without that new size: the blocks that it gave back are not used again before that is on the
   disk, and blocks that are added come later than it.
3. Changes whose calls overlapped have no order in which they must be there.
4. Changes of names: persist_needs(), and a beginning of them where they are a journal.
5. A file that grows without its bytes (persist_growth()) has zeros up to the end of the sector in
   which it ended: that is written whole. */
#include "disk/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define NOTHING UINT32_MAX
#define WORD_BITS 64U

/* ---- units ---- */

uint64_t choice_unit(const model_config_t *config, const fs_event_t *event)
{
    return event->unit > config->sector ? event->unit : config->sector;
}

uint64_t choice_units(const model_config_t *config, const fs_event_t *event)
{
    if (event->kind != FS_WRITE || event->length == 0) {
        return 1;
    }
    uint64_t unit = choice_unit(config, event);
    return (event->offset + event->length - 1) / unit - event->offset / unit + 1;
}

static const fs_event_t *event_of(const choice_t *choice, uint32_t i)
{
    return persist_pending(choice->persist, i);
}

static bool unit_is_kept(const choice_t *choice, uint32_t i, uint64_t unit)
{
    const choice_event_t *event = &choice->events[i];
    return event->fate == FATE_PART
               ? (choice->words[event->words + unit / WORD_BITS] >> unit % WORD_BITS & 1U) != 0
               : event->fate == FATE_KEPT;
}

static void make_part(choice_t *choice, uint32_t i)
{
    choice_event_t *event = &choice->events[i];
    if (event->fate == FATE_PART) {
        return;
    }
    uint32_t n = (uint32_t)(choice_units(choice->config, event_of(choice, i)) / WORD_BITS) + 1;
    if (choice->n_words + n > choice->words_capacity) {
        choice->words_capacity = (choice->n_words + n) * 2;
        choice->words = mem_grow(choice->words, choice->words_capacity * sizeof(*choice->words));
    }
    memset(choice->words + choice->n_words, event->fate == FATE_KEPT ? 0xff : 0,
           n * sizeof(*choice->words));
    event->words = choice->n_words;
    event->fate = FATE_PART;
    choice->n_words += n;
}

static void set_unit(choice_t *choice, uint32_t i, uint64_t unit, bool kept)
{
    if (unit_is_kept(choice, i, unit) == kept) {
        return;
    }
    make_part(choice, i);
    choice->words[choice->events[i].words + unit / WORD_BITS] ^= (uint64_t)1 << unit % WORD_BITS;
}

void choice_begin(choice_t *choice, const model_config_t *config, const persist_t *persist)
{
    *choice = (choice_t){.config = config, .persist = persist};
    choice->events = mem_alloc(persist->n_pending * sizeof(*choice->events));
}

void choice_end(choice_t *choice)
{
    free(choice->events);
    free(choice->words);
    free(choice->sizes);
}

void choice_keep(choice_t *choice, uint32_t i)
{
    CHECK(i < choice->persist->n_pending);
    choice->events[i].fate = FATE_KEPT;
}

void choice_lose(choice_t *choice, uint32_t i)
{
    CHECK(i < choice->persist->n_pending);
    choice->events[i].fate = FATE_LOST;
}

void choice_grow(choice_t *choice, uint32_t i, bool garbage, uint64_t seed)
{
    choice_lose(choice, i);
    choice->events[i].grows = true;
    choice->garbage = garbage;
    choice->seed = seed;
}

void choice_keep_units(choice_t *choice, uint32_t i, uint64_t first, uint64_t end)
{
    CHECK(i < choice->persist->n_pending && event_of(choice, i)->kind == FS_WRITE);
    for (uint64_t unit = first; unit < end; unit++) {
        set_unit(choice, i, unit, true);
    }
}

/* ---- coherence ---- */

/** Rule 3, of two that wait. */
static bool is_ordered_after(const choice_t *choice, uint32_t later, uint32_t earlier)
{
    uint32_t between = choice->persist->pending[later] - choice->persist->pending[earlier];
    return between > event_of(choice, later)->late;
}

static bool has_range(const fs_event_t *event)
{
    return (event->kind == FS_WRITE || event->kind == FS_ZERO) && event->length > 0;
}

/** The newest change before the i-th that touches these bytes of the file; NOTHING: none, or it was
cut off since. */
static uint32_t touched_before(const choice_t *choice, uint32_t i, uint64_t from, uint64_t to)
{
    uint32_t inode = event_of(choice, i)->inode;
    while (i-- > 0) {
        const fs_event_t *event = event_of(choice, i);
        if (event->inode != inode || !fs_changes_content(event)) {
            continue;
        }
        if (event->kind == FS_TRUNCATE && event->offset <= from) {
            return NOTHING;
        }
        if (has_range(event) && event->offset < to && from < event->offset + event->length) {
            return i;
        }
    }
    return NOTHING;
}

/** The same, of those only that had ended when the i-th began. */
static uint32_t ordered_before(const choice_t *choice, uint32_t i, uint64_t from, uint64_t to)
{
    uint32_t at = touched_before(choice, i, from, to);
    while (at != NOTHING && !is_ordered_after(choice, i, at)) {
        at = touched_before(choice, at, from, to);
    }
    return at;
}

/** The units of the event that it covers only in part, as a truncation does the one in which the
file then ends. @return how many: at most two */
static uint32_t partial_units(const choice_t *choice, const fs_event_t *event, uint64_t units[2])
{
    uint64_t unit = choice_unit(choice->config, event);
    uint64_t first = event->offset / unit;
    if (event->kind == FS_TRUNCATE && event->offset % unit != 0
        && event->offset < event->old_size) {
        units[0] = first;
        return 1;
    }
    if (!has_range(event)) {
        return 0;
    }
    uint64_t last = (event->offset + event->length - 1) / unit;
    uint32_t n = 0;
    if (event->offset % unit != 0) {
        units[n++] = first;
    }
    if ((event->offset + event->length) % unit != 0 && (n == 0 || last != first)) {
        units[n++] = last;
    }
    return n;
}

/** Is there every unit of the i-th event that lies in these bytes? If `keep`, from now on it is. */
static bool range_is_kept(choice_t *choice, uint32_t i, uint64_t from, uint64_t to, bool keep)
{
    const fs_event_t *event = event_of(choice, i);
    if (event->kind != FS_WRITE) {
        choice->events[i].fate = keep ? FATE_KEPT : choice->events[i].fate;
        return choice->events[i].fate == FATE_KEPT;
    }
    uint64_t unit = choice_unit(choice->config, event);
    uint64_t base = event->offset / unit;
    uint64_t end = event->offset + event->length;
    uint64_t last = ((to < end ? to : end) - 1) / unit - base;
    bool kept = true;
    for (uint64_t at = (from > event->offset ? from : event->offset) / unit - base; at <= last;
         at++) {
        if (keep) {
            set_unit(choice, i, at, true);
        }
        kept &= unit_is_kept(choice, i, at);
    }
    return kept;
}

/** Rule 2. */
static bool needs_size(const choice_t *choice, uint32_t i, uint32_t truncation)
{
    const fs_event_t *size = event_of(choice, truncation);
    const fs_event_t *event = event_of(choice, i);
    if (event->inode != size->inode || !is_ordered_after(choice, i, truncation)) {
        return false;
    }
    uint64_t unit = choice->config->sector;
    uint64_t end = event->offset + (has_range(event) ? event->length : 0);
    return size->offset < size->old_size   ? end > size->offset / unit * unit
           : size->offset > size->old_size ? end > size->old_size
                                           : false;
}

static void list_sizes(choice_t *choice)
{
    uint32_t n = choice->persist->n_pending;
    for (uint32_t i = 0; i < n; i++) {
        if (event_of(choice, i)->kind != FS_TRUNCATE) {
            continue;
        }
        if (choice->sizes == NULL) {
            choice->sizes = mem_alloc(n * sizeof(*choice->sizes));
        }
        choice->sizes[choice->n_sizes++] = i;
    }
}

static bool misses_size(const choice_t *choice, uint32_t i)
{
    for (uint32_t at = 0; at < choice->n_sizes && choice->sizes[at] < i; at++) {
        uint32_t size = choice->sizes[at];
        if (choice->events[size].fate == FATE_LOST && needs_size(choice, i, size)) {
            return true;
        }
    }
    return false;
}

/** What cannot be there without what is lost is lost too. */
static void lose_with_earlier(choice_t *choice, uint32_t i)
{
    const fs_event_t *event = event_of(choice, i);
    if (misses_size(choice, i)) {
        choice_lose(choice, i);
        return;
    }
    uint64_t units[2];
    uint32_t n = partial_units(choice, event, units);
    uint64_t unit = choice_unit(choice->config, event);
    for (uint32_t at = 0; at < n; at++) {
        uint64_t from = units[at] * unit;
        uint32_t before = ordered_before(choice, i, from, from + unit);
        if (before == NOTHING || range_is_kept(choice, before, from, from + unit, false)) {
            continue;
        }
        if (event->kind == FS_WRITE) {
            set_unit(choice, i, units[at] - event->offset / unit, false);
        } else {
            choice_lose(choice, i);
        }
    }
}

/** What it cannot be there without is kept too. */
static void keep_with_later(choice_t *choice, uint32_t i)
{
    const fs_event_t *event = event_of(choice, i);
    for (uint32_t at = 0; at < choice->n_sizes && choice->sizes[at] < i; at++) {
        if (needs_size(choice, i, choice->sizes[at])) {
            choice_keep(choice, choice->sizes[at]);
        }
    }
    uint64_t units[2];
    uint32_t n = partial_units(choice, event, units);
    uint64_t unit = choice_unit(choice->config, event);
    for (uint32_t at = 0; at < n; at++) {
        uint64_t from = units[at] * unit;
        bool there =
            event->kind != FS_WRITE || unit_is_kept(choice, i, units[at] - event->offset / unit);
        uint32_t before = there ? ordered_before(choice, i, from, from + unit) : NOTHING;
        if (before != NOTHING) {
            (void)range_is_kept(choice, before, from, from + unit, true);
        }
    }
}

/** What comes before the first loss is coherent as it is. */
static void settle_from_loss(choice_t *choice)
{
    bool lost = false;
    for (uint32_t i = 0; i < choice->persist->n_pending; i++) {
        if (fs_changes_content(event_of(choice, i))) {
            if (lost && choice->events[i].fate != FATE_LOST) {
                lose_with_earlier(choice, i);
            }
            lost |= choice->events[i].fate != FATE_KEPT;
        }
    }
}

static void settle_from_kept(choice_t *choice)
{
    for (uint32_t i = choice->persist->n_pending; i-- > 0;) {
        if (choice->events[i].fate != FATE_LOST && fs_changes_content(event_of(choice, i))) {
            keep_with_later(choice, i);
        }
    }
}

void choice_settle(choice_t *choice, choice_rule_t rule)
{
    list_sizes(choice);
    (rule == CHOICE_LOSS_WINS ? settle_from_loss : settle_from_kept)(choice);
}

/* ---- what is done ---- */

static void tell_kept(const choice_t *choice, uint32_t i, uint64_t first, uint64_t end)
{
    const model_watch_t *watch = choice->config->watch;
    if (watch != NULL) {
        watch->kept(watch->ctx, i, first, end);
    }
}

/** Units [first, end) of the i-th event that waits, a write. */
static void write_units(const choice_t *choice, uint32_t i, uint64_t first, uint64_t end)
{
    const fs_event_t *event = event_of(choice, i);
    uint64_t sector = choice->config->sector;
    uint64_t unit = choice_unit(choice->config, event);
    uint64_t base = event->offset / unit;
    uint64_t from = (base + first) * unit;
    uint64_t to = (base + end) * unit;
    from = from > event->offset ? from : event->offset;
    to = to < event->offset + event->length ? to : event->offset + event->length;
    CHECK(image_write(choice->persist->image, event->inode, from,
                      event->data + (from - event->offset), to - from));
    base = event->offset / sector;
    tell_kept(choice, i, from / sector - base, (to - 1) / sector - base + 1);
}

/** @return what it comes to: a mask that changes only once is a prefix or a suffix */
static tear_t write_part(const choice_t *choice, uint32_t i, uint64_t n)
{
    uint64_t changes = 0;
    uint64_t from = 0; /* of the run of kept units at hand */
    for (uint64_t at = 0; at < n; at++) {
        bool kept = unit_is_kept(choice, i, at);
        bool next = at + 1 < n && unit_is_kept(choice, i, at + 1);
        from = kept ? from : at + 1;
        if (kept && !next) {
            write_units(choice, i, from, at + 1);
        }
        changes += at + 1 < n && kept != next;
    }
    bool first = unit_is_kept(choice, i, 0);
    return changes > 1    ? TEAR_INTERIOR
           : changes == 0 ? TEAR_DROPPED
           : first        ? TEAR_PREFIX
                          : TEAR_SUFFIX;
}

/** Are all units of a write kept? */
static bool is_whole(const choice_t *choice, uint32_t i, uint64_t n)
{
    uint64_t at = 0;
    while (at < n && unit_is_kept(choice, i, at)) {
        at++;
    }
    return at == n;
}

/** The file has the size that a write gave it: up to the end of its last sector there are zeros,
behind that what is drawn. */
static void grow(const choice_t *choice, const fs_event_t *write)
{
    image_t *image = choice->persist->image;
    uint64_t size = image_size(image, write->inode);
    uint64_t to = persist_growth(choice->persist, write);
    uint64_t sector = choice->config->sector;
    if (to <= size) {
        return;
    }
    CHECK(image_truncate(image, write->inode, to));
    stream_t stream = {.state = choice->seed};
    for (uint64_t at = (size + sector - 1) / sector * sector; choice->garbage && at < to;
         at += sizeof(uint64_t)) {
        uint64_t bytes = stream_next(&stream);
        uint64_t n = to - at < sizeof(bytes) ? to - at : sizeof(bytes);
        CHECK(image_write(image, write->inode, at, &bytes, n));
    }
}

/** False: something of it is lost. */
static bool apply_content(const choice_t *choice, uint32_t i, torn_t *torn)
{
    const fs_event_t *event = event_of(choice, i);
    const choice_event_t *chosen = &choice->events[i];
    uint64_t n = choice_units(choice->config, event);
    if (chosen->fate == FATE_KEPT || (chosen->fate == FATE_PART && is_whole(choice, i, n))) {
        persist_apply(choice->persist->image, event);
        tell_kept(choice, i, 0, model_sectors(choice->config, event));
        return true;
    }
    if (event->kind == FS_WRITE) {
        torn_add(torn, event, chosen->fate == FATE_PART ? write_part(choice, i, n) : TEAR_DROPPED);
    }
    if (chosen->grows) {
        grow(choice, event);
    }
    return false;
}

/** The changes before the present event that are lost and that names may need. */
typedef struct lost {
    const fs_event_t **events;
    uint32_t n;
    bool any_name;
} lost_t;

/** Rule 4: the change of a name cannot be there without what is lost. */
static bool is_cut_off(const choice_t *choice, const lost_t *lost, const fs_event_t *event)
{
    bool needs = lost->any_name && persist_fs(choice->persist)->order == FS_A_BEGINNING;
    for (uint32_t i = 0; i < lost->n && !needs; i++) {
        needs = persist_needs(choice->persist, event, lost->events[i]);
    }
    return needs;
}

static void lose(const choice_t *choice, lost_t *lost, const fs_event_t *event)
{
    if (lost->events == NULL) {
        lost->events = mem_alloc(choice->persist->n_pending * sizeof(const fs_event_t *));
    }
    lost->events[lost->n++] = event;
    lost->any_name |= fs_changes_name(event);
}

static void apply_name(const choice_t *choice, uint32_t i, lost_t *lost)
{
    const fs_event_t *event = event_of(choice, i);
    if (choice->events[i].fate == FATE_KEPT && !is_cut_off(choice, lost, event)) {
        persist_apply(choice->persist->image, event);
        tell_kept(choice, i, 0, 1);
    } else {
        lose(choice, lost, event);
    }
}

void choice_apply(const choice_t *choice, torn_t *torn)
{
    lost_t lost = {.n = 0};
    bool flushes = persist_fs(choice->persist)->replace_flushes;
    for (uint32_t i = 0; i < choice->persist->n_pending; i++) {
        if (fs_changes_name(event_of(choice, i))) {
            apply_name(choice, i, &lost);
        } else if (!apply_content(choice, i, torn) && flushes) {
            lose(choice, &lost, event_of(choice, i));
        }
    }
    free(lost.events);
    image_settle(choice->persist->image);
}
