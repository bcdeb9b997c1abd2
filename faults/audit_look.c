/** What a traced process has, read from /proc and from its memory.

Bottom of tornpage-audit. A thread that is looked at stands still; what it shares with others may
change meanwhile. */
#include "faults/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define DELETED " (deleted)"
#define WALK_DEPTH 16

static struct {
    char root[PATH_MAX];
    size_t root_len;
    /* of the walk that looks for a file */
    const struct stat *wanted;
    look_place_t *found;
} look;

void look_set_root(const char *root)
{
    (void)snprintf(look.root, sizeof(look.root), "%s", root);
    look.root_len = strlen(look.root);
}

bool look_memory(pid_t tid, uint64_t at, void *data, size_t bytes)
{
    const struct iovec here = {data, bytes};
    const struct iovec there = {(void *)(uintptr_t)at, bytes};

    return process_vm_readv(tid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

/* A text of at most PATH_MAX bytes, read no further than the page in which it ends. */
static bool look_text(pid_t tid, uint64_t at, char *text)
{
    const uint64_t page_bytes = 4096;
    size_t used = 0;

    while (used < PATH_MAX) {
        size_t part = (size_t)(page_bytes - (at + used) % page_bytes);

        part = part < PATH_MAX - used ? part : PATH_MAX - used;
        if (!look_memory(tid, at + used, text + used, part)) {
            return false;
        }
        if (memchr(text + used, '\0', part) != NULL) {
            return true;
        }
        used += part;
    }
    return false;
}

static bool place_of(const char *text, look_place_t *place)
{
    const char *rest = text + look.root_len;

    if (strncmp(text, look.root, look.root_len) != 0 || (*rest != '\0' && *rest != '/')) {
        return false;
    }
    place->below = true;
    (void)snprintf(place->path, sizeof(place->path), "%s", *rest == '\0' ? "." : rest + 1);
    return true;
}

static bool read_link(const char *link, char *text)
{
    ssize_t got = readlink(link, text, PATH_MAX - 1);

    if (got <= 0) {
        return false;
    }
    text[got] = '\0';
    return true;
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)type;
    (void)walk;
    return st->st_ino == look.wanted->st_ino && st->st_dev == look.wanted->st_dev
           && place_of(path, look.found);
}

/* A name elsewhere of a file that has several: one of them may be below the folder. */
static void place_of_link(const struct stat *st, look_place_t *place)
{
    look.wanted = st;
    look.found = place;
    (void)nftw(look.root, visit, WALK_DEPTH, FTW_PHYS | FTW_MOUNT);
}

bool look_descriptor(pid_t tid, int fd, look_file_t *file)
{
    *file = (look_file_t){.place.unknown = true};
    char link[64];
    (void)snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)tid, fd);
    if (stat(link, &file->st) != 0) {
        return true; /* nobody can tell; the call may fail as well */
    }
    if (!S_ISREG(file->st.st_mode) && !S_ISDIR(file->st.st_mode)) {
        return false;
    }
    char text[PATH_MAX];
    if (!read_link(link, text)) {
        return true;
    }
    file->place.unknown = false;
    if (file->st.st_nlink == 0) {
        char *end = strstr(text, DELETED);

        if (end != NULL && end[sizeof(DELETED) - 1] == '\0') {
            *end = '\0';
        }
    }
    if (!place_of(text, &file->place) && S_ISREG(file->st.st_mode) && file->st.st_nlink > 1) {
        place_of_link(&file->st, &file->place);
    }
    return true;
}

/* Opened as the thread would: in its own root. -1: it is not there, or nobody can tell. */
static int open_in_root(pid_t tid, const char *path, int flags)
{
    struct open_how how = {.flags = (unsigned)(O_PATH | O_CLOEXEC | flags),
                           .resolve = RESOLVE_IN_ROOT};
    char text[64];
    int root;
    (void)snprintf(text, sizeof(text), "/proc/%d/root", (int)tid);
    root = open(text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        return -1;
    }
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    (void)close(root);
    return fd;
}

static bool path_of_open(int fd, char *text)
{
    char link[64];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    bool ok = read_link(link, text);
    (void)close(fd);
    return ok;
}

/* All but the last component resolved. */
static bool resolve_parent(pid_t tid, char *path, char *out)
{
    char *last = strrchr(path, '/');
    while (last != NULL && last > path && last[1] == '\0') { /* trailing slashes */
        *last = '\0';
        last = strrchr(path, '/');
    }
    int fd;
    if (last == NULL || last[1] == '\0' || strcmp(last, "/.") == 0 || strcmp(last, "/..") == 0) {
        fd = open_in_root(tid, path, 0);
        return fd >= 0 && path_of_open(fd, out);
    }
    *last = '\0';
    fd = open_in_root(tid, last == path ? "/" : path, O_DIRECTORY);
    if (fd < 0 || !path_of_open(fd, out)) {
        return false;
    }
    size_t len = strlen(out);
    len = len == 1 ? 0 : len;
    if (len + 1 + strlen(last + 1) >= PATH_MAX) {
        return false;
    }
    out[len] = '/';
    strcpy(out + len + 1, last + 1);
    return true;
}

static bool make_absolute(pid_t tid, int dirfd, const char *path, char *out)
{
    char link[64];
    size_t len = 0;

    if (path[0] != '/') {
        if (dirfd == AT_FDCWD) {
            (void)snprintf(link, sizeof(link), "/proc/%d/cwd", (int)tid);
        } else {
            (void)snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)tid, dirfd);
        }
        if (!read_link(link, out) || out[0] != '/') {
            return false;
        }
        len = strlen(out);
        if (len + 1 + strlen(path) >= PATH_MAX) {
            return false;
        }
        out[len++] = '/';
    }
    strcpy(out + len, path);
    return true;
}

void look_path(pid_t tid, int dirfd, uint64_t at, bool follow, look_place_t *place)
{
    *place = (look_place_t){.unknown = true};
    char text[PATH_MAX];
    char absolute[PATH_MAX];
    if (!look_text(tid, at, text) || !make_absolute(tid, dirfd, text, absolute)) {
        return;
    }
    int fd = follow ? open_in_root(tid, absolute, 0) : -1;
    char resolved[PATH_MAX];
    struct stat st;
    if (fd >= 0 ? path_of_open(fd, resolved) : resolve_parent(tid, absolute, resolved)) {
        place->unknown = false;
        place->exists = lstat(resolved, &st) == 0;
        if (place->exists) {
            place->no_data = S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode);
            place->device = st.st_dev;
            place->inode = st.st_ino;
        }
        (void)place_of(resolved, place);
    }
}

bool look_position(pid_t tid, int fd, uint64_t *position, uint64_t *flags)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "/proc/%d/fdinfo/%d", (int)tid, fd);
    FILE *info = fopen(name, "re");
    if (info == NULL) {
        return false;
    }
    bool ok = fscanf(info, "pos:\t%" SCNu64 "\nflags:\t%" SCNo64, position, flags) == 2;
    (void)fclose(info);
    return ok;
}

/* One line of /proc/PID/maps. */
typedef struct mapping {
    uint64_t from;
    uint64_t end;
    char permissions[5];
    char path[PATH_MAX];
} mapping_t;

static FILE *open_maps(pid_t tid)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "/proc/%d/maps", (int)tid);
    return fopen(name, "re");
}

static bool next_mapping(FILE *maps, mapping_t *map)
{
    char line[PATH_MAX + 128];
    int at = 0;

    while (fgets(line, sizeof(line), maps) != NULL) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &map->from, &map->end,
                   map->permissions, &at)
            == 3) {
            line[strcspn(line, "\n")] = '\0';
            (void)snprintf(map->path, sizeof(map->path), "%s", line + at);
            return true;
        }
    }
    return false;
}

bool look_shared_mapping(pid_t tid, uint64_t from, uint64_t bytes, look_place_t *place)
{
    FILE *maps = open_maps(tid);
    *place = (look_place_t){.unknown = maps == NULL};
    mapping_t map;
    bool found = false;
    while (maps != NULL && !found && next_mapping(maps, &map)) {
        found = map.permissions[3] == 's' && map.from < from + bytes && from < map.end
                && place_of(map.path, place);
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return found || place->unknown;
}

bool look_is_loaded(pid_t tid, const char *name)
{
    FILE *maps = open_maps(tid);
    mapping_t map;
    bool found = false;

    while (maps != NULL && !found && next_mapping(maps, &map)) {
        const char *last = strrchr(map.path, '/');
        found = last != NULL && strncmp(last + 1, name, strlen(name)) == 0;
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return found;
}

static bool read_line(const char *name, const char *begin, char *line, int bytes)
{
    FILE *file = fopen(name, "re");
    bool found = false;

    while (file != NULL && !found && fgets(line, bytes, file) != NULL) {
        found = strncmp(line, begin, strlen(begin)) == 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    line[found ? strcspn(line, "\n") : 0] = '\0';
    return found;
}

pid_t look_process(pid_t tid, char *name)
{
    char path[64];
    pid_t pid = tid;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    char line[256];
    if (read_line(path, "Tgid:", line, sizeof(line))) {
        pid = (pid_t)strtol(line + sizeof("Tgid:") - 1, NULL, 10);
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    if (!read_line(path, "", line, sizeof(line))) {
        strcpy(line, "?");
    }
    (void)snprintf(name, 16, "%.15s", line);
    return pid;
}
