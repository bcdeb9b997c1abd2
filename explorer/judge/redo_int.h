/** Private to redo.c and redo_read.c. */
#ifndef EXPLORER_REDO_INT_H
#define EXPLORER_REDO_INT_H

#include "disk/fs_event.h"
#include "explorer/judge/redo.h"

/** Makes room for one more item. @return it, zeroed */
#define REDO_PUSH(list)                                                                            \
    ((list)->items =                                                                               \
         redo_grow((list)->items, (list)->n, &(list)->capacity, sizeof(*(list)->items)),           \
     &(list)->items[(list)->n++])

void *redo_grow(void *items, uint32_t n, uint32_t *capacity, size_t item_bytes);
/** Enters what a group did to a page; groups come in the order of the log. */
void redo_add(redo_t *redo, uint64_t key, redo_kind_t kind, lsn_t start_lsn, lsn_t end_lsn);
/** Forgets everything, and keeps the memory. */
void redo_clear(redo_t *redo);
/** Groups read here that end at or before limit. */
uint32_t redo_ends_until(const redo_t *redo, lsn_t limit);

#endif
