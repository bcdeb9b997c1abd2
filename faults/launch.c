/* tornpage-launch: becomes a program that ends with its owner.

    tornpage-launch OWNER SECONDS PROGRAM [ARGUMENT]...

OWNER is the process that must be the parent, SECONDS the time after which SIGALRM ends the program.

1. The kernel kills the program when its owner dies. The owner may have died before that was arranged: then its
   child has another parent by now, and ends here.
2. It leads a process group of its own: the owner can end it with what it started, and a terminal's Ctrl-C goes to
   the owner alone, who decides.
3. The time limit is a timer of the process, which exec keeps; SIGALRM, which the owner may have ignored or blocked, ends
   the process again. It is no deadline, which the owner watches, but what is left of one when nobody does.

All of it holds for a program that leaves these things alone: it may take another parent-death signal, process group, timer or
handler of SIGALRM, a set-user-id program loses the first by itself, and what it forks has neither the first nor the last. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { EXIT_NOT_STARTED = 126 };

static int refuse(const char *what, const char *why)
{
    (void)fprintf(stderr, "tornpage-launch: %s: %s\n", what, why);
    return EXIT_NOT_STARTED;
}

static long number(const char *text)
{
    char *end = NULL;
    errno = 0;
    long n = strtol(text, &end, 10);
    return errno == 0 && *text != '\0' && *end == '\0' && n > 0 && n <= 0x7fffffff ? n : -1;
}

/** SIGALRM ends the process, whatever was inherited. */
static int take_alarm(unsigned seconds)
{
    sigset_t alarms;
    (void)sigemptyset(&alarms);
    (void)sigaddset(&alarms, SIGALRM);
    if (signal(SIGALRM, SIG_DFL) == SIG_ERR || sigprocmask(SIG_UNBLOCK, &alarms, NULL) != 0) {
        return -1;
    }
    (void)alarm(seconds);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4 || number(argv[1]) < 0 || number(argv[2]) < 0) {
        return refuse("usage", "tornpage-launch OWNER SECONDS PROGRAM [ARGUMENT]...");
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return refuse("prctl", strerror(errno));
    }
    if ((long)getppid() != number(argv[1])) {
        return refuse(argv[3], "its owner is gone");
    }
    (void)setpgid(0, 0);
    if (take_alarm((unsigned)number(argv[2])) != 0) {
        return refuse("SIGALRM", strerror(errno));
    }
    (void)execv(argv[3], argv + 3);
    return refuse(argv[3], strerror(errno));
}
