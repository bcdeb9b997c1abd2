/** The file of an exported table and its .cfg, as somebody finds them after a crash and carries
them elsewhere. */
#ifndef EXPLORER_CARRIED_H
#define EXPLORER_CARRIED_H

#include "disk/image.h"

#define CARRIED_NAME "#carried" /**< no statement can give a table this name */

typedef struct carried {
    uint32_t data; /**< inodes of the copies, which have no names */
    uint32_t cfg;
} carried_t;

/** Copies both as they are now. False: there is no file, or no whole .cfg, which vouches for it.
The copies go with the image's newest mark. */
bool carried_take(image_t *image, const char *table, carried_t *out);
/** Is there a .cfg that vouches for the file? */
bool carried_cfg_is_whole(image_t *image, const char *table);
/** Gives the copies the names of an exported table CARRIED_NAME, or takes these away. */
void carried_lay_down(image_t *image, const carried_t *carried, bool there);

#endif
