/** The files that a recorded process found. */
#ifndef EXPLORER_BASE_H
#define EXPLORER_BASE_H

#include "disk/image.h"

/** Adds the regular files below dir to the image, under their paths in it. False: one cannot be
read, or is too large. */
bool base_load(image_t *image, const char *dir);

#endif
