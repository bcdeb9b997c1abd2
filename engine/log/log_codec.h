/** What the formats of redo records share: bytes in, bytes out, whatever they mean. Private to log/. */
#ifndef LOG_LOG_CODEC_H
#define LOG_LOG_CODEC_H

#include <string.h>

#include "base/err.h"
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

/** A number of len bytes, at most 8. */
static inline uint64_t get_fixed(cursor_t *c, uint32_t len)
{
    const byte *b = get_bytes(c, len);
    uint64_t v = 0;

    for (uint32_t i = 0; b != NULL && i < len; i++) {
        v = v << 8 | b[i];
    }
    return v;
}

#endif
