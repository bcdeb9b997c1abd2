/** The verdict on one state of a target that reads real files: the image is materialised in a directory, on
tmpfs if it is to be fast, and a verifier recovers it there. */
#ifndef EXPLORER_EXTERNAL_H
#define EXPLORER_EXTERNAL_H

#include "explorer/image/image.h"
#include "explorer/judge/allowed.h"
#include "explorer/targets/verifier.h"

/** Which target, and where its images are laid out: a directory that holds one for each process. */
typedef struct external_config {
    const verifier_t *verifier;
    const char *base;
} external_config_t;

typedef struct external {
    const verifier_t *verifier;
    int dir_fd;
    char dir[PATH_LEN_MAX + 1];
} external_t;

/** dir: of this process alone, made if it is not there; what is in it goes. DB_IO_ERROR and a message. */
WARN_UNUSED dberr_t external_open(external_t *external, const verifier_t *verifier, const char *dir,
                                  err_sink_t *err);
/** Removes the directory with what is in it. */
void external_close(external_t *external);

/** Recovers, checks, compares with the prefixes low to high. The image is not touched.
twice: opens what the first recovery left once more: the state must be the same (I17).
@return other than DB_SUCCESS: the machine failed (no space, no memory), and the verdict says nothing */
WARN_UNUSED dberr_t external_judge(external_t *external, const image_t *image,
                                   const allowed_t *allowed, uint32_t low, uint32_t high,
                                   bool twice, verdict_t *verdict, err_sink_t *err);

#endif
