/** First flush or later flush?

A write is a first flush if its place held nothing before (it lies beyond the end of the file, or all
bytes there are zero), or if it writes a page that was initialised or freed since its last write: what
the place holds then belongs to another life of the page. */
#ifndef EXPLORER_FLUSH_H
#define EXPLORER_FLUSH_H

#include "explorer/image/image.h"
#include "explorer/model/page_set.h"

/** A marker of a run: a page that is initialised or freed joins the set. */
void flush_mark(page_set_t *unwritten, const char *text);
/** The page is written: was it in the set? It leaves it. */
bool flush_is_first(page_set_t *unwritten, uint64_t page);
/** Marks the writes of a list to places that held nothing. image: what was there before the first event; it
comes back as it was. */
void flush_mark_empty_places(fs_list_t *list, image_t *image);

#endif
