/* tornpage-launch: runs a program that ends with its owner, and with all that it has started.

    tornpage-launch OWNER SECONDS PROGRAM [ARGUMENT]...

OWNER is the process that must be the parent, SECONDS the time after which SIGALRM ends all. The end
of this process is the program's: the same exit code, or the same signal.

1. When the owner dies the kernel sends SIGTERM, which ends all. The owner may have died before that
   was arranged: then there is another parent by now, and it ends here. The owner ends a program by
   the same signal.
2. Orphans among the descendants become children of this process, in whatever session they are. When
   the program has ended, or has to, all that are left are killed and waited for: nothing that was
   started here is left, and nothing else is touched.
3. It leads a process group of its own: a terminal's Ctrl-C goes to the owner alone, who decides.
4. The time limit is no deadline, which the owner watches, but what is left of one when nobody does.
5. If this process is killed, the kernel kills the program. What that had started in sessions of
   their own is then left: who ends a program sends SIGTERM. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults/children.h"

enum { EXIT_NOT_STARTED = 126 };

static int refuse(const char *what, const char *why)
{
    (void)fprintf(stderr, "tornpage-launch: %s: %s\n", what, why);
    return EXIT_NOT_STARTED;
}

static long number(const char *text)
{
    errno = 0;
    char *end = NULL;
    long n = strtol(text, &end, 10);
    return errno == 0 && *text != '\0' && *end == '\0' && n > 0 && n <= 0x7fffffff ? n : -1;
}

/** The signals that this process waits for, blocked: whatever was inherited for them, none is
lost. */
static sigset_t take_signals(sigset_t *before)
{
    sigset_t awaited;
    (void)sigemptyset(&awaited);
    (void)sigaddset(&awaited, SIGCHLD);
    (void)sigaddset(&awaited, SIGTERM);
    (void)sigaddset(&awaited, SIGALRM);
    (void)sigprocmask(SIG_BLOCK, &awaited, before);
    (void)signal(SIGCHLD, SIG_DFL); /* ignored, it would take the ends of children along */
    return awaited;
}

/** In the child. */
static int become(char **argv, pid_t parent, const sigset_t *before)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return refuse("prctl", strerror(errno));
    }
    if (getppid() != parent) {
        return EXIT_NOT_STARTED;
    }
    (void)sigprocmask(SIG_SETMASK, before, NULL);
    (void)execv(argv[0], argv);
    return refuse(argv[0], strerror(errno));
}

/** Reaps what has ended. @return whether the program has, with its status */
static bool reap(pid_t program, int *status)
{
    bool over = false;
    int ended;
    for (pid_t pid; (pid = waitpid(-1, &ended, WNOHANG)) > 0;) {
        if (pid == program) {
            over = true;
            *status = ended;
        }
    }
    return over;
}

/** To the end of the program, or to a signal that ends all. @return whether the program has ended,
with its status, else with the signal's */
static int supervise(pid_t program, const sigset_t *awaited)
{
    int status = 0;
    for (;;) {
        int number = sigwaitinfo(awaited, NULL);
        if (number == SIGCHLD && reap(program, &status)) {
            return status;
        }
        if (number == SIGTERM || number == SIGALRM) {
            return number; /* the wait status of what a signal has ended */
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 4 || number(argv[1]) < 0 || number(argv[2]) < 0) {
        return refuse("usage", "tornpage-launch OWNER SECONDS PROGRAM [ARGUMENT]...");
    }
    sigset_t before;
    const sigset_t awaited = take_signals(&before);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return refuse("prctl", strerror(errno));
    }
    if ((long)getppid() != number(argv[1])) {
        return refuse(argv[3], "its owner is gone");
    }
    (void)setpgid(0, 0);
    (void)alarm((unsigned)number(argv[2]));
    pid_t self = getpid();
    pid_t program = fork();
    if (program == 0) {
        return become(argv + 3, self, &before);
    }
    if (program < 0) {
        return refuse("fork", strerror(errno));
    }
    int status = supervise(program, &awaited);
    children_kill(0);
    return children_end_like(status);
}
