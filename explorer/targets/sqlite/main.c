/* verify_sqlite: the recover program of the target sqlite (docs/TARGETS.md). A directory per line
of standard input, whose files the recovery changes; one JSON object per line for each: what the
verifier says, and which logs the crash had left; where it is the machine that failed, not the
database, "machine" is true. */
#include <inttypes.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "explorer/targets/sqlite/verify_sqlite.h"

/** SQLite's words, quoted. */
static void print_text(const char *text)
{
    json_t *string = json_string(text);
    char *quoted = string != NULL ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    printf("%s", quoted != NULL ? quoted : "\"no text\"");
    free(quoted);
    json_decref(string);
}

/** Names have passed sq_schema_read(): there is nothing to quote in them. */
static void print_table(const check_table_t *table)
{
    printf("{\"name\":\"%s\",\"rows\":%" PRIu64 ",\"hash\":\"%016" PRIx64 "\",\"indexes\":[",
           table->name, table->rows, table->hash);
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        const check_index_t *index = &table->indexes[i];
        printf("%s{\"name\":\"%s\",\"entries\":%" PRIu64 ",\"hash\":\"%016" PRIx64 "\"}",
               i > 0 ? "," : "", index->name, index->entries, index->hash);
    }
    printf("]}");
}

static void print_report(const check_report_t *report)
{
    printf("{\"needs_recovery\":false,\"findings\":[");
    for (uint64_t i = 0; i < report->n_findings && i < CHECK_FINDINGS_MAX; i++) {
        const check_finding_t *finding = &report->findings[i];
        printf("%s{\"invariant\":%" PRIu32 ",\"path\":\"%s\",\"page\":null,\"what\":",
               i > 0 ? "," : "", finding->invariant, finding->path);
        print_text(finding->what);
        printf("}");
    }
    printf("],\"tables\":[");
    for (uint32_t i = 0; i < report->n_tables; i++) {
        printf("%s", i > 0 ? "," : "");
        print_table(&report->tables[i]);
    }
    printf("]}");
}

/** 1: there is something in the log of this name. */
static int has_left(const char *dir, const char *log)
{
    char path[4096];
    struct stat found;
    int len = snprintf(path, sizeof(path), "%s/main.db-%s", dir, log);
    return len > 0 && (size_t)len < sizeof(path) && stat(path, &found) == 0 && found.st_size > 0;
}

static void verify(const char *dir)
{
    check_report_t report;
    err_sink_t sink = {.msg = ""};
    int journal = has_left(dir, "journal");
    int wal = has_left(dir, "wal");
    dberr_t status = verify_sqlite.run(verify_sqlite.self, dir, &report, &sink);
    if (status == DB_SUCCESS) {
        printf("{\"ok\":true,\"counters\":{\"journal\":%d,\"wal\":%d},\"check\":", journal, wal);
        print_report(&report);
        check_report_free(&report);
    } else {
        printf("{\"ok\":false,\"machine\":%s,\"message\":",
               status == DB_UNRECOVERABLE ? "false" : "true");
        print_text(sink.msg);
    }
    printf("}\n");
    (void)fflush(stdout);
}

int main(void)
{
    /* Each database has a cache of the same size: its memory stays with the process. */
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    while ((len = getline(&line, &room, stdin)) > 0) {
        line[len - (line[len - 1] == '\n')] = '\0';
        verify(line);
    }
    free(line);
    return 0;
}
