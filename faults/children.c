/** See children.h. Beside launch.c; the explorer's verifiers that are commands use it too. */
#include "faults/children.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/** One after the other kills the children that a text of the kernel names. @return how many */
static unsigned kill_named(char *text, pid_t spared)
{
    unsigned n = 0;
    char *end;
    for (char *at = text;; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at) {
            return n;
        }
        if (pid != spared) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, NULL, 0);
            n++;
        }
    }
}

void children_kill(pid_t spared)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
    char text[4096];
    ssize_t n;
    do {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
        if (fd >= 0) {
            (void)close(fd);
        }
        while (n > 0 && text[n - 1] != ' ') {
            n--; /* a number that was cut off is another process */
        }
        text[n > 0 ? n : 0] = '\0';
    } while (n > 0 && kill_named(text, spared) > 0);
}

int children_end_like(int status)
{
    if (WIFSIGNALED(status)) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(WTERMSIG(status), SIG_DFL);
        sigset_t all;
        (void)sigfillset(&all);
        (void)raise(WTERMSIG(status));
        (void)sigprocmask(SIG_UNBLOCK, &all, NULL);
    }
    return WEXITSTATUS(status);
}
