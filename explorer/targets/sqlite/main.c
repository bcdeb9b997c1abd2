/* verify_sqlite DIR...: what the verifier says of each directory, one JSON object per line, in the form of
`python -m tornpage.targets.sqlite.image`. A directory's files are changed by the recovery. Exit codes: 0 ok, 1 findings,
3 refused; the highest of all directories. Without a DIR they come as lines of standard input, each opened and closed as an application
does it: what recovery writes then is what a user's would. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "explorer/targets/sqlite/verify_sqlite.h"

static json_t *hash_json(uint64_t hash)
{
    return json_sprintf("%016" PRIx64, hash);
}

static json_t *report_json(const check_report_t *report)
{
    json_t *findings = json_array();
    for (uint64_t i = 0; i < report->n_findings && i < CHECK_FINDINGS_MAX; i++) {
        const check_finding_t *finding = &report->findings[i];
        json_array_append_new(findings, json_pack("{s:i, s:s, s:n, s:s}", "invariant",
                                                  (int)finding->invariant, "path", finding->path,
                                                  "page", "what", finding->what));
    }
    json_t *tables = json_array();
    for (uint32_t i = 0; i < report->n_tables; i++) {
        const check_table_t *table = &report->tables[i];
        json_t *indexes = json_array();
        for (uint32_t j = 0; j < table->n_indexes; j++) {
            const check_index_t *index = &table->indexes[j];
            json_array_append_new(indexes, json_pack("{s:s, s:I, s:o}", "name", index->name,
                                                     "entries", (json_int_t)index->entries, "hash",
                                                     hash_json(index->hash)));
        }
        json_array_append_new(tables, json_pack("{s:s, s:I, s:o, s:o}", "name", table->name, "rows",
                                                (json_int_t)table->rows, "hash",
                                                hash_json(table->hash), "indexes", indexes));
    }
    return json_pack("{s:b, s:o, s:o}", "needs_recovery", 0, "findings", findings, "tables",
                     tables);
}

static int verify_one(const verifier_t *verifier, const char *dir)
{
    check_report_t report;
    err_sink_t sink = {.msg = ""};
    dberr_t err = verifier->run(verifier->self, dir, &report, &sink);
    int code = 3;
    json_t *answer;
    if (err == DB_SUCCESS) {
        code = report.n_findings > 0 ? 1 : 0;
        answer = json_pack("{s:b, s:o}", "ok", 1, "check", report_json(&report));
        check_report_free(&report);
    } else {
        answer = json_pack("{s:b, s:s, s:s}", "ok", 0, "error", err_name(err), "message", sink.msg);
    }
    char *text = answer != NULL ? json_dumps(answer, JSON_COMPACT) : NULL;
    printf("%s\n", text != NULL ? text : "{}");
    free(text);
    json_decref(answer);
    return code;
}

/** One line per directory on standard input. */
static int verify_lines(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    while ((len = getline(&line, &room, stdin)) > 0) {
        line[len - (line[len - 1] == '\n')] = '\0';
        (void)verify_one(&verify_sqlite_application, line);
        (void)fflush(stdout);
    }
    free(line);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        return verify_lines();
    }
    int worst = 0;
    for (int i = 1; i < argc; i++) {
        int code = verify_one(&verify_sqlite, argv[i]);
        worst = code > worst ? code : worst;
    }
    return worst;
}
