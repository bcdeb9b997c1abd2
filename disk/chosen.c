/* States that somebody chose. Place: below models.c. */
#include "disk/chosen.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "disk/memory.h"

static bool read_kept(const char *text, chosen_item_t *item)
{
    size_t n = strspn(text, "01");
    if (text[n] != '\0' || n == 0 || n > CHOSEN_SECTORS_MAX) {
        return false;
    }
    item->kept = mem_alloc(n + 1);
    memcpy(item->kept, text, n + 1);
    return true;
}

/** SEQ[=KEPT], and nothing behind it. */
static bool read_item(const char *text, chosen_item_t *item)
{
    char *end;
    errno = 0;
    *item = (chosen_item_t){.seq = strtoull(text, &end, 10)};
    if (!isdigit((unsigned char)text[0]) || errno != 0) {
        return false;
    }
    return *end == '\0' || (*end == '=' && read_kept(end + 1, item));
}

/** line is taken to pieces. */
static bool read_state(char *line, chosen_state_t *state)
{
    char *rest;
    const char *word = strtok_r(line, " \r\n", &rest);
    if (word == NULL || (strcmp(word, "keep") != 0 && strcmp(word, "lose") != 0)) {
        return false;
    }
    state->keeps = strcmp(word, "keep") == 0;
    for (word = strtok_r(NULL, " \r\n", &rest); word != NULL;
         word = strtok_r(NULL, " \r\n", &rest)) {
        state->items = mem_grow(state->items, (state->n + 1U) * sizeof(*state->items));
        if (!read_item(word, &state->items[state->n++])) {
            return false;
        }
    }
    return true;
}

dberr_t chosen_load(const char *path, chosen_t *chosen, err_sink_t *err)
{
    *chosen = (chosen_t){.n = 0};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return err_set(err, DB_ERROR, "%s: cannot be opened", path);
    }
    char *line = NULL;
    size_t room = 0;
    bool right = true;
    while (right && getline(&line, &room, file) >= 0) {
        chosen->states = mem_grow(chosen->states, (chosen->n + 1U) * sizeof(*chosen->states));
        chosen->states[chosen->n] = (chosen_state_t){.n = 0};
        right = read_state(line, &chosen->states[chosen->n++]);
    }
    bool failed = ferror(file) != 0;
    free(line);
    (void)fclose(file);
    if (failed) {
        return err_set(err, DB_ERROR, "%s: cannot be read", path);
    }
    return right ? DB_SUCCESS
                 : err_set(err, DB_ERROR, "%s: line %u is not \"keep\" or \"lose\" SEQ[=KEPT] ...",
                           path, chosen->n);
}

void chosen_free(chosen_t *chosen)
{
    for (uint32_t i = 0; i < chosen->n; i++) {
        for (uint32_t at = 0; at < chosen->states[i].n; at++) {
            free(chosen->states[i].items[at].kept);
        }
        free(chosen->states[i].items);
    }
    free(chosen->states);
    *chosen = (chosen_t){.n = 0};
}

const chosen_item_t *chosen_find(const chosen_state_t *state, uint64_t seq)
{
    for (uint32_t i = 0; i < state->n; i++) {
        if (state->items[i].seq == seq) {
            return &state->items[i];
        }
    }
    return NULL;
}
