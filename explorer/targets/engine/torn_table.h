/** Whose pages the crash has torn: new work there is the likeliest to meet them. */
#ifndef EXPLORER_TORN_TABLE_H
#define EXPLORER_TORN_TABLE_H

#include "disk/image.h"

/** The first table by name whose file has a page that begins with one LSN and ends with another.
Pages that are stored compressed have none at their end.
@return there is one. table: NAME_LEN_MAX + 1 bytes; "": there is none */
bool torn_table_find(const image_t *image, char *table);

#endif
