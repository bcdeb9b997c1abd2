/** See tree.h. Lowest layer of the file system; a lock of its own, within which nothing is called.

1. A node is there as long as the kernel has it, or a name in it is: folders outlive what they hold.
2. Names change as the calls that change them end; the kernel lets no other call at the folder in
   between. */
#include "faults/fs/tree.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHAINS 4096u

typedef struct name {
    struct name *next; /* of the same node */
    node_t *parent;
    char text[];
} name_t;

static struct {
    pthread_mutex_t lock;
    node_t root;
    node_t *chains[CHAINS];
} tree = {.lock = PTHREAD_MUTEX_INITIALIZER};

int tree_start(int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return errno;
    }
    tree.root = (node_t){.device = st.st_dev, .inode = st.st_ino, .fd = fd, .lookups = 1};
    return 0;
}

node_t *tree_node(uint64_t number)
{
    return number == 1 ? &tree.root : (node_t *)(uintptr_t)number;
}

uint64_t tree_number(const node_t *node)
{
    return node == &tree.root ? 1 : (uint64_t)(uintptr_t)node;
}

static node_t **chain_of(dev_t device, ino_t inode)
{
    return &tree.chains[(inode ^ (device << 7)) % CHAINS];
}

static node_t *node_find(const struct stat *st)
{
    node_t *node = *chain_of(st->st_dev, st->st_ino);

    while (node != NULL && (node->inode != st->st_ino || node->device != st->st_dev)) {
        node = node->next;
    }
    return node;
}

/* Where a name hangs that leads, or led, to this inode. NULL: the kernel has not asked. */
static name_t **name_find(node_t *node, const node_t *parent, const char *text)
{
    name_t **at = node == NULL ? NULL : &node->names;

    while (at != NULL && *at != NULL) {
        if ((*at)->parent == parent && strcmp((*at)->text, text) == 0) {
            return at;
        }
        at = &(*at)->next;
    }
    return NULL;
}

static bool name_put(node_t *node, node_t *parent, const char *text)
{
    size_t bytes = strlen(text) + 1;
    name_t *name = malloc(sizeof(*name) + bytes);

    if (name == NULL) {
        return false;
    }
    *name = (name_t){.next = node->names, .parent = parent};
    memcpy(name->text, text, bytes);
    node->names = name;
    parent->below++;
    return true;
}

static void node_release(node_t *node);

static void name_take(name_t **at)
{
    name_t *name = *at;
    node_t *parent = name->parent;

    *at = name->next;
    free(name);
    parent->below--;
    node_release(parent);
}

/* Invariant 1. */
static void node_release(node_t *node)
{
    if (node->lookups > 0 || node->below > 0 || node == &tree.root) {
        return;
    }
    node_t **link = chain_of(node->device, node->inode);
    while (*link != node) {
        link = &(*link)->next;
    }
    *link = node->next;
    while (node->names != NULL) {
        name_take(&node->names);
    }
    (void)close(node->fd);
    free(node);
}

static node_t *node_make(const struct stat *st, int fd)
{
    node_t *node = malloc(sizeof(*node));
    node_t **chain = chain_of(st->st_dev, st->st_ino);

    if (node != NULL) {
        *node = (node_t){.next = *chain, .device = st->st_dev, .inode = st->st_ino, .fd = fd};
        *chain = node;
    }
    return node;
}

node_t *tree_told(node_t *parent, const char *name, const struct stat *st, int fd)
{
    (void)pthread_mutex_lock(&tree.lock);
    node_t *node = node_find(st);
    if (node != NULL) {
        (void)close(fd);
    } else {
        node = node_make(st, fd);
    }
    if (node != NULL) {
        node->lookups++;
        if (name != NULL && name_find(node, parent, name) == NULL
            && !name_put(node, parent, name)) {
            node->lookups--;
            node_release(node);
            node = NULL;
        }
    }
    (void)pthread_mutex_unlock(&tree.lock);
    return node;
}

void tree_forget(node_t *node, uint64_t tellings)
{
    (void)pthread_mutex_lock(&tree.lock);
    node->lookups -= tellings < node->lookups ? tellings : node->lookups;
    node_release(node);
    (void)pthread_mutex_unlock(&tree.lock);
}

void tree_unlinked(const entry_t *gone)
{
    (void)pthread_mutex_lock(&tree.lock);
    name_t **at = name_find(node_find(&gone->st), gone->parent, gone->name);
    if (at != NULL) {
        name_take(at);
    }
    (void)pthread_mutex_unlock(&tree.lock);
}

void tree_renamed(const entry_t *from, node_t *parent, const char *name)
{
    (void)pthread_mutex_lock(&tree.lock);
    node_t *node = node_find(&from->st);
    name_t **at = name_find(node, from->parent, from->name);
    if (at != NULL) {
        const name_t *old = *at;
        (void)name_put(node, parent, name); /* without memory it has no name: nothing wrong */
        at = &node->names;
        while (*at != old) {
            at = &(*at)->next;
        }
        name_take(at);
    }
    (void)pthread_mutex_unlock(&tree.lock);
}

/* From its end to its beginning. */
static bool path_put(char *path, size_t *at, const char *text)
{
    size_t bytes = strlen(text);

    if (bytes + 1 > *at) {
        return false;
    }
    *at -= bytes;
    memcpy(path + *at, text, bytes);
    return true;
}

static bool path_make(const node_t *node, const char *last, char *path)
{
    char text[PATH_MAX];
    size_t at = sizeof(text) - 1;

    text[at] = '\0';
    bool done = last == NULL || path_put(text, &at, last);
    while (done && node != &tree.root) {
        const name_t *name = node->names;
        done = name != NULL && (text[at] == '\0' || path_put(text, &at, "/"))
               && path_put(text, &at, name->text);
        node = name != NULL ? name->parent : node;
    }
    if (done) {
        const char *found = text[at] == '\0' ? "." : text + at;
        memcpy(path, found, strlen(found) + 1);
    }
    return done;
}

bool tree_path(const node_t *node, char *path)
{
    (void)pthread_mutex_lock(&tree.lock);
    bool found = path_make(node, NULL, path);
    (void)pthread_mutex_unlock(&tree.lock);
    return found;
}

bool tree_path_of(const node_t *parent, const char *name, char *path)
{
    (void)pthread_mutex_lock(&tree.lock);
    bool found = path_make(parent, name, path);
    (void)pthread_mutex_unlock(&tree.lock);
    return found;
}
