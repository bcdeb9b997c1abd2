/** What the kernel knows of the files below the root: a node for each inode, and the names that
lead to it. */
#ifndef FAULTS_FS_TREE_H
#define FAULTS_FS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/** An inode, for as long as the kernel may ask for it. */
typedef struct node {
    struct node *next; /**< in its hash chain */
    dev_t device;
    ino_t inode;
    int fd;             /**< by O_PATH: it leads there whatever its names are */
    uint64_t lookups;   /**< how often the kernel was told of it */
    uint64_t below;     /**< names in it */
    struct name *names; /**< the newest first; of a folder there is one */
} node_t;

/** The root is behind this descriptor, which is kept. Returns 0 or an errno. */
int tree_start(int fd);

/** The node by the number that the kernel has of it. */
node_t *tree_node(uint64_t number);
uint64_t tree_number(const node_t *node);

/** A name in a folder has been found, or made: its node, of which the kernel is told once more.
name == NULL: it has none. fd: by O_PATH, taken over. NULL: no memory. */
node_t *tree_told(node_t *parent, const char *name, const struct stat *st, int fd);

/** The kernel has forgotten so many tellings. */
void tree_forget(node_t *node, uint64_t tellings);

/** A name in a folder, and what it leads to or led to. */
typedef struct entry {
    node_t *parent;
    const char *name;
    struct stat st;
} entry_t;

/** A name leads there no longer. */
void tree_unlinked(const entry_t *gone);

/** What a name led to has another one in its place. */
void tree_renamed(const entry_t *from, node_t *parent, const char *name);

/** The path of a node by its newest name, relative to the root, which is "."; PATH_MAX bytes.
False: none leads to it, or it is too long. */
bool tree_path(const node_t *node, char *path);

/** The same of a name in a folder. */
bool tree_path_of(const node_t *parent, const char *name, char *path);

#endif
