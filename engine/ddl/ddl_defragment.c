/* Defragmentation in place, of a table or of one of its indexes: a build that builds nothing.

Place: ddl/, above ddl_build.c and btr_defragment.c.

    begin    nothing durable
    ...      a step packs one group of leaves, index after index
    end      nothing durable but what the log had already

Invariants
1. Nothing depends on where it stands: each mini-transaction leaves a tree that is whole, with all
   of its records. A crash forgets the rest, as giving it up does.
2. Rows change between two steps; definitions do not, as with any build. Where a step goes on is a
   key.
3. Nobody is told of rows that change: there is nothing to bring up to date. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ddl/ddl_build.h"

typedef struct ddl_defragment {
    uint32_t first; /**< positions of indexes in the table */
    uint32_t index; /**< the one at hand */
    uint32_t end;   /**< behind the last one */
    btr_place_t place;
} ddl_defragment_t;

static void ddl_defragment_ignore(void *ctx, const byte *before, const byte *after)
{
    (void)ctx;
    (void)before;
    (void)after;
}

static const dict_row_watch_t NOBODY = {.changed = ddl_defragment_ignore};

static dberr_t ddl_defragment_begin(ddl_build_t *build, const ddl_alter_t *alter)
{
    err_sink_t *sink = &build_env(build)->err;
    dict_table_t *table = build->source;
    build->table = table;
    build->watch = &NOBODY;
    ddl_defragment_t *defragment = calloc(1, sizeof(*defragment));
    if (defragment == NULL) {
        return err_set(sink, DB_OUT_OF_MEMORY, "no memory for a defragmentation");
    }
    build->own = defragment;
    defragment->end = table->n_indexes;
    if (alter->name != NULL) {
        const dict_index_t *index = dict_index_get(table, alter->name);
        if (index == NULL) {
            return err_set(sink, DB_NOT_FOUND, "no index '%s' in table '%s'", alter->name,
                           table->name);
        }
        defragment->first = (uint32_t)(index - table->indexes);
        defragment->index = defragment->first;
        defragment->end = defragment->first + 1;
    }
    return DB_SUCCESS;
}

static void ddl_defragment_count(const ddl_build_t *build, const dict_index_t *index,
                                 const btr_packed_t *packed)
{
    stats_t *stats = &build_env(build)->stats;
    if (packed->n_pages == 0) {
        return;
    }
    stats->defragment_count++;
    stats->defragment_failures += packed->n_freed == 0;
    stats->defragment_pages_freed += packed->n_freed;
    PROBE_MARK(build_env(build)->probe, "defragment space=%u index=%" PRIu64 " pages=%u freed=%u",
               index->tree.space, index->id, packed->n_pages, packed->n_freed);
}

/** Leaves of a step: as asked for, but no more than a quarter of the pool, since all of them are
read at once. */
static uint32_t ddl_defragment_leaves(const engine_options_t *options)
{
    uint32_t max = options->buffer_pool_pages / 4;

    return options->defragment_n_pages < max ? options->defragment_n_pages : max;
}

static dberr_t ddl_step_defragment(ddl_build_t *build, uint32_t max_rows, bool *over)
{
    ddl_defragment_t *defragment = build->own;
    (void)max_rows;
    const engine_options_t *options = build->options;
    const btr_packing_t packing = {.n_pages = ddl_defragment_leaves(options),
                                   .fill_percent = options->defragment_fill_factor,
                                   .n_recs = options->defragment_fill_factor_n_recs};
    const dict_index_t *index = &build->table->indexes[defragment->index];
    btr_packed_t packed;
    TRY(btr_defragment_step(build_pool(build), &index->tree, &packing, &defragment->place,
                            &packed));
    ddl_defragment_count(build, index, &packed);
    if (defragment->place.ended) {
        memset(&defragment->place, 0, sizeof(defragment->place));
        defragment->index++;
    }
    *over = defragment->index == defragment->end;
    return DB_SUCCESS;
}

static dberr_t ddl_defragment_position(const ddl_build_t *build, uint32_t *out)
{
    const ddl_defragment_t *defragment = build->own;
    uint32_t position = 0;
    dberr_t err = DB_SUCCESS;
    if (defragment->place.begun) {
        err = btr_key_position(build_pool(build), &build->table->indexes[defragment->index].tree,
                               defragment->place.key, &position);
    }
    uint32_t n = defragment->end - defragment->first;
    *out = (PROGRESS_MAX * (defragment->index - defragment->first) + position) / n;
    return err;
}

const ddl_statement_t DDL_DEFRAGMENT = {
    .begin = ddl_defragment_begin,
    .steps = {{ONCE, ddl_step_defragment, .share = 1, .position = ddl_defragment_position}},
    .commit = ddl_build_make_durable,
    .discard = ddl_build_make_durable,
    .background = true,
};
