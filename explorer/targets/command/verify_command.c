/* A verifier that is a program.

On top of state_json.c. Rules:
 1. A process that answers in time, and only in JSON, is the target. One that ends, hangs or says
    something else has not recovered: that is a refusal without a message, in the words of how it
    ended.
 2. What the command has started ends with it, and orphans with the answer: they become this
    process's children, and are killed.
 3. A full disk is the machine's failure, whatever the command makes of it. What the command itself
    calls one, or a signal from outside that has ended it, may be: whether it comes again is for
    external.c to see.
 4. An answer is one line, and belongs to the question before it. What is in the pipe behind a line
    was not asked for. Of a process that answers for one folder it spoils that answer. Of one that
    goes on it may have taken the place of others, or will: nothing that was said counts, and the
    explorer ends without a verdict. The pipe is looked at before each question, behind each answer
    and at the end. */
#include "explorer/targets/command/verify_command.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "disk/fs_event.h"
#include "explorer/judge/state_json.h"
#include "faults/children.h"

#define LOOK_MS 200
#define STILL_MS 1000 /**< a look that is so late was held up */
#define ANSWER_MAX ((size_t)64 << 20)
#define FREE_MIN_BYTES ((uint64_t)1 << 20)
#define FINDING_INVARIANT 6
#define NEEDS_RECOVERY_INVARIANT 19
#define INVARIANT_MAX 30

/* ---- the process ---- */

static bool open_pipes(verify_command_t *command, int *child_in, int *child_out)
{
    int in[2];
    if (pipe2(in, O_CLOEXEC) != 0) {
        return false;
    }
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0) {
        (void)close(in[0]);
        (void)close(in[1]);
        return false;
    }
    *child_in = in[0];
    *child_out = out[1];
    command->to_fd = in[1];
    command->from_fd = out[0];
    return true;
}

/** What records a recovery: faults/README.md. */
static bool set_recorder(const verify_command_t *command)
{
    return command->trace == NULL
           || ((command->fs != NULL || setenv("LD_PRELOAD", command->preload, 1) == 0)
               && setenv("TORNPAGE_ROOT", command->root, 1) == 0
               && setenv("TORNPAGE_TRACE", command->trace, 1) == 0
               && setenv("TORNPAGE_PAYLOAD", "full", 1) == 0);
}

/** The command, below the program that records it if there is one. */
static void execute(const verify_command_t *command)
{
    const char *argv[COMMAND_ARGS_MAX + 2] = {command->fs};
    bool below = command->trace != NULL && command->fs != NULL;
    memcpy(argv + (below ? 1 : 0), command->argv, sizeof(command->argv));
    (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
    (void)dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerrordesc_np(errno));
}

static _Noreturn void become(const verify_command_t *command, pid_t parent, int in, int out)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (getppid() == parent && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0
        && dup2(command->log_fd, STDERR_FILENO) >= 0 && set_recorder(command)) {
        execute(command);
    }
    _exit(127);
}

static dberr_t start(verify_command_t *command, err_sink_t *err)
{
    if (command->pid != 0) {
        return DB_SUCCESS;
    }
    command->log_fd = memfd_create("recover", MFD_CLOEXEC);
    int in;
    int out;
    if (command->log_fd < 0 || !open_pipes(command, &in, &out)) {
        return err_set(err, DB_IO_ERROR, "recover: %s", strerrordesc_np(errno));
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)signal(SIGPIPE, SIG_IGN);
    pid_t parent = getpid();
    command->pid = fork();
    if (command->pid == 0) {
        become(command, parent, in, out);
    }
    (void)close(in);
    (void)close(out);
    return command->pid > 0
               ? DB_SUCCESS
               : err_set(err, DB_IO_ERROR, "recover: fork: %s", strerrordesc_np(errno));
}

/** @return its wait status: it ended by itself if it had not been killed */
static int stop(verify_command_t *command, bool wait)
{
    if (command->pid == 0) {
        return 0;
    }
    if (command->to_fd >= 0) {
        (void)close(command->to_fd);
    }
    (void)close(command->from_fd);
    if (!wait) {
        (void)kill(command->pid, SIGKILL);
    }
    int status = 0;
    while (waitpid(command->pid, &status, 0) < 0 && errno == EINTR) {
    }
    children_kill(command->spared);
    (void)close(command->log_fd);
    command->pid = 0;
    return status;
}

/* ---- question and answer ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void ask(const verify_command_t *command, const char *dir)
{
    char line[PATH_LEN_MAX + 2];
    size_t len = (size_t)snprintf(line, sizeof(line), "%s\n", dir);
    /* One that does not read has ended, or will not answer: the reader sees both. */
    (void)!write(command->to_fd, line, len);
}

typedef enum reading { READ_LINE, READ_END, READ_LATE } reading_t;

/** Waits for something to read, or the end of what could be. A look that comes late says that this
process stood still, as on a machine that was frozen: so did the other, and the deadline moves by
that time. @return false: there is nothing until then */
static bool wait_for(int fd, int64_t *deadline)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int64_t now = now_ms();
    while (now < *deadline) {
        int64_t step = *deadline - now < LOOK_MS ? *deadline - now : LOOK_MS;
        if (poll(&p, 1, (int)step) > 0) {
            return true;
        }
        int64_t late = now_ms() - now - step;
        *deadline += late > STILL_MS ? late : 0;
        now = now_ms();
    }
    return false;
}

/** The line is terminated by a zero byte instead of its newline. */
static reading_t read_answer(verify_command_t *command, int64_t *deadline)
{
    command->used = 0;
    for (;;) {
        if (!wait_for(command->from_fd, deadline)) {
            return READ_LATE;
        }
        if (command->room - command->used < 2 && command->room < ANSWER_MAX) {
            command->room = command->room == 0 ? 65536 : command->room * 2;
            command->answer = mem_grow(command->answer, command->room);
        }
        size_t space = command->room - command->used - 1;
        ssize_t n = space > 0 ? read(command->from_fd, command->answer + command->used, space) : 0;
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return READ_END;
        }
        char *newline = memchr(command->answer + command->used, '\n', (size_t)n);
        command->used += (size_t)n;
        if (newline != NULL) {
            *newline = '\0';
            command->line_end = (size_t)(newline + 1 - command->answer);
            return READ_LINE;
        }
    }
}

/** The last line of its standard error. */
static void last_line(const verify_command_t *command, char *text, size_t room)
{
    char words[2048];
    off_t size = lseek(command->log_fd, 0, SEEK_END);
    off_t from = size > (off_t)sizeof(words) - 1 ? size - (off_t)sizeof(words) + 1 : 0;
    ssize_t n = pread(command->log_fd, words, sizeof(words) - 1, from);
    n = n > 0 ? n : 0;
    while (n > 0 && (words[n - 1] == '\n' || words[n - 1] == ' ')) {
        n--;
    }
    words[n] = '\0';
    const char *line = strrchr(words, '\n');
    (void)snprintf(text, room, "%.*s", (int)room - 1, line != NULL ? line + 1 : words);
}

/** Rule 1. */
static dberr_t no_answer(verify_command_t *command, reading_t how, err_sink_t *err)
{
    char words[160];
    last_line(command, words, sizeof(words));
    int status = stop(command, how == READ_END);
    if (how == READ_LATE) {
        return err_set(err, DB_UNRECOVERABLE, "recover hung: no answer within %u s: %s",
                       command->deadline_s, words);
    }
    if (children_ended_from_outside(status)) {
        return err_set(err, DB_INTERRUPTED, "recover was ended from outside by signal %d: %s",
                       WTERMSIG(status), words);
    }
    if (WIFSIGNALED(status)) {
        return err_set(err, DB_UNRECOVERABLE, "recover died by signal %d: %s", WTERMSIG(status),
                       words);
    }
    return err_set(err, DB_UNRECOVERABLE, "recover ended without an answer, exit code %d: %s",
                   WEXITSTATUS(status), words);
}

static check_finding_t finding_of(uint32_t invariant, const char *what)
{
    check_finding_t finding = {.invariant = invariant, .path = "recover", .page_no = FIL_NULL};
    (void)snprintf(finding.what, sizeof(finding.what), "%s", what);
    return finding;
}

static bool read_finding(const json_t *item, check_finding_t *finding)
{
    const json_t *number = json_object_get(item, "invariant");
    const char *what =
        json_string_value(json_is_object(item) ? json_object_get(item, "what") : item);
    json_int_t invariant = number != NULL ? json_integer_value(number) : FINDING_INVARIANT;
    if (what == NULL || invariant < 1 || invariant > INVARIANT_MAX) {
        return false;
    }
    *finding = finding_of((uint32_t)invariant, what);
    return true;
}

static bool read_findings(const json_t *list, check_report_t *report)
{
    size_t n = json_array_size(list);
    if (list != NULL && !json_is_array(list)) {
        return false;
    }
    report->n_findings = n;
    report->findings = mem_alloc(CHECK_FINDINGS_MAX * sizeof(*report->findings));
    for (size_t i = 0; i < n && i < CHECK_FINDINGS_MAX; i++) {
        if (!read_finding(json_array_get(list, i), &report->findings[i])) {
            return false;
        }
    }
    return true;
}

/** The scanner's object. */
static bool read_check(const json_t *check, check_report_t *report)
{
    const json_t *needs = json_object_get(check, "needs_recovery");
    const json_t *findings = json_object_get(check, "findings");
    if (!json_is_boolean(needs) || findings == NULL || !read_findings(findings, report)) {
        return false;
    }
    if (json_is_true(needs) && report->n_findings++ < CHECK_FINDINGS_MAX) {
        report->findings[report->n_findings - 1] = finding_of(
            NEEDS_RECOVERY_INVARIANT, "the scanner says that recovery is needed after recovery");
    }
    return state_json_tables(json_object_get(check, "tables"), &report->tables, &report->n_tables);
}

static bool read_observed(const json_t *answer, check_report_t *report)
{
    return read_findings(json_object_get(answer, "findings"), report)
           && state_json_texts(json_object_get(answer, "state"), &report->tables,
                               &report->n_tables);
}

static bool read_found(const verify_command_t *command, const json_t *answer,
                       check_report_t *report)
{
    return command->scanned ? read_check(json_object_get(answer, "check"), report)
                            : read_observed(answer, report);
}

static dberr_t read_report(const verify_command_t *command, const char *text,
                           check_report_t *report, err_sink_t *err)
{
    json_error_t error;
    json_t *answer = json_loads(text, JSON_ALLOW_NUL, &error);
    const json_t *ok = json_object_get(answer, "ok");
    const char *message = json_string_value(json_object_get(answer, "message"));
    *report = (check_report_t){.needs_recovery = false};
    dberr_t status = DB_SUCCESS;
    if (json_is_false(ok) && message != NULL) {
        bool machine = json_is_true(json_object_get(answer, "machine"));
        status = err_set(err, machine ? DB_INTERRUPTED : DB_UNRECOVERABLE, "%.200s", message);
    } else if (!json_is_true(ok) || !read_found(command, answer, report)) {
        status = err_set(err, DB_UNRECOVERABLE, "recover gave no answer of the right form: %.100s",
                         text);
    }
    if (status != DB_SUCCESS) {
        check_report_free(report);
    }
    json_decref(answer);
    return status;
}

/** Rule 3. */
static dberr_t check_room(const char *dir, dberr_t status, err_sink_t *err)
{
    struct statvfs fs;
    if ((status == DB_UNRECOVERABLE || status == DB_INTERRUPTED) && statvfs(dir, &fs) == 0
        && (uint64_t)fs.f_bavail * fs.f_frsize < FREE_MIN_BYTES) {
        return err_set(err, DB_IO_ERROR, "%.200s: no space", dir);
    }
    return status;
}

/** Rule 4. text: what was said. */
static dberr_t surplus(const verify_command_t *command, const char *text, size_t len,
                       err_sink_t *err)
{
    int shown = (int)strcspn(text, "\n");
    shown = (size_t)shown < len ? shown : (int)len;
    return command->long_lived
               ? err_set(err, DB_ERROR,
                         "recover says more than one line for a folder, so that its answers cannot"
                         " be told apart: \"%.*s\"",
                         shown < 80 ? shown : 80, text)
               : err_set(err, DB_UNRECOVERABLE,
                         "recover says more than one line for a folder: \"%.*s\"",
                         shown < 80 ? shown : 80, text);
}

/** Is there anything to read that nobody has asked for? What has ended is seen by who asks it
next. */
static dberr_t check_silent(const verify_command_t *command, err_sink_t *err)
{
    struct pollfd p = {.fd = command->from_fd, .events = POLLIN};
    if (command->pid == 0 || poll(&p, 1, 0) <= 0) {
        return DB_SUCCESS;
    }
    char text[128] = "";
    ssize_t n = read(command->from_fd, text, sizeof(text) - 1);
    return n > 0 ? surplus(command, text, (size_t)n, err) : DB_SUCCESS;
}

dberr_t verify_command_stop(void *self, err_sink_t *err)
{
    verify_command_t *command = self;
    dberr_t status = check_silent(command, err);
    (void)stop(command, false);
    free(command->answer);
    command->answer = NULL;
    command->room = 0;
    return status;
}

/** Reads on until the process ends, which may still write to its files. */
static dberr_t read_to_end(const verify_command_t *command, int64_t *deadline, err_sink_t *err)
{
    char rest[256] = "";
    dberr_t status = DB_SUCCESS;
    while (wait_for(command->from_fd, deadline)) {
        ssize_t n = read(command->from_fd, rest, sizeof(rest) - 1);
        if (n <= 0) {
            break;
        }
        AND_THEN(status, surplus(command, rest, (size_t)n, err));
    }
    return status;
}

/** The report of an answer that nothing follows. */
static dberr_t read_alone(verify_command_t *command, int64_t *deadline, check_report_t *report,
                          err_sink_t *err)
{
    dberr_t status = DB_SUCCESS;
    if (command->used > command->line_end) {
        status = surplus(command, command->answer + command->line_end,
                         command->used - command->line_end, err);
    }
    if (command->trace != NULL) {
        (void)close(command->to_fd);
        command->to_fd = -1;
        dberr_t rest = read_to_end(command, deadline, err);
        AND_THEN(status, rest);
    }
    TRY(status);
    return read_report(command, command->answer, report, err);
}

static dberr_t run(void *self, const char *dir, check_report_t *report, err_sink_t *err)
{
    verify_command_t *command = self;
    int64_t deadline = now_ms() + (int64_t)command->deadline_s * 1000;
    TRY(start(command, err));
    TRY(check_silent(command, err));
    ask(command, dir);
    reading_t how = read_answer(command, &deadline);
    if (how != READ_LINE) {
        return check_room(dir, no_answer(command, how, err), err);
    }
    dberr_t status = read_alone(command, &deadline, report, err);
    if (command->long_lived) {
        children_kill(command->pid); /* what it has left behind of this folder */
    } else {
        (void)stop(command, false);
    }
    return check_room(dir, status, err);
}

static dberr_t verify_command_record(void *self, const char *dir, const char *trace,
                                     check_report_t *report, err_sink_t *err)
{
    const verify_command_t *command = self;
    verify_command_t recorded = {.n_args = command->n_args,
                                 .deadline_s = command->deadline_s,
                                 .scanned = command->scanned,
                                 .preload = command->preload,
                                 .fs = command->fs,
                                 .spared = command->pid,
                                 .root = dir,
                                 .trace = trace};
    memcpy(recorded.argv, command->argv, sizeof(recorded.argv));
    dberr_t status = run(&recorded, dir, report, err);
    free(recorded.answer);
    return status;
}

verifier_t verify_command_verifier(verify_command_t *command)
{
    return (verifier_t){.name = "command",
                        .self = command,
                        .run = run,
                        .record = verify_command_record,
                        .stop = verify_command_stop};
}
