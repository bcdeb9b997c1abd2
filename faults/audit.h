/** tornpage-audit: which system calls change what lies below a folder, looked at from outside of
the program.

Place: a program of its own; nothing of the preload is in it. From the bottom to the top: audit_look
(what a traced process has: memory, descriptors, paths, mappings), audit_calls (which calls, and
what of them is told), audit (the processes). */
#ifndef FAULTS_AUDIT_H
#define FAULTS_AUDIT_H

#include <limits.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/** Where something lies, relative to the folder; "." is the folder itself. */
typedef struct look_place {
    bool below;   /**< it lies below the folder, and path says where */
    bool unknown; /**< nobody can tell where it lies */
    bool exists;  /**< of a path: something is there */
    bool no_data; /**< a socket or a FIFO is */
    dev_t device; /**< of what is there */
    ino_t inode;
    char path[PATH_MAX];
} look_place_t;

/** What a descriptor of a traced thread leads to. */
typedef struct look_file {
    look_place_t place;
    struct stat st;
} look_file_t;

/** Sets the folder: absolute, without symbolic links. */
void look_set_root(const char *root);

/** Bytes of a traced thread's memory. @return false if they cannot be read as a whole */
bool look_memory(pid_t tid, uint64_t at, void *data, size_t bytes);

/** The file behind a descriptor. A hard link of a file below the folder lies below it, whatever its
own path is.
@return false if it is neither a regular file nor a directory */
bool look_descriptor(pid_t tid, int fd, look_file_t *file);

/** Where a path argument at this address leads; follow: through a symbolic link as last
component. */
void look_path(pid_t tid, int dirfd, uint64_t at, bool follow, look_place_t *place);

/** Position of a descriptor in its file, and its open flags. */
bool look_position(pid_t tid, int fd, uint64_t *position, uint64_t *flags);

/** Whether a shared mapping of a file below the folder is in this range; place says of which. */
bool look_shared_mapping(pid_t tid, uint64_t from, uint64_t bytes, look_place_t *place);

/** Whether a library of this file name is loaded. */
bool look_is_loaded(pid_t tid, const char *name);

/** Process of a thread and the name of its program (16 bytes). */
pid_t look_process(pid_t tid, char *name);

/** One system call as it is told. */
typedef struct audit_entry {
    const char *call; /**< its name, static; NULL: there is none to be told */
    const char *kind; /**< what it does: see faults/README.md */
    look_place_t place;
    look_place_t other; /**< the second name of a rename or a link */
    uint64_t offset;
    uint64_t length;
} audit_entry_t;

/** A call under way, between its two stops. */
typedef struct audit_call {
    long number;
    uint64_t words[6];
    look_file_t file; /**< of its descriptor, if it has one */
    audit_entry_t entry;
} audit_call_t;

/** The filter that stops a thread at the calls that calls_begin() knows. @return its length;
statements stay */
const struct sock_filter *calls_filter(size_t *length);

/** At the entry of a call, with number and words set. @return whether its end is of interest */
bool calls_begin(pid_t tid, audit_call_t *call);

/** At its end. @return whether it has changed something below the folder, or nobody can tell: entry
says what */
bool calls_end(pid_t tid, audit_call_t *call, int64_t result);

/** A call of another machine's kind, as of a 32-bit program. */
void calls_foreign(audit_call_t *call);

#endif
