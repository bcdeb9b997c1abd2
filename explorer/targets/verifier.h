/** What the explorer asks of a target that it does not carry inside: recover a crashed directory,
and say what is in it. The answer has the form of the engine's scanner, so that one judge serves all
targets. */
#ifndef EXPLORER_VERIFIER_H
#define EXPLORER_VERIFIER_H

#include "base/err.h"
#include "check/check.h"

typedef struct verifier {
    const char *name;
    void *self; /**< the verifier's own; handed to its functions */

    /** Opens the image in dir, an existing directory whose files it may change, which recovers it;
    checks it, and digests every table and index by the oracle's definition.
    @return DB_SUCCESS: the report is complete, whatever it found; the caller frees it by
    check_report_free(). DB_UNRECOVERABLE: the target refused, or did not come to an end; err says
    why in the target's own words. DB_IO_ERROR, DB_OUT_OF_MEMORY: the machine failed, not the
    target. DB_INTERRUPTED: the same by all that is known of this one recovery, which was ended from
    outside, or says so itself. DB_ERROR: what it has said, now or of an earlier image, cannot be
    told apart: no verdict counts. */
    dberr_t (*run)(void *self, const char *dir, check_report_t *report, err_sink_t *err);

    /** The same by a process of its own that is recorded: the file `trace` gets what it does below
    dir until its end (faults/trace.h). NULL: its recovery cannot be recorded. */
    dberr_t (*record)(void *self, const char *dir, const char *trace, check_report_t *report,
                      err_sink_t *err);

    /** Ends what it has started; NULL: nothing. DB_ERROR as of run. */
    dberr_t (*stop)(void *self, err_sink_t *err);
} verifier_t;

#endif
