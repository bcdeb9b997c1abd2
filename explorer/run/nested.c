/* Which crashes of a recorded recovery are looked at.

Place: beside state.c, above models.c.

    pick 0   the recovery's end, with all lost that waits
    others   in turn anywhere, at a site, at what was torn before, at a change of names, at an
             fsync, with all lost that it does not cover
             of a recovery that broke rules on bytes: every second right after an operation of which
             one complained

Rules
1. What is drawn depends on the recording, on what the crash above has lost, and on the seed.
2. Suspects change none of the others: those are drawn by a stream of their own, in turn at all
   aims, and so as if there were no suspects and fewer picks. */
#include "explorer/run/nested.h"

#include <stdlib.h>

#include "explorer/judge/sites.h"

/* ---- points ---- */

/** Where a crash inside a recovery is wanted. A recovery writes many pages, little log, and hardly
ever changes a name. */
typedef enum nested_aim {
    AIM_ANYWHERE,
    AIM_SITE,  /**< right after a write of a site; each that the recovery writes to is as likely */
    AIM_AGAIN, /**< right after a write of what the crash above has torn or lost */
    AIM_NAME,  /**< right after a name has changed */
    AIM_SYNC,  /**< right after an fsync: does that file rely on what is not durable? */
    AIM_KINDS
} nested_aim_t;

/** What is looked for in a recovery, whose events begin at `first`. */
typedef struct nested_search {
    const fs_list_t *list;
    uint32_t first;
    const torn_t *torn; /**< by the crash above */
    nested_aim_t aim;
    fs_site_t site;
} nested_search_t;

/** At any site. */
static bool is_aimed_at(const nested_search_t *search, const fs_event_t *event)
{
    if (search->aim == AIM_NAME) {
        return fs_changes_name(event);
    }
    if (search->aim == AIM_SYNC) {
        return event->kind == FS_SYNC;
    }
    return event->kind == FS_WRITE
           && (search->aim == AIM_SITE || torn_overlaps(search->torn, event));
}

static bool is_wanted(const nested_search_t *search, const fs_event_t *event)
{
    return is_aimed_at(search, event) && (event->kind != FS_WRITE || event->site == search->site);
}

static fs_site_t draw_site(const nested_search_t *search, stream_t *stream)
{
    fs_site_t sites[SITE_KINDS] = {SITE_OTHER};
    uint32_t n = 0;
    bool seen[SITE_KINDS] = {false};
    for (uint32_t i = search->first; i < search->list->n; i++) {
        const fs_event_t *event = &search->list->events[i];
        if (event->kind == FS_WRITE && !seen[event->site] && is_aimed_at(search, event)) {
            seen[event->site] = true;
            sites[n++] = event->site;
        }
    }
    return sites[n > 0 ? stream_below(stream, n) : 0];
}

/** Moves the pick behind the next event that is wanted; false: there is none. */
static bool aim_at(nested_search_t *search, nested_aim_t aim, stream_t *stream, nested_pick_t *pick)
{
    uint32_t n = search->list->n - search->first;
    search->aim = aim;
    search->site = draw_site(search, stream);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = search->first + (pick->point - search->first + i) % n;
        if (is_wanted(search, &search->list->events[at])) {
            pick->point = at + 1;
            return true;
        }
    }
    return false;
}

static nested_pick_t draw_point(nested_search_t *search, stream_t *stream, nested_aim_t aim)
{
    uint32_t n = search->list->n - search->first;
    nested_pick_t pick = {.point = search->first + (uint32_t)stream_below(stream, n + 1U)};
    pick.draw = stream_next(stream);
    if (aim == AIM_SYNC) {
        /* The earlier the likelier: a recovery soon makes durable what it has found. */
        pick.point =
            search->first + (uint32_t)stream_below(stream, pick.point - search->first + 1U);
        pick.last = aim_at(search, aim, stream, &pick);
    } else if (aim != AIM_ANYWHERE) {
        pick.newest = aim != AIM_SITE && aim_at(search, aim, stream, &pick);
        if (!pick.newest && aim_at(search, AIM_SITE, stream, &pick)) {
            pick.newest = stream_below(stream, 2) == 0;
        }
    }
    return pick;
}

static int compare_picks(const void *a, const void *b)
{
    const nested_pick_t *x = a;
    const nested_pick_t *y = b;
    if (x->point != y->point) {
        return x->point < y->point ? -1 : 1;
    }
    return x->draw < y->draw ? -1 : x->draw > y->draw;
}

/** Right after one of the suspects, with what it did there alone, or anything. */
static nested_pick_t draw_suspect(const fs_list_t *list, uint32_t first,
                                  const nested_suspects_t *suspects, stream_t *stream)
{
    uint32_t point = first + suspects->at[stream_below(stream, suspects->n)] + 1;
    nested_pick_t pick = {.point = point < list->n ? point : list->n};
    pick.newest = pick.point > first && stream_below(stream, 2) == 0;
    pick.draw = stream_next(stream);
    return pick;
}

void nested_draw(const fs_list_t *list, uint32_t first, const torn_t *torn,
                 const nested_suspects_t *suspects, uint64_t seed, nested_pick_t *picks, uint32_t n)
{
    stream_t stream = {.state = seed};
    stream_t of_suspects = {.state = stream_mix(seed, 1, 0, 0)};
    nested_search_t search = {.list = list, .first = first, .torn = torn};
    picks[0] = (nested_pick_t){.point = list->n, .last = true};
    uint32_t n_others = 0;
    for (uint32_t i = 1; i < n; i++) {
        if (suspects->n > 0 && i % 2 == 1) {
            picks[i] = draw_suspect(list, first, suspects, &of_suspects);
        } else {
            picks[i] = draw_point(&search, &stream, (nested_aim_t)(++n_others % AIM_KINDS));
        }
    }
    qsort(picks, n, sizeof(*picks), compare_picks);
}

/* ---- what is lost there ---- */

bool nested_state(const model_config_t *models, const persist_t *persist, const nested_pick_t *pick,
                  model_t *model, uint32_t *k)
{
    uint64_t draw = pick->draw;
    if (pick->last && model_count(models, MODEL_NONE_PERSISTED, persist) > 0) {
        *model = MODEL_NONE_PERSISTED;
        *k = 0;
        return true;
    }
    if (pick->newest) {
        static const model_t OF_NEWEST[] = {MODEL_ONE_TORN, MODEL_ONE_PART, MODEL_ONE_PERSISTED};
        bool tears = persist->list->events[pick->point - 1].kind == FS_WRITE;
        *model = tears ? OF_NEWEST[draw % 3] : MODEL_ONE_PERSISTED;
        if (model_count(models, *model, persist) == 0) {
            *model = MODEL_ONE_PERSISTED;
        }
        if (model_count(models, *model, persist) > 0) {
            *k = *model == MODEL_ONE_PERSISTED ? 0 : (uint32_t)(draw / 3 % TEAR_PARTS);
            return true;
        }
    }
    uint32_t counts[MODEL_KINDS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < MODEL_KINDS; i++) {
        counts[i] = model_count(models, (model_t)i, persist);
        n += counts[i] > 0;
    }
    if (n == 0) {
        return false;
    }
    uint32_t chosen = (uint32_t)(draw % n);
    for (uint32_t i = 0; i < MODEL_KINDS; i++) {
        if (counts[i] > 0 && chosen-- == 0) {
            *model = (model_t)i;
            *k = (uint32_t)((draw >> 32) % counts[i]);
            return true;
        }
    }
    return false;
}
