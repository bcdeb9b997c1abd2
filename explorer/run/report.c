/* The report.

Place: above shared.c, below main.c.

States with the same findings after a write of the same site are of one kind, and told once, with
all that they found. The order of the output depends on the findings alone. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "explorer/run/report.h"

#define INVARIANTS_MAX 64U

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/** By state, then finding: of one state each is there once. */
static int compare_by_state(const void *a, const void *b)
{
    const record_t *x = a;
    const record_t *y = b;
    int order = state_path_compare(&x->path, &y->path);
    return order != 0 ? order : verdict_finding_compare(&x->finding, &y->finding);
}

/** By kind, image, then as above: of the states of one kind and image the first is the one that
counts. */
static int compare_by_image(const void *a, const void *b)
{
    const record_t *x = a;
    const record_t *y = b;
    int order = compare_u64(x->kind, y->kind);
    order = order != 0 ? order : compare_u64(x->key, y->key);
    return order != 0 ? order : compare_by_state(a, b);
}

static int compare_by_kind(const void *a, const void *b)
{
    int order = compare_u64(((const record_t *)a)->kind, ((const record_t *)b)->kind);
    return order != 0 ? order : compare_by_state(a, b);
}

/** The end of the records of one state that begin at `from`. */
static uint64_t end_of_state(const record_t *records, uint64_t from, uint64_t n)
{
    uint64_t end = from + 1;
    while (end < n && state_path_compare(&records[end].path, &records[from].path) == 0) {
        end++;
    }
    return end;
}

/** The words of a text without a digit: those with one are names and numbers. */
static uint64_t hash_words(const char *text, uint64_t hash)
{
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (strcspn(text, "0123456789") >= length) {
            hash = XXH3_64bits_withSeed(text, length, hash);
        }
        text += length + (text[length] == ' ');
    }
    return hash;
}

/** Invariant, source, rule, and the words of a refusal: recovery has one per state, and it names
the cause. */
static uint64_t hash_finding(const verdict_finding_t *finding, uint64_t hash)
{
    const uint64_t what[] = {finding->invariant, (uint64_t)finding->source};
    hash = XXH3_64bits_withSeed(what, sizeof(what), hash);
    if (finding->rule != NULL) {
        hash = XXH3_64bits_withSeed(finding->rule, strlen(finding->rule), hash);
    }
    return finding->source == SOURCE_RECOVERY ? hash_words(finding->what, hash) : hash;
}

/** Gives every record the kind of its state: its site and all its findings. Kinds sort by the first
of these. */
static void find_kinds(record_t *records, uint64_t n)
{
    qsort(records, n, sizeof(*records), compare_by_state);
    for (uint64_t i = 0, end = 0; i < n; i = end) {
        end = end_of_state(records, i, n);
        uint64_t hash = (uint64_t)records[i].site;
        for (uint64_t j = i; j < end; j++) {
            hash = hash_finding(&records[j].finding, hash);
        }
        for (uint64_t j = i; j < end; j++) {
            records[j].kind = (uint64_t)records[i].finding.invariant << 56 | hash >> 8;
        }
    }
}

/** Keeps one state per kind and image, under the smallest state id. @return number of records
kept */
static uint64_t drop_duplicates(record_t *records, uint64_t n)
{
    qsort(records, n, sizeof(*records), compare_by_image);
    uint64_t kept = 0;
    for (uint64_t i = 0, end = 0; i < n; i = end) {
        end = end_of_state(records, i, n);
        bool again = kept > 0 && records[kept - 1].kind == records[i].kind
                     && records[kept - 1].key == records[i].key;
        for (uint64_t j = i; j < end && !again; j++) {
            records[kept++] = records[j];
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
                     record->finding.invariant, site_name(record->site),
                     finding_source_name(record->finding.source), record->finding.what, id,
                     record->low, record->high, count);
        return;
    }
    json_t *object = json_object();
    set(object, "state", json_string(id));
    set(object, "invariant", number(record->finding.invariant));
    set(object, "what", json_string(record->finding.what));
    set(object, "source", json_string(finding_source_name(record->finding.source)));
    if (record->finding.rule != NULL) {
        set(object, "rule", json_string(record->finding.rule));
    }
    set(object, "model", json_string(model));
    set(object, "prefix_range", json_pack("[i,i]", (int)record->low, (int)record->high));
    set(object, "site", json_string(site_name(record->site)));
    set(object, "count", number(count));
    print_json(object);
}

/** Of each kind the findings of its first state. */
static uint32_t print_violations(record_t *records, uint64_t n, bool json)
{
    qsort(records, n, sizeof(*records), compare_by_kind);
    uint32_t printed = 0;
    for (uint64_t i = 0, end = 0; i < n; i = end) {
        uint64_t states = 0;
        for (end = i; end < n && records[end].kind == records[i].kind; states++) {
            end = end_of_state(records, end, n);
        }
        uint64_t first = end_of_state(records, i, n);
        for (uint64_t j = i; j < first; j++) {
            print_violation(&records[j], states, json);
            printed++;
        }
    }
    return printed;
}

static json_t *by_invariant(const record_t *records, uint64_t n)
{
    uint64_t count[INVARIANTS_MAX] = {0};
    for (uint64_t i = 0; i < n; i++) {
        CHECK(records[i].finding.invariant < INVARIANTS_MAX);
        count[records[i].finding.invariant]++;
    }
    json_t *object = json_object();
    for (uint32_t i = 0; i < INVARIANTS_MAX; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "%" PRIu32, i);
        if (count[i] > 0) {
            set(object, key, number(count[i]));
        }
    }
    return object;
}

static json_t *by_model(const counts_t *counts, const summary_t *summary, const record_t *records,
                        uint64_t n)
{
    json_t *object = json_object();
    for (uint32_t m = 0; m < MODEL_KINDS; m++) {
        uint64_t violations = 0;
        for (uint64_t i = 0; i < n; i++) {
            violations += records[i].path.level[records[i].path.depth - 1].model == m;
        }
        json_t *entry = json_object();
        set(entry, "states", number(load(&counts->model_states[m])));
        set(entry, "possible", number(summary->possible[m]));
        set(entry, "violations", number(violations));
        set(object, model_name((model_t)m), entry);
    }
    return object;
}

static json_t *paths_object(const counts_t *counts, const target_kind_t *target)
{
    json_t *object = json_object();
    for (uint32_t i = 0; i < target->n_counters; i++) {
        set(object, target->counters[i], number(load(&counts->of_target[i])));
    }
    set(object, "second_crash", number(load(&counts->second_crash)));
    set(object, "recovered_twice", number(load(&counts->recovered_twice)));
    return object;
}

static json_t *torn_pages_of(const counts_t *counts, uint32_t site, uint32_t later)
{
    json_t *cells = json_object();
    for (uint32_t tear = 0; tear < TEAR_KINDS; tear++) {
        json_t *cell = json_object();
        set(cell, "writes", number(load(&counts->possible[site][later][tear])));
        set(cell, "states", number(load(&counts->torn[site][later][tear])));
        set(cells, tear_name((tear_t)tear), cell);
    }
    return cells;
}

/** The torn-page matrix: by site, flush and tear the recorded writes that could be lost that way,
and the states in which one was. */
static json_t *torn_pages_object(const counts_t *counts, const summary_t *summary)
{
    json_t *object = json_object();
    for (uint32_t site = 0; site < SITE_KINDS; site++) {
        if (!(summary->sites != NULL ? site_map_has(summary->sites, site)
                                     : site_may_be_engines(site))) {
            continue;
        }
        json_t *entry = json_object();
        set(entry, "first_flush", torn_pages_of(counts, site, 0));
        set(entry, "later_flush", torn_pages_of(counts, site, 1));
        set(object, site_name(site), entry);
    }
    return object;
}

static void print_summary(const counts_t *counts, const summary_t *summary, const record_t *records,
                          uint64_t n)
{
    uint64_t states = load(&counts->states);
    json_t *object = json_object();
    set(object, "states", number(states));
    set(object, "images", number(load(&counts->images)));
    set(object, "distinct", number(load(&counts->distinct)));
    set(object, "states_per_s", number((uint64_t)((double)states / (summary->seconds + 1e-9))));
    set(object, "seconds", json_real(summary->seconds));
    set(object, "depth", number(summary->depth));
    set(object, "violations", number(n));
    set(object, "by_invariant", by_invariant(records, n));
    set(object, "by_model", by_model(counts, summary, records, n));
    set(object, "paths", paths_object(counts, summary->target));
    set(object, "torn_pages", torn_pages_object(counts, summary));
    set(object, "crash_points", number(summary->crash_points));
    set(object, "events", number(summary->events));
    set(object, "complete", json_boolean(summary->complete));
    set(object, "unfinished", number(load(&counts->unfinished)));
    set(object, "hung", number(load(&counts->hung)));
    set(object, "crashed", number(load(&counts->crashed)));
    set(object, "unvisited", number(load(&counts->unvisited)));
    set(object, "records_lost", number(summary->records_lost));
    set(object, "jobs", number(summary->jobs));
    set(object, "fs", json_string(summary->fs));
    if (summary->canaries.n > 0) {
        set(object, "canaries", canaries_object(&summary->canaries));
    }
    print_json(object);
}

uint64_t report_reduce(record_t *records, uint64_t n)
{
    find_kinds(records, n);
    return drop_duplicates(records, n);
}

uint32_t report_print(const counts_t *counts, record_t *records, uint64_t n,
                      const summary_t *summary, bool json)
{
    uint32_t printed = print_violations(records, n, json);
    if (json) {
        print_summary(counts, summary, records, n);
    } else {
        uint64_t states = load(&counts->states);
        (void)printf("%" PRIu64 " states, %" PRIu64 " distinct, %" PRIu32 " crash points, %.1f s, "
                     "%.0f states/s, %" PRIu32 " jobs: %" PRIu64 " violations\n",
                     states, load(&counts->distinct), summary->crash_points, summary->seconds,
                     (double)states / (summary->seconds + 1e-9), summary->jobs, n);
    }
    return printed;
}

/** Prints the object and frees it; where it was told in lines already, frees it. */
static void end_list(json_t *object, bool json)
{
    if (json) {
        print_json(object);
    } else {
        json_decref(object);
    }
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
    end_list(object, json);
}

void report_file_systems(bool json)
{
    json_t *object = json_object();
    json_t *all = json_array();
    set(object, "file_systems", all);
    const fs_profile_t *fs;
    for (uint32_t i = 0; (fs = fs_profile_at(i)) != NULL; i++) {
        json_t *item =
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "name", fs->name, "what", fs->what, "names",
                      fs_order_text(fs->order), "fsync", fs_along_text(fs->along), "size_first",
                      fs_growth_text(fs->growth), "replace_flushes", (int)fs->replace_flushes);
        CHECK(json_array_append_new(all, item) == 0);
        if (!json) {
            (void)printf("%s: %s\n", fs->name, fs->what);
        }
    }
    end_list(object, json);
}
