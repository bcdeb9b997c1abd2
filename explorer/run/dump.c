/* The files of a state. Place: above image.c, below state.c. */
#include "explorer/run/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct dump {
    const image_t *image;
    const char *dir;
} dump_t;

/** The folders above a path. */
static void dump_parents(const dump_t *dump, const char *path)
{
    char full[4096];
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        (void)snprintf(full, sizeof(full), "%s/%.*s", dump->dir, (int)(slash - path), path);
        (void)mkdir(full, 0777);
    }
}

static void dump_dir(void *ctx, uint32_t dir)
{
    const dump_t *dump = ctx;
    const char *path = image_name_text(dump->image, dir);
    dump_parents(dump, path);
    char full[4096];
    (void)snprintf(full, sizeof(full), "%s/%s", dump->dir, path);
    (void)mkdir(full, 0777);
}

static void dump_file(void *ctx, uint32_t name, uint32_t inode)
{
    const dump_t *dump = ctx;
    const char *path = image_name_text(dump->image, name);
    dump_parents(dump, path);
    char full[4096];
    (void)snprintf(full, sizeof(full), "%s/%s", dump->dir, path);
    FILE *file = fopen(full, "we");
    bool ok = file != NULL && ftruncate(fileno(file), (off_t)image_size(dump->image, inode)) == 0;
    uint64_t at = 0;
    uint64_t len = 0;
    for (const byte *bytes; ok && (bytes = image_data(dump->image, inode, &at, &len)) != NULL;
         at += len) {
        ok = fseeko(file, (off_t)at, SEEK_SET) == 0 && fwrite(bytes, 1, len, file) == len;
    }
    if (!ok) {
        (void)fprintf(stderr, "tornpage-explore: %s: %s\n", full, strerrordesc_np(errno));
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

void dump_image(const image_t *image, const char *dir)
{
    dump_t dump = {.image = image, .dir = dir};
    (void)mkdir(dump.dir, 0777);
    image_each(dump.image, dump_file, &dump);
    image_each_dir(dump.image, dump_dir, &dump);
}
