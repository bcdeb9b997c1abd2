/* States in JSON, as programs write them.

Place: below allowed.c, whose prefixes a model writes; verifiers write what they found. */
#include "explorer/judge/state_json.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

#include "disk/fs_event.h"

/* ---- digests ---- */

static bool read_name(const json_t *object, char name[NAME_LEN_MAX + 1])
{
    const char *text = json_string_value(json_object_get(object, "name"));
    if (text == NULL || strlen(text) > NAME_LEN_MAX) {
        return false;
    }
    memcpy(name, text, strlen(text) + 1);
    return true;
}

/** The hash as 16 hex digits, or as a number. */
static bool read_hash(const json_t *object, uint64_t *out)
{
    const json_t *value = json_object_get(object, "hash");
    const char *text = json_string_value(value);
    if (json_is_integer(value)) {
        *out = (uint64_t)json_integer_value(value);
        return true;
    }
    if (text == NULL || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16) {
        return false;
    }
    *out = strtoull(text, NULL, 16);
    return true;
}

static bool read_count(const json_t *object, const char *key, uint64_t *out)
{
    const json_t *value = json_object_get(object, key);
    *out = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool read_table(const json_t *object, check_table_t *table)
{
    const json_t *indexes = json_object_get(object, "indexes");
    size_t n = json_array_size(indexes);
    if (!read_name(object, table->name) || !read_count(object, "rows", &table->rows)
        || !read_hash(object, &table->hash) || n > INDEXES_MAX) {
        return false;
    }
    table->n_indexes = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *index = json_array_get(indexes, i);
        if (!read_name(index, table->indexes[i].name)
            || !read_count(index, "entries", &table->indexes[i].entries)
            || !read_hash(index, &table->indexes[i].hash)) {
            return false;
        }
    }
    return true;
}

bool state_json_tables(const json_t *array, check_table_t **tables, uint32_t *n)
{
    if (!json_is_array(array)) {
        return false;
    }
    uint32_t count = (uint32_t)json_array_size(array);
    check_table_t *read = mem_alloc(count * sizeof(*read));
    for (uint32_t i = 0; i < count; i++) {
        if (!read_table(json_array_get(array, i), &read[i])) {
            free(read);
            return false;
        }
    }
    *tables = read;
    *n = count;
    return true;
}

/* ---- texts ---- */

static uint64_t count_lines(const char *text, size_t len)
{
    uint64_t n = len > 0 && text[len - 1] != '\n' ? 1 : 0;
    for (const char *end = memchr(text, '\n', len); end != NULL; n++) {
        size_t left = len - (size_t)(end + 1 - text);
        end = memchr(end + 1, '\n', left);
    }
    return n;
}

static bool table_of(const char *name, const json_t *value, check_table_t *table)
{
    if (strlen(name) > NAME_LEN_MAX || !json_is_string(value)) {
        return false;
    }
    size_t len = json_string_length(value);
    const char *text = json_string_value(value);
    memcpy(table->name, name, strlen(name) + 1);
    table->rows = count_lines(text, len);
    table->hash = XXH64(text, len, 0);
    return true;
}

bool state_json_texts(const json_t *state, check_table_t **tables, uint32_t *n)
{
    if (!json_is_object(state)) {
        return false;
    }
    check_table_t *read = mem_alloc(json_object_size(state) * sizeof(*read));
    uint32_t count = 0;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)state, name, value)
    {
        if (!table_of(name, value, &read[count++])) {
            free(read);
            return false;
        }
    }
    *tables = read;
    *n = count;
    return true;
}
