/* The report.

Place: above shared.c, below main.c.

The order of the output depends on the findings alone: they are sorted by invariant, source, site and state
id. */
#include "explorer/run/report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_findings(const verdict_finding_t *a, const verdict_finding_t *b)
{
    int order = compare_u64(a->invariant, b->invariant);
    return order != 0 ? order : compare_u64((uint64_t)a->source, (uint64_t)b->source);
}

/** By invariant, source, site, state. */
static int compare_by_state(const void *a, const void *b)
{
    const record_t *x = a;
    const record_t *y = b;
    int order = compare_findings(&x->finding, &y->finding);
    order = order != 0 ? order : compare_u64((uint64_t)x->site, (uint64_t)y->site);
    return order != 0 ? order : state_path_compare(&x->path, &y->path);
}

/** By invariant, source, image, state: the first of each image is the one that counts. */
static int compare_by_image(const void *a, const void *b)
{
    const record_t *x = a;
    const record_t *y = b;
    int order = compare_findings(&x->finding, &y->finding);
    order = order != 0 ? order : compare_u64(x->key, y->key);
    return order != 0 ? order : state_path_compare(&x->path, &y->path);
}

/** Keeps one record per invariant, source and image, under the smallest state id. @return their number */
static uint64_t drop_duplicates(record_t *records, uint64_t n)
{
    uint64_t kept = 0;
    qsort(records, n, sizeof(*records), compare_by_image);
    for (uint64_t i = 0; i < n; i++) {
        if (kept == 0 || records[kept - 1].key != records[i].key
            || compare_findings(&records[kept - 1].finding, &records[i].finding) != 0) {
            records[kept++] = records[i];
        }
    }
    return kept;
}

static json_t *number(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void set(json_t *object, const char *key, json_t *value)
{
    CHECK(json_object_set_new(object, key, value) == 0);
}

static void print_json(json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    CHECK(text != NULL);
    (void)puts(text);
    free(text);
    json_decref(object);
}

static void print_violation(const record_t *record, uint64_t count, bool json)
{
    char id[STATE_ID_MAX];
    const char *model = model_name((model_t)record->path.level[record->path.depth - 1].model);
    state_path_format(&record->path, id);
    if (!json) {
        (void)printf("I%" PRIu32 " %s, by %s: %s (state %s, prefixes %" PRIu32 "..%" PRIu32
                     ", %" PRIu64 " states like it)\n",
                     record->finding.invariant, fs_site_name(record->site),
                     finding_source_name(record->finding.source), record->finding.what, id,
                     record->low, record->high, count);
        return;
    }
    json_t *object = json_object();
    set(object, "state", json_string(id));
    set(object, "invariant", number(record->finding.invariant));
    set(object, "what",
        json_stringn_nocheck(record->finding.what,
                             strnlen(record->finding.what, VERDICT_WHAT_MAX)));
    set(object, "source", json_string(finding_source_name(record->finding.source)));
    if (record->finding.rule != NULL) {
        set(object, "rule", json_string(record->finding.rule));
    }
    set(object, "model", json_string(model));
    set(object, "prefix_range", json_pack("[i,i]", (int)record->low, (int)record->high));
    set(object, "site", json_string(fs_site_name(record->site)));
    set(object, "count", number(count));
    print_json(object);
}

static uint32_t print_violations(record_t *records, uint64_t n, bool json)
{
    uint32_t printed = 0;
    qsort(records, n, sizeof(*records), compare_by_state);
    for (uint64_t i = 0; i < n;) {
        uint64_t end = i + 1;
        while (end < n && compare_findings(&records[end].finding, &records[i].finding) == 0
               && records[end].site == records[i].site) {
            end++;
        }
        print_violation(&records[i], end - i, json);
        printed++;
        i = end;
    }
    return printed;
}

static json_t *by_invariant(const record_t *records, uint64_t n)
{
    json_t *object = json_object();
    for (uint64_t i = 0; i < n;) {
        uint64_t end = i + 1;
        char key[16];
        while (end < n && records[end].finding.invariant == records[i].finding.invariant) {
            end++;
        }
        (void)snprintf(key, sizeof(key), "%" PRIu32, records[i].finding.invariant);
        set(object, key, number(end - i));
        i = end;
    }
    return object;
}

static json_t *by_model(const shared_t *shared, const record_t *records, uint64_t n)
{
    json_t *object = json_object();
    for (uint32_t m = 0; m < MODEL_KINDS; m++) {
        uint64_t violations = 0;
        for (uint64_t i = 0; i < n; i++) {
            violations += records[i].path.level[records[i].path.depth - 1].model == m;
        }
        json_t *entry = json_object();
        set(entry, "states", number(load(&shared->model_states[m])));
        set(entry, "violations", number(violations));
        set(object, model_name((model_t)m), entry);
    }
    return object;
}

static json_t *paths_object(const shared_t *shared)
{
    static const char *const NAMES[PATH_KINDS] = {
        "dblwr_restored",  "redo_records",   "pages_created",   "index_load_reads",
        "indexes_dropped", "tables_dropped", "trx_rolled_back", "several_batches"};
    json_t *object = json_object();
    for (uint32_t i = 0; i < PATH_KINDS; i++) {
        set(object, NAMES[i], number(load(&shared->paths[i])));
    }
    set(object, "second_crash", number(load(&shared->second_crash)));
    set(object, "recovered_twice", number(load(&shared->recovered_twice)));
    set(object, "recovered_in_batches", number(load(&shared->recovered_in_batches)));
    set(object, "purged", number(load(&shared->purged)));
    return object;
}

static json_t *torn_pages_of(const shared_t *shared, uint32_t site, uint32_t later)
{
    json_t *cells = json_object();
    for (uint32_t tear = 0; tear < TEAR_KINDS; tear++) {
        json_t *cell = json_object();
        set(cell, "writes", number(load(&shared->possible[site][later][tear])));
        set(cell, "states", number(load(&shared->torn[site][later][tear])));
        set(cells, tear_name((tear_t)tear), cell);
    }
    return cells;
}

/** The torn-page matrix: by site, flush and tear the recorded writes that could be lost that way, and the
states in which one was. */
static json_t *torn_pages_object(const shared_t *shared, bool engine)
{
    json_t *object = json_object();
    for (uint32_t site = 0; site < SITE_KINDS; site++) {
        if (!fs_site_is_of((fs_site_t)site, engine)) {
            continue;
        }
        json_t *entry = json_object();
        set(entry, "first_flush", torn_pages_of(shared, site, 0));
        set(entry, "later_flush", torn_pages_of(shared, site, 1));
        set(object, fs_site_name((fs_site_t)site), entry);
    }
    return object;
}

static void print_summary(const shared_t *shared, const summary_t *summary, const record_t *records,
                          uint64_t n)
{
    uint64_t states = load(&shared->states);
    json_t *object = json_object();
    set(object, "states", number(states));
    set(object, "distinct", number(load(&shared->distinct)));
    set(object, "states_per_s", number((uint64_t)((double)states / (summary->seconds + 1e-9))));
    set(object, "seconds", json_real(summary->seconds));
    set(object, "depth", number(summary->depth));
    set(object, "violations", number(n));
    set(object, "by_invariant", by_invariant(records, n));
    set(object, "by_model", by_model(shared, records, n));
    set(object, "paths", paths_object(shared));
    set(object, "torn_pages", torn_pages_object(shared, summary->engine));
    set(object, "crash_points", number(summary->crash_points));
    set(object, "events", number(summary->events));
    set(object, "batches", number(summary->batches));
    set(object, "batches_run", number(summary->batches_run));
    set(object, "hung", number(load(&shared->hung)));
    set(object, "crashed", number(load(&shared->crashed)));
    set(object, "unvisited", number(load(&shared->unvisited)));
    set(object, "records_lost",
        number(load(&shared->n_records) > RECORDS_MAX ? load(&shared->n_records) - RECORDS_MAX
                                                      : 0));
    set(object, "jobs", number(summary->jobs));
    print_json(object);
}

uint32_t report_print(shared_t *shared, const summary_t *summary, bool json)
{
    uint64_t n = load(&shared->n_records);
    n = drop_duplicates(shared->records, n < RECORDS_MAX ? n : RECORDS_MAX);
    uint32_t printed = print_violations(shared->records, n, json);
    if (json) {
        print_summary(shared, summary, shared->records, n);
    } else {
        uint64_t states = load(&shared->states);
        (void)printf("%" PRIu64 " states, %" PRIu64 " distinct, %" PRIu32 " crash points, %.1f s, "
                     "%.0f states/s, %" PRIu32 " jobs: %" PRIu64 " violations\n",
                     states, load(&shared->distinct), summary->crash_points, summary->seconds,
                     (double)states / (summary->seconds + 1e-9), summary->jobs, n);
    }
    return printed;
}

void report_models(bool json)
{
    json_t *object = json_object();
    json_t *all = json_array();
    set(object, "models", all);
    for (uint32_t m = 0; m < MODEL_KINDS; m++) {
        const char *name = model_name((model_t)m);
        const char *what = model_what((model_t)m);
        json_t *model = json_pack("{s:s, s:s}", "name", name, "what", what);
        CHECK(json_array_append_new(all, model) == 0);
        if (!json) {
            (void)printf("%s: %s\n", name, what);
        }
    }
    if (json) {
        print_json(object);
    } else {
        json_decref(object);
    }
}
