/** The verdict on one state of a target that reads real files: the image is materialised in a
directory, on tmpfs if it is to be fast, and a verifier recovers it there. */
#ifndef EXPLORER_EXTERNAL_H
#define EXPLORER_EXTERNAL_H

#include "disk/image.h"
#include "explorer/judge/outcome.h"
#include "explorer/judge/trace_read.h"
#include "explorer/targets/verifier.h"

#define EXTERNAL_ATTEMPTS 3U /**< at a state whose recovery is ended from outside */

/** Which target, and where its images are laid out: a directory that holds one for each process. */
typedef struct external_config {
    const verifier_t *verifier;
    const char *base;
    /** the folder under whose path images are recovered, as the run was at; NULL: under their own
    */
    const char *at;
    bool any_state;            /**< no state is promised, only that recovery comes to an end */
    const path_set_t *ignored; /**< files that are no part of an image */
    const site_map_t *sites;   /**< of what recovery writes; NULL: as trace_read.h says */
} external_config_t;

typedef struct external {
    const external_config_t *config;
    int dir_fd;
    char dir[PATH_LEN_MAX + 1];
    char trace[PATH_LEN_MAX + 8]; /**< of a recovery that is recorded: beside the directory */
} external_t;

/** A state to judge. */
typedef struct external_case {
    const expected_t *expected;
    /** open what the first recovery left once more: the state must be the same (I17) */
    bool twice;
    fs_list_t *record; /**< gets what the recovery does to the files; may be NULL */
} external_case_t;

/** dir: of this process alone, made if it is not there; what is in it goes. DB_IO_ERROR and a
message. */
WARN_UNUSED dberr_t external_open(external_t *external, const external_config_t *config,
                                  const char *dir, err_sink_t *err);
/** Ends the verifier; removes the directory with what is in it. DB_ERROR: no verdict counts
(verifier_t.stop). */
WARN_UNUSED dberr_t external_close(external_t *external, err_sink_t *err);

/** Removes a directory with what is in it, as the processes have left it. */
void external_remove(const char *dir);

/** Recovers, checks, compares. The image is left as it was. outcome: as after outcome_init().
@return other than DB_SUCCESS: the machine failed (no space, no memory), what recovery did cannot be
followed, or what it says cannot be told apart, and the verdict says nothing. A recovery that is
ended from outside, or says that the machine failed, is tried again before that is believed */
WARN_UNUSED dberr_t external_judge(external_t *external, image_t *image, const external_case_t *c,
                                   outcome_t *outcome, err_sink_t *err);

#endif
