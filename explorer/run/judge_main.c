/* tornpage-judge: holds recorded processes against the rules on bytes, and carries exported tables
away.

Place: beside main.c, above trace_read.c and judge.c.

    one JSON object per line --> base files, trace --> rules --> one JSON object per line
                             \-> crashed files --> judge_export() --/

Request   trace: path; base: directory that the process found, or "" for an empty one; live: it
          belongs to a trial; doublewrite: is on;
          canaries: true: damaged copies of the trace are judged instead
Answer    findings: [{seq, invariant, source, rule, what, page}], at most RULE_FINDINGS_MAX of one
          rule; page: [inode, offset] of the one that is accused, if there is one;
          log: {found, checkpoint, end, last}; of canaries only those, as the explorer tells them;
          or error: why there is no verdict
Request   export: table; acked: the statement was acknowledged; base: directory that a crash left;
          options: {name: value}
Answer    findings: [{invariant, source, what}]; judged: there was a table to be carried away, or
          had to be; or error
Exit codes: 0 at the end of the input, 2 usage. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "explorer/judge/trace_canary.h"
#include "explorer/judge/trace_read.h"
#include "explorer/run/base.h"
#include "explorer/targets/engine/judge.h"

#define RULE_FINDINGS_MAX 8U
#define RULES_MAX 64U

static const char HELP[] =
    "usage: tornpage-judge < REQUESTS\n"
    "Holds recorded processes against the rules on bytes, and carries exported tables away\n"
    "(explorer/judge/README.md).\n"
    "\n"
    "One request per line, a JSON object. Of a process:\n"
    "  trace        recorded by libtornpage_preload.so with TORNPAGE_PAYLOAD=full\n"
    "  base         directory with the files that the process found; \"\": none\n"
    "  live         true: a process of a trial, which may be disturbed\n"
    "  doublewrite  true: is on\n"
    "  canaries     true: copies of a fault-free run, each damaged in one thing, are judged "
    "instead\n"
    "Of a crash while a table was exported:\n"
    "  export       the table: its file and .cfg, imported in its place, must be what it is (I28)\n"
    "  acked        true: the export was acknowledged, so that they must be there\n"
    "  base         directory with the files that the crash left\n"
    "  options      of the engine: {name: value}\n"
    "One answer per line: findings, of a process log, of an export judged; canaries; or error.\n"
    "exit codes: 0 at the end of the input, 2 usage\n";

typedef struct session {
    trace_t trace;
    json_t *findings;
    const char *rules[RULES_MAX];
    uint32_t counts[RULES_MAX];
} session_t;

static void set(json_t *object, const char *key, json_t *value)
{
    CHECK(json_object_set_new(object, key, value) == 0);
}

/** Of words in which there may be any bytes, as of the names of files. */
static json_t *text_of(const char *words)
{
    char text[1024];
    (void)snprintf(text, sizeof(text), "%s", words);
    verdict_clean(text);
    return json_string(text);
}

/** Is there room for one more finding of the rule? */
static bool count_finding(session_t *session, const char *rule)
{
    for (uint32_t i = 0; i < RULES_MAX; i++) {
        if (session->rules[i] == NULL || strcmp(session->rules[i], rule) == 0) {
            session->rules[i] = rule;
            return session->counts[i]++ < RULE_FINDINGS_MAX;
        }
    }
    return false;
}

static void on_finding(void *ctx, uint32_t invariant, const char *rule, uint64_t page,
                       const char *what)
{
    session_t *session = ctx;
    if (!count_finding(session, rule)) {
        return;
    }
    json_t *finding = json_object();
    set(finding, "seq", json_integer((json_int_t)session->trace.seq));
    set(finding, "invariant", json_integer(invariant));
    set(finding, "source", json_string(finding_source_name(SOURCE_RULE)));
    set(finding, "rule", json_string(rule));
    set(finding, "what", text_of(what));
    uint32_t inode;
    uint64_t offset;
    if (rules_page_place(session->trace.rules, page, &inode, &offset)) {
        json_t *place = json_pack("[I, I]", (json_int_t)inode, (json_int_t)offset);
        set(finding, "page", place);
    }
    CHECK(json_array_append_new(session->findings, finding) == 0);
}

/* ---- one request ---- */

static json_t *log_facts(const rules_t *rules)
{
    rules_log_facts_t facts;
    json_t *object = json_object();
    rules_log_facts(rules, &facts);
    set(object, "found", json_boolean(facts.found));
    set(object, "checkpoint", json_integer((json_int_t)facts.checkpoint));
    set(object, "end", json_integer((json_int_t)facts.end_lsn));
    set(object, "last", json_integer((json_int_t)facts.last_lsn));
    return object;
}

static json_t *error_answer(const char *what)
{
    json_t *answer = json_object();
    set(answer, "error", text_of(what));
    return answer;
}

/** Of an image that holds what the process found. */
static json_t *judge_canaries(const char *trace, image_t *image, const trace_config_t *config)
{
    err_sink_t err = {.msg = ""};
    canaries_t canaries;
    if (trace_canaries(trace, image, config, &canaries, &err) != DB_SUCCESS) {
        return error_answer(err.msg);
    }
    json_t *answer = json_object();
    set(answer, "canaries", canaries_object(&canaries));
    return answer;
}

static json_t *judge_request(const char *trace, const char *base, bool live, bool doublewrite,
                             bool canaries)
{
    err_sink_t err = {.msg = ""};
    session_t *session = mem_alloc(sizeof(*session));
    image_t *image = image_create();
    const path_set_t lock = {.patterns = {"engine.lock"}, .n = 1};
    const trace_config_t config = {
        .rules = {.doublewrite = doublewrite, .found = on_finding, .ctx = session},
        .live = live,
        .ignored = &lock};
    session->findings = json_array();
    image_set_hashing(image, false);
    json_t *answer = NULL;
    if (base[0] != '\0' && !base_load(image, base)) {
        answer = error_answer("the base directory cannot be read");
    } else if (canaries) {
        answer = judge_canaries(trace, image, &config);
    } else if (trace_load(trace, image, &config, &session->trace, &err) != DB_SUCCESS) {
        answer = error_answer(err.msg);
    } else {
        answer = json_object();
        set(answer, "findings", json_incref(session->findings));
        set(answer, "log", log_facts(session->trace.rules));
        trace_free(&session->trace);
    }
    json_decref(session->findings);
    image_destroy(image);
    free(session);
    return answer;
}

/* ---- an exported table ---- */

static bool read_options(const json_t *object, engine_options_t *options, err_sink_t *err)
{
    const char *name;
    json_t *value;
    dberr_t e = DB_SUCCESS;
    options_set_defaults(options);
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        const char *text = json_string_value(value);
        AND_THEN(e, text != NULL ? options_parse(options, name, text, err)
                                 : err_set(err, DB_ERROR, "option %s: a text is expected", name));
    }
    return e == DB_SUCCESS;
}

static json_t *verdict_findings(const verdict_t *verdict)
{
    json_t *findings = json_array();
    for (uint32_t i = 0; i < verdict->n; i++) {
        const verdict_finding_t *found = &verdict->findings[i];
        json_t *finding = json_object();
        set(finding, "invariant", json_integer(found->invariant));
        set(finding, "source", json_string(finding_source_name(found->source)));
        set(finding, "what", text_of(found->what));
        CHECK(json_array_append_new(findings, finding) == 0);
    }
    return findings;
}

static json_t *judge_export_request(const char *table, bool acked, const char *base,
                                    const engine_options_t *options)
{
    outcome_t outcome;
    judge_t judge;
    image_t *image = image_create();
    json_t *answer = NULL;
    if (!base_load(image, base)) {
        answer = error_answer("the base directory cannot be read");
    } else {
        judge_init(&judge, image, options, NULL);
        outcome_init(&outcome);
        judge_export(&judge, table, acked, &outcome);
        judge_free(&judge);
        answer = json_object();
        set(answer, "findings", verdict_findings(&outcome.verdict));
        set(answer, "judged", json_boolean(outcome.counters[ENGINE_EXPORTS_JUDGED] > 0));
    }
    image_destroy(image);
    return answer;
}

/* ---- requests ---- */

static json_t *answer_request(json_t *request)
{
    const char *trace = NULL;
    const char *base = NULL;
    int yes = 0;
    int doublewrite = 0;
    int canaries = 0;
    err_sink_t err = {.msg = ""};
    if (json_unpack(request, "{s:s, s:s, s:b, s:b, s?b}", "trace", &trace, "base", &base, "live",
                    &yes, "doublewrite", &doublewrite, "canaries", &canaries)
            == 0
        && (yes == 0 || canaries == 0)) {
        return judge_request(trace, base, yes != 0, doublewrite != 0, canaries != 0);
    }
    const char *table = NULL;
    json_t *settings = NULL;
    engine_options_t options;
    if (json_unpack(request, "{s:s, s:b, s:s, s:o}", "export", &table, "acked", &yes, "base", &base,
                    "options", &settings)
            == 0
        && strlen(table) <= NAME_LEN_MAX) {
        return read_options(settings, &options, &err)
                   ? judge_export_request(table, yes != 0, base, &options)
                   : error_answer(err.msg);
    }
    return error_answer("the request is not one: see --help");
}

static json_t *answer_line(const char *line)
{
    json_error_t error;
    json_t *request = json_loads(line, 0, &error);
    json_t *answer = answer_request(request);
    json_decref(request);
    return answer;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        bool help = strcmp(argv[1], "--help") == 0;
        (void)fputs(HELP, help ? stdout : stderr);
        return help ? EXIT_SUCCESS : 2;
    }
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        json_t *answer = answer_line(line);
        char *text = json_dumps(answer, JSON_COMPACT);
        CHECK(text != NULL);
        (void)puts(text);
        (void)fflush(stdout);
        free(text);
        json_decref(answer);
    }
    free(line);
    return EXIT_SUCCESS;
}
