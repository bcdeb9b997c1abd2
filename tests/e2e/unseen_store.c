/* A store that writes its header in many ways, most of which no recorder in the process sees: the
 * tests of the audit.
 *
 *     unseen_store load FOLDER WAY      commits, each behind a new header; the last bytes are those
 *                                       of the first one again
 *     unseen_store put FILE TEXT        what a child does
 *     unseen_store recover              an answer for a folder
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tornpage_mark.h"

enum { HEADER_BYTES = 1536, COMMITS = 4 };

static char text[HEADER_BYTES + 1];
static char self[4096]; /* before the folder is changed */

static void fail_if(int wrong, const char *what)
{
    if (wrong) {
        perror(what);
        exit(1);
    }
}

static long bare(long number, long a, long b, long c, long d)
{
    register long r10 __asm__("r10") = d;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}

static void put_by_child(const char *program, char *const env[])
{
    char *argv[] = {(char *)program, "put", "header", text, NULL};
    pid_t child = fork();
    if (child == 0) {
        execve(program, argv, env);
        _exit(1);
    }
    int status = 0;
    fail_if(waitpid(child, &status, 0) != child || status != 0, "child");
}

static void put_by_aio(int fd)
{
    aio_context_t context = 0;
    struct iocb call = {.aio_lio_opcode = IOCB_CMD_PWRITE,
                        .aio_fildes = (unsigned)fd,
                        .aio_buf = (unsigned long)text,
                        .aio_nbytes = HEADER_BYTES};
    struct iocb *calls[] = {&call};
    fail_if(bare(SYS_io_setup, 1, (long)&context, 0, 0) != 0, "io_setup");
    fail_if(bare(SYS_io_submit, (long)context, 1, (long)calls, 0) != 1, "io_submit");
    struct io_event event;
    long got = syscall(SYS_io_getevents, context, 1L, 1L, &event, NULL);
    fail_if(got != 1 || event.res != HEADER_BYTES, "io_getevents");
    (void)bare(SYS_io_destroy, (long)context, 0, 0, 0);
}

/* Opened where nobody sees it, received where it is used. */
static int received(void)
{
    int pair[2], fd = (int)bare(SYS_open, (long)"header", O_RDWR, 0, 0);
    char byte = 0, room[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    fail_if(fd < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0, "socketpair");
    struct cmsghdr *item = CMSG_FIRSTHDR(&message);
    *item = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(item), &fd, sizeof(fd));
    fail_if(sendmsg(pair[0], &message, 0) != 1, "sendmsg");
    fail_if(recvmsg(pair[1], &message, 0) != 1, "recvmsg");
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}

static void put_by_map(int fd)
{
    char *map = mmap(NULL, HEADER_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    fail_if(map == MAP_FAILED, "mmap");
    fail_if(mprotect(map, HEADER_BYTES, PROT_READ | PROT_WRITE) != 0, "mprotect");
    memcpy(map, text, HEADER_BYTES);
    munmap(map, HEADER_BYTES);
}

static void put(const char *way, int fd)
{
    char *nothing[] = {NULL};
    if (strcmp(way, "pwrite") == 0) {
        fail_if(pwrite(fd, text, HEADER_BYTES, 0) != HEADER_BYTES, way);
    } else if (strcmp(way, "inline") == 0) {
        fail_if(bare(SYS_pwrite64, fd, (long)text, HEADER_BYTES, 0) != HEADER_BYTES, way);
    } else if (strcmp(way, "cleaned") == 0) {
        put_by_child(self, nothing);
    } else if (strcmp(way, "static") == 0) {
        char program[5000];
        snprintf(program, sizeof(program), "%s_static", self);
        put_by_child(program, environ);
    } else if (strcmp(way, "dprintf") == 0) {
        lseek(fd, 0, SEEK_SET);
        fail_if(dprintf(fd, "%s", text) != HEADER_BYTES, way);
    } else if (strcmp(way, "link") == 0) {
        int other = open("../outside", O_RDWR);
        fail_if(pwrite(other, text, HEADER_BYTES, 0) != HEADER_BYTES, way);
        close(other);
    } else if (strcmp(way, "splice") == 0) {
        int ends[2];
        fail_if(pipe(ends) != 0 || write(ends[1], text, HEADER_BYTES) != HEADER_BYTES, "pipe");
        off_t at = 0;
        fail_if(splice(ends[0], NULL, fd, &at, HEADER_BYTES, 0) != HEADER_BYTES, way);
        close(ends[0]), close(ends[1]);
    } else if (strcmp(way, "libaio") == 0) {
        put_by_aio(fd);
    } else if (strcmp(way, "rights") == 0) {
        int other = received();
        fail_if(pwrite(other, text, HEADER_BYTES, 0) != HEADER_BYTES, way);
        close(other);
    } else if (strcmp(way, "mprotect") == 0) {
        put_by_map(fd);
    } else {
        fail_if(1, way);
    }
}

static void fill(int n)
{
    memset(text, 'a' + n, HEADER_BYTES);
}

static void load(const char *folder, const char *way)
{
    fail_if(chdir(folder) != 0, folder);
    int header = open("header", O_RDWR | O_CREAT, 0644);
    int log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0644);
    fill(0);
    fail_if(pwrite(header, text, HEADER_BYTES, 0) != HEADER_BYTES || fsync(header) != 0, "header");
    if (strcmp(way, "link") == 0) {
        fail_if(link("header", "../outside") != 0, way);
    }
    fsync(open(".", O_RDONLY));
    for (int n = 0; n <= COMMITS; n++) {
        n == 0 ? tornpage_ready() : tornpage_issue((unsigned long)n);
        if (n > 0) {
            fill(n);
            put(way, header);
            fail_if(write(log, "x", 1) != 1 || fsync(log) != 0, "log");
        }
        if (n == COMMITS) {
            fill(0);
            put(way, header);
        }
        if (n > 0) {
            tornpage_ack((unsigned long)n);
        }
        printf("{\"n\": %d, \"state\": {\"commits\": \"%d\"}}\n", n, n);
    }
    (void)unlink("../outside");
}

static void recover(const char *folder)
{
    fail_if(chdir(folder) != 0, folder);
    char log[64];
    int fd = open("log", O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, log, sizeof(log));
    printf("{\"ok\": true, \"state\": {\"commits\": \"%zd\"}}\n", n);
}

int main(int argc, char **argv)
{
    fail_if(readlink("/proc/self/exe", self, sizeof(self) - 1) < 0, "self");
    if (argc > 3 && strcmp(argv[1], "put") == 0) {
        int fd = open(argv[2], O_RDWR);
        return pwrite(fd, argv[3], strlen(argv[3]), 0) == HEADER_BYTES ? 0 : 1;
    }
    if (argc > 3) {
        load(argv[2], argv[3]);
        return 0;
    }
    char folder[4096];
    return scanf("%4095[^\n]", folder) == 1 ? recover(folder), 0 : 1;
}
