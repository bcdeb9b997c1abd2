/** The files of a state, for people and for the engine's own programs. */
#ifndef EXPLORER_DUMP_H
#define EXPLORER_DUMP_H

#include "disk/image.h"

/** Writes files and folders of the image into dir, which is made. What cannot be written is told on
standard error. */
void dump_image(const image_t *image, const char *dir);

#endif
