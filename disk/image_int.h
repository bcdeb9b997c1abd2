/** Private to image.c, image_content.c, image_dir.c and image_os.c. */
#ifndef DISK_IMAGE_INT_H
#define DISK_IMAGE_INT_H

#include "disk/image.h"

#define CHUNK_BYTES 4096U
#define LEAF_CHUNKS 128U /**< chunks whose descriptions lie together */

typedef struct chunk {
    const byte *bytes; /**< NULL: zeros */
    uint64_t hash;     /**< contribution to the inode's hash; 0 for zeros */
    uint64_t version;  /**< of the content: no other has it; 0 for zeros that take no room */
    bool stale;        /**< its hash is that of earlier bytes: changed under the newest mark */
    uint32_t stamp;    /**< mark under which the old description was saved */
    /** 1 + the mark under which the image made these bytes, which may be written until the next
    mark; 0: they are somebody else's, or there are none */
    uint32_t owner;
} chunk_t;

typedef struct inode {
    chunk_t **leaves; /**< each LEAF_CHUNKS chunks, or NULL: zeros */
    uint32_t n_leaves;
    uint32_t stamp; /**< mark under which size and hash were saved */
    uint64_t size;
    uint64_t hash;
    byte *piece; /**< by image_bytes(): the whole file, as far as chunks lead there; or NULL */
} inode_t;

typedef struct image_name {
    char *text;
    uint64_t hash;
    uint32_t dir;
    uint32_t inode;        /**< where it leads, or IMAGE_NONE */
    dir_state_t dir_state; /**< of the directory that has this name */
} image_name_t;

typedef enum change_kind {
    CHANGE_CHUNK,
    CHANGE_META,
    CHANGE_LINK,
    CHANGE_INODE,
    CHANGE_DIR
} change_kind_t;

typedef struct change {
    change_kind_t kind;
    uint32_t id;    /**< inode or name */
    chunk_t *chunk; /**< that was changed */
    chunk_t old;    /**< of a chunk all, of an inode hash and stamp */
    /** size of an inode, old inode of a name, old state of a directory, number of a chunk in its
    inode */
    uint64_t old_value;
} change_t;

typedef struct mark {
    uint32_t stamp;
    size_t n_changes;
    size_t n_made;
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
    bool owner;      /**< os_destroy() destroys the image */
    uint32_t n_open; /**< files */
    byte *view;      /**< room for what lies in several chunks */
    size_t view_bytes;
    uint32_t *names; /**< inode -> the name that it was opened by, or has been given since */
    uint32_t n_names;
    uint64_t taken; /**< see image_os_taken() */
} image_os_t;

struct image {
    inode_t *inodes;
    uint32_t n_inodes;
    uint32_t inodes_capacity; /**< those beyond n_inodes keep their leaves, all zeros */
    image_name_t *names;
    uint32_t n_names;
    uint32_t names_capacity;
    uint32_t *names_sorted; /**< the first n_sorted ones, by their text */
    uint32_t n_sorted;
    uint32_t *name_table; /**< open addressing: number + 1 */
    uint32_t name_table_size;
    change_t *changes;
    size_t n_changes;
    size_t changes_capacity;
    byte **blocks; /**< room for content that was made under marks, MADE_PER_BLOCK chunks each */
    size_t n_blocks;
    size_t n_made; /**< chunks in use */
    mark_t marks[IMAGE_MARKS_MAX];
    uint32_t n_marks;
    uint32_t last_stamp;
    uint64_t last_version; /**< never given again, undone or not */
    bool hashing;
    image_os_t os;
};

/** The numbers of all names in the order of their texts. Valid until there is a new one. */
const uint32_t *image_names_in_order(image_t *image);

/* image_content.c */

/** An entry at the end of the log of changes, which is kept while there is a mark. */
change_t *image_change(image_t *image, change_kind_t kind, uint32_t id);
void content_settle(image_t *image); /**< afterwards no hash is stale */
void content_free(image_t *image);   /**< no mark may be left */
/** The stamp of the newest mark, or 0. */
static inline uint32_t image_stamp(const image_t *image)
{
    return image->n_marks == 0 ? 0 : image->marks[image->n_marks - 1].stamp;
}

#endif
