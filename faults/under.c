/* tornpage-under: a real file system on a loop device, under a program that works or recovers.

    tornpage-under run FS FOLDER PROGRAM [ARGUMENT]...
    tornpage-under recover FS once|many PROGRAM [ARGUMENT]...

FOLDER has the image of a disk, DISK_FILE, on which a file system of kind FS has been made; what
follows the kind, behind a comma, are options of its mount (ext4,nodelalloc). `run` mounts it, and
its folder DISK_FOLDER over FOLDER, for PROGRAM; the end of this process is the program's. `recover`
reads such folders, a line each, mounts each, passes the line on to PROGRAM, and passes its answer
back when nothing is mounted any more. PROGRAM answers for one folder and is started for it (once),
or for all of them (many).

1. The mounts are in a mount namespace of this process, and the loop device frees itself at its last
   close: however this process ends, the kernel undoes both, and nothing of them is left.
2. What the program has left running is killed before the file system is unmounted.
3. An answer is passed on behind the unmount: who hears it may have the image changed.
4. A disk that cannot be attached is the machine's failure. One that the kernel refuses to mount is
   the answer of the recovery. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "faults/children.h"

#define DISK_FILE "tornpage.disk"
#define DISK_FOLDER "data"
#define USAGE                                                                                      \
    "usage: tornpage-under run FS FOLDER PROGRAM [ARGUMENT]... | recover FS once|many PROGRAM "    \
    "[ARGUMENT]..."

enum {
    EXIT_NOT_STARTED = 126,
    ATTACH_TRIES = 100,  /**< another process may take the free device first */
    BUSY_LOOKS = 2000,   /**< a millisecond each */
    SECTOR_BYTES = 4096, /**< what this disk writes as a whole; every superblock is smaller */
    ANSWER_GROWS = 65536
};

/** Of a program that recovers. */
typedef struct program {
    char **argv;
    bool many;
    pid_t pid; /**< 0: none runs */
    int to;
    int from;
    char *text; /**< what it has said for this folder */
    size_t used;
    size_t room;
} program_t;

static int refuse(const char *what, int error)
{
    (void)fprintf(stderr, "tornpage-under: %s: %s\n", what, strerror(error));
    return EXIT_NOT_STARTED;
}

/* ---- the disk ---- */

/** One try. The device must be open until it is mounted. @return 0, or an errno; EBUSY: another
process has taken it */
static int configure(int control, int backing, char *device, size_t room, int *loop)
{
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) {
        return errno;
    }
    (void)snprintf(device, room, "/dev/loop%d", number);
    *loop = open(device, O_RDWR | O_CLOEXEC);
    if (*loop < 0) {
        return errno;
    }
    struct loop_config config = {.fd = (unsigned)backing, .block_size = SECTOR_BYTES};
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (ioctl(*loop, LOOP_CONFIGURE, &config) != 0) {
        int error = errno;
        (void)close(*loop);
        return error;
    }
    return 0;
}

/** @return 0, or an errno */
static int attach(const char *folder, char *device, size_t room, int *loop)
{
    char disk[PATH_MAX];
    (void)snprintf(disk, sizeof(disk), "%s/" DISK_FILE, folder);
    int backing = open(disk, O_RDWR | O_CLOEXEC);
    int control = backing >= 0 ? open("/dev/loop-control", O_RDWR | O_CLOEXEC) : -1;
    int error = control >= 0 ? EBUSY : errno;
    for (int i = 0; i < ATTACH_TRIES && error == EBUSY; i++) {
        error = configure(control, backing, device, room, loop);
    }
    if (backing >= 0) {
        (void)close(backing);
    }
    if (control >= 0) {
        (void)close(control);
    }
    return error;
}

/** A kind of file system, and options of its mount. */
typedef struct fs_words {
    char kind[32];
    char options[256];
} fs_words_t;

/** A copy of a mounted xfs needs an option: its number may be there twice. */
static fs_words_t split(const char *fs)
{
    fs_words_t words;
    size_t len = strcspn(fs, ",");
    (void)snprintf(words.kind, sizeof(words.kind), "%.*s", (int)len, fs);
    (void)snprintf(words.options, sizeof(words.options), "%s%s",
                   strcmp(words.kind, "xfs") == 0 ? "nouuid" : "", fs + len);
    return words;
}

static int unmount(const char *folder)
{
    return umount2(folder, 0) == 0 ? 0 : errno;
}

/** The folder of the disk over the folder with its image. @return 0, or an errno */
static int mount_device(const char *fs, const char *folder, const char *device)
{
    char inside[PATH_MAX];
    (void)snprintf(inside, sizeof(inside), "%s/" DISK_FOLDER, folder);
    const fs_words_t words = split(fs);
    if (mount(device, folder, words.kind, 0, words.options) != 0) {
        return errno;
    }
    int error = mkdir(inside, 0755) == 0 || errno == EEXIST ? 0 : errno;
    if (error == 0 && mount(inside, folder, NULL, MS_BIND, NULL) != 0) {
        error = errno;
    }
    if (error != 0) {
        (void)unmount(folder);
    }
    return error;
}

/** @return 0, or an errno; is_machine: what failed is the machine's */
static int mount_disk(const char *fs, const char *folder, bool *is_machine)
{
    char device[64];
    int loop = -1;
    int error = attach(folder, device, sizeof(device), &loop);
    *is_machine = true;
    if (error != 0) {
        return error;
    }
    error = mount_device(fs, folder, device);
    (void)close(loop);
    *is_machine = error == ENOMEM || error == ENODEV || error == EPERM || error == EACCES;
    return error;
}

/** Who has answered may still be about to end. @return 0, or an errno */
static int unmount_disk(const char *folder)
{
    const struct timespec look = {.tv_nsec = 1000000};
    int error = unmount(folder);
    for (int i = 0; i < BUSY_LOOKS && error == EBUSY; i++) {
        (void)nanosleep(&look, NULL);
        error = unmount(folder);
    }
    return error == 0 ? unmount(folder) : error;
}

/** Rules 1 and 2. */
static int prepare_self(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) {
        return refuse("a mount needs root, or CAP_SYS_ADMIN", errno);
    }
    return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 ? 0 : refuse("prctl", errno);
}

static _Noreturn void become(char **argv, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent) {
        (void)signal(SIGPIPE, SIG_DFL);
        (void)execvp(argv[0], argv);
        (void)refuse(argv[0], errno);
    }
    _exit(EXIT_NOT_STARTED);
}

/** Reaps orphans too. @return the wait status of the program */
static int wait_for(pid_t program)
{
    int status = 0;
    pid_t pid;
    do {
        pid = waitpid(-1, &status, 0);
    } while (pid != program && (pid > 0 || errno == EINTR));
    return status;
}

/* ---- run ---- */

static int run(const char *fs, const char *folder, char **argv)
{
    bool is_machine;
    int error = mount_disk(fs, folder, &is_machine);
    if (error != 0) {
        return refuse(fs, error);
    }
    pid_t self = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        become(argv, self);
    }
    int status = pid > 0 ? wait_for(pid) : 0;
    children_kill(0);
    error = unmount_disk(folder);
    if (pid < 0 || error != 0) {
        return refuse(pid < 0 ? "fork" : folder, pid < 0 ? EAGAIN : error);
    }
    return children_end_like(status);
}

/* ---- recover ---- */

static int start(program_t *program)
{
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
        return errno;
    }
    pid_t self = getpid();
    program->pid = fork();
    if (program->pid == 0) {
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        become(program->argv, self);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    program->to = in[1];
    program->from = out[0];
    return program->pid > 0 ? 0 : EAGAIN;
}

/** @return whether there was something to read */
static bool read_more(program_t *program)
{
    if (program->room - program->used < ANSWER_GROWS) {
        program->room += 2 * (size_t)ANSWER_GROWS;
        char *text = realloc(program->text, program->room);
        if (text == NULL) {
            return false;
        }
        program->text = text;
    }
    ssize_t n;
    do {
        n = read(program->from, program->text + program->used, program->room - program->used);
    } while (n < 0 && errno == EINTR);
    program->used += n > 0 ? (size_t)n : 0;
    return n > 0;
}

/** The answer to one line. What stands before it was said unasked, and is passed on like all else:
who counts lines sees it. @return whether the program goes on */
static bool ask(program_t *program, const char *line, size_t len)
{
    struct pollfd said = {.fd = program->from, .events = POLLIN};
    program->used = 0;
    if (poll(&said, 1, 0) > 0) {
        (void)read_more(program);
    }
    size_t from = program->used;
    (void)!write(program->to, line, len);
    if (!program->many) {
        (void)close(program->to);
    }
    bool is_open = true;
    while (is_open
           && (!program->many || program->used == from
               || memchr(program->text + from, '\n', program->used - from) == NULL)) {
        is_open = read_more(program);
    }
    return is_open;
}

/** Of one that has ended, or is to answer for one folder. @return its wait status */
static int stop(program_t *program)
{
    int status = wait_for(program->pid);
    (void)close(program->from);
    program->pid = 0;
    return status;
}

static void say(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, text, len);
        if (n <= 0 && errno != EINTR) {
            return;
        }
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

static void say_failure(const char *fs, const char *what, int error, bool is_machine)
{
    char text[256];
    int len = snprintf(text, sizeof(text), "{\"ok\": false%s, \"message\": \"%s %s: %s\"}\n",
                       is_machine ? ", \"machine\": true" : "", fs, what, strerror(error));
    say(text, (size_t)len);
}

/** One folder. @return whether another may follow; else status is how the program has ended */
static bool answer(program_t *program, const char *fs, char *line, size_t len, int *status)
{
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)strcspn(line, "\n"), line);
    bool is_machine;
    int error = mount_disk(fs, folder, &is_machine);
    if (error != 0) {
        say_failure(fs, is_machine ? "cannot be attached" : "does not mount", error, is_machine);
        return true;
    }
    error = program->pid == 0 ? start(program) : 0;
    bool goes_on = error == 0 && ask(program, line, len);
    bool has_ended = error == 0 && !goes_on;
    if (has_ended) {
        *status = stop(program);
    }
    children_kill(program->pid);
    error = error == 0 ? unmount_disk(folder) : error;
    if (error != 0) {
        say_failure(fs, "stays in use, which takes a recover that is not long_lived", error, true);
        return false;
    }
    say(program->text, program->used);
    return goes_on || (!program->many && *status == 0);
}

static int recover(const char *fs, bool many, char **argv)
{
    program_t program = {.argv = argv, .many = many};
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    int status = 0;
    bool goes_on = true;
    while (goes_on && (len = getline(&line, &room, stdin)) > 0) {
        goes_on = answer(&program, fs, line, (size_t)len, &status);
    }
    children_kill(0);
    free(line);
    free(program.text);
    return children_end_like(status);
}

int main(int argc, char **argv)
{
    bool is_run = argc > 4 && strcmp(argv[1], "run") == 0;
    bool is_recover = argc > 4 && strcmp(argv[1], "recover") == 0;
    if (!is_run && !is_recover) {
        (void)fputs(USAGE "\n", stderr);
        return EXIT_NOT_STARTED;
    }
    int failure = prepare_self();
    if (failure != 0) {
        return failure;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    return is_run ? run(argv[2], argv[3], argv + 4)
                  : recover(argv[2], strcmp(argv[3], "many") == 0, argv + 4);
}
