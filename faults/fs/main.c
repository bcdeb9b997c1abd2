/* tornpage-fs: a file system that records and disturbs what a program does below a folder.

    TORNPAGE_ROOT=/data TORNPAGE_TRACE=/tmp/trace tornpage-fs PROGRAM [ARGUMENT]...

The environment is the preload's (faults/README.md), and so is the stream. The end of this process
is the program's: the same exit code, or the same signal.

1. The mount lies over the folder, in a mount namespace of its own: only what is started here sees
   it. Everybody else sees the folder behind it, whose files are as the program has left them.
2. The folder behind it is opened before the mount: nothing that serves requests ever asks its own
   file system, or it would wait for itself.
3. When the program has ended, all that it has left is killed and waited for, as tornpage-launch
   does it; then the kernel hands over what is left of mappings, and the recording ends.
4. If this process dies, the kernel kills the program.
5. A mark comes by a socket, and the close of a file that went before it by the kernel, for which
   nobody waits: it is recorded first. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults/children.h"
#include "faults/environment.h"
#include "faults/fs/ops.h"
#include "faults/fs/serve.h"

#define DEVICE "/dev/fuse"
#define REMEDY                                                                                     \
    "a mount needs root, or CAP_SYS_ADMIN (of a container: --device /dev/fuse --cap-add "          \
    "SYS_ADMIN)"

enum { EXIT_NOT_STARTED = 126 };

static const char *mounted; /* the path of the root */

/* The kernel answers behind all that it has asked for before. */
static void wait_for_asked(void)
{
    struct statvfs st;

    (void)statvfs(mounted, &st);
}

/* Invariant 5. */
static void take_mark_of(pid_t process)
{
    wait_for_asked();
    caller_marks(process);
}

static const layer_host_t HOST = {.name = "tornpage-fs", .die = caller_die, .peer = take_mark_of};

/** The program, and what it gets back that this process has changed for itself. */
typedef struct program {
    char **argv;
    int gate[2];           /**< closed when the file system serves */
    char folder[PATH_MAX]; /**< where it begins */
    mode_t umask;
    struct rlimit files;
} program_t;

static const char *root_of_environment(void)
{
    const char *root = environment_get("TORNPAGE_ROOT");

    if (root == NULL || environment_get("TORNPAGE_TRACE") == NULL) {
        layer_refuse("TORNPAGE_ROOT and TORNPAGE_TRACE must be set");
    }
    if (environment_get("TORNPAGE_STACKS") != NULL) {
        layer_refuse("TORNPAGE_STACKS: a file system sees no call stacks: do without them");
    }
    return root;
}

/* Each node of the tree is a descriptor. */
static void prepare_self(program_t *program)
{
    program->umask = umask(0);
    (void)getrlimit(RLIMIT_NOFILE, &program->files);
    const struct rlimit most = {program->files.rlim_max, program->files.rlim_max};
    (void)setrlimit(RLIMIT_NOFILE, &most);
    if (getcwd(program->folder, sizeof(program->folder)) == NULL) {
        layer_refuse("working directory: %s", strerror(errno));
    }
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        layer_refuse("prctl: %s", strerror(errno));
    }
}

/* Invariant 1. Returns the descriptor by which the kernel asks. */
static int mount_over(const char *root)
{
    char options[128];
    int device = open(DEVICE, O_RDWR | O_CLOEXEC);
    if (device < 0) {
        layer_refuse("%s: %s: " REMEDY, DEVICE, strerror(errno));
    }
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) {
        layer_refuse("mount namespace: %s: " REMEDY, strerror(errno));
    }
    (void)snprintf(options, sizeof(options),
                   "fd=%d,rootmode=40000,user_id=%u,group_id=%u,default_permissions,allow_other",
                   device, (unsigned)geteuid(), (unsigned)getegid());
    if (mount("tornpage", root, "fuse.tornpage", MS_NOSUID | MS_NODEV, options) != 0) {
        layer_refuse("mount: %s: " REMEDY, strerror(errno));
    }
    return device;
}

/* In the child: waits for the file system, and enters it if it begins there. */
static int become(const program_t *program, pid_t parent)
{
    char byte;

    (void)close(program->gate[1]);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent
        || read(program->gate[0], &byte, 1) != 0 || chdir(program->folder) != 0) {
        return EXIT_NOT_STARTED;
    }
    (void)umask(program->umask);
    (void)setrlimit(RLIMIT_NOFILE, &program->files);
    (void)unsetenv("TORNPAGE_ATTACH");
    (void)execvp(program->argv[0], program->argv);
    (void)fprintf(stderr, "tornpage-fs: %s: %s\n", program->argv[0], strerror(errno));
    return EXIT_NOT_STARTED;
}

/* Marks are taken before the first operation, too: to enter opens the socket. No thread of the
stream is this. */
static void open_control(void)
{
    layer_set_thread(1);
    if (layer_enter_mark()) {
        (void)layer_leave(0);
    }
}

static int wait_for(pid_t program)
{
    int status = 0;
    pid_t pid = 0;

    while (pid != program) {
        pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno != EINTR) {
            layer_refuse("wait: %s", strerror(errno));
        }
    }
    return status;
}

/* Behind what the kernel has asked for without a caller that waits for it. */
static void end_recording(void)
{
    wait_for_asked();
    (void)umount2(mounted, MNT_DETACH);
}

int main(int argc, char **argv)
{
    static program_t program;
    if (argc < 2) {
        (void)fputs("usage: tornpage-fs PROGRAM [ARGUMENT]...\n", stderr);
        return EXIT_NOT_STARTED;
    }
    program.argv = argv + 1;
    layer_set_host(&HOST);
    const char *root = root_of_environment();
    prepare_self(&program);
    int behind = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    layer_start();
    int failure = behind < 0 ? errno : tree_start(behind);
    if (failure != 0 || pipe2(program.gate, O_CLOEXEC) != 0) {
        layer_refuse("%s: %s", root, strerror(failure != 0 ? failure : errno));
    }
    int device = mount_over(root);
    mounted = root;
    pid_t self = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        return become(&program, self);
    }
    if (pid < 0 || !serve_prepare(device)) {
        layer_refuse("no memory to serve requests");
    }
    caller_set_program(pid);
    if (!serve_start()) {
        layer_refuse("no thread to serve requests");
    }
    open_control();
    (void)close(program.gate[0]);
    (void)close(program.gate[1]);
    int status = wait_for(pid);
    children_kill(0);
    end_recording();
    return children_end_like(status);
}
