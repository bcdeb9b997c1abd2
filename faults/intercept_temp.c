/** Interposed makers of temporary names: mkstemp and its like, mkdtemp.

Top of the preload. The C library opens such a file where nobody can stand in front; below the root
they are made here, by open() and mkdir(). The names count up in each process instead of being
drawn: a deterministic program stays one. */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/layer.h"
#include "faults/real.h"

#define TEMP_LETTERS 6u
#define TEMP_TRIES 238328u /* as many as the C library makes */

/* The next name, neither of this process's past nor like its neighbour. */
static void temp_name(char *letters)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static _Atomic uint64_t count;
    uint64_t value = atomic_fetch_add(&count, 1) * 0x9e3779b97f4a7c15u >> 16;

    for (unsigned i = 0; i < TEMP_LETTERS; i++) {
        letters[i] = LETTERS[value % (sizeof(LETTERS) - 1)];
        value /= sizeof(LETTERS) - 1;
    }
}

/* Where the letters go; NULL: the template has none. */
static char *temp_place(char *path, int suffix)
{
    size_t len = strlen(path);
    if (suffix < 0 || len < TEMP_LETTERS + (size_t)suffix) {
        return NULL;
    }
    char *at = path + len - (size_t)suffix - TEMP_LETTERS;
    return strncmp(at, "XXXXXX", TEMP_LETTERS) == 0 ? at : NULL;
}

static bool temp_is_ours(const char *path)
{
    place_t place;

    return layer_is_on() && files_find_place(AT_FDCWD, path, false, &place);
}

static int temp_open(char *path, int suffix, int flags)
{
    char *letters = temp_place(path, suffix);
    if (letters == NULL || !temp_is_ours(path)) {
        return real_get()->mkostemps(path, suffix, flags);
    }
    flags = (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL;
    errno = EEXIST;
    int fd = -1;
    for (unsigned i = 0; fd < 0 && errno == EEXIST && i < TEMP_TRIES; i++) {
        temp_name(letters);
        fd = open(path, flags, 0600);
    }
    return fd;
}

LAYER_EXPORT int mkstemp(char *path)
{
    return temp_open(path, 0, 0);
}

LAYER_EXPORT int mkstemp64(char *path)
{
    return temp_open(path, 0, 0);
}

LAYER_EXPORT int mkostemp(char *path, int flags)
{
    return temp_open(path, 0, flags);
}

LAYER_EXPORT int mkostemp64(char *path, int flags)
{
    return temp_open(path, 0, flags);
}

LAYER_EXPORT int mkstemps(char *path, int suffix)
{
    return temp_open(path, suffix, 0);
}

LAYER_EXPORT int mkstemps64(char *path, int suffix)
{
    return temp_open(path, suffix, 0);
}

LAYER_EXPORT int mkostemps(char *path, int suffix, int flags)
{
    return temp_open(path, suffix, flags);
}

LAYER_EXPORT int mkostemps64(char *path, int suffix, int flags)
{
    return temp_open(path, suffix, flags);
}

LAYER_EXPORT char *mkdtemp(char *path)
{
    char *letters = temp_place(path, 0);
    int made = -1;

    if (letters == NULL || !temp_is_ours(path)) {
        return real_get()->mkdtemp(path);
    }
    errno = EEXIST;
    for (unsigned i = 0; made != 0 && errno == EEXIST && i < TEMP_TRIES; i++) {
        temp_name(letters);
        made = mkdir(path, 0700);
    }
    return made == 0 ? path : NULL;
}
