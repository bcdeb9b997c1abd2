/** The calls of the file system: ops_names.c, ops_files.c and ops_attr.c. */
#ifndef FAULTS_FS_OPS_H
#define FAULTS_FS_OPS_H

#include "faults/fs/caller.h"
#include "faults/fs/tree.h"

#include <dirent.h>

#define OPS_FOREVER 1e6 /* seconds: nobody else changes what is below the root */

/** An open file or folder. */
typedef struct handle {
    int fd;
    DIR *dir; /**< of a folder, above fd */
    file_t *file;
    pid_t closer; /**< the thread that closed it last */
} handle_t;

void ops_set_names(struct fuse_lowlevel_ops *ops);
void ops_set_files(struct fuse_lowlevel_ops *ops);
void ops_set_attr(struct fuse_lowlevel_ops *ops);

handle_t *ops_handle_of(const struct fuse_file_info *fi);

/** A path that leads to a node from anywhere, whatever its names are. */
void ops_path_behind(const node_t *node, char *path, size_t room);

/** What a name leads to, for an answer; the tree is told of it. Returns 0 or an errno. */
int ops_look_up(node_t *parent, const char *name, struct fuse_entry_param *entry);

/** The same of what is behind a descriptor by O_PATH, which is taken over. name == NULL: it has
none. */
int ops_tell(node_t *parent, const char *name, int fd, struct fuse_entry_param *entry);

/** What was made belongs to the caller. */
void ops_give(fuse_req_t req, int folder, const char *name);

/* Under the lock. */

/** Where an operation on a node is recorded: by its name, or, without any, by what it was called.
False: nobody has called it anything. */
bool ops_place_of(const node_t *node, place_t *place);

/** The handle of an open that has succeeded; op gets its file and flags. */
handle_t *ops_bind(int fd, place_t *place, bool created, record_op_t *op);

/** Records that it is closed, and closes it. */
void ops_unbind(handle_t *handle);

#endif
