/* One state and what lies below it.

Place: above target.c and models.c; runner.c says which states.

    mark | apply what the model keeps | hash: visited? | judge, recording its file operations
         | mark | persistence model over the recording: some of its crash points | undo
    undo

Below a kill nothing has become durable. There the persistence model goes over what the killed
process had written and then over the recording, from the image that was durable when the process
died.

Rules
1. The image is as it was when a visit ends.
2. What is drawn below a state depends on its image, on what the crash has lost, and below a kill on
   what was durable and on each write that was not: all of that is in the key under which it counts
   as visited.
3. Nothing lies below a state that recovery, scan or oracle found broken. A broken rule does not end
   the way.
4. Samples (I17, I18, I25, small memory, new work) are drawn by the image too.
5. What a recovery has shown of an image, each recovery that follows a crash in it must show again,
   and nothing else that was allowed before (I17): the image decides, and a crash takes away only
   what the recovery itself has written. Below a kill that holds where the crash has lost nothing of
   what the killed process had written; and where a target of one's own promises no durable commits,
   where it has lost nothing at all.
6. In a recording that goes on with new work, what a crash may leave grows by the prefixes of the
   work; until the first of them is acknowledged what was allowed before it stays so. */
#include "explorer/run/state.h"

#include <stdlib.h>

#include "disk/flush.h"
#include "explorer/run/dump.h"
#include "explorer/run/loss.h"
#include "explorer/run/way.h"

/** A crash inside a recovery, or in the trace. */
typedef struct visit_case {
    const persist_t *persist;
    model_t model;
    uint32_t k;
    uint64_t point; /**< for the stream */
    expected_t expected;
    const char *exported; /**< table that is exported, or NULL */
    bool export_acked;
    fs_site_t site;
    state_path_t path;
    torn_t torn;  /**< what the model has lost */
    uint64_t way; /**< hash of what a second crash depends on besides the image */
} visit_case_t;

static bool explore(explorer_t *explorer, visit_case_t *c, bool counted);

uint64_t point_seq(const fs_list_t *list, uint32_t point)
{
    return point == 0 ? 0 : list->events[point - 1].seq;
}

fs_site_t point_site(const fs_list_t *list, uint32_t point)
{
    while (point > 0 && list->events[point - 1].kind != FS_WRITE) {
        point--;
    }
    return point == 0 ? SITE_OTHER : list->events[point - 1].site;
}

/* ---- counting ---- */

static void count(const explorer_t *explorer, uint32_t counter, uint64_t n)
{
    shared_count(explorer->shared, explorer->counted_for, counter, n);
}

/** What the target counts of a state. */
static void count_outcome(const explorer_t *explorer, const outcome_t *outcome)
{
    for (uint32_t i = 0; i < explorer->target.kind->n_counters; i++) {
        count(explorer, COUNT_OF(of_target) + i, outcome->counters[i]);
    }
}

/** first: the first of the counters of all sites, flushes and tears; at_most: 1 counts states,
UINT32_MAX writes. */
static void count_torn(const explorer_t *explorer, uint32_t first, const torn_t *torn,
                       uint32_t at_most)
{
    for (uint32_t site = 0; site < SITE_KINDS; site++) {
        for (uint32_t later = 0; later < 2; later++) {
            for (uint32_t tear = 0; tear < TEAR_KINDS; tear++) {
                uint32_t n = torn->n[site][later][tear];
                count(explorer, first + (site * 2 + later) * TEAR_KINDS + tear,
                      n < at_most ? n : at_most);
            }
        }
    }
}

static void count_possible(const explorer_t *explorer, const fs_list_t *list)
{
    torn_t torn = {.n = {{{0}}}};
    torn_possible(&explorer->campaign->models, list, &torn);
    count_torn(explorer, COUNT_OF(possible), &torn, UINT32_MAX);
}

/** Where one state is asked for, what is wrong above it is no finding: it may be the same, and
would name another. */
static void report(explorer_t *explorer, const visit_case_t *c, uint64_t key,
                   const verdict_t *verdict)
{
    if (c->path.depth < explorer->campaign->only.depth) {
        return;
    }
    record_t record = {.key = key, .path = c->path, .site = c->site};
    expected_range(&c->expected, &record.low, &record.high);
    for (uint32_t i = 0; i < verdict->n; i++) {
        record.finding = verdict->findings[i];
        shared_record(explorer->shared, &record);
    }
}

/* ---- below a state ---- */

/** What a crash at this point of a recording may leave. */
static expected_t expected_there(const explorer_t *explorer, const visit_case_t *parent,
                                 const persist_t *persist)
{
    const fs_event_t *events = persist->list->events;
    uint32_t at = persist->next;
    uint32_t told = at > persist->n_before && persist_is_under_way(persist) ? at - 1 : at;
    uint32_t acked = told > persist->n_before ? events[told - 1].acked_line : 0;
    uint32_t issued = at > persist->n_before ? events[at - 1].issued_line : 0;
    acked = explorer->campaign->relaxed ? 0 : acked;
    const outcome_t *outcome = &explorer->outcomes[parent->path.depth - 1];
    expected_t below = outcome_expects(outcome, &parent->expected, acked, issued);
    if (!explorer->campaign->relaxed && told >= persist->n_before) {
        outcome_expect_prepared(outcome, told - persist->n_before, &below);
    }
    return below;
}

static bool nested_visit(explorer_t *explorer, const visit_case_t *parent, persist_t *persist,
                         uint64_t image_hash, model_t model, uint32_t k, bool counted)
{
    visit_case_t c = {
        .persist = persist,
        .model = model,
        .k = k,
        .point = stream_mix(image_hash, persist->next, 0, 0),
        .site = point_site(persist->list, persist->next),
        .path = parent->path,
        .expected = expected_there(explorer, parent, persist),
    };
    uint32_t level = c.path.depth++;
    c.path.level[level].seq = persist->next;
    c.path.level[level].model = (uint32_t)model;
    c.path.level[level].k = k;
    return explore(explorer, &c, counted);
}

/** The one state below that `only` asks for. */
static bool nested_only(explorer_t *explorer, const visit_case_t *parent, persist_t *persist,
                        uint64_t image_hash)
{
    const state_path_t *only = &explorer->campaign->only;
    uint32_t level = parent->path.depth;
    uint64_t point = only->level[level].seq;
    if (point < persist->next || point > persist->list->n) {
        return true;
    }
    persist_advance(persist, (uint32_t)point);
    model_t model = (model_t)only->level[level].model;
    if (only->level[level].k >= model_count(&explorer->campaign->models, model, persist)) {
        return true;
    }
    return nested_visit(explorer, parent, persist, image_hash, model, only->level[level].k, true);
}

/** What a rule has complained of. */
static nested_suspects_t suspects_of(const verdict_t *verdict)
{
    nested_suspects_t suspects = {.n = 0};
    for (uint32_t i = 0; i < verdict->n; i++) {
        if (verdict->findings[i].source == SOURCE_RULE) {
            suspects.at[suspects.n++] = verdict->findings[i].at;
        }
    }
    return suspects;
}

static bool nested_all(explorer_t *explorer, const visit_case_t *parent, persist_t *persist,
                       uint64_t image_hash, bool counted)
{
    const campaign_t *campaign = explorer->campaign;
    model_config_t models = campaign->models;
    if (parent->path.depth + 1 == campaign->depth) {
        models.enabled &= ~(1U << MODEL_KILL); /* nothing below it: the same as all-persisted */
    }
    nested_pick_t *picks = mem_alloc(campaign->nested * sizeof(*picks));
    const nested_suspects_t suspects =
        suspects_of(&explorer->outcomes[parent->path.depth - 1].verdict);
    nested_draw(persist->list, persist->next, &parent->torn, &suspects,
                stream_mix(models.seed, image_hash, 1, 0), picks, campaign->nested);
    bool clean = true;
    for (uint32_t i = 0; i < campaign->nested; i++) {
        persist_advance(persist, picks[i].point);
        model_t model;
        uint32_t k;
        if (nested_state(&models, persist, &picks[i], &model, &k)) {
            clean &= nested_visit(explorer, parent, persist, image_hash, model, k, counted);
        }
    }
    free(picks);
    return clean;
}

/** Inodes that the recovery made exist, without a name, in an image of before. */
static void create_inodes(image_t *image, const fs_list_t *list)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        uint32_t inode = list->events[i].inode;
        n = inode != IMAGE_NONE && inode >= n ? inode + 1 : n;
    }
    while (image_inode_count(image) < n) {
        (void)image_inode_create(image);
    }
}

static bool explore_recording(explorer_t *explorer, const visit_case_t *parent,
                              const fs_list_t *list, uint32_t n_waiting, uint64_t image_hash,
                              bool counted)
{
    image_mark(explorer->image);
    create_inodes(explorer->image, list);
    persist_t persist;
    persist_init_waiting(&persist, list, explorer->image, &explorer->campaign->disk, n_waiting);
    bool clean = explorer->campaign->only.depth > 0
                     ? nested_only(explorer, parent, &persist, image_hash)
                     : nested_all(explorer, parent, &persist, image_hash, counted);
    persist_free(&persist);
    image_undo(explorer->image);
    return clean;
}

/** Crashes the recovery that was recorded, after a kill. The image goes back to what was durable,
and comes back; what the killed process wrote waits before the recovery's own. */
static bool explore_below_kill(explorer_t *explorer, const visit_case_t *parent, uint64_t hash,
                               bool counted)
{
    const model_config_t *models = &explorer->campaign->models;
    const fs_list_t *recovery = &explorer->records[parent->path.depth - 1];
    fs_list_t list = {.n = 0};
    model_kill_waiting(models, parent->k, parent->point, parent->persist, &list);
    uint32_t n_waiting = list.n;
    for (uint32_t i = 0; i < recovery->n; i++) {
        *fs_list_add(&list, recovery->events[i].kind) = recovery->events[i];
    }
    image_undo(explorer->image);
    bool clean = explore_recording(explorer, parent, &list, n_waiting, hash, counted);
    image_mark(explorer->image);
    fs_list_free(&list);
    return clean;
}

/** Crashes the recovery that was recorded. The image is that of the parent. @return all was right
*/
static bool explore_below(explorer_t *explorer, const visit_case_t *parent, uint64_t hash,
                          bool counted)
{
    fs_list_t *list = &explorer->records[parent->path.depth - 1];
    if (counted) {
        image_mark(explorer->image);
        create_inodes(explorer->image, list);
        flush_mark_empty_places(list, explorer->image);
        count_possible(explorer, list);
        image_undo(explorer->image);
    }
    return parent->model == MODEL_KILL
               ? explore_below_kill(explorer, parent, hash, counted)
               : explore_recording(explorer, parent, list, 0, hash, counted);
}

/* ---- one state ---- */

/** image: what a death is counted under, as findings are: one per image. */
static void progress_set(explorer_t *explorer, const visit_case_t *c, uint64_t image)
{
    progress_t *progress = explorer->progress;
    progress->key = image;
    expected_range(&c->expected, &progress->low, &progress->high);
    progress->site = c->site;
    progress->path = c->path;
    atomic_fetch_add_explicit(&progress->beats, 1, memory_order_relaxed);
}

static uint32_t remaining_levels(const campaign_t *campaign, const visit_case_t *c)
{
    uint32_t depth = campaign->only.depth > 0 ? campaign->only.depth : campaign->depth;
    return depth - c->path.depth;
}

/** @param can_go_on is it worth a crash of this recovery? Where it broke no more than a rule it is:
what it did wrong may show then. @return nothing is wrong */
static bool judge_image(explorer_t *explorer, const visit_case_t *c, uint64_t sample, bool fresh,
                        uint32_t remaining, bool *can_go_on)
{
    fs_list_t *record = remaining > 0 ? &explorer->records[c->path.depth - 1] : NULL;
    outcome_t *outcome = &explorer->outcomes[c->path.depth - 1];
    const target_case_t what = {
        .expected = &c->expected,
        .record = record,
        .exported = c->exported,
        .export_acked = c->export_acked,
        .sample = sample,
        .killed = c->model == MODEL_KILL,
    };
    outcome_free(outcome);
    outcome_init(outcome);
    target_judge(&explorer->target, &what, outcome);
    report(explorer, c, sample, &outcome->verdict);
    if (fresh) {
        count_outcome(explorer, outcome);
        count(explorer, COUNT_OF(recovered_twice), target_case_is_twice(&what));
    }
    *can_go_on = verdict_state_is_right(&outcome->verdict);
    return outcome->verdict.n == 0;
}

/** Judges an image and what lies below it, unless that was found right before. @return all was
found right */
static bool explore_below_and_judge(explorer_t *explorer, const visit_case_t *c, uint64_t sample,
                                    uint64_t key, const visit_t *visit, bool counted)
{
    const campaign_t *campaign = explorer->campaign;
    uint32_t remaining = remaining_levels(campaign, c);
    bool is_only = campaign->only.depth == c->path.depth;
    bool can_go_on;
    bool clean = judge_image(explorer, c, sample, visit->fresh, remaining, &can_go_on);
    if (remaining > 0 && !is_only && (can_go_on || campaign->only.depth > 0)) {
        bool first = visit->fresh || visit->slot == NULL;
        clean &= explore_below(explorer, c, key, counted && first);
    }
    return clean;
}

/** Rule 4. Who asks for one state may want to look at the same things as in another. */
static uint64_t sample_of(const explorer_t *explorer, const visit_case_t *c)
{
    const campaign_t *campaign = explorer->campaign;
    const expected_t *expected = &c->expected;
    if (campaign->is_sampled && campaign->only.depth == c->path.depth) {
        return campaign->sample;
    }
    return stream_mix(image_hash(explorer->image), expected->low, expected->high,
                      expected->allowed->id);
}

/** Had a recovery changed something when it was crashed? Before that the crash is no other than the
one above, and of a recovery that changes nothing there is nothing to lose. */
static bool crashes_recovery(const visit_case_t *c)
{
    bool has_changed = false;
    for (uint32_t i = c->persist->n_before; c->path.depth > 1 && i < c->persist->next; i++) {
        const fs_event_t *event = &c->persist->list->events[i];
        has_changed |= fs_changes_content(event) || fs_changes_name(event);
    }
    return has_changed;
}

/** @return the state and all below it were found right */
static bool explore_image(explorer_t *explorer, const visit_case_t *c, bool counted)
{
    const campaign_t *campaign = explorer->campaign;
    uint32_t remaining = remaining_levels(campaign, c);
    const expected_t *expected = &c->expected;
    uint64_t sample = sample_of(explorer, c);
    uint64_t key = remaining > 0 ? stream_mix(sample, c->way, 0, 0) : sample;
    if (expected->is_shown) {
        key = stream_mix(key, expected->shown, expected->shown_to, 0);
    }
    if (expected->prepared != 0) {
        key = stream_mix(key, expected->prepared, 2, 0);
    }
    if (c->exported != NULL) { /* prefixes do not tell what is acknowledged */
        key = stream_mix(key, 1U + c->export_acked, 0, 0);
    }
    progress_set(explorer, c, sample);
    if (counted) {
        count(explorer, COUNT_OF(images), (uint32_t)sample);
    }
    if (campaign->only.depth == c->path.depth) {
        explorer->only_found = true;
        if (campaign->dump_dir != NULL) {
            dump_image(explorer->image, campaign->dump_dir);
        }
    }
    uint64_t above = explorer->counted_for;
    explorer->counted_for = visited_key(key, remaining);
    visit_t visit = visited_enter(explorer->shared, explorer->counted_for);
    count(explorer, COUNT_OF(distinct), visit.fresh);
    if (crashes_recovery(c)) {
        count(explorer, COUNT_OF(second_crash), visited_crashed_recovery(&visit));
    }
    if (!visit.clean && explore_below_and_judge(explorer, c, sample, key, &visit, counted)) {
        visit.clean = true;
        visited_leave_clean(&visit);
    }
    explorer->counted_for = above;
    return visit.clean;
}

/** Of what a kill leaves behind its image: the one that is durable, and what waits, in its
order. */
static uint64_t kill_hash(const explorer_t *explorer, const visit_case_t *c)
{
    fs_list_t waiting = {.n = 0};
    model_kill_waiting(&explorer->campaign->models, c->k, c->point, c->persist, &waiting);
    uint64_t durable = stream_mix(image_hash(explorer->image), 1, 0, 0); /* no file: 0 */
    uint64_t hash = fs_list_hash(&waiting, durable);
    fs_list_free(&waiting);
    return hash;
}

/** Commits need not be durable, and a recovery may lose what it has not synced. */
static bool is_lax(const campaign_t *campaign)
{
    return campaign->relaxed && !campaign->target.keeps_all;
}

/** Rule 5. */
static bool shown_holds(const campaign_t *campaign, const loss_t *loss)
{
    return !loss->of_earlier && !(is_lax(campaign) && loss->any);
}

/** Applies what the state keeps, and tells of it if asked to. */
static void apply_model(const explorer_t *explorer, visit_case_t *c)
{
    const campaign_t *campaign = explorer->campaign;
    model_config_t models = campaign->models;
    way_t way;
    if (campaign->way_file != NULL) {
        way_begin(&way, &models, c->persist);
    }
    bool may_unbind = c->expected.is_shown && (c->persist->n_before > 0 || is_lax(campaign));
    loss_watch_t watch;
    if (may_unbind) {
        loss_begin(&watch, &models, c->persist);
    }
    model_apply(&models, c->model, c->k, c->point, c->persist, &c->torn);
    if (may_unbind) {
        loss_t loss = loss_end(&watch);
        c->expected.is_shown = shown_holds(campaign, &loss);
    }
    if (campaign->way_file != NULL) {
        way_end(&way, campaign->way_file, c->path.depth, c->model, c->expected.low,
                c->expected.high, sample_of(explorer, c));
    }
}

static bool explore(explorer_t *explorer, visit_case_t *c, bool counted)
{
    uint64_t behind = c->model == MODEL_KILL ? kill_hash(explorer, c) : 0;
    image_mark(explorer->image);
    apply_model(explorer, c);
    c->way = torn_hash(&c->torn, behind);
    if (counted) {
        count(explorer, COUNT_OF(states), 1);
        count(explorer, COUNT_OF(model_states) + (uint32_t)c->model, 1);
        count_torn(explorer, COUNT_OF(torn), &c->torn, 1);
    }
    bool clean = explore_image(explorer, c, counted);
    image_undo(explorer->image);
    return clean;
}

void explorer_visit(explorer_t *explorer, model_t model, uint32_t k)
{
    const fs_list_t *list = &explorer->trace->list;
    uint32_t point = explorer->persist.next;
    const allowed_t *allowed = explorer->allowed;
    uint32_t told = persist_is_under_way(&explorer->persist) ? point - 1 : point;
    uint32_t acked =
        told == 0 ? explorer->trace->first_acked_line : list->events[told - 1].acked_line;
    uint32_t issued = point == 0 ? 0 : list->events[point - 1].issued_line;
    uint32_t low = allowed_at(allowed, acked);
    uint32_t high = allowed_newest(allowed, acked, issued);
    visit_case_t c = {
        .persist = &explorer->persist,
        .model = model,
        .k = k,
        .point = point,
        .expected = {.allowed = allowed,
                     .low = explorer->campaign->relaxed ? 0 : low,
                     .high = high,
                     .script_low = explorer->campaign->relaxed ? 0 : low},
        .site = point_site(list, point),
        .path = {.depth = 1},
    };
    c.path.level[0].seq = point_seq(list, point);
    c.path.level[0].model = (uint32_t)model;
    c.path.level[0].k = k;
    c.exported = allowed_export(allowed, low, high, &c.export_acked); /* until recovery ends it */
    (void)explore(explorer, &c, true);
}

void explorer_init(explorer_t *explorer, const campaign_t *campaign, const trace_t *trace,
                   image_t *image, const allowed_t *allowed, shared_t *shared)
{
    *explorer = (explorer_t){
        .campaign = campaign, .trace = trace, .shared = shared, .image = image, .allowed = allowed};
    explorer->progress = &shared->progress[0];
    target_open(&explorer->target, &campaign->target, image, trace->rules);
    persist_init(&explorer->persist, &trace->list, image, &campaign->disk);
    explorer->counted_for = TALLY_RECORDING;
    count_possible(explorer, &trace->list);
    explorer->counted_for = TALLY_STATE;
    for (uint32_t i = 0; i < DEPTH_MAX; i++) {
        explorer->records[i].with_calls = campaign->way_file != NULL;
    }
}

void explorer_free(explorer_t *explorer)
{
    target_close(&explorer->target);
    persist_free(&explorer->persist);
    for (uint32_t i = 0; i < DEPTH_MAX; i++) {
        fs_list_free(&explorer->records[i]);
        outcome_free(&explorer->outcomes[i]);
    }
}
