/* Markers and fault points of an armed probe. Lowest layer.

1. A point's marker is in the trace before its hook may end the process.
2. Marker text has no newline and at most 255 bytes.
3. A marker is a note too: who made it is wanted wherever callers are. */
#include "base/probe.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"

/** @return its length */
__attribute__((format(printf, 2, 0))) static size_t probe_format(char text[MARK_LEN_MAX + 1],
                                                                 const char *format, va_list args)
{
    int len = vsnprintf(text, MARK_LEN_MAX + 1, format, args);
    CHECK(len > 0 && len <= MARK_LEN_MAX);
    return (size_t)len;
}

void probe_mark(probe_t *probe, const char *format, ...)
{
    if (probe->mark == NULL) {
        return;
    }
    va_list args;
    va_start(args, format);
    char text[MARK_LEN_MAX + 1];
    size_t len = probe_format(text, format, args);
    va_end(args);
    probe->mark(probe->ctx, text, len);
    if (probe->note != NULL) {
        probe->note(probe->ctx, text, len);
    }
}

void probe_note(probe_t *probe, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[MARK_LEN_MAX + 1];
    size_t len = probe_format(text, format, args);
    va_end(args);
    probe->note(probe->ctx, text, len);
}

void probe_point(probe_t *probe, const char *name)
{
    probe_mark(probe, "point name=%s", name);
    if (probe->point != NULL) {
        probe->point(probe->ctx, name);
    }
}
