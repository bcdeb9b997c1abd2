/** Named fault points and trace markers: all that the engine knows of the world that tortures it.

A probe hangs from the database handle (never a global). While it is not armed, a point or a marker
costs one relaxed atomic load. When armed, a point calls `point`, which may not return (the process
is killed there), and a marker hands one line of text to `mark`, which puts it into the I/O trace in
order with the reads, writes and fsyncs around it.

A marker's text is a verb followed by key=value tokens, separated by single spaces, values without
spaces: "page_write space=5 page=12 lsn=8231 dblwr=skip why=init". docs/FAULT_MODEL.md lists all. */
#ifndef BASE_PROBE_H
#define BASE_PROBE_H

#include <stdatomic.h>

#include "base/types.h"

#define MARK_LEN_MAX 255 /**< bytes of a marker's text */

typedef struct probe {
    atomic_bool armed;
    void (*point)(void *ctx, const char *name);            /**< name as "dblwr.area_synced" */
    void (*mark)(void *ctx, const char *text, size_t len); /**< text is not 0-terminated */
    /** the same, of a step whose caller is wanted; it leaves no event; NULL: nobody asks */
    void (*note)(void *ctx, const char *text, size_t len);
    void *ctx; /**< handed back; owned by the caller */
} probe_t;

/** Formats one marker; call through PROBE_MARK. A longer text is a programmer's mistake. */
__attribute__((format(printf, 2, 3))) void probe_mark(probe_t *probe, const char *format, ...);

/** Formats one note; call through PROBE_NOTE. As probe_mark(). */
__attribute__((format(printf, 2, 3))) void probe_note(probe_t *probe, const char *format, ...);

#define PROBE_ARMED(probe) (atomic_load_explicit(&(probe)->armed, memory_order_relaxed))

/** A named place at which a crash can be asked for. Emits the marker "point name=NAME" first. */
#define PROBE_POINT(probe, name)                                                                   \
    do {                                                                                           \
        if (PROBE_ARMED(probe)) {                                                                  \
            probe_point((probe), (name));                                                          \
        }                                                                                          \
    } while (0)

#define PROBE_MARK(probe, ...)                                                                     \
    do {                                                                                           \
        if (PROBE_ARMED(probe)) {                                                                  \
            probe_mark((probe), __VA_ARGS__);                                                      \
        }                                                                                          \
    } while (0)

/** Says who makes a step that is no operation, where call stacks are recorded. */
#define PROBE_NOTE(probe, ...)                                                                     \
    do {                                                                                           \
        if (PROBE_ARMED(probe) && (probe)->note != NULL) {                                         \
            probe_note((probe), __VA_ARGS__);                                                      \
        }                                                                                          \
    } while (0)

/** Call through PROBE_POINT. */
void probe_point(probe_t *probe, const char *name);

#endif
