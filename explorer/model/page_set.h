/** Markers that speak of pages, and sets of these pages. */
#ifndef EXPLORER_PAGE_SET_H
#define EXPLORER_PAGE_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Inline: recovery writes very many markers, and the lengths of the words are constants. */

/** Is it a marker with this first word? text is 0-terminated. */
static inline bool marker_is(const char *text, const char *verb)
{
    size_t n = strlen(verb);
    return strncmp(text, verb, n) == 0 && (text[n] == ' ' || text[n] == '\0');
}

/** The number behind " key=", 0 if there is none. */
static inline uint64_t marker_fact(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10);
}

/** The page that a marker with space= and page= speaks of; never 0. */
static inline uint64_t marker_page(const char *text)
{
    return (marker_fact(text, " space=") << 32 | marker_fact(text, " page=")) + 1;
}

/** A set of pages; all zero is the empty one. */
typedef struct page_set {
    uint64_t *slots; /**< open addressing; 0: free, UINT64_MAX: removed */
    uint32_t size;
    uint32_t used;
} page_set_t;

void page_set_add(page_set_t *set, uint64_t page);
bool page_set_has(const page_set_t *set, uint64_t page);
void page_set_remove(page_set_t *set, uint64_t page);
void page_set_clear(page_set_t *set); /**< keeps the memory */
void page_set_free(page_set_t *set);

#endif
