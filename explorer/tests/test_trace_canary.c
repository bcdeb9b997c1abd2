/* Canaries of the rules on bytes: an honest judge condemns each, one that has lost a rule is told
by that rule's name, and what the run gives no occasion for is untried. The recording is of the real
engine.

rules_report() is linked through __wrap_rules_report(): what a rule says gets lost there. */
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "explorer/judge/rules_int.h"
#include "explorer/judge/trace_canary.h"

#define ROOM 4096

static const char SCRIPT[] = "create table t1 id:bigint a:bigint c:char(40) primary id\n"
                             "insert_seq - t1 1 200\n"
                             "clean 10\n"
                             "insert - t1 id=1000 a=5 c=\"zz\"\n"
                             "checkpoint full\n"
                             "insert_seq - t1 2000 2100\n"
                             "clean 40\n"
                             "checkpoint full\n"
                             "create table t2 id:bigint a:bigint primary id\n"
                             "insert_seq - t2 1 300\n"
                             "checkpoint full\n"
                             "insert_seq - t2 1000 1300\n"
                             "drop table t1\n"
                             "add index t2 ia(a)\n"
                             "drop index t2 ia\n"
                             "insert - t2 id=5000 a=9\n"
                             "checkpoint full\n";

static char root[64];
static const char *deaf; /* this rule says nothing */
static bool complains;   /* another one says something of a run that is right */

void __wrap_rules_report(const rules_t *rules, uint64_t page, uint32_t invariant, const char *rule,
                         const char *format, ...);
void __wrap_rules_report(const rules_t *rules, uint64_t page, uint32_t invariant, const char *rule,
                         const char *format, ...)
{
    if (rules->config.found == NULL || (deaf != NULL && strcmp(rule, deaf) == 0)) {
        return;
    }
    va_list args;
    va_start(args, format);
    char what[VERDICT_WHAT_MAX];
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    rules->config.found(rules->config.ctx, invariant, rule, page, what);
}

/** Where rules_report() is at home it is not wrapped. */
void __real_rules_failed(rules_t *rules, const char *path);
void __wrap_rules_failed(rules_t *rules, const char *path);
void __wrap_rules_failed(rules_t *rules, const char *path)
{
    if (deaf == NULL || strcmp(deaf, "failed_io") != 0) {
        __real_rules_failed(rules, path);
    }
}

void __real_rules_file_check(rules_t *rules, lsn_t limit, const char *what);
void __wrap_rules_file_check(rules_t *rules, lsn_t limit, const char *what);
void __wrap_rules_file_check(rules_t *rules, lsn_t limit, const char *what)
{
    if (complains) {
        rules->config.found(rules->config.ctx, 24, "made up", RULES_NO_PAGE, what);
    }
    __real_rules_file_check(rules, limit, what);
}

static const char *in_root(char path[ROOM], const char *name)
{
    int len = snprintf(path, ROOM, "%s/%s", root, name);
    assert_true(len > 0 && len < ROOM);
    return path;
}

/** Records the script with this option. */
static void record(const char *log_format, const char *trace)
{
    char data[ROOM];
    char script[ROOM];
    char *argv[] = {getenv("TORNPAGE_TEST_ENGINE"),
                    "run",
                    "--option",
                    "buffer_pool_pages=48",
                    "--option",
                    "dblwr_pages=8",
                    "--option",
                    (char *)(uintptr_t)log_format,
                    data,
                    script,
                    NULL};
    char preload[ROOM];
    char tree[ROOM + 32];
    char told[ROOM + 32];
    char *env[] = {preload, tree, told, "TORNPAGE_PAYLOAD=full", NULL};
    (void)in_root(data, trace);
    (void)strncat(data, ".data", sizeof(data) - strlen(data) - 1);
    assert_int_equal(mkdir(data, 0700), 0);
    FILE *out = fopen(in_root(script, "script"), "we");
    assert_non_null(out);
    assert_true(fputs(SCRIPT, out) >= 0);
    assert_int_equal(fclose(out), 0);
    (void)snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", getenv("TORNPAGE_TEST_PRELOAD"));
    (void)snprintf(tree, sizeof(tree), "TORNPAGE_ROOT=%s", data);
    char file[ROOM];
    (void)snprintf(told, sizeof(told), "TORNPAGE_TRACE=%s", in_root(file, trace));
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, argv[0], NULL, NULL, argv, env), 0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int setup_all(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof(root), "/tmp/trace-canary-XXXXXX");
    assert_non_null(mkdtemp(root));
    record("log_format=10.4", "log-10.4");
    record("log_format=10.5", "log-10.5");
    return 0;
}

static int teardown_all(void **state)
{
    (void)state;
    char command[ROOM];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", root);
    return system(command); /* NOLINT(cert-env33-c): a folder of our own */
}

static canaries_t try(const char *trace, bool doublewrite)
{
    char path[ROOM];
    canaries_t canaries = {.n = 0};
    err_sink_t err = {.msg = ""};
    image_t *image = image_create();
    const path_set_t lock = {.patterns = {"engine.lock"}, .n = 1};
    const trace_config_t config = {.rules = {.doublewrite = doublewrite}, .ignored = &lock};
    dberr_t e = trace_canaries(in_root(path, trace), image, &config, &canaries, &err);
    assert_string_equal(err.msg, "");
    assert_int_equal(e, DB_SUCCESS);
    image_destroy(image);
    return canaries;
}

static bool is_one_of(const char *name, const char *const names[])
{
    bool found = false;
    for (uint32_t i = 0; names[i] != NULL; i++) {
        found = found || strcmp(names[i], name) == 0;
    }
    return found;
}

/** Those of these names are untried, all others condemned, by the rule of their name. */
static void expect_untried(const canaries_t *canaries, const char *const names[])
{
    assert_int_equal(canaries->n, 20);
    for (uint32_t i = 0; i < canaries->n; i++) {
        const canary_t *canary = &canaries->list[i];
        bool untried = is_one_of(canary->name, names);
        if (canary->fate != (untried ? CANARY_UNTRIED : CANARY_CONDEMNED)
            || (!untried && strncmp(canary->by, canary->name, strlen(canary->name)) != 0)) {
            fail_msg("%s: %d, by %s", canary->name, (int)canary->fate, canary->by);
        }
    }
}

static const char *const NONE[] = {NULL};
/** Only a log of the other format says of every free that the page may not be written. */
static const char *const OF_10_5[] = {"freed_page", NULL};

/** Each by its own rule. */
static void test_an_honest_judge_hears(void **state)
{
    (void)state;
    canaries_t canaries = try("log-10.4", true);
    expect_untried(&canaries, OF_10_5);
    canaries = try("log-10.5", true);
    expect_untried(&canaries, NONE);
}

/** A judge that has lost a rule is told by its name, and by nothing else. */
static void test_a_deaf_judge_is_told(void **state)
{
    canaries_t canaries = try("log-10.5", true);
    (void)state;
    for (uint32_t i = 0; i < canaries.n; i++) {
        deaf = canaries.list[i].name;
        canaries_t told = try("log-10.5", true);
        deaf = NULL;
        for (uint32_t k = 0; k < told.n; k++) {
            if (told.list[k].fate != (k == i ? CANARY_DEAF : CANARY_CONDEMNED)) {
                fail_msg("deaf to %s, %s: %d, by %s", canaries.list[i].name, told.list[k].name,
                         (int)told.list[k].fate, told.list[k].by);
            }
        }
        assert_int_equal(strncmp(told.list[i].by, "nobody", 6), 0);
    }
}

/** Without doublewrite no rule asks for copies. */
static void test_what_has_no_occasion_is_untried(void **state)
{
    static const char *const OF_COPIES[] = {"dblwr_skip", "area_reuse", "area_sync", "freed_page",
                                            NULL};
    canaries_t canaries = try("log-10.4", false);
    (void)state;
    expect_untried(&canaries, OF_COPIES);
    assert_string_equal(canaries.list[2].name, "dblwr_skip");
    assert_string_equal(canaries.list[2].by, "the run gives no occasion");
}

/** What a run breaks is found without canaries. */
static void test_a_run_that_breaks_rules_has_none(void **state)
{
    (void)state;
    complains = true;
    canaries_t canaries = try("log-10.4", true);
    complains = false;
    for (uint32_t i = 0; i < canaries.n; i++) {
        assert_int_equal(canaries.list[i].fate, CANARY_UNTRIED);
        assert_string_equal(canaries.list[i].by, "the run itself breaks rules");
    }
}

/** A recording that cannot be read. */
static void test_no_recording(void **state)
{
    err_sink_t err = {.msg = ""};
    image_t *image = image_create();
    const trace_config_t config = {.rules = {.doublewrite = true}};
    (void)state;
    canaries_t canaries = {.n = 0};
    assert_int_equal(trace_canaries("/nowhere", image, &config, &canaries, &err), DB_ERROR);
    assert_non_null(strstr(err.msg, "/nowhere"));
    assert_int_equal(canaries.n, 0);
    image_destroy(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_honest_judge_hears),
        cmocka_unit_test(test_a_deaf_judge_is_told),
        cmocka_unit_test(test_what_has_no_occasion_is_untried),
        cmocka_unit_test(test_a_run_that_breaks_rules_has_none),
        cmocka_unit_test(test_no_recording),
    };
    return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
