/** Marks of a target of Tornpage, for C and C++. Copy this file; nothing is linked (before glibc
2.34: -ldl; a static program defines TORNPAGE_MARK_STATIC, and is recorded by a file system).

A run marks `ready` when what is acknowledged must survive from now on, then for each commit
`issue n`, the commit, `ack n`. Without a recorder marks do nothing. */
#ifndef TORNPAGE_MARK_H
#define TORNPAGE_MARK_H

#ifndef TORNPAGE_MARK_STATIC
#include <dlfcn.h>
#endif
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/** To the recorder on this abstract Unix socket, which answers when the mark is in the stream. */
static inline void tornpage_mark_by_socket(const char *name, const char *text)
{
    struct sockaddr_un address;
    char line[512];
    int length = snprintf(line, sizeof(line), "%s\n", text);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&address, 0, sizeof(address));
    address.sun_family = AF_UNIX;
    (void)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name);
    if (connect(fd, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)))
            != 0
        || write(fd, line, (size_t)length) != length || read(fd, line, 3) != 3) {
        (void)fprintf(stderr, "tornpage_mark: the recorder is gone\n");
        abort();
    }
    (void)close(fd);
}

/** Puts a mark into the stream of this process's file operations. */
static inline void tornpage_mark(const char *text)
{
    const char *name = getenv("TORNPAGE_CONTROL");
    if (name != NULL) {
        tornpage_mark_by_socket(name, text);
        return;
    }
#ifndef TORNPAGE_MARK_STATIC
    void (*mark)(const char *, size_t);
    void *found = dlsym((void *)0, "tp_trace_mark");
    memcpy(&mark, &found, sizeof(mark));
    if (found != NULL) {
        mark(text, strlen(text));
    }
#endif
}

static inline void tornpage_mark_number(const char *verb, unsigned long n)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "%s n=%lu", verb, n);
    tornpage_mark(text);
}

/** What was made so far is durable. */
static inline void tornpage_ready(void)
{
    tornpage_mark("ready");
}

/** Statement n, from 1, begins: its effect may be there from now on. */
static inline void tornpage_issue(unsigned long n)
{
    tornpage_mark_number("issue", n);
}

/** Statement n is committed: it must be there from now on. */
static inline void tornpage_ack(unsigned long n)
{
    tornpage_mark_number("ack", n);
}

#endif
