/** The verifier that is a command: what it says, and what it does instead of answering. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "explorer/targets/command/verify_command.h"

#define OK "{\"ok\": true, \"state\": {\"t\": \"1 a\\n2 b\", \"empty\": \"\"}}"
#define TELL(text) "read folder; printf '%s\\n' '" text "'"

/** A command that a shell runs. */
static verify_command_t command_of(const char *script)
{
    verify_command_t command = {.argv = {"/bin/sh", "-c", script}, .n_args = 3, .deadline_s = 1};
    return command;
}

static dberr_t ask(verify_command_t *command, check_report_t *report, err_sink_t *err)
{
    verifier_t verifier = verify_command_verifier(command);
    *err = (err_sink_t){.msg = ""};
    return verifier.run(verifier.self, "/tmp", report, err);
}

static void end(verify_command_t *command)
{
    err_sink_t err = {.msg = ""};
    assert_int_equal(verify_command_verifier(command).stop(command, &err), DB_SUCCESS);
}

/** Time that the whole tree stood still is nobody's: who asks is stopped for longer than the
deadline, which leaves a loaded machine time for the rest. */
static void test_frozen(void **state)
{
    (void)state;
    check_report_t report;
    err_sink_t err;
    verify_command_t command =
        command_of("kill -STOP $PPID; sleep 4; kill -CONT $PPID; sleep 0.2; " TELL(OK));
    command.deadline_s = 3;
    assert_int_equal(ask(&command, &report, &err), DB_SUCCESS);
    check_report_free(&report);
    end(&command);
}

/** Rows are lines; the hash is XXH64 of the text, as in harness/tornpage/oracle/observed.py. */
static void test_state(void **state)
{
    (void)state;
    check_report_t report;
    err_sink_t err;
    verify_command_t command = command_of(TELL(OK));
    assert_int_equal(ask(&command, &report, &err), DB_SUCCESS);
    assert_int_equal(report.n_tables, 2);
    assert_string_equal(report.tables[0].name, "t");
    assert_int_equal(report.tables[0].rows, 2);
    assert_true(report.tables[0].hash == 0xdded3a146e1ceff2ULL);
    assert_int_equal(report.tables[1].rows, 0);
    assert_true(report.tables[1].hash == 0xef46db3751d8e999ULL);
    assert_int_equal(report.n_findings, 0);
    assert_int_equal(command.pid, 0);
    check_report_free(&report);
    end(&command);
}

/** A text goes on behind a zero byte. */
static void test_state_with_zero_byte(void **state)
{
    (void)state;
    check_report_t report;
    err_sink_t err;
    verify_command_t command =
        command_of(TELL("{\"ok\": true, \"state\": {\"t\": \"a\\u0000b\\nc\"}}"));
    assert_int_equal(ask(&command, &report, &err), DB_SUCCESS);
    assert_int_equal(report.tables[0].rows, 2);
    assert_true(report.tables[0].hash == 0x51ecae1ded3373a5ULL);
    check_report_free(&report);
    end(&command);
}

static void test_findings(void **state)
{
    (void)state;
    check_report_t report;
    err_sink_t err;
    verify_command_t command = command_of(
        TELL("{\"ok\": true, \"state\": {}, \"findings\": [\"a torn page\", {\"invariant\": 10, "
             "\"what\": \"an index\"}]}"));
    assert_int_equal(ask(&command, &report, &err), DB_SUCCESS);
    assert_int_equal(report.n_findings, 2);
    assert_int_equal(report.findings[0].invariant, 6);
    assert_string_equal(report.findings[0].what, "a torn page");
    assert_int_equal(report.findings[1].invariant, 10);
    check_report_free(&report);
    end(&command);
}

/** The scanner's object: a log that was not applied is damage of its own, in the words of
harness/tornpage/targets/target.py. */
static void test_needs_recovery(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        TELL("{\"ok\": true, \"check\": {\"needs_recovery\": false, \"findings\": [], "
             "\"tables\": []}}"),
        TELL("{\"ok\": true, \"check\": {\"needs_recovery\": true, \"findings\": [{\"invariant\": "
             "10, \"what\": \"an index\"}], \"tables\": []}}"),
    };
    for (uint32_t needs = 0; needs < 2; needs++) {
        check_report_t report;
        err_sink_t err;
        verify_command_t command = command_of(scripts[needs]);
        command.scanned = true;
        assert_int_equal(ask(&command, &report, &err), DB_SUCCESS);
        assert_int_equal(report.n_findings, 2 * needs);
        if (needs) {
            assert_int_equal(report.findings[0].invariant, 10);
            assert_int_equal(report.findings[1].invariant, 19);
            assert_string_equal(report.findings[1].what,
                                "the scanner says that recovery is needed after recovery");
        }
        check_report_free(&report);
        end(&command);
    }
}

/** Whether a state or the scanner's object is read is not up to the answer: a store may say more of
its state in a word of its own. Of the scanner's object nothing may be missing. */
static void test_what_is_asked_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        bool scanned;
        dberr_t status;
    } cases[] = {
        {TELL("{\"ok\": true, \"state\": {\"t\": \"1\"}, \"check\": \"passed\"}"), false,
         DB_SUCCESS},
        {TELL("{\"ok\": true, \"state\": {}, \"findings\": [7], \"check\": {\"needs_recovery\": "
              "false, \"findings\": [], \"tables\": []}}"),
         false, DB_UNRECOVERABLE},
        {TELL("{\"ok\": true, \"check\": {\"findings\": [], \"tables\": []}}"), true,
         DB_UNRECOVERABLE},
        {TELL("{\"ok\": true, \"check\": {\"needs_recovery\": false, \"tables\": []}}"), true,
         DB_UNRECOVERABLE},
        {TELL(OK), true, DB_UNRECOVERABLE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_report_t report;
        err_sink_t err;
        verify_command_t command = command_of(cases[i].script);
        command.scanned = cases[i].scanned;
        assert_int_equal(ask(&command, &report, &err), cases[i].status);
        if (cases[i].status == DB_SUCCESS) {
            assert_int_equal(report.n_tables, 1);
            check_report_free(&report);
        }
        end(&command);
    }
}

/** What is no answer is a refusal in the words of what happened. */
static void test_no_answer(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        const char *told;
    } cases[] = {
        {TELL("{\"ok\": false, \"message\": \"the log is torn\"}"), "the log is torn"},
        {"echo first >&2; echo last words >&2; exit 3", "exit code 3: last words"},
        {"kill -SEGV $$", "signal 11"},
        {"sleep 60", "hung: no answer within 1 s"},
        {"setsid sleep 60 & sleep 60", "hung"},
        {TELL("hello"), "right form: hello"},
        {TELL("{\"ok\": true}"), "right form"},
        {TELL("{\"state\": {}}"), "right form"},
        {TELL("{\"ok\": null, \"state\": {}}"), "right form"},
        {TELL("{\"ok\": true, \"state\": {\"t\": 7}}"), "right form"},
        {TELL("{\"ok\": true, \"check\": {\"needs_recovery\": false, \"findings\": [], "
              "\"tables\": []}}"),
         "right form"},
        {TELL(
             "{\"ok\": true, \"state\": {}, \"findings\": [{\"invariant\": 99, \"what\": \"x\"}]}"),
         "right form"},
        {"printf '{\"ok\": true, \"state\": {}}'", "ended without an answer"},
        {"printf '%s\\n%s\\n' '" OK "' 'it is open'",
         "more than one line for a folder: \"it is open\""},
        {"printf '%s\\n\\n' '" OK "'", "more than one line for a folder: \"\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_report_t report;
        err_sink_t err;
        verify_command_t command = command_of(cases[i].script);
        assert_int_equal(ask(&command, &report, &err), DB_UNRECOVERABLE);
        if (strstr(err.msg, cases[i].told) == NULL) {
            fail_msg("%s: told %s", cases[i].script, err.msg);
        }
        assert_int_equal(command.pid, 0);
        end(&command);
    }
}

/** What the command itself calls a failure of the machine is no refusal. */
static void test_machine_failed(void **state)
{
    (void)state;
    check_report_t report;
    err_sink_t err;
    verify_command_t command =
        command_of(TELL("{\"ok\": false, \"machine\": true, \"message\": \"no memory\"}"));
    assert_int_equal(ask(&command, &report, &err), DB_INTERRUPTED);
    assert_string_equal(err.msg, "no memory");
    end(&command);
}

/** A command that a person ended, or the kernel for want of memory, has not refused. */
static void test_ended_from_outside(void **state)
{
    (void)state;
    static const char *const scripts[] = {"kill -KILL $$", "echo gone >&2; kill -TERM $$"};
    static const char *const told[] = {"outside by signal 9: ", "outside by signal 15: gone"};
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        check_report_t report;
        err_sink_t err;
        verify_command_t command = command_of(scripts[i]);
        assert_int_equal(ask(&command, &report, &err), DB_INTERRUPTED);
        assert_non_null(strstr(err.msg, told[i]));
        end(&command);
    }
}

/** One process answers for many states where it is asked to, and a new one follows where it
ended. */
static void test_long_lived(void **state)
{
    (void)state;
    verify_command_t command =
        command_of("n=0; while read folder && [ $n -lt 2 ]; do n=$((n + 1)); "
                   "echo '{\"ok\": true, \"state\": {\"n\": \"'$n'\"}}'; done");
    command.long_lived = true;
    uint64_t hashes[4];
    static const dberr_t EXPECTED[] = {DB_SUCCESS, DB_SUCCESS, DB_UNRECOVERABLE, DB_SUCCESS};
    check_report_t report;
    err_sink_t err;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(ask(&command, &report, &err), EXPECTED[i]);
        if (EXPECTED[i] == DB_SUCCESS) {
            hashes[i] = report.tables[0].hash;
            check_report_free(&report);
        }
    }
    assert_true(hashes[0] != hashes[1]);
    assert_true(hashes[0] == hashes[3]);
    end(&command);
    assert_int_equal(command.pid, 0);
}

/** Of a long-lived process that says more than one line no answer counts, whenever the line comes:
with the answer, before the next question, or at the end. */
static void test_says_more(void **state)
{
    (void)state;
    verify_command_t at_once =
        command_of("while read folder; do printf '%s\\n%s\\n' '" OK "' '" OK "'; done");
    at_once.long_lived = true;
    check_report_t report;
    err_sink_t err;
    assert_int_equal(ask(&at_once, &report, &err), DB_ERROR);
    assert_non_null(strstr(err.msg, "more than one line"));
    end(&at_once);
    static const char LATE[] = "while read folder; do printf '%s\n' '" OK
                               "'; read go < $0/go; printf '%s\n' '" OK "'; done";
    for (int asks_again = 0; asks_again < 2; asks_again++) {
        char dir[] = "/tmp/test_verify_XXXXXX";
        assert_non_null(mkdtemp(dir));
        char fifo[sizeof(dir) + 3];
        (void)snprintf(fifo, sizeof(fifo), "%s/go", dir);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        verify_command_t late = command_of(LATE);
        late.argv[late.n_args++] = dir; /* $0 */
        late.long_lived = true;
        assert_int_equal(ask(&late, &report, &err), DB_SUCCESS);
        check_report_free(&report);
        int go = open(fifo, O_WRONLY | O_CLOEXEC);
        assert_int_equal(write(go, "\n", 1), 1);
        struct pollfd p = {.fd = late.from_fd, .events = POLLIN};
        assert_int_equal(poll(&p, 1, 10000), 1);
        if (asks_again) {
            assert_int_equal(ask(&late, &report, &err), DB_ERROR);
            end(&late);
        } else {
            err = (err_sink_t){.msg = ""};
            assert_int_equal(verify_command_stop(&late, &err), DB_ERROR);
        }
        assert_non_null(strstr(err.msg, "cannot be told apart"));
        close(go);
        unlink(fifo);
        rmdir(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_state_with_zero_byte),
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_needs_recovery),
        cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_what_is_asked_is_read),
        cmocka_unit_test(test_long_lived),
        cmocka_unit_test(test_says_more),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_machine_failed),
        cmocka_unit_test(test_ended_from_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
