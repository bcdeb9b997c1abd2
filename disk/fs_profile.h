/** What file systems promise, as a table of rules. disk/README.md names the source of each. */
#ifndef DISK_FS_PROFILE_H
#define DISK_FS_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

/** Of the changes of names that wait, what does a crash keep? */
typedef enum fs_order {
    FS_ANY_PART,   /**< any part in which no change lacks an earlier one of the same name or file */
    FS_A_BEGINNING /**< they are one journal, or one transaction */
} fs_order_t;

/** What does an fsync take along, besides the content of the file, or the names in the folder? */
typedef enum fs_along {
    FS_NOTHING,
    FS_OWN_NAMES, /**< the changes of that file's name */
    /** all names older than the newest waiting change of the file's size or name, or of the folder:
    where there is none, nothing is committed */
    FS_EARLIER_NAMES
} fs_along_t;

/** May a file be as large as an append has made it, and its bytes not be there? */
typedef enum fs_growth {
    FS_WITH_BYTES,    /**< never */
    FS_IN_LAST_BLOCK, /**< zeros, within the block in which the file ended */
    FS_ZEROS_FIRST,   /**< zeros */
    FS_SIZE_FIRST     /**< zeros, or what the blocks held before */
} fs_growth_t;

#define FS_BLOCK_BYTES 4096U

typedef struct fs_profile {
    const char *name;
    const char *what;
    fs_order_t order;
    fs_along_t along;
    fs_growth_t growth;
    /** a rename over an existing file is not there without what was written to the file before */
    bool replace_flushes;
} fs_profile_t;

/** What is meant where no profile is named: the first one, `posix`. */
const fs_profile_t *fs_profile_default(void);
/** NULL: none has this name. */
const fs_profile_t *fs_profile_find(const char *name);
/** NULL: there are no more. */
const fs_profile_t *fs_profile_at(uint32_t i);

/** In words: the cells of the table. */
const char *fs_order_text(fs_order_t order);
const char *fs_along_text(fs_along_t along);
const char *fs_growth_text(fs_growth_t growth);

#endif
