/* The allowed states of several clients at work at once.

Place: beside allowed.c.

Each client has tables of its own, and one statement at a time. So the states that a crash may leave
are those of each client by itself, in any combination: its last acknowledged prefix, one of the
range that may be, or the next one, which may be under way although others were acknowledged before
it.

Rules
1. A client's first prefix has all of its tables. It comes before any acknowledgement, and there is
   one of each.
2. A prefix of no client has the tables that none of them changes.
3. One that is not issued yet differs from all that was ever written; what cannot be there needs no
   look at the moment of its issue. */
#include "explorer/judge/allowed_int.h"

#include <inttypes.h>
#include <stdlib.h>

#include "disk/fs_event.h"

static bool prefix_has(const allowed_prefix_t *prefix, const check_table_t *table)
{
    uint64_t name = allowed_name(table->name);
    for (uint32_t i = 0; i < prefix->n_tables; i++) {
        if (prefix->table_names[i] == name) {
            return true;
        }
    }
    return false;
}

/** The digest of the report's tables that a client's first prefix has. */
static uint64_t digest_of(const allowed_prefix_t *first, const check_report_t *report)
{
    check_table_t *own = mem_alloc((report->n_tables + 1U) * sizeof(*own));
    uint32_t n = 0;
    for (uint32_t i = 0; i < report->n_tables; i++) {
        if (prefix_has(first, &report->tables[i])) {
            own[n++] = report->tables[i];
        }
    }
    uint64_t digest = allowed_digest(own, n);
    free(own);
    return digest;
}

typedef enum age { AGE_RIGHT, AGE_OLD, AGE_NEW, AGE_NONE, AGES } age_t;

/** How the tables of the client whose first prefix is number `first` compare with what may be. */
static age_t age_of(const allowed_t *allowed, uint32_t first, uint64_t digest, uint32_t low,
                    uint32_t high)
{
    bool is_old = false;
    bool is_last = false; /* of those up to low */
    bool is_right = false;
    bool is_new = false;
    bool under_way = true;
    for (uint32_t k = first; k < allowed->n; k++) {
        const allowed_prefix_t *prefix = &allowed->prefixes[k];
        if (prefix->client != allowed->prefixes[first].client) {
            continue;
        }
        bool same = prefix->digest == digest;
        if (k <= low) {
            is_old |= is_last;
            is_last = same;
        } else {
            is_right |= same && (k <= high || under_way);
            is_new |= same;
            under_way = false;
        }
    }
    return is_last || is_right ? AGE_RIGHT : is_old ? AGE_OLD : is_new ? AGE_NEW : AGE_NONE;
}

/** Is it the first prefix of a client, or of nobody? */
static bool is_first(const allowed_t *allowed, uint32_t number)
{
    for (uint32_t k = 0; k < number; k++) {
        if (allowed->prefixes[k].client == allowed->prefixes[number].client) {
            return false;
        }
    }
    return true;
}

bool allowed_judge_clients(const allowed_t *allowed, const check_report_t *report, uint32_t low,
                           uint32_t high, const char *what, verdict_t *verdict)
{
    uint32_t n[AGES] = {0};
    uint32_t n_tables = 0;
    for (uint32_t k = 0; k < allowed->n && allowed->prefixes[k].line == 0; k++) {
        if (is_first(allowed, k)) {
            const allowed_prefix_t *first = &allowed->prefixes[k];
            n[age_of(allowed, k, digest_of(first, report), low, high)]++;
            n_tables += first->n_tables;
        }
    }
    if (n[AGE_OLD] > 0) {
        verdict_add(verdict, SOURCE_ORACLE, 1, "%sacknowledged commits are missing: of %u clients",
                    what, n[AGE_OLD]);
    }
    if (n[AGE_NEW] > 0) {
        verdict_add(verdict, SOURCE_ORACLE, 3, "%scommits that were never issued: of %u clients",
                    what, n[AGE_NEW]);
    }
    if (n[AGE_NONE] > 0) {
        verdict_add(verdict, SOURCE_ORACLE, 2,
                    "%stables that equal no commit prefix of their client: of %u clients", what,
                    n[AGE_NONE]);
    }
    if (report->n_tables > n_tables) {
        verdict_add(verdict, SOURCE_ORACLE, 3, "%s%u tables, %u expected", what, report->n_tables,
                    n_tables);
    }
    return n[AGE_OLD] + n[AGE_NEW] + n[AGE_NONE] == 0 && report->n_tables <= n_tables;
}
