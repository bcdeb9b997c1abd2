/** A fork server: this program, started once, becomes each of its children without another exec.

Above layer.c. The owner speaks packets on standard input, a Unix socket:

    u32 what   1 start                                      2 reap
    u32 limit  seconds after which SIGALRM ends the child   pid of a child that has ended, or is
                                                            ending
    u32 argc   number of arguments                          0
    u32 envc   number of settings of its environment        0
    argc + envc strings, each with its NUL

With a start come two descriptors, its standard output and error. The answer is one i64: the pid, or
the status of wait(); -errno where it failed.

1. A child is forked before the program's own constructors and main: what the C library and the
   preload did in the server is what they would have done in it, and nothing of the program has run.
2. What tornpage-launch promises of a program holds for a child too: it dies with its parent, which
   is the server, as that dies with the owner; it leads a process group; SIGALRM ends it. Its
   standard input is empty.
3. It is reaped when the owner asks, and not before: until then its pid names nothing else. */
#include "faults/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults/layer.h"
#include "faults/packet.h"
#include "faults/real.h"

#define REQUEST_BYTES_MAX ((size_t)128 << 10)
#define WORDS_MAX 4096u
#define OWN_WORDS_MAX 8u /* of the server: the program, and an interpreter before it */

enum { WHAT_START = 1, WHAT_REAP = 2 };

typedef struct request {
    uint32_t what;
    uint32_t limit;
    uint32_t argc;
    uint32_t envc;
    char strings[REQUEST_BYTES_MAX - 4 * sizeof(uint32_t)];
} request_t;

static struct {
    request_t request;
    size_t bytes; /* of its strings */
    int out[2];   /* its descriptors, or -1 */
    char *words[OWN_WORDS_MAX + WORDS_MAX + 2];
} serve;

/* False: the owner has closed its end. */
static bool receive(void)
{
    packet_t packet = packet_receive(STDIN_FILENO, &serve.request, sizeof(serve.request));

    if (packet.bytes <= 0) {
        return false;
    }
    for (unsigned i = 0; i < 2; i++) {
        serve.out[i] = packet.n_fds == 2 ? packet.fds[i] : -1;
    }
    if ((size_t)packet.bytes < offsetof(request_t, strings) || packet.is_cut) {
        layer_refuse("a request to the fork server is cut");
    }
    serve.bytes = (size_t)packet.bytes - offsetof(request_t, strings);
    return true;
}

/* What main() gets: arguments, NULL, environment, NULL. The program's name is the server's own: of
   a script the kernel has put the interpreter before it. */
static serve_start_t read_start(int own_argc, char **own_argv)
{
    const request_t *request = &serve.request;
    char *at = serve.request.strings;
    char *end = at + serve.bytes;
    uint32_t argc = (uint32_t)own_argc;
    uint32_t n = argc;

    if (request->argc == 0 || argc > OWN_WORDS_MAX || request->argc > WORDS_MAX
        || request->envc > WORDS_MAX - request->argc) {
        layer_refuse("a request to the fork server has too many words, or none");
    }
    argc += request->argc - 1;
    memcpy(serve.words, own_argv, (size_t)own_argc * sizeof(*own_argv));
    for (uint32_t i = 0; i < request->argc + request->envc; i++) {
        char *nul = memchr(at, '\0', (size_t)(end - at));
        if (nul == NULL) {
            layer_refuse("a request to the fork server has fewer words than it says");
        }
        if (i > 0) {
            serve.words[n++] = at;
        }
        if (i + 1 == request->argc) {
            serve.words[n++] = NULL;
        }
        at = nul + 1;
    }
    serve.words[n] = NULL;
    return (serve_start_t){(int)argc, serve.words, serve.words + argc + 1};
}

static void take_place(int fd, int place)
{
    if (fd < 0 || real_get()->dup2(fd, place) < 0 || real_get()->close(fd) != 0) {
        layer_refuse("a child of the fork server has no descriptor %d", place);
    }
}

/* What tornpage-launch and the owner's spawn do for a program that is executed. */
static void become_child(pid_t server)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != server) {
        _exit(LAYER_EXIT_REFUSED);
    }
    (void)setpgid(0, 0);
    sigset_t alarms;
    (void)sigemptyset(&alarms);
    (void)sigaddset(&alarms, SIGALRM);
    if (signal(SIGALRM, SIG_DFL) == SIG_ERR || sigprocmask(SIG_UNBLOCK, &alarms, NULL) != 0) {
        layer_refuse("SIGALRM: %s", strerror(errno));
    }
    (void)alarm(serve.request.limit);
    take_place(real_get()->open("/dev/null", O_RDONLY), STDIN_FILENO);
    take_place(serve.out[0], STDOUT_FILENO);
    take_place(serve.out[1], STDERR_FILENO);
}

static int64_t reap(pid_t pid)
{
    int status = 0;

    return waitpid(pid, &status, 0) == pid ? status : -(int64_t)errno;
}

/* True in the child. */
static bool start(int64_t *answer)
{
    pid_t server = getpid();
    pid_t pid = fork();

    if (pid == 0) {
        become_child(server);
        return true;
    }
    *answer = pid < 0 ? -(int64_t)errno : pid;
    for (int i = 0; i < 2; i++) {
        if (serve.out[i] >= 0) {
            (void)real_get()->close(serve.out[i]);
        }
    }
    return false;
}

serve_start_t serve_run(int argc, char **argv)
{
    int64_t answer = 0;

    while (receive()) {
        if (serve.request.what == WHAT_START) {
            serve_start_t asked = read_start(argc, argv);
            if (start(&answer)) {
                return asked;
            }
        } else if (serve.request.what == WHAT_REAP) {
            answer = reap((pid_t)serve.request.limit);
        } else {
            layer_refuse("the fork server knows no request %u", serve.request.what);
        }
        if (send(STDIN_FILENO, &answer, sizeof(answer), MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    _exit(0);
}
