/** tornpage-audit: runs a program and accounts for every system call of it, and of all that it
starts, that changes what lies below a folder.

    tornpage-audit FOLDER TRACE LOG PROGRAM [ARGUMENT]...

FOLDER is absolute and without symbolic links, TRACE the recording that the preload writes of the
same run, LOG a new file. The program's end is this program's end, exit code or signal.

Top of tornpage-audit; audit_calls says what is told of a call. faults/README.md has the form of
LOG.
1. Threads are stopped by a seccomp filter at the calls of interest only, at their begin and at
   their end. The filter and the tracing go down to everything that is forked or executed, in
   whatever session or environment.
2. Each call is told with the number of events that the recording had before it, and at the next
   call of its thread: a recorder that saw it has recorded it in between.
3. When the program has ended, what it has left behind is killed; when this one ends, the kernel
   kills them all.
4. Where tracing is not permitted the program runs all the same, and LOG says why it was not
   audited. */
#include "faults/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

enum { EXIT_NOT_STARTED = 126 };
#define PRELOAD_NAME "libtornpage_preload"
#define EVENTS_AT 24 /* of a recording: trace.h */
#define OPTIONS                                                                                    \
    (PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE            \
     | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD)

typedef struct thread {
    pid_t tid;
    pid_t pid;
    char name[16];
    bool known;  /* pid, name and loaded are */
    bool loaded; /* the preload is */
    bool told;   /* call has ended and waits for the thread's next one */
    bool foreign;
    uint64_t began; /* events before it */
    audit_call_t call;
} thread_t;

static struct {
    const char *trace;
    int trace_fd;
    FILE *log;
    thread_t **threads;
    size_t count;
    size_t room;
} audit = {.trace_fd = -1};

__attribute__((noreturn)) static void refuse(const char *what, const char *why)
{
    (void)fprintf(stderr, "tornpage-audit: %s: %s\n", what, why);
    exit(EXIT_NOT_STARTED);
}

/* Number of events that the recording has; 0 before there is one. */
static uint64_t events_now(void)
{
    if (audit.trace_fd < 0) {
        audit.trace_fd = open(audit.trace, O_RDONLY | O_CLOEXEC);
    }
    uint64_t events = 0;
    if (audit.trace_fd < 0
        || pread(audit.trace_fd, &events, sizeof(events), EVENTS_AT) != sizeof(events)) {
        return 0;
    }
    return events;
}

static thread_t *thread_of(pid_t tid)
{
    for (size_t i = 0; i < audit.count; i++) {
        if (audit.threads[i]->tid == tid) {
            return audit.threads[i];
        }
    }
    if (audit.count == audit.room) {
        audit.room = 2 * audit.room + 16;
        audit.threads = realloc(audit.threads, audit.room * sizeof(*audit.threads));
    }
    thread_t *thread = audit.threads == NULL ? NULL : calloc(1, sizeof(*thread));
    if (thread == NULL) {
        refuse("threads", strerror(ENOMEM));
    }
    thread->tid = tid;
    audit.threads[audit.count++] = thread;
    return thread;
}

/* Separators and what is not printed as %XX. */
static void put_text(const char *text)
{
    (void)fputc('\t', audit.log);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        (void)fprintf(audit.log, byte <= ' ' || byte == '%' || byte == 0x7f ? "%%%02X" : "%c",
                      byte);
    }
}

static void put_place(const look_place_t *place)
{
    put_text(place->unknown ? "?" : place->below ? place->path : "");
}

/* killed: the thread has not come to another call, and what it had to record may be lost with
it. */
static void tell(thread_t *thread, bool killed)
{
    const audit_entry_t *entry = &thread->call.entry;

    if (!thread->told) {
        return;
    }
    thread->told = false;
    (void)fprintf(audit.log, "%s\t%s\t%llu\t%llu\t%d\t%d\t%d", entry->call, entry->kind,
                  (unsigned long long)thread->began, (unsigned long long)events_now(), killed,
                  thread->loaded, (int)thread->pid);
    put_text(thread->name);
    put_place(&entry->place);
    put_place(&entry->other);
    (void)fprintf(audit.log, "\t%llu\t%llu\n", (unsigned long long)entry->offset,
                  (unsigned long long)entry->length);
}

static void forget_thread(pid_t tid, bool killed)
{
    for (size_t i = 0; i < audit.count; i++) {
        if (audit.threads[i]->tid == tid) {
            tell(audit.threads[i], killed);
            free(audit.threads[i]);
            audit.threads[i] = audit.threads[--audit.count];
            return;
        }
    }
}

static void know(thread_t *thread)
{
    if (!thread->known) {
        thread->pid = look_process(thread->tid, thread->name);
        thread->loaded = look_is_loaded(thread->tid, PRELOAD_NAME);
        thread->known = true;
    }
}

/* What follows is not to be waited for: the thread may be dying. */
static void go_on(pid_t tid, enum __ptrace_request how, int number)
{
    (void)ptrace(how, tid, NULL, (void *)(intptr_t)number);
}

static bool call_info(pid_t tid, struct ptrace_syscall_info *info)
{
    return ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(*info), info) > 0;
}

static void at_begin(pid_t tid)
{
    thread_t *thread = thread_of(tid);
    tell(thread, false);
    struct ptrace_syscall_info info;
    if (!call_info(tid, &info) || info.op != PTRACE_SYSCALL_INFO_SECCOMP) {
        go_on(tid, PTRACE_CONT, 0);
        return;
    }
    if (info.seccomp.ret_data != 0) {
        if (!thread->foreign) { /* once is enough */
            know(thread);
            calls_foreign(&thread->call);
            thread->began = events_now();
            thread->told = thread->foreign = true;
        }
        go_on(tid, PTRACE_CONT, 0);
        return;
    }
    thread->call.number = (long)info.seccomp.nr;
    for (size_t i = 0; i < 6; i++) {
        thread->call.words[i] = info.seccomp.args[i];
    }
    bool wanted = calls_begin(tid, &thread->call);
    if (wanted) {
        know(thread);
        thread->began = events_now();
    }
    go_on(tid, wanted ? PTRACE_SYSCALL : PTRACE_CONT, 0);
}

static void at_end(pid_t tid)
{
    thread_t *thread = thread_of(tid);
    struct ptrace_syscall_info info;

    if (call_info(tid, &info) && info.op == PTRACE_SYSCALL_INFO_EXIT) {
        thread->told = calls_end(tid, &thread->call, info.exit.rval);
    }
    go_on(tid, PTRACE_CONT, 0);
}

/* The thread that executed is the process now, under the number of its first thread. */
static void at_exec(pid_t tid)
{
    unsigned long former = 0;

    (void)ptrace(PTRACE_GETEVENTMSG, tid, NULL, &former);
    forget_thread(tid, false);
    if ((pid_t)former != tid) {
        forget_thread((pid_t)former, false);
    }
    go_on(tid, PTRACE_CONT, 0);
}

static bool stops_a_group(int number)
{
    return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

static void at_stop(pid_t tid, int status)
{
    int number = WSTOPSIG(status);

    switch (status >> 16) {
    case PTRACE_EVENT_SECCOMP:
        at_begin(tid);
        break;
    case PTRACE_EVENT_EXEC:
        at_exec(tid);
        break;
    case PTRACE_EVENT_STOP:
        go_on(tid, stops_a_group(number) ? PTRACE_LISTEN : PTRACE_CONT, 0);
        break;
    case 0:
        if (number == (SIGTRAP | 0x80)) {
            at_end(tid);
        } else {
            go_on(tid, PTRACE_CONT, number); /* a signal on its way */
        }
        break;
    default:
        go_on(tid, PTRACE_CONT, 0);
        break;
    }
}

static void kill_all(void)
{
    for (size_t i = 0; i < audit.count; i++) {
        (void)kill(audit.threads[i]->tid, SIGKILL);
    }
}

/* To the end of all of them. @return the status of the first */
static int follow(pid_t first)
{
    int result = 0;
    bool over = false;
    int status;
    pid_t tid;

    while ((tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (tid <= 0) {
            continue;
        }
        if (WIFSTOPPED(status)) {
            (void)thread_of(tid); /* to be killed with the others */
            if (over) {
                (void)kill(tid, SIGKILL);
            }
            at_stop(tid, status);
            continue;
        }
        forget_thread(tid, WIFSIGNALED(status));
        if (tid == first) {
            result = status;
            over = true;
            kill_all();
        }
    }
    return result;
}

/* In the child: waits until it is traced, and becomes the program. */
__attribute__((noreturn)) static void become(int gate, char **argv)
{
    size_t length;
    const struct sock_filter *filter = calls_filter(&length);
    struct sock_fprog program = {(unsigned short)length, (struct sock_filter *)(uintptr_t)filter};
    char traced = 0;

    if (read(gate, &traced, 1) != 1) {
        _exit(EXIT_NOT_STARTED);
    }
    (void)close(gate);
    if (traced == 'y' && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0
        && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)) {
        refuse("seccomp", strerror(errno));
    }
    (void)execv(argv[0], argv);
    refuse(argv[0], strerror(errno));
}

/* Whether this kernel, and who runs this, lets us look. @return NULL or why not */
static const char *attach(pid_t child)
{
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0) {
        return "the kernel has no seccomp";
    }
    if (ptrace(PTRACE_SEIZE, child, NULL, (void *)(intptr_t)OPTIONS) != 0) {
        return strerror(errno);
    }
    int status;
    if (ptrace(PTRACE_INTERRUPT, child, NULL, NULL) != 0 || waitpid(child, &status, __WALL) != child
        || !WIFSTOPPED(status)) {
        return strerror(errno);
    }
    struct ptrace_syscall_info info;
    if (!call_info(child, &info)) {
        (void)ptrace(PTRACE_DETACH, child, NULL, NULL);
        return "the kernel tells nothing of system calls (PTRACE_GET_SYSCALL_INFO, Linux 5.3)";
    }
    go_on(child, PTRACE_CONT, 0);
    return NULL;
}

/* As the program ended. */
static int end_like(int status)
{
    if (WIFSIGNALED(status)) {
        const struct rlimit none = {0, 0};

        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(WTERMSIG(status), SIG_DFL);
        (void)raise(WTERMSIG(status));
    }
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        refuse("usage", "tornpage-audit FOLDER TRACE LOG PROGRAM [ARGUMENT]...");
    }
    look_set_root(argv[1]);
    audit.trace = argv[2];
    audit.log = fopen(argv[3], "we");
    int gate[2];
    if (audit.log == NULL || pipe2(gate, O_CLOEXEC) != 0) {
        refuse(argv[3], strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) {
        (void)close(gate[1]);
        become(gate[0], argv + 4);
    }
    if (child < 0) {
        refuse("fork", strerror(errno));
    }
    (void)close(gate[0]);
    const char *failure = attach(child);
    if (failure != NULL) {
        (void)fprintf(audit.log, "not audited");
        put_text(failure);
        (void)fputc('\n', audit.log);
    }
    if (write(gate[1], failure == NULL ? "y" : "n", 1) != 1) {
        refuse("gate", strerror(errno));
    }
    (void)close(gate[1]);
    int status = 0;
    if (failure == NULL) {
        status = follow(child);
    } else {
        (void)waitpid(child, &status, 0);
    }
    if (fprintf(audit.log, "end\n") < 0 || fclose(audit.log) != 0) {
        refuse(argv[3], strerror(errno));
    }
    return end_like(status);
}
