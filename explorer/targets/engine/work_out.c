/* What leaves the database in new work: a backup, an exported table.

Place: below work.c, beside work_stmt.c.

What recovery leaves as it is, because no row and no log leads to it, is read here all the same. */
#include "explorer/targets/engine/work_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- backup ---- */

/** Does the closed database in the folder have the tables of the last commit, and no finding? */
static void compare_backup(work_t *work, os_t *copy)
{
    check_report_t report;
    err_sink_t sink = {.msg = ""};
    if (check_run(copy, &report, &sink) != DB_SUCCESS) {
        work_found(work, "prepared backup", sink.msg);
        return;
    }
    if (report.n_findings > 0) {
        work_found(work, "prepared backup", report.findings[0].what);
    } else if (report.needs_recovery
               || allowed_digest(report.tables, report.n_tables)
                      != allowed_digest(work->tables, work->n_tables)) {
        work_found(work, "prepared backup", "it is another state than that of the last commit");
    }
    check_report_free(&report);
}

void work_backup(work_t *work, const work_draw_t *draw)
{
    os_t *copy = image_os_create();
    engine_status_t status;
    err_sink_t sink = {.msg = ""};
    if (work_done(work, engine_backup(work->engine, copy), "backup")) {
        dberr_t err = engine_prepare(copy, draw->probe, draw->options, &status, &sink);
        if (err != DB_SUCCESS) {
            work_found(work, "prepare of a backup", sink.msg);
        } else {
            compare_backup(work, copy);
        }
    }
    os_destroy(copy);
}

/* ---- export and import ---- */

/** The new table gets the indexes that the other one has. */
static bool add_indexes_alike(work_t *work, const dict_table_t *source, check_table_t *sum)
{
    static ddl_index_def_t defs[INDEXES_MAX];
    for (uint32_t i = 1; i < source->n_indexes; i++) {
        const dict_index_t *index = &source->indexes[i];
        ddl_index_def_t *def = &defs[i - 1];
        *def = (ddl_index_def_t){.unique = index->unique, .n_fields = index->n_fields};
        memcpy(def->name, index->name, sizeof(def->name));
        for (uint32_t f = 0; f < index->n_fields; f++) {
            const dict_col_t *col = &source->cols[index->fields[f].col];
            memcpy(def->fields[f].col, col->name, sizeof(col->name));
            uint32_t prefix_len = index->fields[f].prefix_len;
            def->fields[f].prefix_len = prefix_len < col->len ? prefix_len : 0;
        }
    }
    const ddl_alter_t alter = {
        .kind = ALTER_ADD_INDEX, .table = sum->name, .defs = defs, .n_defs = source->n_indexes - 1};
    work_issue(work);
    return work_made(work, engine_alter(work->engine, &alter), "add indexes");
}

/** An empty table of the same definition, the last one of those that must be there. */
static bool create_alike(work_t *work, const dict_table_t *source)
{
    dict_table_t *alike = mem_alloc(sizeof(*alike));
    check_table_t *sum = &work->tables[work->n_tables++];
    *alike = *source;
    (void)snprintf(alike->name, sizeof(alike->name), "w_%08" PRIx32,
                   (uint32_t)stream_next(&work->stream));
    for (uint32_t i = 0; i < alike->n_cols; i++) {
        alike->cols[i].instant = false;
    }
    *sum = *work->table;
    work_sum_nothing(work, sum);
    memcpy(sum->name, alike->name, sizeof(alike->name));
    uint32_t n_indexes = sum->n_indexes;
    sum->n_indexes = 0;
    work_issue(work);
    bool done = work_made(work, engine_create_table(work->engine, alike), "create table");
    sum->n_indexes = n_indexes;
    free(alike);
    return done && (n_indexes == 0 || add_indexes_alike(work, source, sum));
}

/** The empty copy gets the pages, and with them what the table has. */
static void import(work_t *work, check_table_t *copy)
{
    char name[NAME_LEN_MAX + 1];
    const ddl_alter_t alter = {
        .kind = ALTER_IMPORT, .table = copy->name, .name = work->table->name};
    memcpy(name, copy->name, sizeof(name));
    work_issue(work);
    if (work_done(work, engine_alter(work->engine, &alter), "import")) {
        *copy = *work->table;
        memcpy(copy->name, name, sizeof(name));
        work_acknowledge(work);
    }
}

void work_copy_table(work_t *work)
{
    check_table_t *copy = &work->tables[work->n_tables];
    if (!work->right || work_definition(work)->in_system
        || !create_alike(work, work_definition(work))) {
        return;
    }
    const ddl_alter_t alter = {.kind = ALTER_EXPORT, .table = work->table->name};
    work->exported = work->table->name;
    work_issue(work);
    if (work_made(work, engine_start_alter(work->engine, &alter), "export")) {
        import(work, copy);
        work->exported = "";
        work_issue(work);
        (void)work_made(work, engine_finish_alter(work->engine, work->table->name), "unlock");
        work->table = copy;
    }
}
