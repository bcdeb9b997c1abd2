/** Private to image.c and image_os.c. */
#ifndef EXPLORER_IMAGE_INT_H
#define EXPLORER_IMAGE_INT_H

#include "explorer/image/image.h"

#define CHUNK_BYTES 4096U

typedef struct chunk {
    uint64_t hash;    /**< contribution to the inode's hash; 0 for zeros */
    uint64_t version; /**< of the content: no other has it; 0 for zeros never written */
    uint32_t stamp;   /**< mark under which the old content was saved */
} chunk_t;

typedef struct inode {
    byte *bytes; /**< zero from size to capacity */
    chunk_t *chunks;
    uint64_t size;
    uint64_t capacity; /**< whole chunks */
    uint64_t hash;
    uint32_t stamp; /**< mark under which size and hash were saved */
} inode_t;

typedef struct image_name {
    char *text;
    uint64_t hash;
    uint32_t dir;
    uint32_t inode; /**< where it leads, or IMAGE_NONE */
} image_name_t;

typedef enum change_kind { CHANGE_CHUNK, CHANGE_META, CHANGE_LINK, CHANGE_INODE } change_kind_t;

typedef struct change {
    change_kind_t kind;
    uint32_t id;    /**< inode or name */
    uint32_t index; /**< chunk, or the old inode of a name */
    uint32_t old_stamp;
    uint64_t old_hash;
    uint64_t old_version; /**< of a chunk */
    uint64_t old_value;   /**< size, or where the old content lies */
} change_t;

typedef struct mark {
    uint32_t stamp;
    size_t n_changes;
} mark_t;

#define IMAGE_MARKS_MAX 16U

typedef struct image_os {
    os_t base;
    image_t *image;
    fs_list_t *record;
    const image_watch_t *watch;
    uint32_t issued; /**< see image_os_promise() */
    uint32_t acked;
    bool locked;
} image_os_t;

struct image {
    inode_t *inodes;
    uint32_t n_inodes;
    uint32_t inodes_capacity; /**< those beyond n_inodes keep their memory, zeroed */
    image_name_t *names;
    uint32_t n_names;
    uint32_t names_capacity;
    uint32_t *name_table; /**< open addressing: number + 1 */
    uint32_t name_table_size;
    change_t *changes;
    size_t n_changes;
    size_t changes_capacity;
    byte *saved; /**< old content of chunks */
    size_t saved_used;
    size_t saved_capacity;
    mark_t marks[IMAGE_MARKS_MAX];
    uint32_t n_marks;
    uint32_t last_stamp;
    uint64_t last_version; /**< never given again, undone or not */
    bool hashing;
    image_os_t os;
};

void image_os_init(image_t *image);

#endif
