/** A server that stands by: started once, it waits where it would enter its data folder, and a
child of it enters a folder for each that is asked for. Loaded into a server that changes to its
data folder before it starts a thread, as MariaDB's does: what it does before that is the same for
every folder.

TORNPAGE_STANDBY="CONTROL FOLDER": two descriptors, a Unix socket, and the folder as which the
server was given its data folder, "/proc/self/fd/FOLDER". The owner speaks packets:

    from here   i64 0        the server stands by; one that has threads then ends instead
    from there  i32[]        places that descriptors take in the child; with them the descriptors
    from here   i64 pid      of the child, or -errno
    from here   i64 status   of wait(), when the child has ended

The child dies with this process, and this process ends with the socket. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults/packet.h"

#define NAME_BYTES_MAX 64
#define EXIT_BROKEN 97

static struct {
    int control;
    int folder;
    bool waits; /* for its data folder */
} standby;

__attribute__((constructor)) static void standby_begin(void)
{
    const char *said = getenv("TORNPAGE_STANDBY");

    standby.waits = said != NULL && sscanf(said, "%d %d", &standby.control, &standby.folder) == 2;
}

static bool is_data_folder(const char *path)
{
    char name[NAME_BYTES_MAX];
    int n = snprintf(name, sizeof(name), "/proc/self/fd/%d", standby.folder);

    return strncmp(path, name, (size_t)n) == 0 && path[n + (int)strspn(path + n, "/")] == '\0';
}

static bool is_single_threaded(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;

    if (tasks == NULL) {
        return false;
    }
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        n += task->d_name[0] != '.';
    }
    (void)closedir(tasks);
    return n == 1;
}

static void tell(int64_t value)
{
    if (send(standby.control, &value, sizeof(value), MSG_NOSIGNAL) != (ssize_t)sizeof(value)) {
        _exit(0);
    }
}

static void become_child(const packet_t *request, const int32_t *places, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(EXIT_BROKEN);
    }
    for (unsigned i = 0; i < request->n_fds; i++) {
        if (dup2(request->fds[i], places[i]) < 0) {
            _exit(EXIT_BROKEN);
        }
        (void)close(request->fds[i]);
    }
    (void)close(standby.control);
}

/* How a child has ended. */
static int64_t wait_for(pid_t child)
{
    int status = 0;
    pid_t ended;

    do {
        ended = waitpid(child, &status, 0);
    } while (ended < 0 && errno == EINTR);
    return ended == child ? status : -(int64_t)errno;
}

/* Returns in the children. Ends with the owner. */
static void stand_by(void)
{
    pid_t own = getpid();
    int32_t places[PACKET_FDS_MAX];

    if (!is_single_threaded()) {
        _exit(0);
    }
    for (tell(0);;) {
        packet_t request = packet_receive(standby.control, places, sizeof(places));
        if (request.bytes <= 0) {
            _exit(0);
        }
        if (request.is_cut || (size_t)request.bytes != request.n_fds * sizeof(*places)) {
            _exit(EXIT_BROKEN);
        }
        pid_t child = fork();
        if (child == 0) {
            become_child(&request, places, own);
            return;
        }
        tell(child < 0 ? -(int64_t)errno : child);
        for (unsigned i = 0; i < request.n_fds; i++) {
            (void)close(request.fds[i]);
        }
        if (child > 0) {
            tell(wait_for(child));
        }
    }
}

__attribute__((visibility("default"))) int chdir(const char *path)
{
    void *symbol = dlsym(RTLD_NEXT, "chdir");
    int (*real)(const char *);

    if (standby.waits && is_data_folder(path)) {
        standby.waits = false;
        stand_by();
    }
    memcpy(&real, &symbol, sizeof(symbol)); /* a data pointer and a code pointer do not convert */
    return real(path);
}
