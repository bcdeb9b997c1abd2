/* The way of a crash.

Place: above models.c, below state.c. */
#include "explorer/run/way.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "disk/calls.h"
#include "explorer/judge/sites.h"

static void hear(void *ctx, uint32_t pending, uint64_t first, uint64_t end)
{
    way_t *way = ctx;
    uint64_t n = model_sectors(way->models, persist_pending(way->persist, pending));
    way->any[pending] = true;
    way->whole[pending] = way->whole[pending] || (first == 0 && end >= n);
    if (way->kept[pending] != NULL) {
        memset(way->kept[pending] + first, '1', end - first);
    }
}

void way_begin(way_t *way, model_config_t *models, const persist_t *persist)
{
    *way = (way_t){.persist = persist, .models = models};
    way->kept = mem_alloc((persist->n_pending + 1U) * sizeof(*way->kept));
    way->any = mem_alloc((persist->n_pending + 1U) * sizeof(*way->any));
    way->whole = mem_alloc((persist->n_pending + 1U) * sizeof(*way->whole));
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        uint64_t n = model_sectors(models, persist_pending(persist, i));
        way->any[i] = way->whole[i] = false;
        way->kept[i] = n <= CHOSEN_SECTORS_MAX ? mem_alloc(n + 1) : NULL;
        if (way->kept[i] != NULL) {
            memset(way->kept[i], '0', n);
            way->kept[i][n] = '\0';
        }
    }
    way->watch = (model_watch_t){.kept = hear, .ctx = way};
    models->watch = &way->watch;
}

static const char *kind_name(fs_kind_t kind)
{
    static const char *const NAMES[] = {"write",  "truncate", "fsync",    "create",
                                        "rename", "unlink",   "sync_dir", "zero",
                                        "rename", "mkdir",    "rmdir"};
    return NAMES[kind];
}

static bool is_sync(const fs_event_t *event)
{
    return event->kind == FS_SYNC || event->kind == FS_SYNC_DIR;
}

/** As "kept" of "waits". */
static const char *kept_text(const way_t *way, uint32_t pending)
{
    if (way->kept[pending] != NULL) {
        return way->kept[pending];
    }
    return way->whole[pending] ? "1" : way->any[pending] ? WAY_IN_PART : "0";
}

/** What became of event `at` of the list; pending: its place among those that wait, or
UINT32_MAX. */
static const char *fate_of(const way_t *way, uint32_t at, uint32_t pending)
{
    const fs_event_t *event = &way->persist->list->events[at];
    if (is_sync(event)) {
        return "durable";
    }
    if (pending == UINT32_MAX) {
        return fs_changes_content(event)
                       && !image_inode_is_linked(way->persist->image, event->inode)
                   ? "gone"
                   : "durable";
    }
    if (!way->any[pending]) {
        return "lost";
    }
    const char *kept = kept_text(way, pending);
    return strcmp(kept, WAY_IN_PART) == 0 || strchr(kept, '0') != NULL ? "torn" : "kept";
}

static void set(json_t *object, const char *key, json_t *value)
{
    CHECK(json_object_set_new(object, key, value) == 0);
}

static json_t *number(uint64_t n)
{
    return json_integer((json_int_t)n);
}

/* ---- names ---- */

typedef struct names {
    uint32_t *of; /**< inode -> name that it had last */
    uint32_t n;
} names_t;

static void see_name(void *ctx, uint32_t name, uint32_t inode)
{
    names_t *names = ctx;
    if (inode < names->n) {
        names->of[inode] = name;
    }
}

static void see_event(names_t *names, const fs_event_t *event)
{
    if (event->kind == FS_LINK || event->kind == FS_SYNC) {
        see_name(names, event->name, event->inode);
    } else if (event->kind == FS_RENAME) {
        see_name(names, event->name2, event->inode);
        if (event->swaps) {
            see_name(names, event->name, event->over - 1U);
        }
    }
}

/** To what files were called before the first event: image_each() tells what they are called
now. */
static void names_go_back(names_t *names, const persist_t *persist)
{
    for (uint32_t at = persist->next; at-- > 0;) {
        const fs_event_t *event = &persist->list->events[at];
        if (event->kind == FS_RENAME) {
            see_name(names, event->name, event->inode);
            if (event->swaps) {
                see_name(names, event->name2, event->over - 1U);
            }
        }
    }
}

static json_t *name_text(const way_t *way, uint32_t name)
{
    const char *text = name == IMAGE_NONE ? "" : image_name_text(way->persist->image, name);
    json_t *value = json_string(text);
    return value != NULL ? value : json_string("?"); /* no UTF-8 */
}

/** The path that the event is about, at its time. */
static uint32_t event_name(const names_t *names, const fs_event_t *event)
{
    return fs_changes_content(event)
               ? event->inode < names->n ? names->of[event->inode] : IMAGE_NONE
               : event->name;
}

/* ---- events ---- */

static json_t *calls_json(const uint8_t *calls)
{
    json_t *array = json_array();
    for (uint32_t i = 0; calls_get(calls, i) != 0; i++) {
        CHECK(json_array_append_new(array, number(calls_get(calls, i))) == 0);
    }
    return array;
}

static json_t *event_json(const way_t *way, const names_t *names, uint32_t at, uint32_t pending)
{
    const fs_event_t *event = &way->persist->list->events[at];
    const char *fate = fate_of(way, at, pending);
    json_t *object = json_object();
    set(object, "seq", number(event->seq));
    set(object, "op", json_string(kind_name(event->kind)));
    set(object, "path", name_text(way, event_name(names, event)));
    if (fs_renames(event)) {
        set(object, "to", name_text(way, event->name2));
    }
    if (fs_changes_content(event)) {
        set(object, "offset", number(event->offset));
        set(object, "length", number(event->kind == FS_TRUNCATE ? 0 : event->length));
    }
    if (event->kind == FS_WRITE) {
        set(object, "site", json_string(site_name(event->site)));
    }
    set(object, "issued", number(event->issued_line));
    set(object, "acked", number(event->acked_line));
    set(object, "fate", json_string(fate));
    if (strcmp(fate, "torn") == 0 && strlen(kept_text(way, pending)) <= WAY_SECTORS_MAX
        && way->kept[pending] != NULL) {
        set(object, "kept", json_string(way->kept[pending]));
    }
    if (event->calls != NULL) {
        set(object, "calls", calls_json(event->calls));
    }
    return object;
}

/** Marks the events that are told: the last ones, and the newest of those before that lost
anything. */
static void choose(const way_t *way, const uint32_t *pending, bool *told)
{
    uint32_t lost = 0;
    for (uint32_t at = way->persist->next; at-- > 0;) {
        bool last = way->persist->next - at <= WAY_EVENTS;
        const char *fate = fate_of(way, at, pending[at]);
        bool hurt = !last && (strcmp(fate, "lost") == 0 || strcmp(fate, "torn") == 0);
        told[at] = last || (hurt && lost < WAY_LOST);
        lost += hurt;
    }
}

static json_t *events_json(const way_t *way)
{
    const persist_t *persist = way->persist;
    uint32_t n = persist->next;
    names_t names = {.n = image_inode_count(persist->image)};
    names.of = mem_alloc((names.n + 1U) * sizeof(*names.of));
    uint32_t *pending = mem_alloc((n + 1U) * sizeof(*pending));
    bool *told = mem_alloc((n + 1U) * sizeof(*told));
    json_t *events = json_array();
    for (uint32_t i = 0; i < names.n; i++) {
        names.of[i] = IMAGE_NONE;
    }
    for (uint32_t at = 0; at < n; at++) {
        pending[at] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        pending[persist->pending[i]] = i;
    }
    image_each(persist->image, see_name, &names);
    names_go_back(&names, persist);
    choose(way, pending, told);
    for (uint32_t at = 0; at < n; at++) {
        see_event(&names, &persist->list->events[at]);
        if (told[at]) {
            CHECK(json_array_append_new(events, event_json(way, &names, at, pending[at])) == 0);
        }
    }
    free(told);
    free(pending);
    free(names.of);
    return events;
}

static uint32_t issued_line(const persist_t *persist)
{
    return persist->next == 0 ? 0 : persist->list->events[persist->next - 1].issued_line;
}

static json_t *waits_json(const way_t *way)
{
    json_t *waits = json_array();
    for (uint32_t i = 0; i < way->persist->n_pending; i++) {
        json_t *object = json_object();
        set(object, "seq", number(persist_pending(way->persist, i)->seq));
        set(object, "kept", json_string(kept_text(way, i)));
        CHECK(json_array_append_new(waits, object) == 0);
    }
    return waits;
}

void way_end(way_t *way, const char *file, uint32_t level, model_t model, uint32_t low,
             uint32_t high, uint64_t sample)
{
    json_t *object = json_object();
    set(object, "level", number(level));
    set(object, "model", json_string(model_name(model)));
    set(object, "sector", number(way->models->sector));
    set(object, "waiting", number(way->persist->n_pending));
    set(object, "issued", number(issued_line(way->persist)));
    set(object, "low", number(low));
    set(object, "high", number(high));
    set(object, "sample", json_sprintf("%" PRIu64, sample));
    set(object, "events", events_json(way));
    set(object, "waits", waits_json(way));
    FILE *out = fopen(file, "ae");
    if (out == NULL || json_dumpf(object, out, JSON_COMPACT) != 0 || fputc('\n', out) == EOF) {
        (void)fprintf(stderr, "tornpage-explore: %s cannot be written\n", file);
    }
    if (out != NULL) {
        (void)fclose(out);
    }
    json_decref(object);
    for (uint32_t i = 0; i < way->persist->n_pending; i++) {
        free(way->kept[i]);
    }
    free(way->kept);
    free(way->any);
    free(way->whole);
}
