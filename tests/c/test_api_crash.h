/** Crashes: the directory is copied at a fault point, recovered as another database, and scanned.
The copy has everything that was written (the kill model); what was in memory is lost. */
#ifndef TEST_API_CRASH_H
#define TEST_API_CRASH_H

#include <inttypes.h>

#include "disk/stream.h"
#include "test_api_fixture.h"

/** What a table may look like after recovery: as before the statement in flight, or as after it. */
typedef struct shape {
    bool exists;
    uint64_t rows;
    uint32_t n_indexes;
    const char *index; /**< name of one of them; NULL: any */
} shape_t;

typedef struct crash {
    fixture_t *f;
    const char *table;
    shape_t before;
    shape_t after;
    uint32_t hits;  /**< fault points met */
    uint32_t every; /**< a crash at each every-th of them */
    uint32_t crashes;
    uint32_t seen_before; /**< how the recoveries ended */
    uint32_t seen_after;
    uint32_t dropped_indexes;
    uint32_t load_reads;
    bool nested;           /**< crash in the recoveries too */
    uint64_t images[8192]; /**< those recovered since it was armed, as hashes */
    uint32_t n_images;
    struct names {
        char name[40];
        uint32_t n;
    } points[64];
} crash_t;

static inline void crash_count_point(crash_t *crash, const char *name)
{
    uint32_t i = 0;
    while (crash->points[i].n > 0 && strcmp(crash->points[i].name, name) != 0) {
        i++;
        assert_true(i < 64);
    }
    (void)snprintf(crash->points[i].name, sizeof(crash->points[i].name), "%s", name);
    crash->points[i].n++;
}

static inline bool report_has_index(const check_table_t *t, const char *name)
{
    bool found = name == NULL;
    for (uint32_t i = 0; i < t->n_indexes; i++) {
        found = found || strcmp(t->indexes[i].name, name) == 0;
    }
    return found;
}

static inline bool shape_fits(const shape_t *shape, const check_table_t *t)
{
    return t == NULL ? !shape->exists
                     : shape->exists && t->rows == shape->rows && t->n_indexes == shape->n_indexes
                           && report_has_index(t, shape->index);
}

/** What the directory is now, if no crash has left just this where the same was allowed: at many a
fault point nothing was written since the one before, and the recovery would be the same. NULL: one
has. */
static inline os_t *crash_image(crash_t *crash, os_t *os)
{
    os_t *image = image_os_clone(os);
    uint64_t hash = image_os_taken(image);
    const shape_t *const allowed[] = {&crash->before, &crash->after};
    for (uint32_t i = 0; i < 2; i++) {
        hash = stream_mix(hash, allowed[i]->exists, allowed[i]->rows, allowed[i]->n_indexes);
    }
    for (uint32_t i = 0; i < crash->n_images; i++) {
        if (crash->images[i] == hash) {
            os_destroy(image);
            return NULL;
        }
    }
    assert_true(crash->n_images < 8192);
    crash->images[crash->n_images++] = hash;
    return image;
}

/** Recovers image (and destroys it), scans it, and compares the table with what it may be. */
static inline void recover_and_scan(crash_t *crash, os_t *image, probe_t *probe, const char *point)
{
    engine_t *engine = NULL;
    engine_status_t status;
    err_sink_t err = {.msg = ""};
    check_report_t report;
    if (engine_open(image, probe, &crash->f->options, false, &engine, &err) != DB_SUCCESS) {
        fail_msg("crash at %s (%u): %s", point, crash->hits, err.msg);
    }
    engine_get_status(engine, &status);
    crash->dropped_indexes += (uint32_t)status.stats.recv_indexes_dropped;
    crash->load_reads += (uint32_t)status.stats.recv_index_load_reads;
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    scan_clean(image, &report);
    const check_table_t *t = report_table(&report, crash->table);
    bool before = shape_fits(&crash->before, t);
    bool after = shape_fits(&crash->after, t);
    if (!before && !after) {
        fail_msg("crash at %s (%u): table %s with %" PRIu64 " rows and %u indexes", point,
                 crash->hits, t != NULL ? "found" : "missing", t != NULL ? t->rows : 0,
                 t != NULL ? t->n_indexes : 0);
    }
    for (uint32_t i = 0; t != NULL && i < t->n_indexes; i++) {
        assert_true(t->indexes[i].entries == t->rows);
    }
    crash->seen_before += before;
    crash->seen_after += after;
    check_report_free(&report);
    /* A second open finds nothing to do. */
    assert_int_equal(engine_open(image, &crash->f->probe, &crash->f->options, false, &engine, &err),
                     DB_SUCCESS);
    engine_get_status(engine, &status);
    assert_false(status.recovered);
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    os_destroy(image);
}

/** A fault point inside a recovery: its directory is copied and recovered on its own. */
typedef struct nested {
    crash_t *crash;
    os_t *image;
    uint32_t hits;
} nested_t;

static inline void on_nested_point(void *ctx, const char *name)
{
    nested_t *nested = ctx;
    if (nested->hits++ % 5 != 0) {
        return;
    }
    os_t *image = crash_image(nested->crash, nested->image);
    if (image == NULL) {
        return;
    }
    probe_t probe = {.point = NULL};
    bool armed = atomic_exchange(&nested->crash->f->probe.armed, false);
    recover_and_scan(nested->crash, image, &probe, name);
    atomic_store(&nested->crash->f->probe.armed, armed);
}

static inline void on_point(void *ctx, const char *name)
{
    crash_t *crash = ctx;
    crash_count_point(crash, name);
    if (crash->hits++ % crash->every != 0) {
        return;
    }
    crash->crashes++;
    os_t *image = crash_image(crash, crash->f->os);
    if (image == NULL) {
        return;
    }
    nested_t nested = {.crash = crash, .image = image, .hits = crash->hits};
    probe_t probe = {.point = on_nested_point, .ctx = &nested};
    atomic_store(&probe.armed, crash->nested);
    atomic_store(&crash->f->probe.armed, false);
    recover_and_scan(crash, image, &probe, name);
    atomic_store(&crash->f->probe.armed, true);
}

static inline void crash_arm(crash_t *crash, shape_t before, shape_t after)
{
    crash->before = before;
    crash->after = after;
    crash->n_images = 0;
    crash->f->probe.point = on_point;
    crash->f->probe.ctx = crash;
    atomic_store(&crash->f->probe.armed, true);
}

static inline void crash_disarm(crash_t *crash)
{
    atomic_store(&crash->f->probe.armed, false);
}

static inline uint32_t point_count(const crash_t *crash, const char *name)
{
    for (uint32_t i = 0; i < 64 && crash->points[i].n > 0; i++) {
        if (strcmp(crash->points[i].name, name) == 0) {
            return crash->points[i].n;
        }
    }
    return 0;
}

#endif
