/** An fsync that is repeated as long as a write to its descriptor was under way at the same
time: what a program writes while it syncs is covered, whatever the program makes of it. With
FOLDERS a rename ends when the folders of both names are fsynced. Loaded before the recorder,
which sees each. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define DESCRIPTORS 65536
#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

typedef ssize_t (*pwrite_t)(int fd, const void *bytes, size_t len, off_t offset);
typedef int (*sync_t)(int fd);
typedef int (*rename_t)(const char *from, const char *to);

static atomic_uint begun[DESCRIPTORS];
static atomic_uint ended[DESCRIPTORS];

static int is_counted(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS;
}

static ssize_t write_by(const char *name, int fd, const void *bytes, size_t len, off_t offset)
{
    if (is_counted(fd)) {
        begun[fd]++;
    }
    ssize_t n = NEXT(pwrite_t, name)(fd, bytes, len, offset);
    if (is_counted(fd)) {
        ended[fd]++;
    }
    return n;
}

static int sync_by(const char *name, int fd)
{
    unsigned before;
    int result;
    do {
        before = is_counted(fd) ? ended[fd] : 0;
        result = NEXT(sync_t, name)(fd);
    } while (result == 0 && is_counted(fd) && begun[fd] != before);
    return result;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
    return write_by("pwrite", fd, bytes, len, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset)
{
    return write_by("pwrite64", fd, bytes, len, offset);
}

int fsync(int fd)
{
    return sync_by("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_by("fdatasync", fd);
}

#ifdef FOLDERS
/** What cannot be synced ends the program: a control that does nothing would be no control. */
static void sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash != NULL ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0 || fsync(fd) != 0) {
        abort();
    }
    close(fd);
    free(folder);
}

int rename(const char *from, const char *to)
{
    int result = NEXT(rename_t, "rename")(from, to);
    int error = errno;
    if (result == 0) {
        sync_folder_of(from);
        sync_folder_of(to);
    }
    errno = error;
    return result;
}
#endif
