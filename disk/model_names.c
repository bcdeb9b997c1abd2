/* The names of crash models, and what each of them keeps, in the words of docs/FAULT_MODEL.md.

Place: beside models.c. */
#include <string.h>

#include "base/check.h"
#include "disk/models.h"

typedef struct model_text {
    const char *name;
    const char *what; /**< of what was not fsynced, kept is */
} model_text_t;

static const model_text_t MODELS[MODEL_KINDS] = {
    [MODEL_ALL_PERSISTED] = {"all-persisted", "everything: the kill model"},
    [MODEL_NONE_PERSISTED] = {"none-persisted", "nothing"},
    [MODEL_ONE_DROPPED] = {"one-dropped", "all but one"},
    [MODEL_ONE_PERSISTED] = {"one-persisted", "one alone"},
    [MODEL_ONE_TORN] = {"one-torn",
                        "all, one write of them torn: a prefix, a suffix, a mask with a "
                        "hole"},
    [MODEL_SUBSET] = {"subset", "each with a probability drawn by seed, some of it torn"},
    [MODEL_ORDERED] = {"ordered", "all up to one write, in order"},
    [MODEL_LOG_CUT] = {"log-cut", "all, but of the log write that happened last only the first "
                                  "sectors: every end that the log can have is tried"},
    [MODEL_KILL] = {"kill",
                    "all, or of the last write only the first sectors; with --depth: nothing "
                    "of it has become durable, and a power loss during the recovery may take "
                    "it"},
    [MODEL_BY_FILE] = {"by-file", "of each file all, nothing, or all up to one write"},
    [MODEL_ONE_PART] = {"one-part",
                        "a part of one write alone: a prefix, a suffix, a mask with a hole"},
    [MODEL_OVERLAPPED] = {"overlapped",
                          "all, but of the writes that overlapped an fsync of their file none, or "
                          "all but one"},
    [MODEL_SIZE_FIRST] = {"size-first", "all, but of one append only the new size: zeros or old "
                                        "bytes are there, as the file system has it"},
};

const char *model_name(model_t model)
{
    CHECK(model < MODEL_KINDS);
    return MODELS[model].name;
}

const char *model_what(model_t model)
{
    CHECK(model < MODEL_KINDS);
    return MODELS[model].what;
}

bool model_parse(const char *text, size_t len, model_t *out)
{
    for (uint32_t i = 0; i < MODEL_KINDS; i++) {
        if (strlen(MODELS[i].name) == len && memcmp(MODELS[i].name, text, len) == 0) {
            *out = (model_t)i;
            return true;
        }
    }
    return false;
}

const char *tear_name(tear_t tear)
{
    static const char *const NAMES[TEAR_KINDS] = {"prefix", "suffix", "interior", "dropped"};
    CHECK(tear < TEAR_KINDS);
    return NAMES[tear];
}
