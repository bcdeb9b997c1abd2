/* Status names and messages. Lowest layer.

1. A message is one line of valid UTF-8 whatever bytes a hostile image put into its arguments.
2. The arguments may include the old message itself (they are formatted before it is replaced).
3. A held message is the first cause of a failure; what fails because of it does not replace it. */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

#include "base/probe.h"

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
    case DB_ONLINE_LOG_TOO_BIG:
        return "DB_ONLINE_LOG_TOO_BIG";
    case DB_BACKUP_ABORTED:
        return "DB_BACKUP_ABORTED";
    case DB_PAUSED:
        return "DB_PAUSED";
    }
    return "DB_UNKNOWN";
}

const char *refusal_name(refusal_t refusal)
{
    static const char *const NAMES[] = {
        [REFUSAL_NONE] = "",
        [REFUSAL_TORN_PAGE] = "torn-page",
        [REFUSAL_PAGE_BEYOND_LOG] = "page-beyond-log",
        [REFUSAL_PAGE_FREED] = "page-freed",
        [REFUSAL_MARKER_MISSING] = "marker-missing",
        [REFUSAL_LOG_DAMAGED] = "log-damaged",
        [REFUSAL_LOG_MISSING] = "log-missing",
        [REFUSAL_PAGE_DIFFERS] = "page-differs",
        [REFUSAL_BAD_RECORD] = "bad-record",
        [REFUSAL_FILE_MISSING] = "file-missing",
        [REFUSAL_FILE_SHORT] = "file-short",
        [REFUSAL_FILE_CONFLICT] = "file-conflict",
        [REFUSAL_CORRUPTION] = "corruption",
        [REFUSAL_UNSUPPORTED] = "unsupported",
        [REFUSAL_BACKUP_UNFINISHED] = "backup-unfinished",
        [REFUSAL_BACKUP_UNPREPARED] = "backup-unprepared",
        [REFUSAL_OUT_OF_SPACE] = "out-of-space",
        [REFUSAL_IO_ERROR] = "io-error",
        [REFUSAL_OUT_OF_MEMORY] = "out-of-memory",
    };

    return NAMES[refusal];
}

/** What a status stands for when nothing more is said. */
static refusal_t refusal_of(dberr_t err)
{
    switch (err) {
    case DB_CORRUPTION:
    case DB_UNRECOVERABLE:
        return REFUSAL_CORRUPTION;
    case DB_IO_ERROR:
        return REFUSAL_IO_ERROR;
    case DB_OUT_OF_MEMORY:
        return REFUSAL_OUT_OF_MEMORY;
    case DB_OUT_OF_SPACE:
        return REFUSAL_OUT_OF_SPACE;
    case DB_UNSUPPORTED:
        return REFUSAL_UNSUPPORTED;
    default:
        return REFUSAL_NONE;
    }
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

static void err_put(err_sink_t *sink, dberr_t err, refusal_t refusal, const char *format,
                    va_list args)
{
    if (sink == NULL || sink->held) {
        return;
    }
    char msg[sizeof(((err_sink_t *)NULL)->msg)] = "";
    if (vsnprintf(msg, sizeof(msg), format, args) < 0) {
        msg[0] = '\0';
    }
    make_printable(msg);
    memcpy(sink->msg, msg, sizeof(msg));
    sink->refusal = refusal;
    if (sink->probe != NULL) {
        PROBE_NOTE(sink->probe, "error err=%s refusal=%s", err_name(err), refusal_name(refusal));
    }
}

dberr_t err_set(err_sink_t *sink, dberr_t err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    err_put(sink, err, refusal_of(err), format, args);
    va_end(args);
    return err;
}

dberr_t err_refuse(err_sink_t *sink, dberr_t err, refusal_t refusal, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    err_put(sink, err, refusal, format, args);
    va_end(args);
    return err;
}

void err_copy(err_sink_t *to, const err_sink_t *from)
{
    if (to != NULL) {
        *to = *from;
        to->held = false;
        to->probe = NULL;
    }
}
