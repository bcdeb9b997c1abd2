/** Canaries of the rules on bytes: copies of a recorded run, each damaged in one thing, which the
rules must condemn. */
#ifndef EXPLORER_TRACE_CANARY_H
#define EXPLORER_TRACE_CANARY_H

#include "explorer/judge/canaries.h"
#include "explorer/judge/trace_read.h"

/** Reads the recording of a fault-free run as trace_load() does, and holds each damaged copy of it
against the rules. Where the run itself breaks a rule all are untried. config: as of trace_load();
its `found`, `ctx` and `before` are not used. The image holds what the process found, and is left as
it was. One copy per canary is read in a process of its own.
@return DB_ERROR and a message: the recording cannot be read */
WARN_UNUSED dberr_t trace_canaries(const char *path, image_t *image, const trace_config_t *config,
                                   canaries_t *out, err_sink_t *err);

#endif
