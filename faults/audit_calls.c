/** Which system calls change files, and what of each is told.

Middle of tornpage-audit. One table: where a call has its descriptor, its paths, its place. What is
not in it changes no content and no name: attributes, times and permissions are no part of an image.
1. A call is told where it has changed something below the folder, or where nobody can tell; never
   where it failed.
2. Reading a name comes before the call, which may remove it; reading a place comes after it, which
   alone knows the end of a file.
3. What cannot be followed at all (a mapping, a ring, libaio, a 32-bit call) is told as a kind that
   no recording has. */
#include "faults/audit.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/audit.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "faults/space.h"

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "tornpage-audit knows x86-64 and arm64"
#endif
#define X32_BIT 0x40000000u
#define IOCBS_MAX 1024u
#define OPEN_CHANGES (O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

typedef enum call_kind {
    CALL_OPEN,
    CALL_WRITE,
    CALL_SYNC,
    CALL_SYNC_ALL,
    CALL_TRUNCATE,
    CALL_ALLOCATE,
    CALL_RENAME,
    CALL_LINK,
    CALL_SYMLINK,
    CALL_UNLINK,
    CALL_MKDIR,
    CALL_MKNOD,
    CALL_MAP,
    CALL_PROTECT,
    CALL_CLONE_RANGE,
    CALL_SUBMIT,
    CALL_RING
} call_kind_t;

static const char *const KINDS[] = {
    [CALL_OPEN] = "open",         [CALL_WRITE] = "write",       [CALL_SYNC] = "sync",
    [CALL_SYNC_ALL] = "sync_all", [CALL_TRUNCATE] = "truncate", [CALL_ALLOCATE] = "allocate",
    [CALL_RENAME] = "rename",     [CALL_LINK] = "link",         [CALL_SYMLINK] = "symlink",
    [CALL_UNLINK] = "unlink",     [CALL_MKDIR] = "mkdir",       [CALL_MKNOD] = "mknod",
    [CALL_MAP] = "map",           [CALL_PROTECT] = "map",       [CALL_CLONE_RANGE] = "other",
    [CALL_SUBMIT] = "other",      [CALL_RING] = "other",
};

/* Where a write goes. */
enum { AT_POSITION = -1, AT_POINTER = 0x10 };
#define NONE (-1)

typedef struct call_rule {
    long number;
    const char *name;
    call_kind_t kind;
    int fd;    /* word with the descriptor */
    int path;  /* with the path; the one before it has the folder where `at` */
    int other; /* with the second path */
    int place; /* with the offset, or AT_POSITION; AT_POINTER: a pointer to it */
    int size;  /* with a length */
    bool at;
} call_rule_t;

#define ON_FD(name, kind, fd, place, size)                                                         \
    {                                                                                              \
        SYS_##name, #name, kind, fd, NONE, NONE, place, size, false                                \
    }
#define ON_PATH(name, kind, path, other, place, at)                                                \
    {                                                                                              \
        SYS_##name, #name, kind, NONE, path, other, place, NONE, at                                \
    }

static const call_rule_t RULES[] = {
    ON_FD(write, CALL_WRITE, 0, AT_POSITION, NONE),
    ON_FD(writev, CALL_WRITE, 0, AT_POSITION, NONE),
    ON_FD(pwrite64, CALL_WRITE, 0, 3, NONE),
    ON_FD(pwritev, CALL_WRITE, 0, 3, NONE),
    ON_FD(pwritev2, CALL_WRITE, 0, 3, NONE),
    ON_FD(sendfile, CALL_WRITE, 0, AT_POSITION, NONE),
    ON_FD(splice, CALL_WRITE, 2, AT_POINTER | 3, NONE),
    ON_FD(copy_file_range, CALL_WRITE, 2, AT_POINTER | 3, NONE),
    ON_FD(fsync, CALL_SYNC, 0, NONE, NONE),
    ON_FD(fdatasync, CALL_SYNC, 0, NONE, NONE),
    ON_FD(syncfs, CALL_SYNC_ALL, 0, NONE, NONE),
    ON_FD(sync, CALL_SYNC_ALL, NONE, NONE, NONE),
    ON_FD(ftruncate, CALL_TRUNCATE, 0, 1, NONE),
    ON_FD(fallocate, CALL_ALLOCATE, 0, 2, 3),
    ON_FD(open_by_handle_at, CALL_OPEN, NONE, NONE, NONE),
    ON_FD(mmap, CALL_MAP, 4, NONE, NONE),
    ON_FD(mprotect, CALL_PROTECT, NONE, NONE, NONE),
    ON_FD(pkey_mprotect, CALL_PROTECT, NONE, NONE, NONE),
    ON_FD(ioctl, CALL_CLONE_RANGE, 0, NONE, NONE),
    ON_FD(io_submit, CALL_SUBMIT, NONE, NONE, NONE),
    ON_FD(io_uring_setup, CALL_RING, NONE, NONE, NONE),
    ON_PATH(truncate, CALL_TRUNCATE, 0, NONE, 1, false),
    ON_PATH(openat, CALL_OPEN, NONE, NONE, NONE, true),
    ON_PATH(openat2, CALL_OPEN, NONE, NONE, NONE, true),
    ON_PATH(renameat2, CALL_RENAME, 1, 3, NONE, true),
    ON_PATH(linkat, CALL_LINK, 3, NONE, NONE, true),
    ON_PATH(symlinkat, CALL_SYMLINK, 2, NONE, NONE, true),
    ON_PATH(unlinkat, CALL_UNLINK, 1, NONE, NONE, true),
    ON_PATH(mkdirat, CALL_MKDIR, 1, NONE, NONE, true),
    ON_PATH(mknodat, CALL_MKNOD, 1, NONE, NONE, true),
#ifdef SYS_renameat
    ON_PATH(renameat, CALL_RENAME, 1, 3, NONE, true),
#endif
#ifdef SYS_open /* arm64 has none of these */
    ON_PATH(open, CALL_OPEN, NONE, NONE, NONE, false),
    ON_PATH(creat, CALL_OPEN, NONE, NONE, NONE, false),
    ON_PATH(rename, CALL_RENAME, 0, 1, NONE, false),
    ON_PATH(link, CALL_LINK, 1, NONE, NONE, false),
    ON_PATH(symlink, CALL_SYMLINK, 1, NONE, NONE, false),
    ON_PATH(unlink, CALL_UNLINK, 0, NONE, NONE, false),
    ON_PATH(rmdir, CALL_UNLINK, 0, NONE, NONE, false),
    ON_PATH(mkdir, CALL_MKDIR, 0, NONE, NONE, false),
    ON_PATH(mknod, CALL_MKNOD, 0, NONE, NONE, false),
#endif
};
#define N_RULES (sizeof(RULES) / sizeof(RULES[0]))

/* Some shared mapping of a file below the folder is there, or was. */
static bool calls_mapped;

static const call_rule_t *rule_of(long number)
{
    for (size_t i = 0; i < N_RULES; i++) {
        if (RULES[i].number == number) {
            return &RULES[i];
        }
    }
    return NULL;
}

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define LOAD_WORD(n) LOAD(offsetof(struct seccomp_data, args) + 8u * (uint32_t)(n))
#define IF(test, value, yes, no) BPF_JUMP(BPF_JMP | (test) | BPF_K, (uint32_t)(value), yes, no)
#define STOP BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE)
#define FOREIGN BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | 1)
#define PASS BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* A program is long before main what it is later: the many calls of a loader and an allocator must
not stop it. */
static size_t filter_rule(struct sock_filter *at, const call_rule_t *rule)
{
    const struct sock_filter open_flags[] = {IF(BPF_JEQ, rule->number, 0, 4),
                                             LOAD_WORD(rule->at ? 2 : 1),
                                             IF(BPF_JSET, OPEN_CHANGES, 0, 1), STOP, PASS};
    /* Anonymous memory is no file's, and a private mapping changes none. */
    const struct sock_filter shared[] = {
        IF(BPF_JEQ, rule->number, 0, 5), LOAD_WORD(3), IF(BPF_JSET, MAP_ANONYMOUS, 2, 0),
        IF(BPF_JSET, MAP_SHARED, 0, 1),  STOP,         PASS};
    const struct sock_filter writable[] = {IF(BPF_JEQ, rule->number, 0, 4), LOAD_WORD(2),
                                           IF(BPF_JSET, PROT_WRITE, 0, 1), STOP, PASS};
    const struct sock_filter requests[] = {IF(BPF_JEQ, rule->number, 0, 10),
                                           LOAD_WORD(1),
                                           IF(BPF_JEQ, FICLONE, 6, 0),
                                           IF(BPF_JEQ, FICLONERANGE, 5, 0),
                                           IF(BPF_JEQ, RESVSP, 4, 0),
                                           IF(BPF_JEQ, RESVSP64, 3, 0),
                                           IF(BPF_JEQ, UNRESVSP, 2, 0),
                                           IF(BPF_JEQ, UNRESVSP64, 1, 0),
                                           IF(BPF_JEQ, ZERO_RANGE, 0, 1),
                                           STOP,
                                           PASS};
    const struct sock_filter always[] = {IF(BPF_JEQ, rule->number, 0, 1), STOP};
    const struct sock_filter *part = always;
    size_t bytes = sizeof(always);

    if (rule->kind == CALL_MAP) {
        part = shared;
        bytes = sizeof(shared);
    } else if (rule->kind == CALL_PROTECT) {
        part = writable;
        bytes = sizeof(writable);
    } else if (rule->kind == CALL_CLONE_RANGE) {
        part = requests;
        bytes = sizeof(requests);
    } else if (rule->kind == CALL_OPEN && strcmp(rule->name, "openat2") != 0
               && strcmp(rule->name, "creat") != 0
               && strcmp(rule->name, "open_by_handle_at") != 0) {
        part = open_flags;
        bytes = sizeof(open_flags);
    }
    memcpy(at, part, bytes);
    return bytes / sizeof(*part);
}

const struct sock_filter *calls_filter(size_t *length)
{
    static struct sock_filter filter[16 * (N_RULES + 1)];
    const struct sock_filter head[] = {
        LOAD(offsetof(struct seccomp_data, arch)), IF(BPF_JEQ, OWN_ARCH, 1, 0), FOREIGN,
        LOAD(offsetof(struct seccomp_data, nr)),   IF(BPF_JGE, X32_BIT, 0, 1),  FOREIGN};
    size_t used = sizeof(head) / sizeof(head[0]);

    memcpy(filter, head, sizeof(head));
    for (size_t i = 0; i < N_RULES; i++) {
        used += filter_rule(filter + used, &RULES[i]);
    }
    filter[used++] = (struct sock_filter)PASS;
    *length = used;
    return filter;
}

static bool begin_submit(pid_t tid, audit_call_t *call)
{
    uint64_t count = call->words[1] < IOCBS_MAX ? call->words[1] : IOCBS_MAX;

    for (uint64_t i = 0; i < count; i++) {
        struct iocb call_back;
        uint64_t at;

        if (!look_memory(tid, call->words[2] + 8 * i, &at, sizeof(at))
            || !look_memory(tid, at, &call_back, sizeof(call_back))) {
            call->entry.place = (look_place_t){.unknown = true};
            return true;
        }
        if (call_back.aio_lio_opcode != IOCB_CMD_PREAD
            && call_back.aio_lio_opcode != IOCB_CMD_PREADV
            && look_descriptor(tid, (int)call_back.aio_fildes, &call->file)
            && (call->file.place.below || call->file.place.unknown)) {
            call->entry.place = call->file.place;
            return true;
        }
    }
    return false;
}

static bool begin_map(audit_call_t *call)
{
    if (!call->entry.place.below && !call->entry.place.unknown) {
        return false;
    }
    calls_mapped = true;
    return (call->words[2] & PROT_WRITE) != 0;
}

/* Two names of one file: a rename of one to the other leaves both. */
static bool is_same_file(const look_place_t *one, const look_place_t *other)
{
    return one->exists && other->exists && one->device == other->device
           && one->inode == other->inode;
}

/* A rename counts where one of its names is below, a link where its new one is. */
static bool begin_paths(pid_t tid, const call_rule_t *rule, audit_call_t *call)
{
    audit_entry_t *entry = &call->entry;
    bool follow = rule->kind == CALL_TRUNCATE;
    int dir = rule->at ? (int)call->words[rule->path - 1] : AT_FDCWD;

    look_path(tid, dir, call->words[rule->path], follow, &entry->place);
    if (rule->other != NONE) {
        dir = rule->at ? (int)call->words[rule->other - 1] : AT_FDCWD;
        look_path(tid, dir, call->words[rule->other], false, &entry->other);
    }
    if (entry->place.no_data && !entry->other.exists) {
        return false; /* of a socket or a FIFO, which no image has */
    }
    if (rule->kind == CALL_RENAME && is_same_file(&entry->place, &entry->other)) {
        return false;
    }
    return entry->place.below || entry->place.unknown || entry->other.below || entry->other.unknown;
}

/* A FIFO and a socket hold no data: no image has them. */
static bool makes_file(uint64_t mode)
{
    return !S_ISFIFO((mode_t)mode) && !S_ISSOCK((mode_t)mode);
}

bool calls_begin(pid_t tid, audit_call_t *call)
{
    const call_rule_t *rule = rule_of(call->number);
    audit_entry_t *entry = &call->entry;

    *entry = (audit_entry_t){0};
    if (rule == NULL) {
        return false;
    }
    entry->call = rule->name;
    entry->kind = KINDS[rule->kind];
    if (rule->fd != NONE) {
        if (!look_descriptor(tid, (int)call->words[rule->fd], &call->file)) {
            return false;
        }
        entry->place = call->file.place;
    }
    switch (rule->kind) {
    case CALL_OPEN:
        return true; /* where it leads is known when it has ended */
    case CALL_MAP:
        return begin_map(call);
    case CALL_PROTECT:
        return calls_mapped
               && look_shared_mapping(tid, call->words[0], call->words[1], &entry->place);
    case CALL_SUBMIT:
        return begin_submit(tid, call);
    case CALL_MKNOD:
        return makes_file(call->words[rule->path + 1]) && begin_paths(tid, rule, call);
    case CALL_SYNC_ALL:
        entry->place.unknown = rule->fd == NONE;
        break;
    case CALL_RING:
        entry->place = (look_place_t){.unknown = true};
        return true;
    default:
        break;
    }
    return rule->path != NONE ? begin_paths(tid, rule, call)
                              : entry->place.below || entry->place.unknown;
}

static uint64_t open_flags_of(pid_t tid, const audit_call_t *call)
{
    struct open_how how = {0};

    if (call->number == SYS_openat2) {
        /* Not to be read: as if it changed something. */
        return look_memory(tid, call->words[2], &how.flags, sizeof(how.flags)) ? how.flags
                                                                               : O_TRUNC;
    }
    if (call->number == SYS_openat || call->number == SYS_open_by_handle_at) {
        return call->words[2];
    }
#ifdef SYS_open
    if (call->number == SYS_creat) {
        return O_CREAT | O_WRONLY | O_TRUNC;
    }
#endif
    return call->words[1];
}

static bool end_open(pid_t tid, audit_call_t *call, int64_t result)
{
    uint64_t flags = open_flags_of(tid, call);
    look_place_t *place = &call->entry.place;
    if ((flags & OPEN_CHANGES) == 0 || !look_descriptor(tid, (int)result, &call->file)) {
        return false;
    }
    *place = call->file.place;
    const char temporary[] = "/#tmpfile";
    char *last;
    if ((flags & O_TMPFILE) == O_TMPFILE && place->below) { /* as the preload names it */
        last = strrchr(place->path, '/');
        last = last == NULL ? place->path : last;
        if (last == place->path) {
            *last++ = '.';
        }
        strcpy(last, temporary);
    }
    return place->below || place->unknown;
}

/* The end of what a write has written, where only the kernel knows it. */
static bool end_of_write(pid_t tid, const call_rule_t *rule, const audit_call_t *call,
                         uint64_t *end)
{
    uint64_t position = 0;
    uint64_t flags = 0;
    int fd = (int)call->words[rule->fd];
    bool known = look_position(tid, fd, &position, &flags);
    bool appends = (flags & O_APPEND) != 0
                   || (call->number == SYS_pwritev2 && (call->words[5] & RWF_APPEND) != 0);
    bool sequential = rule->place == AT_POSITION
                      || (call->number == SYS_pwritev2 && call->words[3] == UINT64_MAX);
    if (rule->place != AT_POSITION && (rule->place & AT_POINTER) != 0) {
        uint64_t at = call->words[rule->place & ~AT_POINTER];

        if (at != 0) {
            return look_memory(tid, at, end, sizeof(*end));
        }
        sequential = true;
    }
    if (sequential) {
        *end = position;
        return known;
    }
    if (!appends || !known) {
        return false;
    }
    look_file_t file;
    (void)look_descriptor(tid, fd, &file);
    *end = (uint64_t)file.st.st_size;
    return true;
}

static bool end_write(pid_t tid, const call_rule_t *rule, audit_call_t *call, int64_t result)
{
    audit_entry_t *entry = &call->entry;
    entry->length = (uint64_t)result;
    uint64_t end = 0;
    if (end_of_write(tid, rule, call, &end)) {
        entry->offset = end - (uint64_t)result;
    } else {
        entry->offset = rule->place == AT_POSITION || (rule->place & AT_POINTER) != 0
                            ? UINT64_MAX
                            : call->words[rule->place];
    }
    return result > 0;
}

bool calls_end(pid_t tid, audit_call_t *call, int64_t result)
{
    const call_rule_t *rule = rule_of(call->number);
    audit_entry_t *entry = &call->entry;

    if (rule == NULL || result < 0) {
        return false;
    }
    if (rule->kind == CALL_OPEN) {
        return end_open(tid, call, result);
    }
    if (rule->kind == CALL_WRITE) {
        return end_write(tid, rule, call, result);
    }
    entry->offset = rule->place == NONE ? 0 : call->words[rule->place];
    entry->length = rule->size == NONE ? 0 : call->words[rule->size];
    return true;
}

void calls_foreign(audit_call_t *call)
{
    call->entry = (audit_entry_t){.call = "32-bit call", .kind = "other", .place.unknown = true};
}
