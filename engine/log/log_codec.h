/** What the formats of redo records share: bytes in, bytes out, whatever they mean. Private to
log/. */
#ifndef LOG_LOG_CODEC_H
#define LOG_LOG_CODEC_H

#include <string.h>

#include "base/err.h"
#include "base/mach.h"
#include "base/types.h"

static inline byte *put_bytes(byte *b, const void *bytes, size_t len)
{
    memcpy(b, bytes, len);
    return b + len;
}

/** A number in its len low bytes. */
static inline byte *put_fixed(byte *b, uint64_t v, uint32_t len)
{
    for (uint32_t i = len; i-- > 0;) {
        *b++ = (byte)(v >> 8 * i);
    }
    return b;
}

/** Bytes not yet decoded. Once err is set, every further get returns 0 and changes nothing. */
typedef struct cursor {
    const byte *pos;
    size_t left;
    dberr_t err;
} cursor_t;

/** The next len bytes; NULL, and DB_NOT_FOUND, if there are fewer. */
static inline const byte *get_bytes(cursor_t *c, size_t len)
{
    const byte *b = c->pos;

    if (c->err == DB_SUCCESS && c->left < len) {
        c->err = DB_NOT_FOUND;
    }
    if (c->err != DB_SUCCESS) {
        return NULL;
    }
    c->pos += len;
    c->left -= len;
    return b;
}

/** A number of one byte, and of any kind the most frequent. */
static inline uint32_t get_byte(cursor_t *c)
{
    const byte *b = get_bytes(c, 1);

    return b != NULL ? *b : 0;
}

/** A number of len bytes, at most 8. */
static inline uint64_t get_fixed(cursor_t *c, uint32_t len)
{
    const byte *b = get_bytes(c, len);
    uint64_t v = 0;

    if (b == NULL) {
        return 0;
    }
    switch (len) { /* known where it is inlined */
    case 2:
        return mach_read_2(b);
    case 4:
        return mach_read_4(b);
    case 8:
        return mach_read_8(b);
    default:
        for (uint32_t i = 0; i < len; i++) {
            v = v << 8 | b[i];
        }
        return v;
    }
}

#endif
