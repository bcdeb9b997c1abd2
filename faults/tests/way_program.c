/** Changes files in ways that pass the C library by. Linked statically, so that no preload is in
it.

    way_program WAY

works in the current folder, on files f and g. Exit code 0: done; 77: this kernel does not have the
way; 1: it failed, and standard error says where. */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_HERE 77
#define PAGE 4096

static char page[4 * PAGE] __attribute__((aligned(PAGE)));

#define DO(call) done((long)(call), #call)

static long done(long result, const char *what)
{
    if (result < 0) {
        (void)fprintf(stderr, "%s: %s\n", what, strerror(errno));
        exit(errno == ENOSYS || errno == EOPNOTSUPP ? NOT_HERE : 1);
    }
    return result;
}

static int made(const char *name, int flags)
{
    return (int)DO(open(name, O_RDWR | O_CREAT | flags, 0644));
}

static int filled(const char *name)
{
    int fd = made(name, 0);

    DO(write(fd, page, sizeof(page)));
    return fd;
}

static void way_bare(void)
{
    int fd = (int)DO(syscall(SYS_openat, AT_FDCWD, "f", O_RDWR | O_CREAT, 0644));

    DO(syscall(SYS_pwrite64, fd, page, 100, (off_t)5));
    DO(syscall(SYS_fsync, fd));
}

/* One entry at a time, and its end is waited for; nobody takes the ends of those before it away. */
static void ring_do(int ring, struct io_uring_sqe *sqes, unsigned *tail, struct io_uring_sqe entry)
{
    sqes[0] = entry;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    DO(syscall(SYS_io_uring_enter, ring, 1, *tail, IORING_ENTER_GETEVENTS, NULL, 0));
}

static void *ring_map(int ring, size_t bytes, off_t what)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);

    DO(map == MAP_FAILED ? -1 : 0);
    return map;
}

static void way_ring(void)
{
    struct io_uring_params set = {0};
    int fd = made("f", 0);
    int ring = (int)syscall(SYS_io_uring_setup, 1, &set);
    if (ring < 0) {
        exit(NOT_HERE);
    }
    char *queue = ring_map(ring, set.sq_off.array + sizeof(unsigned), IORING_OFF_SQ_RING);
    struct io_uring_sqe *sqes = ring_map(ring, sizeof(*sqes), IORING_OFF_SQES);
    unsigned *tail = (unsigned *)(void *)(queue + set.sq_off.tail);
    *(unsigned *)(void *)(queue + set.sq_off.array) = 0;
    ring_do(
        ring, sqes, tail,
        (struct io_uring_sqe){
            .opcode = IORING_OP_WRITE, .fd = fd, .off = 7, .addr = (uintptr_t)page, .len = 100});
    ring_do(ring, sqes, tail,
            (struct io_uring_sqe){
                .opcode = IORING_OP_FSYNC, .fd = fd, .fsync_flags = IORING_FSYNC_DATASYNC});
}

static void way_aio(void)
{
    aio_context_t context = 0;
    int fd = made("f", O_DIRECT);
    struct iocb write = {.aio_lio_opcode = IOCB_CMD_PWRITE,
                         .aio_fildes = (uint32_t)fd,
                         .aio_buf = (uintptr_t)page,
                         .aio_nbytes = PAGE,
                         .aio_offset = PAGE};
    struct iocb *list[] = {&write};
    struct io_event event;
    DO(syscall(SYS_io_setup, 1, &context));
    DO(syscall(SYS_io_submit, context, 1L, list));
    DO(syscall(SYS_io_getevents, context, 1L, 1L, &event, NULL));
    DO(event.res);
}

static void way_sendfile(void)
{
    int fd = filled("f");
    off_t from = 10;

    DO(sendfile(made("g", 0), fd, &from, 5000));
}

static void way_copy_range(void)
{
    int fd = filled("f");
    off_t from = 10;
    off_t to = 3;

    DO(copy_file_range(fd, &from, made("g", 0), &to, 5000, 0));
}

static void way_splice(void)
{
    int ends[2];
    off_t to = 9;

    DO(pipe(ends));
    DO(write(ends[1], page, 500));
    DO(splice(ends[0], NULL, made("f", 0), &to, 500, 0));
}

static void way_map(void)
{
    int fd = filled("f");
    char *map = mmap(NULL, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    DO(map == MAP_FAILED ? -1 : 0);
    map[1] = 'm';
    map[PAGE + 1] = 'n';
    DO(msync(map, sizeof(page), MS_SYNC));
    map[2 * PAGE] = 'o';
    DO(munmap(map, sizeof(page)));
}

/* Left to the end of the process. */
static void way_map_left(void)
{
    int fd = filled("f");
    char *map = mmap(NULL, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    DO(map == MAP_FAILED ? -1 : 0);
    DO(close(fd));
    map[3 * PAGE] = 'l';
    _exit(0);
}

static void way_map_and_write(void)
{
    int fd = filled("f");
    char *map = mmap(NULL, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    DO(map == MAP_FAILED ? -1 : 0);
    map[1] = 'm';
    DO(pwrite(fd, "w", 1, 2));
    DO(map[1] == 'm' && map[2] == 'w' ? 0 : -1);
    map[3] = 'n';
    DO(fsync(fd));
}

static void way_durable(void)
{
    const struct iovec part = {page, 600};

    DO(pwrite(made("f", O_DSYNC), page, 600, 0));
    DO(pwrite(made("f", O_SYNC), page, 600, 600));
    int fd = made("f", 0);
    DO(pwritev2(fd, &part, 1, 1200, RWF_DSYNC));
    DO(pwritev2(fd, &part, 1, 1800, RWF_SYNC));
    DO(pwritev2(fd, &part, 1, 2400, 0));
    DO(pwritev2(fd, &part, 1, 0, RWF_APPEND));
    DO(write(made("f", O_APPEND), page, 7));
}

static void way_large(void)
{
    size_t bytes = (size_t)5 << 19;
    char *data = malloc(bytes);
    DO(data == NULL ? -1 : 0);
    memset(data, 'L', bytes);
    DO(pwrite(made("f", 0), data, bytes, 13) == (ssize_t)bytes ? 0 : -1);
    free(data);
}

static void try_mode(int fd, int mode)
{
    if (fallocate(fd, mode, PAGE, PAGE) != 0 && errno != EOPNOTSUPP) {
        DO(-1);
    }
}

static void way_allocate(void)
{
    int fd = filled("f");

    DO(fallocate(fd, 0, 0, 5 * PAGE));
    DO(fallocate(fd, FALLOC_FL_KEEP_SIZE, 5 * PAGE, PAGE));
    DO(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE + 5, 100));
    try_mode(fd, FALLOC_FL_ZERO_RANGE);
    try_mode(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE);
    try_mode(fd, FALLOC_FL_COLLAPSE_RANGE);
    try_mode(fd, FALLOC_FL_INSERT_RANGE);
    try_mode(fd, FALLOC_FL_UNSHARE_RANGE);
}

static void way_temporary(void)
{
    char link[64];
    int fd = (int)DO(open(".", O_TMPFILE | O_RDWR, 0644));

    DO(write(fd, page, 1000));
    DO(fsync(fd));
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    DO(linkat(AT_FDCWD, link, AT_FDCWD, "f", AT_SYMLINK_FOLLOW));
    DO(pwrite(fd, "x", 1, 1));
}

static void way_rename(void)
{
    DO(write(made("f", 0), "f", 1));
    DO(write(made("g", 0), "gg", 2));
    DO(syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "h", RENAME_NOREPLACE));
    if (renameat2(AT_FDCWD, "h", AT_FDCWD, "g", RENAME_NOREPLACE) == 0 || errno != EEXIST
        || renameat2(AT_FDCWD, "h", AT_FDCWD, "w", RENAME_WHITEOUT) == 0 || errno != EINVAL) {
        DO(-1);
    }
    DO(rename("h", "g"));
}

static void way_exchange(void)
{
    DO(write(made("f", 0), "f", 1));
    int g = made("g", 0);
    DO(write(g, "gg", 2));
    DO(renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_EXCHANGE));
    DO(write(g, "G", 1));
    DO(truncate("g", 10));
}

static void way_names(void)
{
    DO(mkdir("k", 0755));
    DO(write(made("k/f", 0), "1", 1));
    DO(link("k/f", "l"));
    DO(unlink("k/f"));
    DO(write(made("l", 0), "22", 2));
    DO(rename("k", "j"));
    int fd = made("j/g", O_EXCL);
    DO(unlink("j/g"));
    DO(write(fd, "lost", 4));
    DO(made("j/g", O_TRUNC));
    DO(truncate("j/g", 3));
    DO(mknod("j/n", S_IFREG | 0644, 0));
    DO(mknod("j/p", S_IFIFO | 0644, 0));
    DO(unlink("j/p"));
    DO(fsync((int)DO(open("j", O_RDONLY | O_DIRECTORY))));
    DO(mkdir("gone", 0755));
    DO(rmdir("gone"));
}

/* Without environment, in a session of its own, and not waited for by anybody but us. */
static void way_child(void)
{
    char *argv[] = {(char[]){"way_program"}, (char[]){"bare"}, NULL};
    char *none[] = {NULL};
    int status;
    pid_t child = (pid_t)DO(fork());

    if (child == 0) {
        (void)setsid();
        (void)execve("/proc/self/exe", argv, none);
        _exit(1);
    }
    DO(waitpid(child, &status, 0));
    exit(WEXITSTATUS(status));
}

/* Of a daemon that outlives the program. */
static void way_left(void)
{
    int ends[2];
    char byte;

    DO(pipe(ends));
    if (DO(fork()) == 0) {
        (void)setsid();
        DO(write(made("f", 0), "daemon", 6));
        (void)close(ends[0]);
        (void)close(ends[1]);
        for (;;) {
            (void)pause();
        }
    }
    (void)close(ends[1]);
    DO(read(ends[0], &byte, 1));
}

static const struct {
    const char *name;
    void (*go)(void);
} WAYS[] = {{"bare", way_bare},
            {"ring", way_ring},
            {"aio", way_aio},
            {"sendfile", way_sendfile},
            {"copy_range", way_copy_range},
            {"splice", way_splice},
            {"map", way_map},
            {"map_left", way_map_left},
            {"map_and_write", way_map_and_write},
            {"durable", way_durable},
            {"large", way_large},
            {"allocate", way_allocate},
            {"temporary", way_temporary},
            {"rename", way_rename},
            {"exchange", way_exchange},
            {"names", way_names},
            {"child", way_child},
            {"left", way_left}};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(page); i++) {
        page[i] = (char)('a' + i % 23);
    }
    for (size_t i = 0; argc == 2 && i < sizeof(WAYS) / sizeof(WAYS[0]); i++) {
        if (strcmp(argv[1], WAYS[i].name) == 0) {
            WAYS[i].go();
            return 0;
        }
    }
    return 2;
}
