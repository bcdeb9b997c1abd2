/* Canaries.

Place: above state.h and target.c, below runner.c, which gives each a process.

    crash point, all persisted --judged by the range of another one, or by none--> oracle: I1, I3,
    I2
                               \--what the kind of target makes of it (target_canary_t)--> its own

Rules
1. A canary is made so that it must be condemned whatever the target is: where that cannot be said
   it is untried. So the ranges have no state in common; a page is damaged in a database that was
   recovered and closed, of which no copy is left.
2. It counts as condemned only by its own invariant, or by those that the same damage may show as.
3. It goes the way of every state: target_judge(). */
#include "explorer/run/canary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static uint64_t bit(uint32_t invariant)
{
    return (uint64_t)1 << invariant;
}

/* ---- which states must differ ---- */

/** May prefix k be found where low to high is allowed? */
static bool in_range(const allowed_t *allowed, uint32_t k, uint32_t low, uint32_t high)
{
    if (!allowed->by_client) {
        return k >= low && k <= high;
    }
    /* The last one of its client up to low, the next one, or any up to high: allowed_clients.c. */
    uint64_t client = allowed->prefixes[k].client;
    bool newest = true;
    for (uint32_t i = 0; i < allowed->n; i++) {
        bool later = k <= low ? i > k && i <= low : i > low && i < k;
        newest = newest && !(later && allowed->prefixes[i].client == client);
    }
    return newest || (k > low && k <= high);
}

/** Is no state of one range one of the other, for this client? */
static bool client_differs(const allowed_t *allowed, uint64_t client, const expected_t *a,
                           const expected_t *b)
{
    for (uint32_t i = 0; i < allowed->n; i++) {
        for (uint32_t k = 0; k < allowed->n; k++) {
            const allowed_prefix_t *x = &allowed->prefixes[i];
            const allowed_prefix_t *y = &allowed->prefixes[k];
            if (x->client == client && y->client == client && x->digest == y->digest
                && in_range(allowed, i, a->low, a->high) && in_range(allowed, k, b->low, b->high)) {
                return false;
            }
        }
    }
    return true;
}

/** Has no earlier prefix this client? */
static bool is_first_of_client(const allowed_t *allowed, uint32_t k)
{
    for (uint32_t i = 0; i < k; i++) {
        if (allowed->prefixes[i].client == allowed->prefixes[k].client) {
            return false;
        }
    }
    return true;
}

static bool ranges_differ(const allowed_t *allowed, const expected_t *a, const expected_t *b)
{
    for (uint32_t i = 0; i < allowed->n; i++) {
        if (is_first_of_client(allowed, i)
            && client_differs(allowed, allowed->prefixes[i].client, a, b)) {
            return true;
        }
    }
    return false;
}

/** What may be there at a crash point. */
static expected_t expected_at(const explorer_t *explorer, uint32_t point)
{
    const allowed_t *allowed = explorer->allowed;
    const fs_event_t *last = point == 0 ? NULL : &explorer->trace->list.events[point - 1];
    uint32_t acked = last == NULL ? explorer->trace->first_acked_line : last->acked_line;
    uint32_t issued = last == NULL ? 0 : last->issued_line;
    return (expected_t){.allowed = allowed,
                        .low = allowed_at(allowed, acked),
                        .high = allowed_newest(allowed, acked, issued)};
}

/* ---- judging ---- */

static void untried(canary_t *canary, const char *why)
{
    canary_tell(canary, CANARY_UNTRIED, "%s", why);
}

/** mask: invariants that the damage may show as. */
static void conclude(canary_t *canary, const verdict_t *verdict, uint64_t mask)
{
    canary_tell(canary, CANARY_DEAF, "nobody%s%.160s", verdict->n > 0 ? ", but: " : "",
                verdict->n > 0 ? verdict->findings[0].what : "");
    for (uint32_t i = 0; i < verdict->n && canary->fate == CANARY_DEAF; i++) {
        const verdict_finding_t *finding = &verdict->findings[i];
        if ((mask & bit(finding->invariant)) != 0) {
            canary_tell(canary, CANARY_CONDEMNED, "%s, I%" PRIu32,
                        finding->rule != NULL ? finding->rule
                                              : finding_source_name(finding->source),
                        finding->invariant);
        }
    }
}

static void judge(explorer_t *explorer, const expected_t *expected, bool twice, canary_t *canary,
                  uint64_t mask)
{
    /* Draws nothing else. */
    uint64_t sample = twice ? UINT64_MAX / TARGET_TWICE_EVERY * TARGET_TWICE_EVERY : UINT64_MAX;
    const target_case_t what = {.expected = expected, .sample = sample};
    outcome_t outcome;
    outcome_init(&outcome);
    canary->fate = CANARY_JUDGED;
    target_judge(&explorer->target, &what, &outcome);
    conclude(canary, &outcome.verdict, mask);
    outcome_free(&outcome);
}

/* ---- the oracle ---- */

/** The state at the first crash point, where one commit more is acknowledged than it can have: the
next one from which on no state is it. */
static void lost_commit(explorer_t *explorer, uint32_t from_point, canary_t *canary)
{
    expected_t here = expected_at(explorer, from_point);
    expected_t end = expected_at(explorer, explorer->trace->list.n);
    if (explorer->campaign->relaxed) {
        untried(canary, "commits need not be durable");
        return;
    }
    for (uint32_t k = here.low + 1; k <= end.low; k++) {
        expected_t more = {.allowed = explorer->allowed, .low = k, .high = end.high};
        if (ranges_differ(explorer->allowed, &here, &more)) {
            more.high = k;
            judge(explorer, &more, false, canary, bit(1));
            return;
        }
    }
    untried(canary, "no commit of the run changes the state in which it began");
}

/** The state at the end, where one commit less is issued than it must have: the last one behind
whose issue no state is it. */
static void never_issued(explorer_t *explorer, uint32_t from_point, canary_t *canary)
{
    expected_t end = expected_at(explorer, explorer->trace->list.n);
    const uint32_t acked = end.low;
    (void)from_point;
    if (explorer->campaign->relaxed) {
        end.low = 0;
    }
    for (uint32_t k = acked; k-- > 0;) {
        const expected_t less = {.allowed = explorer->allowed, .high = k};
        if (ranges_differ(explorer->allowed, &less, &end)) {
            judge(explorer, &less, false, canary, bit(3));
            return;
        }
    }
    untried(canary, "the run may end in the state in which it began");
}

static uint64_t *other_digests(const uint64_t *digests, uint32_t n)
{
    uint64_t *others = mem_alloc((n + 1U) * sizeof(*others));
    for (uint32_t i = 0; i < n; i++) {
        others[i] = ~digests[i];
    }
    return others;
}

/** The state at the end, where no prefix is it. rows: nor has such rows. mask: as of judge() */
static void other_state(explorer_t *explorer, bool rows, canary_t *canary, uint64_t mask)
{
    const allowed_t *allowed = explorer->allowed;
    allowed_t others = *allowed;
    expected_t end = expected_at(explorer, explorer->trace->list.n);
    others.prefixes = mem_alloc(allowed->n * sizeof(*others.prefixes));
    for (uint32_t k = 0; k < allowed->n; k++) {
        allowed_prefix_t *prefix = &others.prefixes[k];
        *prefix = allowed->prefixes[k];
        prefix->digest = ~prefix->digest;
        prefix->rows_digest = rows ? ~prefix->rows_digest : prefix->rows_digest;
        prefix->table_digests = other_digests(prefix->table_digests, prefix->n_tables);
    }
    end.allowed = &others;
    judge(explorer, &end, false, canary, mask);
    for (uint32_t k = 0; k < others.n; k++) {
        free(others.prefixes[k].table_digests);
    }
    free(others.prefixes);
}

static void no_prefix(explorer_t *explorer, uint32_t from_point, canary_t *canary)
{
    (void)from_point;
    other_state(explorer, true, canary, bit(2) | bit(3) | bit(10));
}

/** The same rows, and other entries in the trees beside them. */
static void other_indexes(explorer_t *explorer, uint32_t from_point, canary_t *canary)
{
    (void)from_point;
    if (explorer->allowed->by_client) {
        untried(canary, "of several clients nobody tells indexes by themselves");
    } else {
        other_state(explorer, false, canary, bit(2) | bit(3) | bit(10));
    }
}

/** The state at the end, where another recovery of it had shown another one. */
static void other_recovery(explorer_t *explorer, uint32_t from_point, canary_t *canary)
{
    expected_t end = expected_at(explorer, explorer->trace->list.n);
    (void)from_point;
    end.is_shown = true;
    end.shown = ~explorer->allowed->prefixes[end.high].digest;
    end.shown_prefix = end.shown_to = end.high;
    for (uint32_t k = end.low; k <= end.high; k++) {
        if (explorer->allowed->prefixes[k].digest == end.shown) {
            untried(canary, "the run may end in any state");
            return;
        }
    }
    judge(explorer, &end, false, canary, bit(17) | bit(1) | bit(2) | bit(3) | bit(10));
}

/* ---- those of the kind of target ---- */

/** The state at the end, as the kind makes it worse. */
static void of_kind(explorer_t *explorer, const target_canary_t *kind, canary_t *canary)
{
    expected_t end = expected_at(explorer, explorer->trace->list.n);
    outcome_t outcome;
    outcome_init(&outcome);
    const char *why = kind->make(explorer->target.self, kind->number, &outcome);
    if (why != NULL) {
        untried(canary, why);
    } else if (kind->is_judged) {
        conclude(canary, &outcome.verdict, kind->shows_as);
    } else {
        judge(explorer, &end, kind->twice, canary, kind->shows_as);
    }
    outcome_free(&outcome);
}

/* ---- the list ---- */

/** What needs no more than prefixes. */
static const struct kind {
    const char *name;
    uint32_t invariant;
    bool from_begin; /**< made of the first crash point; else of the last one */
    void (*make)(explorer_t *explorer, uint32_t from_point, canary_t *canary);
} OF_STATES[] = {
    {"lost_commit", 1, true, lost_commit},
    {"never_issued", 3, false, never_issued},
    {"no_prefix", 2, false, no_prefix},
    {"other_indexes", 10, false, other_indexes},
    {"other_recovery", 17, false, other_recovery},
};

static uint32_t n_of_states(const campaign_t *campaign)
{
    return campaign->target.any_state ? 0 : sizeof(OF_STATES) / sizeof(OF_STATES[0]);
}

void canaries_list(const campaign_t *campaign, canaries_t *out)
{
    uint32_t n_states = n_of_states(campaign);
    *out = (canaries_t){.n = n_states + campaign->target.n_canaries};
    CHECK(out->n <= CANARIES_MAX);
    for (uint32_t i = 0; i < out->n; i++) {
        canary_t *canary = &out->list[i];
        const target_canary_t *kind =
            i < n_states ? NULL : &campaign->target.canaries[i - n_states];
        canary->invariant = kind == NULL ? OF_STATES[i].invariant : kind->invariant;
        (void)snprintf(canary->name, sizeof(canary->name), "%s",
                       kind == NULL ? OF_STATES[i].name : kind->name);
    }
}

uint32_t canary_point(const explorer_t *explorer, uint32_t i, uint64_t from_seq)
{
    const fs_list_t *list = &explorer->trace->list;
    if (i >= n_of_states(explorer->campaign) || !OF_STATES[i].from_begin) {
        return list->n;
    }
    uint32_t point = 0;
    while (point < list->n && point_seq(list, point) < from_seq) {
        point++;
    }
    return point;
}

void canary_try(explorer_t *explorer, uint32_t i, uint32_t from_point, canary_t *canary)
{
    const campaign_t *campaign = explorer->campaign;
    uint32_t n_states = n_of_states(campaign);
    torn_t torn = {.n = {{{0}}}};
    image_mark(explorer->image);
    model_apply(&campaign->models, MODEL_ALL_PERSISTED, 0, 0, &explorer->persist, &torn);
    if (i < n_states) {
        OF_STATES[i].make(explorer, from_point, canary);
    } else {
        of_kind(explorer, &campaign->target.canaries[i - n_states], canary);
    }
    image_undo(explorer->image);
}
