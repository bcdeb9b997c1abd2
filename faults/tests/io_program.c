/** The program whose I/O the tests of the preload look at. It knows nothing of the preload but
tp_trace_mark, which it finds by name.

Every argument is one operation, "NAME WORD...", done in order; each prints "NAME RESULT ERRNO" at
once. Descriptors live in slots 0 to 9. Data is SIZE bytes, all the same CHAR; SIGUSR1 makes all of
it '~'. */
#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS 10
#define WORDS 8
#define DATA_MAX 131072
#define VECTOR_PARTS 3

static int slots[SLOTS];
static _Alignas(4096) char data[DATA_MAX];
static char *program;

typedef struct call {
    const char *name;
    int count;
    char *words[WORDS];
} call_t;

static long number(const call_t *call, int i)
{
    return i < call->count ? strtol(call->words[i], NULL, 0) : 0;
}

static const char *word(const call_t *call, int i)
{
    return i < call->count ? call->words[i] : "";
}

static int slot(const call_t *call, int i)
{
    long n = number(call, i);

    return n >= 0 && n < SLOTS ? slots[n] : -1;
}

static size_t fill(const call_t *call, int size_at)
{
    size_t size = (size_t)number(call, size_at);

    if (size > DATA_MAX) {
        exit(3);
    }
    memset(data, word(call, size_at + 1)[0], size);
    return size;
}

/* Cuts the data in parts, the middle one of odd length. */
static int cut(size_t size, struct iovec *parts)
{
    size_t a = size / 3;
    size_t b = size / 3 + 1 < size - a ? size / 3 + 1 : size - a;

    parts[0] = (struct iovec){data, a};
    parts[1] = (struct iovec){data + a, b};
    parts[2] = (struct iovec){data + a + b, size - a - b};
    return VECTOR_PARTS;
}

static int open_flags(const char *letters)
{
    int flags = strchr(letters, 'w') == NULL ? O_RDONLY : O_RDWR;

    if (strchr(letters, 'o') != NULL) {
        flags = O_WRONLY;
    }
    flags |= strchr(letters, 'c') != NULL ? O_CREAT : 0;
    flags |= strchr(letters, 't') != NULL ? O_TRUNC : 0;
    flags |= strchr(letters, 'x') != NULL ? O_EXCL : 0;
    flags |= strchr(letters, 'a') != NULL ? O_APPEND : 0;
    flags |= strchr(letters, 'd') != NULL ? O_DIRECTORY : 0;
    flags |= strchr(letters, 'T') != NULL ? O_TMPFILE : 0;
    flags |= strchr(letters, 's') != NULL ? O_DSYNC : 0;
    flags |= strchr(letters, 'D') != NULL ? O_DIRECT : 0;
    return flags;
}

static long keep(const call_t *call, int fd)
{
    slots[number(call, 0)] = fd;
    return fd < 0 ? -1 : 0;
}

static long call_open(const call_t *call)
{
    const char *path = word(call, 1);
    int flags = open_flags(word(call, 2));

    if (strcmp(call->name, "open64") == 0) {
        return keep(call, open64(path, flags, 0644));
    }
    if (strcmp(call->name, "creat") == 0) {
        return keep(call, creat(path, 0644));
    }
    if (strcmp(call->name, "creat64") == 0) {
        return keep(call, creat64(path, 0644));
    }
    return keep(call, open(path, flags, 0644));
}

static long call_openat(const call_t *call)
{
    int flags = open_flags(word(call, 3));

    return keep(call, strcmp(call->name, "openat64") == 0
                          ? openat64(slot(call, 1), word(call, 2), flags, 0644)
                          : openat(slot(call, 1), word(call, 2), flags, 0644));
}

static long call_write(const call_t *call)
{
    struct iovec parts[VECTOR_PARTS];
    size_t size = fill(call, 1);

    return strcmp(call->name, "write") == 0 ? write(slot(call, 0), data, size)
                                            : writev(slot(call, 0), parts, cut(size, parts));
}

static long call_pwrite(const call_t *call)
{
    struct iovec parts[VECTOR_PARTS];
    size_t size = fill(call, 2);
    int count = cut(size, parts);
    int fd = slot(call, 0);
    off_t offset = number(call, 1);

    if (strcmp(call->name, "pwrite64") == 0) {
        return pwrite64(fd, data, size, offset);
    }
    if (strcmp(call->name, "pwritev") == 0) {
        return pwritev(fd, parts, count, offset);
    }
    if (strcmp(call->name, "pwritev64") == 0) {
        return pwritev64(fd, parts, count, offset);
    }
    if (strcmp(call->name, "pwritev2") == 0) {
        return pwritev2(fd, parts, count, offset, (int)number(call, 4));
    }
    return pwrite(fd, data, size, offset);
}

static long call_read(const call_t *call)
{
    struct iovec part = {data, (size_t)number(call, 1)};
    off_t offset = number(call, 2);
    int fd = slot(call, 0);

    if (strcmp(call->name, "read") == 0) {
        return read(fd, data, part.iov_len);
    }
    if (strcmp(call->name, "readv") == 0) {
        return readv(fd, &part, 1);
    }
    if (strcmp(call->name, "preadv") == 0) {
        return preadv(fd, &part, 1, offset);
    }
    return strcmp(call->name, "pread64") == 0 ? pread64(fd, data, part.iov_len, offset)
                                              : pread(fd, data, part.iov_len, offset);
}

static long call_sync(const call_t *call)
{
    int fd = slot(call, 0);

    if (strcmp(call->name, "fdatasync") == 0) {
        return fdatasync(fd);
    }
    if (strcmp(call->name, "sync_all") == 0) {
        sync();
        return 0;
    }
    if (strcmp(call->name, "sync_file_range") == 0) {
        return sync_file_range(fd, number(call, 1), number(call, 2), SYNC_FILE_RANGE_WRITE);
    }
    return fsync(fd);
}

static long call_size(const call_t *call)
{
    if (strcmp(call->name, "truncate") == 0) {
        return truncate(word(call, 0), number(call, 1));
    }
    if (strcmp(call->name, "ftruncate64") == 0) {
        return ftruncate64(slot(call, 0), number(call, 1));
    }
    if (strcmp(call->name, "fallocate") == 0) {
        return fallocate(slot(call, 0), (int)number(call, 3), number(call, 1), number(call, 2));
    }
    if (strcmp(call->name, "posix_fallocate") == 0) {
        return posix_fallocate(slot(call, 0), number(call, 1), number(call, 2));
    }
    return ftruncate(slot(call, 0), number(call, 1));
}

static long call_path(const call_t *call)
{
    const char *a = word(call, 0);
    const char *b = word(call, 1);

    if (strcmp(call->name, "link") == 0) {
        return link(a, b);
    }
    switch (call->name[0] + call->name[strlen(call->name) - 1]) {
    case 'r' + 'e':
        return strcmp(call->name, "remove") == 0 ? remove(a) : rename(a, b);
    case 'r' + 't':
        return renameat(AT_FDCWD, a, AT_FDCWD, b);
    case 'r' + '2':
        return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
    case 'r' + 'r':
        return rmdir(a);
    case 'u' + 'k':
        return unlink(a);
    case 'u' + 't':
        return unlinkat(slot(call, 0), b, 0);
    case 'm' + 't':
        return mkdirat(slot(call, 0), b, 0755);
    default:
        return mkdir(a, 0755);
    }
}

static long call_close(const call_t *call)
{
    int fd = slot(call, 0);

    if (strcmp(call->name, "dup") == 0) {
        slots[number(call, 1)] = dup(fd);
        return slots[number(call, 1)] < 0 ? -1 : 0;
    }
    if (strcmp(call->name, "dup2") == 0) {
        return dup2(fd, slot(call, 1)) < 0 ? -1 : 0;
    }
    if (strcmp(call->name, "dupfd") == 0) {
        slots[number(call, 1)] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
        return slots[number(call, 1)] < 0 ? -1 : 0;
    }
    if (strcmp(call->name, "setappend") == 0) {
        return fcntl(fd, F_SETFL, O_APPEND);
    }
    if (strcmp(call->name, "setdirect") == 0) {
        return fcntl(fd, F_SETFL, O_DIRECT);
    }
    if (strcmp(call->name, "close_range") == 0) {
        return close_range((unsigned)fd, (unsigned)slot(call, 1), 0);
    }
    return close(fd);
}

static long call_mark(const call_t *call)
{
    void (*mark)(const char *, size_t) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "tp_trace_mark");
    memcpy(&mark, &symbol, sizeof(mark));
    char text[256] = "";
    for (int i = 0; i < call->count; i++) {
        strcat(text, i == 0 ? "" : " ");
        strcat(text, call->words[i]);
    }
    if (mark == NULL) {
        return -1;
    }
    mark(text, strlen(text));
    return 0;
}

static long call_map(const call_t *call)
{
    bool fails = strcmp(call->name, "mmapfails") == 0; /* not at a multiple of a page */
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, slot(call, 0), fails ? 1 : 0);

    if (at == MAP_FAILED) {
        return fails ? 0 : -1;
    }
    return munmap(at, 4096) - (fails ? 1 : 0);
}

static long call_bare(const call_t *call)
{
    struct aiocb write_call = {.aio_fildes = slot(call, 0), .aio_buf = data, .aio_nbytes = 4};
    const struct aiocb *list[] = {&write_call};

    if (strcmp(call->name, "bare_fsync") == 0) {
        return syscall(SYS_fsync, slot(call, 0));
    }
    if (strcmp(call->name, "bare_pwrite") == 0) {
        return syscall(SYS_pwrite64, slot(call, 0), data, 4L, 0L);
    }
    if (strcmp(call->name, "bare_uring") == 0) { /* no entries: refused by every kernel */
        return syscall(SYS_io_uring_setup, 0, NULL) == -1 ? 0 : -1;
    }
    if (aio_write(&write_call) != 0 || aio_suspend(list, 1, NULL) != 0) {
        return -1;
    }
    return aio_return(&write_call);
}

static pthread_barrier_t all_began;

/* A thread writes an increasing number, eight bytes at a time, to its file, at its place or at the
end. None writes its second one before each has written its first. */
static void *count_up(void *argument)
{
    const call_t *call = argument;
    bool appends = strcmp(call->name, "appends") == 0;
    int fd = open(word(call, 0), O_RDWR | O_CREAT | (appends ? O_APPEND : 0), 0644);

    for (long i = 0; i < number(call, 1); i++) {
        if ((appends ? write(fd, &i, sizeof(i)) : pwrite(fd, &i, sizeof(i), i * (long)sizeof(i)))
            != (ssize_t)sizeof(i)) {
            exit(4);
        }
        if (i == 0) {
            (void)pthread_barrier_wait(&all_began);
        }
    }
    return NULL;
}

static long call_threads(const call_t *call)
{
    int count = 0;

    if (pthread_barrier_init(&all_began, NULL, (unsigned)call->count - 1) != 0) {
        exit(4);
    }
    pthread_t threads[WORDS] = {0};
    call_t calls[WORDS];
    for (int i = 1; i < call->count; i++, count++) {
        calls[count] = (call_t){call->name, 2, {call->words[i], call->words[0]}};
        if (pthread_create(&threads[count], NULL, count_up, &calls[count]) != 0) {
            exit(4);
        }
    }
    for (int i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return count;
}

static void *sync_slot(void *argument)
{
    return fsync(*(const int *)argument) == 0 ? NULL : argument;
}

/* A write to the same file that begins and ends while fsync is under way: slow_fsync.c tells when
it is, and waits. */
static long call_overlap(const call_t *call)
{
    int fd = slot(call, 0);
    size_t size = fill(call, 1);
    int began[2];
    int finish[2];
    char byte = 'x';
    pthread_t thread;
    void *failed = NULL;

    if (pipe(began) != 0 || pipe(finish) != 0 || dup2(began[1], 200) < 0 || dup2(finish[0], 201) < 0
        || pthread_create(&thread, NULL, sync_slot, &fd) != 0 || read(began[0], &byte, 1) != 1
        || pwrite(fd, data, size, 0) != (ssize_t)size || write(finish[1], &byte, 1) != 1
        || pthread_join(thread, &failed) != 0) {
        exit(4);
    }
    return failed == NULL ? 0 : -1;
}

/* A child writes through an inherited descriptor and through one of its own. */
static long call_fork(const call_t *call)
{
    pid_t child = fork();
    char self[] = "open 0 exec wc";
    char then[] = "write 0 4 e";
    char *arguments[] = {program, self, then, NULL};

    if (child == 0) {
        int fd = open("forked", O_RDWR | O_CREAT, 0644);
        int used = slots[0] < 0 ? 1 : (int)pwrite(slots[0], "child", 5, 0);
        if (strcmp(call->name, "forkexec") == 0) {
            (void)execv(program, arguments);
            _exit(5);
        }
        _exit(fd < 0 || used < 0 || fsync(fd) != 0 ? 1 : 0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child ? status : -1;
}

static long call_other(const call_t *call)
{
    if (strcmp(call->name, "position") == 0) {
        return lseek(slot(call, 0), 0, SEEK_CUR);
    }
    if (strcmp(call->name, "exec") == 0) {
        return execl(program, program, "open 0 exec wc", (char *)NULL);
    }
    char byte;
    if (strcmp(call->name, "wait") == 0) {
        return read(STDIN_FILENO, &byte, 1);
    }
    if (strcmp(call->name, "title") == 0) { /* as setproctitle takes the room of the environment */
        for (char **at = environ; *at != NULL; at++) {
            memset(*at, 'Z', strlen(*at));
        }
        return 0;
    }
    exit(2);
}

static const struct {
    const char *prefix; /* the first that the name starts with */
    long (*function)(const call_t *);
} functions[] = {
    {"openat", call_openat},  {"open", call_open},       {"creat", call_open},
    {"pwrite", call_pwrite},  {"write", call_write},     {"pread", call_read},
    {"read", call_read},      {"fsync", call_sync},      {"fdatasync", call_sync},
    {"sync_", call_sync},     {"link", call_path},       {"truncate", call_size},
    {"ftruncate", call_size}, {"fallocate", call_size},  {"posix_fall", call_size},
    {"rename", call_path},    {"remove", call_path},     {"rmdir", call_path},
    {"unlink", call_path},    {"mkdir", call_path},      {"close", call_close},
    {"dup", call_close},      {"set", call_close},       {"mark", call_mark},
    {"mmap", call_map},       {"threads", call_threads}, {"appends", call_threads},
    {"fork", call_fork},      {"overlap", call_overlap}, {"bare", call_bare},
    {"aio", call_bare},       {"", call_other},
};

static void run(char *text)
{
    char *rest = NULL;
    call_t call = {strtok_r(text, " ", &rest), 0, {NULL}};
    while (call.count < WORDS && (call.words[call.count] = strtok_r(NULL, " ", &rest)) != NULL) {
        call.count++;
    }
    size_t i = 0;
    while (strncmp(call.name, functions[i].prefix, strlen(functions[i].prefix)) != 0) {
        i++;
    }
    errno = 0;
    long result = functions[i].function(&call);
    char line[128];
    int len =
        snprintf(line, sizeof(line), "%s %ld %d\n", call.name, result, result < 0 ? errno : 0);
    if (write(STDOUT_FILENO, line, (size_t)len) != len) {
        exit(4);
    }
}

static void scribble(int number)
{
    (void)number;
    memset(data, '~', sizeof(data));
}

int main(int argc, char **argv)
{
    program = argv[0];
    (void)signal(SIGUSR1, scribble);
    for (int i = 0; i < SLOTS; i++) {
        slots[i] = -1;
    }
    for (int i = 1; i < argc; i++) {
        run(argv[i]);
    }
    return 0;
}
