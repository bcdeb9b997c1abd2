/* Status names and messages. Lowest layer.

1. A message is one line of valid UTF-8 whatever bytes a hostile image put into its arguments.
2. The arguments may include the old message itself (they are formatted before it is replaced).
3. A held message is the first cause of a failure; what fails because of it does not replace it. */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

const char *err_name(dberr_t err)
{
    switch (err) {
    case DB_SUCCESS:
        return "DB_SUCCESS";
    case DB_ERROR:
        return "DB_ERROR";
    case DB_DUPLICATE_KEY:
        return "DB_DUPLICATE_KEY";
    case DB_RECORD_NOT_FOUND:
        return "DB_RECORD_NOT_FOUND";
    case DB_LOCK_CONFLICT:
        return "DB_LOCK_CONFLICT";
    case DB_NOT_FOUND:
        return "DB_NOT_FOUND";
    case DB_ALREADY_EXISTS:
        return "DB_ALREADY_EXISTS";
    case DB_TABLE_LOCKED:
        return "DB_TABLE_LOCKED";
    case DB_OUT_OF_SPACE:
        return "DB_OUT_OF_SPACE";
    case DB_TEMP_FILE_FAILED:
        return "DB_TEMP_FILE_FAILED";
    case DB_OUT_OF_MEMORY:
        return "DB_OUT_OF_MEMORY";
    case DB_IO_ERROR:
        return "DB_IO_ERROR";
    case DB_CORRUPTION:
        return "DB_CORRUPTION";
    case DB_UNRECOVERABLE:
        return "DB_UNRECOVERABLE";
    case DB_NEEDS_RECOVERY:
        return "DB_NEEDS_RECOVERY";
    case DB_DIR_LOCKED:
        return "DB_DIR_LOCKED";
    case DB_INTERRUPTED:
        return "DB_INTERRUPTED";
    case DB_UNSUPPORTED:
        return "DB_UNSUPPORTED";
    }
    return "DB_UNKNOWN";
}

/** Length of the well-formed UTF-8 sequence at s, or 0. n > 0. */
static size_t utf8_len(const unsigned char *s, size_t n)
{
    size_t len = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;

    if (len == 0 || s[0] > 0xF4 || len > n) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F)
        || (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F)) {
        return 0; /* overlong, surrogate, or beyond U+10FFFF */
    }
    return len;
}

static void make_printable(char *text)
{
    unsigned char *s = (unsigned char *)text;
    size_t n = strlen(text);
    size_t i = 0;

    while (i < n) {
        size_t len = utf8_len(s + i, n - i);

        if (len == 0 || s[i] < 0x20 || s[i] == 0x7F) {
            s[i] = '?';
            len = 1;
        }
        i += len;
    }
}

dberr_t err_set(err_sink_t *sink, dberr_t err, const char *format, ...)
{
    char msg[sizeof(((err_sink_t *)NULL)->msg)] = "";
    va_list args;

    if (sink == NULL || sink->held) {
        return err;
    }
    va_start(args, format);
    if (vsnprintf(msg, sizeof(msg), format, args) < 0) {
        msg[0] = '\0';
    }
    va_end(args);
    make_printable(msg);
    memcpy(sink->msg, msg, sizeof(msg));
    return err;
}

void err_copy(err_sink_t *to, const err_sink_t *from)
{
    if (to != NULL) {
        *to = *from;
        to->held = false;
    }
}
