/** Private to fil/: the registry of open tablespaces. */
#ifndef FIL_FIL_INT_H
#define FIL_FIL_INT_H

#include "fil/fil.h"

#define FIL_HASH_CHAINS 1024U /**< a power of 2; a few spaces each at the limit of tables */

struct fil {
    env_t *env;
    log_t *log;
    uint32_t page_size;
    bool no_punch;                        /**< the file system makes no holes */
    fil_space_t *first;                   /**< in order of id */
    fil_space_t *chains[FIL_HASH_CHAINS]; /**< by id, through hash_next */
    fil_names_t names;
    uint32_t n_open;
    uint32_t n_open_max;
    fil_space_t *lru_first; /**< open files, newest use first */
    fil_space_t *lru_last;
};

/** Before a file is opened outside of fil_space_file(): makes room for its descriptor. */
WARN_UNUSED dberr_t fil_make_room(fil_t *fil);

/** The space's open file, opened again if it was closed for others. Valid until the next call that
opens a file. */
WARN_UNUSED dberr_t fil_space_file(fil_t *fil, fil_space_t *space, os_file_t **out);

/** Enters a space into the registry; file, open, is owned by it from now on. */
WARN_UNUSED dberr_t fil_space_register(fil_t *fil, space_id_t id, const char *path, os_file_t *file,
                                       uint32_t size_pages, fil_space_t **out);

/** Takes a space out of the registry, closes its file and frees it. */
void fil_space_forget(fil_t *fil, fil_space_t *space);

#endif
