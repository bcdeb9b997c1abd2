/* Kinds of statements. Place: below plan_states.c. */
#include "explorer/run/kinds.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk/fs_event.h"
#include "explorer/judge/lines.h"

/** Kinds while they are read: of each its word. */
typedef struct {
    kinds_t *kinds;
    uint32_t capacity;
    uint64_t words[KINDS_MAX];
} kinds_read_t;

/** The number of the kind with this word; kind 0 has none: it is that of what comes before the
first statement. */
static uint8_t kind_of_word(kinds_t *kinds, uint64_t words[KINDS_MAX], const char *text)
{
    uint64_t word = XXH3_64bits(text, strcspn(text, "\r\n"));
    uint32_t i = 1;
    while (i < kinds->n && words[i] != word) {
        i++;
    }
    if (i == kinds->n && kinds->n < KINDS_MAX) {
        words[kinds->n++] = word;
    }
    return (uint8_t)(i < KINDS_MAX ? i : KINDS_MAX - 1);
}

static void kinds_add(kinds_t *kinds, uint32_t *capacity, uint8_t kind)
{
    if (kinds->n_lines == *capacity) {
        *capacity = *capacity == 0 ? 1024 : *capacity * 2;
        kinds->of_line = mem_grow(kinds->of_line, *capacity);
    }
    kinds->of_line[kinds->n_lines++] = kind;
}

static bool kinds_read_line(void *of, char *line, size_t length)
{
    kinds_read_t *read = of;
    (void)length;
    kinds_add(read->kinds, &read->capacity, kind_of_word(read->kinds, read->words, line));
    return true;
}

dberr_t kinds_load(const char *path, kinds_t *kinds, err_sink_t *err)
{
    *kinds = (kinds_t){.n = 1};
    if (path == NULL) {
        return DB_SUCCESS;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return err_set(err, DB_ERROR, "%s: cannot be opened", path);
    }
    kinds_read_t read = {.kinds = kinds};
    kinds_add(kinds, &read.capacity, 0);
    bool whole = lines_each(file, kinds_read_line, &read);
    (void)fclose(file);
    return whole ? DB_SUCCESS : err_set(err, DB_ERROR, "%s: cannot be read", path);
}

void kinds_free(kinds_t *kinds)
{
    free(kinds->of_line);
    *kinds = (kinds_t){.n = 1};
}

uint32_t kinds_of(const kinds_t *kinds, uint32_t line)
{
    return line < kinds->n_lines ? kinds->of_line[line] : 0;
}
