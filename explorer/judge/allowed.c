/* The allowed states.

Place: above check/ (whose digests it compares), below judge.c.

Equality is that of digests: the oracle computed them from the script alone, the scanner from the
pages. */
#include "explorer/judge/allowed.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <xxhash.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "disk/fs_event.h"
#include "explorer/judge/allowed_int.h"
#include "explorer/judge/lines.h"
#include "explorer/judge/state_json.h"

/* ---- digests ---- */

static uint64_t hash_entry(uint64_t seed, const char *name, uint64_t count, uint64_t hash)
{
    uint64_t parts[3] = {XXH3_64bits(name, strlen(name)), count, hash};
    return XXH3_64bits_withSeed(parts, sizeof(parts), seed);
}

static uint64_t rows_digest(const check_table_t *tables, uint32_t n)
{
    uint64_t sum = n;
    for (uint32_t i = 0; i < n; i++) {
        sum += hash_entry(0, tables[i].name, tables[i].rows, tables[i].hash);
    }
    return sum;
}

uint64_t allowed_digest(const check_table_t *tables, uint32_t n)
{
    uint64_t sum = rows_digest(tables, n);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t seed = XXH3_64bits(tables[i].name, strlen(tables[i].name));
        for (uint32_t j = 0; j < tables[i].n_indexes; j++) {
            const check_index_t *index = &tables[i].indexes[j];
            sum += hash_entry(seed, index->name, index->entries, index->hash);
        }
    }
    return sum;
}

uint64_t allowed_name(const char *name)
{
    return XXH3_64bits(name, strlen(name));
}

/* ---- reading ---- */

static void prefix_set(allowed_prefix_t *prefix, const check_table_t *tables, uint32_t n)
{
    prefix->n_tables = n;
    prefix->table_names = mem_alloc(n * sizeof(*prefix->table_names));
    prefix->table_digests = mem_alloc(n * sizeof(*prefix->table_digests));
    for (uint32_t i = 0; i < n; i++) {
        prefix->table_names[i] = allowed_name(tables[i].name);
        prefix->table_digests[i] = allowed_digest(&tables[i], 1);
    }
    prefix->rows_digest = rows_digest(tables, n);
    prefix->digest = allowed_digest(tables, n);
}

/** "" if there is none. */
static bool read_name(const json_t *object, const char *key, char name[NAME_LEN_MAX + 1])
{
    const json_t *value = json_object_get(object, key);
    const char *text = value == NULL ? "" : json_string_value(value);
    if (text == NULL || strlen(text) > NAME_LEN_MAX) {
        return false;
    }
    memcpy(name, text, strlen(text) + 1);
    return true;
}

static bool read_prefix(const json_t *object, uint32_t number, allowed_prefix_t *prefix)
{
    const json_t *k = json_object_get(object, "prefix");
    const json_t *line = json_object_get(object, "line");
    check_table_t *tables;
    uint32_t n;
    if (!json_is_integer(k) || json_integer_value(k) != number || !json_is_integer(line)
        || json_integer_value(line) < 0 || json_integer_value(line) > UINT32_MAX
        || !state_json_tables(json_object_get(object, "tables"), &tables, &n)) {
        return false;
    }
    if (!read_name(object, "backup", prefix->backup)
        || !read_name(object, "exported", prefix->exported)) {
        free(tables);
        return false;
    }
    const char *client = json_string_value(json_object_get(object, "client"));
    prefix->client = client == NULL ? 0 : allowed_name(client);
    prefix->backup_is_sure = json_is_true(json_object_get(object, "sure"));
    prefix->is_end = json_is_true(json_object_get(object, "end"));
    prefix->line = (uint32_t)json_integer_value(line);
    prefix_set(prefix, tables, n);
    free(tables);
    return true;
}

static allowed_prefix_t *prefix_new(allowed_t *allowed)
{
    allowed->prefixes = mem_grow(allowed->prefixes, (allowed->n + 1U) * sizeof(*allowed->prefixes));
    allowed->prefixes[allowed->n] = (allowed_prefix_t){.line = 0};
    return &allowed->prefixes[allowed->n++];
}

static dberr_t read_line(allowed_t *allowed, const char *path, const char *line, err_sink_t *err)
{
    json_error_t error;
    json_t *object = json_loads(line, 0, &error);
    uint32_t number = allowed->n;
    allowed_prefix_t *prefix = prefix_new(allowed);
    bool ok = object != NULL && read_prefix(object, number, prefix)
              && (number == 0 || prefix->line >= allowed->prefixes[number - 1].line);
    json_decref(object);
    allowed->by_client |= prefix->client != 0;
    return ok ? DB_SUCCESS
              : err_set(err, DB_ERROR, "%s, line %u: not prefix %u of the allowed states", path,
                        number + 1, number);
}

/** Allowed states while they are read. */
typedef struct {
    allowed_t *allowed;
    const char *path;
    err_sink_t *err;
    dberr_t status;
} allowed_read_t;

static bool read_one(void *of, char *line, size_t length)
{
    allowed_read_t *read = of;
    (void)length;
    if (line[strspn(line, " \r\n")] != '\0') {
        read->status = read_line(read->allowed, read->path, line, read->err);
    }
    return read->status == DB_SUCCESS;
}

dberr_t allowed_load(const char *path, allowed_t *allowed, err_sink_t *err)
{
    FILE *file = fopen(path, "re");
    *allowed = (allowed_t){.n = 0};
    if (file == NULL) {
        return err_set(err, DB_ERROR, "%s: cannot be opened", path);
    }
    allowed_read_t read = {.allowed = allowed, .path = path, .err = err, .status = DB_SUCCESS};
    bool whole = lines_each(file, read_one, &read);
    (void)fclose(file);
    dberr_t e = read.status;
    if (e == DB_SUCCESS && !whole) {
        e = err_set(err, DB_ERROR, "%s: cannot be read", path);
    }
    if (e == DB_SUCCESS && allowed->n == 0) {
        e = err_set(err, DB_ERROR, "%s: no allowed state", path);
    }
    if (e != DB_SUCCESS) {
        allowed_free(allowed);
    }
    return e;
}

void allowed_free(allowed_t *allowed)
{
    for (uint32_t i = allowed->n_lent; i < allowed->n; i++) {
        free(allowed->prefixes[i].table_names);
        free(allowed->prefixes[i].table_digests);
    }
    free(allowed->prefixes);
    *allowed = (allowed_t){.n = 0};
}

void allowed_extend(allowed_t *allowed, const allowed_t *other, uint32_t last, uint64_t id)
{
    uint32_t n = last + 1;
    CHECK(n <= other->n);
    *allowed = (allowed_t){.n = n, .n_lent = n, .id = id};
    allowed->prefixes = mem_alloc(n * sizeof(*allowed->prefixes));
    memcpy(allowed->prefixes, other->prefixes, n * sizeof(*allowed->prefixes));
}

void allowed_add(allowed_t *allowed, const check_table_t *tables, uint32_t n)
{
    prefix_set(prefix_new(allowed), tables, n);
}

uint32_t allowed_at(const allowed_t *allowed, uint32_t line)
{
    uint32_t k = 0;
    while (k + 1 < allowed->n && allowed->prefixes[k + 1].line <= line
           && !allowed->prefixes[k + 1].is_end) {
        k++;
    }
    return k;
}

uint32_t allowed_newest(const allowed_t *allowed, uint32_t acked, uint32_t issued)
{
    uint32_t k = allowed_at(allowed, issued > acked ? issued : acked);
    const allowed_prefix_t *next = k + 1 < allowed->n ? &allowed->prefixes[k + 1] : NULL;
    return next != NULL && next->is_end && next->line <= acked ? k + 1 : k;
}

const char *allowed_export(const allowed_t *allowed, uint32_t low, uint32_t high, bool *sure)
{
    const char *table = "";
    for (uint32_t k = high + 1; k > low && table[0] == '\0'; k--) {
        table = allowed->prefixes[k - 1].exported;
    }
    *sure = true;
    for (uint32_t k = low; k <= high; k++) {
        *sure = *sure && strcmp(allowed->prefixes[k].exported, table) == 0;
    }
    return table[0] != '\0' ? table : NULL;
}

const char *allowed_export_over(const allowed_t *allowed, uint32_t last, uint32_t low,
                                uint32_t high)
{
    const char *table = allowed->prefixes[last].exported;
    bool over = table[0] != '\0' && strcmp(allowed->prefixes[last + 1].exported, table) != 0;
    for (uint32_t k = low; k <= high && over; k++) {
        over = strcmp(allowed->prefixes[k].exported, table) != 0;
    }
    return over ? table : NULL;
}

/* ---- judgement ---- */

static bool table_is_known(const allowed_t *allowed, const check_table_t *table)
{
    uint64_t digest = allowed_digest(table, 1);
    for (uint32_t k = 0; k < allowed->n; k++) {
        for (uint32_t i = 0; i < allowed->prefixes[k].n_tables; i++) {
            if (allowed->prefixes[k].table_digests[i] == digest) {
                return true;
            }
        }
    }
    return false;
}

/** No prefix at all. */
static void judge_mixture(const allowed_t *allowed, const check_report_t *report, uint32_t low,
                          uint32_t high, const char *what, verdict_t *verdict)
{
    uint64_t rows = rows_digest(report->tables, report->n_tables);
    for (uint32_t k = high + 1; k-- > low;) {
        if (allowed->prefixes[k].rows_digest == rows) {
            verdict_add(verdict, SOURCE_ORACLE, 10,
                        "%srows are those of prefix %u, indexes are not", what, k);
            return;
        }
    }
    for (uint32_t i = 0; i < report->n_tables; i++) {
        const check_table_t *table = &report->tables[i];
        if (!table_is_known(allowed, table)) {
            verdict_add(verdict, SOURCE_ORACLE, 2,
                        "%s%s (%" PRIu64 " rows) equals no commit prefix: part of a transaction"
                        " is there",
                        what, table->name, table->rows);
            return;
        }
    }
    verdict_add(verdict, SOURCE_ORACLE, 3,
                "%s%u tables, a mixture of commit prefixes; %u..%u expected", what,
                report->n_tables, low, high);
}

bool allowed_judge(const allowed_t *allowed, const check_report_t *report, uint32_t low,
                   uint32_t high, const char *what, verdict_t *verdict, uint32_t *prefix)
{
    if (allowed->by_client) {
        *prefix = low;
        return allowed_judge_clients(allowed, report, low, high, what, verdict);
    }
    uint64_t digest = allowed_digest(report->tables, report->n_tables);
    for (uint32_t k = high + 1; k-- > low;) {
        if (allowed->prefixes[k].digest == digest) {
            *prefix = k;
            return true;
        }
    }
    for (uint32_t k = low; k-- > 0;) {
        if (allowed->prefixes[k].digest == digest) {
            verdict_add(verdict, SOURCE_ORACLE, 1,
                        "%sacknowledged commits are missing: prefix %u found, at least %u"
                        " acknowledged",
                        what, k, low);
            return false;
        }
    }
    for (uint32_t k = high + 1; k < allowed->n; k++) {
        if (allowed->prefixes[k].digest == digest) {
            verdict_add(verdict, SOURCE_ORACLE, 3,
                        "%sprefix %u found, but only %u commits were ever issued", what, k, high);
            return false;
        }
    }
    judge_mixture(allowed, report, low, high, what, verdict);
    return false;
}
