/* Slices.

Place: beside report.c, below main.c.

A file has JSON lines: first what is said of the slice, then its canaries and findings, then per
image what it added to the counters.

  {"slice":2,"of":3,"depth":1,"crash_points":4,"possible":[4,4,0,...],"events":5,"complete":true,
   "lost":0,"seconds":0.5} on one line
  {"canaries":[{"name":"torn_page","invariant":5,"condemned":true,"by":"scan, I5"}]}
  {"key":7,"state":"17.subset.3","invariant":5,"source":1,"what":"...","low":0,"high":1,"site":2}
  {"image":7,"add":[0,1,12,3]}

Rules
1. A state is in one slice; an image may be in several. What the first visit of an image adds
   depends on the image alone (state.c, rule 2): of the slices that met it one counts.
2. Of each kind and image the smallest state is told. The smallest of a slice's smallest is that of
   all. */
#include "explorer/run/slice.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "explorer/judge/key_table.h"
#include "explorer/judge/lines.h"

#define RECORDS_FIRST 64U /**< room for records of a merge, which an empty one has too */

/* ---- writing ---- */

static void print_line(FILE *file, json_t *object)
{
    CHECK(object != NULL);
    (void)json_dumpf(object, file, JSON_COMPACT);
    (void)fputc('\n', file);
    json_decref(object);
}

static json_int_t integer(uint64_t n)
{
    return (json_int_t)n;
}

static void write_record(FILE *file, const record_t *record)
{
    char id[STATE_ID_MAX];
    state_path_format(&record->path, id);
    json_t *what = json_string(record->finding.what);
    print_line(file,
               json_pack("{s:I, s:s, s:i, s:i, s:s*, s:o, s:i, s:i, s:i}", "key",
                         integer(record->key), "state", id, "invariant",
                         (int)record->finding.invariant, "source", (int)record->finding.source,
                         "rule", record->finding.rule, "what", what, "low", (int)record->low,
                         "high", (int)record->high, "site", (int)record->site));
}

static int compare_tallies(const void *a, const void *b)
{
    const tally_t *x = a;
    const tally_t *y = b;
    if (x->image != y->image) {
        return x->image < y->image ? -1 : 1;
    }
    return x->counter < y->counter ? -1 : x->counter > y->counter;
}

static void add_number(json_t *list, uint64_t n)
{
    CHECK(json_array_append_new(list, json_integer(integer(n))) == 0);
}

static void write_tallies(FILE *file, tally_t *tallies, uint64_t n)
{
    qsort(tallies, n, sizeof(*tallies), compare_tallies);
    for (uint64_t i = 0; i < n;) {
        uint64_t image = tallies[i].image;
        json_t *list = json_array();
        while (i < n && tallies[i].image == image) {
            uint32_t counter = tallies[i].counter;
            uint64_t sum = 0;
            for (; i < n && tallies[i].image == image && tallies[i].counter == counter; i++) {
                sum += tallies[i].n;
            }
            add_number(list, counter);
            add_number(list, sum);
        }
        print_line(file, json_pack("{s:I, s:o}", "image", integer(image), "add", list));
    }
}

static json_t *numbers(const uint64_t *values, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        add_number(list, values[i]);
    }
    return list;
}

bool slice_write(const char *path, shared_t *shared, const summary_t *summary, uint32_t slice,
                 uint32_t n_slices)
{
    uint64_t lost = 0;
    uint64_t n = shared_records(shared, &lost);
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        return false;
    }
    n = report_reduce(shared->records, n);
    print_line(file, json_pack("{s:i, s:i, s:i, s:I, s:o, s:I, s:b, s:I, s:f}", "slice", (int)slice,
                               "of", (int)n_slices, "depth", (int)summary->depth, "crash_points",
                               integer(summary->crash_points), "possible",
                               numbers(summary->possible, MODEL_KINDS), "events",
                               integer(summary->events), "complete", (int)summary->complete, "lost",
                               integer(lost), "seconds", summary->seconds));
    print_line(file, json_pack("{s:o}", "canaries", canaries_object(&summary->canaries)));
    for (uint64_t i = 0; i < n; i++) {
        write_record(file, &shared->records[i]);
    }
    write_tallies(file, shared->tallies, atomic_load(&shared->n_tallies));
    bool written = ferror(file) == 0;
    return fclose(file) == 0 && written;
}

/* ---- merging ---- */

typedef struct merge {
    merged_t *merged;
    summary_t *summary;
    json_t *lines;    /**< those that are kept */
    key_table_t seen; /**< images of slices before this one */
    key_table_t here; /**< and of this one */
    bool *slices;     /**< those that were there */
    uint32_t n_slices;
    uint32_t n_read;
    uint64_t line; /**< that is read */
} merge_t;

static uint64_t unsigned_of(const json_t *number)
{
    return (uint64_t)json_integer_value(number);
}

/** What slices have in common. */
static bool same_exploration(const merge_t *merge, uint32_t n_slices, const summary_t *said)
{
    const summary_t *summary = merge->summary;
    return n_slices == merge->n_slices && said->depth == summary->depth
           && said->crash_points == summary->crash_points && said->events == summary->events
           && memcmp(said->possible, summary->possible, sizeof(said->possible)) == 0;
}

static bool read_slice(merge_t *merge, json_t *line)
{
    int slice;
    int of;
    int depth;
    int complete;
    json_int_t points;
    json_int_t events;
    json_int_t lost;
    double seconds;
    json_t *possible;
    if (json_unpack(line, "{s:i, s:i, s:i, s:I, s:o, s:I, s:b, s:I, s:F}", "slice", &slice, "of",
                    &of, "depth", &depth, "crash_points", &points, "possible", &possible, "events",
                    &events, "complete", &complete, "lost", &lost, "seconds", &seconds)
            != 0
        || slice < 1 || slice > of || (uint32_t)of > SLICES_MAX
        || json_array_size(possible) != MODEL_KINDS) {
        return false;
    }
    summary_t said = {
        .depth = (uint32_t)depth, .crash_points = (uint32_t)points, .events = (uint64_t)events};
    for (uint32_t m = 0; m < MODEL_KINDS; m++) {
        said.possible[m] = unsigned_of(json_array_get(possible, m));
    }
    summary_t *summary = merge->summary;
    if (merge->slices == NULL) {
        merge->n_slices = (uint32_t)of;
        merge->slices = mem_alloc((size_t)of * sizeof(*merge->slices));
        memset(merge->slices, 0, (size_t)of * sizeof(*merge->slices));
        summary->depth = said.depth;
        summary->jobs = 1;
        summary->crash_points = said.crash_points;
        memcpy(summary->possible, said.possible, sizeof(said.possible));
        summary->complete = true;
        summary->events = said.events;
        summary->seconds = 0;
        summary->records_lost = 0;
    }
    if (!same_exploration(merge, (uint32_t)of, &said) || merge->slices[slice - 1]) {
        return false;
    }
    merge->slices[slice - 1] = true;
    merge->n_read++;
    summary->complete &= complete != 0;
    summary->records_lost += (uint64_t)lost;
    summary->seconds += seconds;
    for (uint32_t i = 0; i < merge->here.size; i++) {
        const key_slot_t *slot = &merge->here.slots[i];
        if (slot->number != 0 && key_table_find(&merge->seen, slot->key) == KEY_NONE) {
            (void)key_table_add(&merge->seen, slot->key);
        }
    }
    key_table_clear(&merge->here);
    return true;
}

static bool read_record(merge_t *merge, json_t *line)
{
    json_int_t key;
    int numbers[5];
    const char *id;
    const char *what;
    const char *rule = NULL;
    if (json_unpack(line, "{s:I, s:s, s:i, s:i, s?:s, s:s, s:i, s:i, s:i}", "key", &key, "state",
                    &id, "invariant", &numbers[0], "source", &numbers[1], "rule", &rule, "what",
                    &what, "low", &numbers[2], "high", &numbers[3], "site", &numbers[4])
            != 0
        || numbers[1] < 0 || numbers[1] > SOURCE_RULE || numbers[4] < 0
        || numbers[4] >= SITE_KINDS) {
        return false;
    }
    record_t record = {.key = (uint64_t)key,
                       .finding = {.invariant = (uint32_t)numbers[0],
                                   .source = (finding_source_t)numbers[1],
                                   .rule = rule},
                       .low = (uint32_t)numbers[2],
                       .high = (uint32_t)numbers[3],
                       .site = (fs_site_t)numbers[4]};
    (void)snprintf(record.finding.what, sizeof(record.finding.what), "%s", what);
    if (!state_path_parse(id, &record.path) || json_array_append(merge->lines, line) != 0) {
        return false;
    }
    merged_t *merged = merge->merged;
    if (merged->n_records == merged->room) {
        merged->room *= 2;
        merged->records = mem_grow(merged->records, merged->room * sizeof(*merged->records));
    }
    merged->records[merged->n_records++] = record;
    return true;
}

static bool read_image(merge_t *merge, json_t *line)
{
    json_t *list = json_object_get(line, "add");
    uint64_t image = unsigned_of(json_object_get(line, "image"));
    _Atomic uint64_t *counters = (_Atomic uint64_t *)&merge->merged->counts;
    if (!json_is_array(list) || json_array_size(list) % 2 != 0) {
        return false;
    }
    if (image != TALLY_STATE) {
        if (key_table_find(&merge->seen, image) != KEY_NONE) {
            return true;
        }
        if (key_table_find(&merge->here, image) == KEY_NONE) {
            (void)key_table_add(&merge->here, image);
        }
    }
    for (size_t i = 0; i < json_array_size(list); i += 2) {
        uint64_t counter = unsigned_of(json_array_get(list, i));
        if (counter >= COUNTERS) {
            return false;
        }
        counters[counter] += unsigned_of(json_array_get(list, i + 1));
    }
    return true;
}

/** They are the same in each slice, since the recording is. */
static bool read_canaries(merge_t *merge, const json_t *line)
{
    return canaries_read(json_object_get(line, "canaries"), &merge->summary->canaries);
}

static bool read_line(merge_t *merge, const char *text, size_t length)
{
    json_t *line = json_loadb(text, length, 0, NULL);
    bool good = false;
    if (json_object_get(line, "slice") != NULL) {
        good = read_slice(merge, line);
    } else if (merge->slices != NULL && json_object_get(line, "state") != NULL) {
        good = read_record(merge, line);
    } else if (merge->slices != NULL && json_object_get(line, "canaries") != NULL) {
        good = read_canaries(merge, line);
    } else if (merge->slices != NULL && json_object_get(line, "image") != NULL) {
        good = read_image(merge, line);
    }
    json_decref(line);
    return good;
}

static bool read_next(void *of, char *line, size_t length)
{
    merge_t *merge = of;
    merge->line++;
    return read_line(merge, line, length);
}

static dberr_t read_lines(merge_t *merge, FILE *file, const char *path, err_sink_t *err)
{
    if (!lines_each(file, read_next, merge)) {
        return err_set(err, DB_ERROR, "%s: line %" PRIu64 " is no line of a slice here", path,
                       merge->line);
    }
    if (merge->n_slices == 0 || merge->n_read < merge->n_slices) {
        return err_set(err, DB_ERROR, "%s: %" PRIu32 " of %" PRIu32 " slices", path, merge->n_read,
                       merge->n_slices);
    }
    return DB_SUCCESS;
}

dberr_t slice_merge(const char *path, merged_t *merged, summary_t *summary, err_sink_t *err)
{
    *merged = (merged_t){.lines = json_array(),
                         .room = RECORDS_FIRST,
                         .records = mem_alloc(RECORDS_FIRST * sizeof(*merged->records))};
    merge_t merge = {.merged = merged, .summary = summary, .lines = merged->lines};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return err_set(err, DB_ERROR, "%s: cannot be read", path);
    }
    dberr_t status = read_lines(&merge, file, path, err);
    (void)fclose(file);
    free(merge.slices);
    key_table_free(&merge.seen);
    key_table_free(&merge.here);
    TRY(status);
    merged->n_records = report_reduce(merged->records, merged->n_records);
    return DB_SUCCESS;
}

void merged_free(merged_t *merged)
{
    free(merged->records);
    json_decref(merged->lines);
}
