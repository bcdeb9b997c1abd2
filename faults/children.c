/** See children.h. Beside launch.c; the explorer's verifiers that are commands use it too. */
#include "faults/children.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define STAT_MAX 512

/** Adds the name of a process that is to be killed to the file of those, where one is asked for.
One that has ended already, and is only not waited for, was not left. */
static void tell_of(pid_t pid)
{
    const char *list = getenv("TORNPAGE_LEFT");
    char path[64];
    char stat[STAT_MAX];
    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    int fd = list != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return;
    }
    ssize_t n = read(fd, stat, sizeof(stat) - 1);
    (void)close(fd);
    stat[n > 0 ? n : 0] = '\0';
    const char *name = strchr(stat, '('); /* NUMBER (NAME) STATE ... */
    char *end = strrchr(stat, ')');
    int to = open(list, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (to >= 0 && name != NULL && end > name && strncmp(end, ") Z", 3) != 0) {
        *end = '\n';
        (void)!write(to, name + 1, (size_t)(end - name));
    }
    if (to >= 0) {
        (void)close(to);
    }
}

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
            tell_of(pid);
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

bool children_ended_from_outside(int status)
{
    static const int SENT[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGXCPU, SIGXFSZ};
    for (size_t i = 0; i < sizeof(SENT) / sizeof(SENT[0]); i++) {
        if (WIFSIGNALED(status) && WTERMSIG(status) == SENT[i]) {
            return true;
        }
    }
    return false;
}
