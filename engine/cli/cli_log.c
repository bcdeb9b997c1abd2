/* `engine log` and `engine status`: what the redo log says, without changing anything.

Place: cli/; uses log/ for reading only, as the offline scanner does.

Rules
1. Nothing is created, written or synced; a lock is taken only on a lock file that is there already.
2. Bytes of the log are escaped before they are printed: they may be anything. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "log/log.h"

#define LOCK_FILE_NAME "engine.lock"
#define DATA_SHOWN_MAX 32U

dberr_t cli_dir_open(cli_dir_t *dir, const char *path)
{
    memset(dir, 0, sizeof(*dir));
    dir->env.probe = &dir->probe.base;
    TRY(os_posix_create(path, false, &dir->env.err, &dir->os));
    dir->env.os = dir->os;
    TRY(engine_check_dir(dir->os, &dir->env.err));
    bool exists = false;
    TRY(env_exists(&dir->env, LOCK_FILE_NAME, &exists));
    return exists ? env_lock(&dir->env) : DB_SUCCESS;
}

void cli_dir_close(cli_dir_t *dir)
{
    os_destroy(dir->os);
}

/* ---- the log from the checkpoint on ---- */

typedef struct log_facts {
    log_checkpoint_t slots[2];
    uint32_t n_slots;
    lsn_t end_lsn;
    bool marker_found;
    bool needs_recovery; /**< a change, rather than names and markers, lies behind the checkpoint */
    uint64_t n_groups;
    uint64_t n_recs;
} log_facts_t;

typedef void (*log_group_fn)(void *ctx, const log_group_t *group);

static void facts_add(log_facts_t *facts, const log_group_t *group)
{
    facts->n_groups++;
    facts->n_recs += group->n_recs;
    facts->needs_recovery |= log_group_is_change(group);
    facts->marker_found |= log_group_is_marker(group, &facts->slots[0]);
}

/** Reads the log from `from` (0 = the newest checkpoint) to its end. fn may be NULL. */
static dberr_t log_walk(log_t *log, lsn_t from, log_facts_t *facts, log_group_fn fn, void *ctx)
{
    *facts = (log_facts_t){.n_slots = 0};
    log_checkpoints(log, facts->slots, &facts->n_slots);
    log_reader_t *reader = NULL;
    dberr_t err = log_reader_create(log, from != 0 ? from : facts->slots[0].lsn, &reader);
    while (err == DB_SUCCESS) {
        log_group_t group;
        err = log_reader_next(reader, &group);
        if (err == DB_SUCCESS) {
            facts_add(facts, &group);
            if (fn != NULL) {
                fn(ctx, &group);
            }
        }
    }
    if (err == DB_NOT_FOUND) {
        facts->end_lsn = log_reader_end_lsn(reader);
        err = DB_SUCCESS;
    }
    log_reader_free(reader);
    TRY(err);
    if (from == 0 && !facts->marker_found) {
        return err_refuse(&log_env(log)->err, DB_UNRECOVERABLE, REFUSAL_MARKER_MISSING,
                          "the log has no marker of checkpoint %" PRIu64 " at LSN %" PRIu64,
                          facts->slots[0].no, facts->slots[0].marker_lsn);
    }
    return DB_SUCCESS;
}

/* ---- engine log ---- */

typedef struct log_show {
    const log_format_t *format;
    json_t *groups; /**< NULL: printed as text */
} log_show_t;

static void print_data(const char *name, const byte *data, size_t len)
{
    char *hex = cli_hex(data, len < DATA_SHOWN_MAX ? len : DATA_SHOWN_MAX);
    (void)printf(" %s=%s%s", name, hex != NULL ? hex : "?", len > DATA_SHOWN_MAX ? "..." : "");
    free(hex);
}

static void print_path(const char *name, const char *path, size_t len)
{
    char *text = cli_escape((const byte *)path, len);
    (void)printf(" %s=%s", name, text != NULL ? text : "?");
    free(text);
}

static bool rec_has_page(const redo_rec_t *rec)
{
    return redo_op_is_page(rec->op) || rec->op == OP_INDEX_LOAD || rec->op == OP_TRIM_PAGES;
}

static void print_rec(const log_format_t *format, const redo_rec_t *rec)
{
    (void)printf("  %s", format->rec_name(rec));
    if (rec_has_page(rec)) {
        (void)printf(" space=%" PRIu32 " page=%" PRIu32, rec->space, rec->page_no);
    } else if (rec->path != NULL) {
        (void)printf(" space=%" PRIu32, rec->space);
    }
    if (rec->slot != 0) {
        (void)printf(" slot=%" PRIu32, rec->slot);
    }
    if (rec->info != 0) {
        (void)printf(" info=%" PRIu32, rec->info);
    }
    if (rec->shared != 0) {
        (void)printf(" shared=%" PRIu32, rec->shared);
    }
    if (rec->offset != 0) {
        (void)printf(" offset=%" PRIu32, rec->offset);
    }
    if (rec->op == OP_MOVE) {
        (void)printf(" from=%" PRIu32, rec->from);
    }
    if (rec->value != 0) {
        (void)printf(" value=%" PRIu64, rec->value);
    }
    if (rec->op == OP_INDEX_CREATE) {
        (void)printf(" level=%" PRIu32 " index=%" PRIu64 " rec_size=%" PRIu32 " key_len=%" PRIu32,
                     rec->level, rec->index_id, rec->rec_size, rec->key_len);
    }
    if (rec->len != 0 && rec->op != OP_NUMBER) {
        (void)printf(" len=%" PRIu32, rec->len);
    }
    if (rec->data != NULL) {
        print_data("data", rec->data, rec->len);
    }
    if (rec->path != NULL) {
        print_path("path", rec->path, rec->path_len);
    }
    if (rec->path2 != NULL) {
        print_path("to", rec->path2, rec->path2_len);
    }
    (void)putchar('\n');
}

static void print_group(void *ctx, const log_group_t *group)
{
    const log_show_t *show = ctx;
    (void)printf("%" PRIu64 "..%" PRIu64 "\n", group->start_lsn, group->end_lsn);
    for (uint32_t i = 0; i < group->n_recs; i++) {
        print_rec(show->format, &group->recs[i]);
    }
}

static json_t *rec_json(const log_format_t *format, const redo_rec_t *rec)
{
    json_t *o = json_object();
    (void)json_object_set_new(o, "type", json_string(format->rec_name(rec)));
    if (rec_has_page(rec) || rec->path != NULL) {
        (void)json_object_set_new(o, "space", cli_u64(rec->space));
    }
    if (rec_has_page(rec)) {
        (void)json_object_set_new(o, "page", cli_u64(rec->page_no));
        (void)json_object_set_new(o, "slot", cli_u64(rec->slot));
        (void)json_object_set_new(o, "offset", cli_u64(rec->offset));
        (void)json_object_set_new(o, "from", cli_u64(rec->from));
        (void)json_object_set_new(o, "info", cli_u64(rec->info));
        (void)json_object_set_new(o, "shared", cli_u64(rec->shared));
    }
    (void)json_object_set_new(o, "value", cli_u64(rec->value));
    (void)json_object_set_new(o, "len", cli_u64(rec->len));
    if (rec->op == OP_INDEX_CREATE) {
        (void)json_object_set_new(o, "level", cli_u64(rec->level));
        (void)json_object_set_new(o, "index", cli_u64(rec->index_id));
        (void)json_object_set_new(o, "rec_size", cli_u64(rec->rec_size));
        (void)json_object_set_new(o, "key_len", cli_u64(rec->key_len));
    }
    if (rec->data != NULL) {
        char *hex = cli_hex(rec->data, rec->len);
        (void)json_object_set_new(o, "data", hex != NULL ? json_string(hex) : json_null());
        free(hex);
    }
    if (rec->path != NULL) {
        (void)json_object_set_new(o, "path", cli_escaped((const byte *)rec->path, rec->path_len));
    }
    if (rec->path2 != NULL) {
        (void)json_object_set_new(o, "to", cli_escaped((const byte *)rec->path2, rec->path2_len));
    }
    return o;
}

static void collect_group(void *ctx, const log_group_t *group)
{
    const log_show_t *show = ctx;
    json_t *recs = json_array();
    for (uint32_t i = 0; i < group->n_recs; i++) {
        (void)json_array_append_new(recs, rec_json(show->format, &group->recs[i]));
    }
    (void)json_array_append_new(show->groups,
                                json_pack("{s:o, s:o, s:o}", "start", cli_u64(group->start_lsn),
                                          "end", cli_u64(group->end_lsn), "records", recs));
}

static dberr_t log_show(cli_dir_t *dir, const cli_args_t *args)
{
    log_t *log = NULL;
    TRY(log_open(&dir->env, &log));
    log_facts_t facts;
    log_show_t show = {.format = log_format(log), .groups = args->json ? json_array() : NULL};
    dberr_t err =
        log_walk(log, args->from, &facts, args->json ? collect_group : print_group, &show);
    if (err == DB_SUCCESS && args->json) {
        cli_print_json(json_pack("{s:b, s:o, s:o, s:O}", "ok", 1, "checkpoint_lsn",
                                 cli_u64(facts.slots[0].lsn), "log_end_lsn", cli_u64(facts.end_lsn),
                                 "groups", show.groups));
    } else if (err == DB_SUCCESS) {
        (void)printf("%" PRIu64 " groups, %" PRIu64 " records, end of the log at %" PRIu64 "\n",
                     facts.n_groups, facts.n_recs, facts.end_lsn);
    }
    json_decref(show.groups);
    log_close(log);
    return err;
}

int cli_log(const cli_args_t *args)
{
    cli_dir_t dir;
    dberr_t err = cli_dir_open(&dir, args->path);
    AND_THEN(err, log_show(&dir, args));
    int code = err == DB_SUCCESS ? cli_finish(EXIT_OK) : cli_fail(args, err, &dir.env.err);
    cli_dir_close(&dir);
    return code;
}

/* ---- engine status ---- */

static void status_print_json(const log_file_info_t *info, const log_facts_t *facts)
{
    json_t *slots = json_array();
    for (uint32_t i = 0; i < facts->n_slots; i++) {
        const log_checkpoint_t *c = &facts->slots[i];
        (void)json_array_append_new(
            slots, json_pack("{s:o, s:o, s:o, s:I}", "no", cli_u64(c->no), "lsn", cli_u64(c->lsn),
                             "marker_lsn", cli_u64(c->marker_lsn), "epoch", (json_int_t)c->epoch));
    }
    cli_print_json(json_pack(
        "{s:b, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "ok", 1, "page_size",
        cli_u64(info->page_size), "extent_pages", cli_u64(info->extent_pages), "log_file_size",
        cli_u64(info->file_size), "log_format", (json_int_t)info->format_id, "start_lsn",
        cli_u64(info->start_lsn), "checkpoints", slots, "checkpoint_lsn",
        cli_u64(facts->slots[0].lsn), "log_end_lsn", cli_u64(facts->end_lsn), "log_groups",
        cli_u64(facts->n_groups), "log_records", cli_u64(facts->n_recs), "needs_recovery",
        facts->needs_recovery ? 1 : 0));
}

static void status_print(const log_file_info_t *info, const log_facts_t *facts)
{
    (void)printf("log format       %s\n", log_format_find(info->format_id)->name);
    (void)printf("page size        %" PRIu32 "\n", info->page_size);
    (void)printf("extent size      %" PRIu32 " pages\n", info->extent_pages);
    (void)printf("log file size    %" PRIu64 "\n", info->file_size);
    for (uint32_t i = 0; i < facts->n_slots; i++) {
        const log_checkpoint_t *c = &facts->slots[i];
        (void)printf("checkpoint %-5" PRIu64 " LSN %" PRIu64 ", marker at %" PRIu64
                     ", epoch %" PRIu32 "\n",
                     c->no, c->lsn, c->marker_lsn, c->epoch);
    }
    (void)printf("end of the log   %" PRIu64 "\n", facts->end_lsn);
    (void)printf("behind the checkpoint: %" PRIu64 " groups, %" PRIu64 " records\n",
                 facts->n_groups, facts->n_recs);
    (void)printf("needs recovery   %s\n", facts->needs_recovery ? "yes" : "no");
}

static dberr_t status_show(cli_dir_t *dir, const cli_args_t *args, log_facts_t *facts)
{
    log_t *log = NULL;
    TRY(log_open(&dir->env, &log));
    dberr_t err = log_walk(log, 0, facts, NULL, NULL);
    if (err == DB_SUCCESS && args->json) {
        status_print_json(log_info(log), facts);
    } else if (err == DB_SUCCESS) {
        status_print(log_info(log), facts);
    }
    log_close(log);
    return err;
}

int cli_status(const cli_args_t *args)
{
    cli_dir_t dir;
    log_facts_t facts;
    dberr_t err = cli_dir_open(&dir, args->path);
    AND_THEN(err, status_show(&dir, args, &facts));
    int code = EXIT_OK;
    if (err != DB_SUCCESS) {
        code = cli_fail(args, err, &dir.env.err);
    } else {
        code = cli_finish(args->offline && facts.needs_recovery ? EXIT_NEEDS_RECOVERY : EXIT_OK);
    }
    cli_dir_close(&dir);
    return code;
}
