/** Marks of a target of Tornpage, for C and C++. Copy this file; nothing is linked (before glibc
2.34: -ldl).

A run marks `ready` when what is acknowledged must survive from now on, then for each commit
`issue n`, the commit, `ack n`. Without Tornpage's preload marks do nothing. */
#ifndef TORNPAGE_MARK_H
#define TORNPAGE_MARK_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/** Puts a mark into the stream of this process's file operations. */
static inline void tornpage_mark(const char *text)
{
    void (*mark)(const char *, size_t);
    void *found = dlsym((void *)0, "tp_trace_mark");
    memcpy(&mark, &found, sizeof(mark));
    if (found != NULL) {
        mark(text, strlen(text));
    }
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
