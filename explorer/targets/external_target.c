/* A target that reads real files. Place: above external.c and target.c. */
#include "explorer/targets/external_target.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct files {
    const external_config_t *config;
    image_t *image;
    external_t directory; /**< of this process, opened at its first state */
} files_t;

static void *files_open(const void *config, image_t *image, const rules_t *history)
{
    files_t *files = mem_alloc(sizeof(*files));
    (void)history;
    *files = (files_t){.config = config, .image = image};
    return files;
}

/** The directory is named after the worker, whose children follow one another: each clears what the
last one left, however that ended. */
static dberr_t files_judge(void *self, const target_case_t *c, outcome_t *outcome, err_sink_t *err)
{
    files_t *files = self;
    dberr_t status = DB_SUCCESS;
    if (files->directory.config == NULL) {
        char dir[PATH_LEN_MAX + 1];
        (void)snprintf(dir, sizeof(dir), "%.200s/%ld", files->config->base, (long)getppid());
        status = external_open(&files->directory, files->config, dir, err);
    }
    const external_case_t what = {
        .expected = c->expected, .twice = target_case_is_twice(c), .record = c->record};
    return status == DB_SUCCESS
               ? external_judge(&files->directory, files->image, &what, outcome, err)
               : status;
}

static dberr_t files_close(void *self, err_sink_t *err)
{
    files_t *files = self;
    dberr_t status =
        files->directory.config != NULL ? external_close(&files->directory, err) : DB_SUCCESS;
    free(files);
    return status;
}

target_kind_t external_target(const external_config_t *config)
{
    return (target_kind_t){.name = config->verifier->name,
                           .config = config,
                           .has_deadline = true,
                           .open = files_open,
                           .judge = files_judge,
                           .close = files_close};
}
