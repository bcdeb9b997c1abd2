/** Traces made by hand. */
#ifndef EXPLORER_TESTS_TRACE_BUILDER_H
#define EXPLORER_TESTS_TRACE_BUILDER_H

#include <fcntl.h>

#include "faults/trace.h"

typedef struct builder {
    uint8_t bytes[16384];
    uint64_t used;
    uint64_t seq;
} builder_t;

static inline void begin(builder_t *b)
{
    memset(b, 0, sizeof(*b));
    memcpy(b->bytes, TP_TRACE_MAGIC, 8);
    b->used = TP_TRACE_HEADER_SIZE;
}

static inline tp_trace_record_t *put_record(builder_t *b, uint16_t kind, uint32_t file,
                                            const void *payload, size_t len)
{
    static tp_trace_record_t rec;
    rec = (tp_trace_record_t){.kind = kind, .seq = ++b->seq, .began = b->seq - 1, .file = file};
    rec.total = (uint32_t)(TP_TRACE_RECORD_SIZE + (len + 7) / 8 * 8);
    if (kind == TP_OP_WRITE) {
        rec.flags = TP_WRITE_PAYLOAD;
        rec.result = (int64_t)len;
    }
    rec.length = kind == TP_OP_MARK || kind == TP_OP_WRITE ? len : 0;
    rec.flags |= kind == TP_OP_OPEN ? TP_OPEN_CREATED : 0;
    memcpy(b->bytes + b->used, &rec, sizeof(rec));
    if (len > 0) {
        memcpy(b->bytes + b->used + TP_TRACE_RECORD_SIZE, payload, len);
    }
    tp_trace_record_t *at = (tp_trace_record_t *)(void *)(b->bytes + b->used);
    b->used += rec.total;
    return at;
}

static inline void mark(builder_t *b, const char *text)
{
    (void)put_record(b, TP_OP_MARK, 0, text, strlen(text));
}

/** What a recorder writes; a header that was filled in stays as it is. */
static inline void save(const builder_t *b, const char *path)
{
    uint8_t head[16];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    memcpy(head, b->bytes, 8);
    memcpy(head + 8, &b->used, 8);
    assert_int_equal(write(fd, b->bytes, b->used), b->used);
    if (memcmp(b->bytes + 8, "\0\0\0\0\0\0\0\0", 8) == 0) {
        assert_int_equal(pwrite(fd, head, 16, 0), 16);
    }
    (void)close(fd);
}

#endif
