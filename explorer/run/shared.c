/* Shared memory of the workers.

Place: below state.c and runner.c.

Rules
1. Lock-free: a child may be killed at any instruction and leaves nothing locked.
2. A state that was found right is not visited again. One that was not, or that is being visited at
   this moment, is: so the findings of equal images appear under every way that leads to them, and
   the smallest state id is the same whoever was first. Right means with all that was looked at
   below it: with more levels below, an image is another one (visited_key).
3. A full table costs time, never a check: what finds no place is run, and counted. */
#include "explorer/run/shared.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"

#define PROBES_MAX 64U

/* ---- state ids ---- */

void state_path_format(const state_path_t *path, char text[STATE_ID_MAX])
{
    text[0] = '\0';
    size_t used = 0;
    for (uint32_t i = 0; i < path->depth; i++) {
        int n = snprintf(text + used, STATE_ID_MAX - used, "%s%" PRIu64 ".%s.%" PRIu32,
                         i > 0 ? "/" : "", path->level[i].seq,
                         model_name((model_t)path->level[i].model), path->level[i].k);
        CHECK(n > 0 && (size_t)n < STATE_ID_MAX - used);
        used += (size_t)n;
    }
}

/** Digits up to the given end character. */
static bool parse_number(const char **text, char end, uint64_t *out)
{
    if (**text < '0' || **text > '9') {
        return false;
    }
    char *after;
    *out = strtoull(*text, &after, 10);
    if (*after != end) {
        return false;
    }
    *text = after;
    return true;
}

bool state_path_parse(const char *text, state_path_t *path)
{
    *path = (state_path_t){.depth = 0};
    while (path->depth < DEPTH_MAX) {
        uint64_t seq;
        if (!parse_number(&text, '.', &seq)) {
            return false;
        }
        text++;
        size_t len = strcspn(text, ".");
        model_t model;
        if (text[len] != '.' || !model_parse(text, len, &model)) {
            return false;
        }
        text += len + 1;
        bool more = strchr(text, '/') != NULL;
        uint64_t k;
        if (!parse_number(&text, more ? '/' : '\0', &k) || k > UINT32_MAX) {
            return false;
        }
        path->level[path->depth].seq = seq;
        path->level[path->depth].model = (uint32_t)model;
        path->level[path->depth].k = (uint32_t)k;
        path->depth++;
        if (!more) {
            return true;
        }
        text++;
    }
    return false;
}

int state_path_compare(const state_path_t *a, const state_path_t *b)
{
    if (a->depth != b->depth) {
        return a->depth < b->depth ? -1 : 1;
    }
    for (uint32_t i = 0; i < a->depth; i++) {
        if (a->level[i].seq != b->level[i].seq) {
            return a->level[i].seq < b->level[i].seq ? -1 : 1;
        }
        if (a->level[i].model != b->level[i].model) {
            return a->level[i].model < b->level[i].model ? -1 : 1;
        }
        if (a->level[i].k != b->level[i].k) {
            return a->level[i].k < b->level[i].k ? -1 : 1;
        }
    }
    return 0;
}

/* ---- memory ---- */

static size_t shared_bytes(uint64_t slots)
{
    return sizeof(shared_t) + (size_t)slots * sizeof(visited_slot_t);
}

/** MAP_FAILED if there is no memory. */
static void *map(size_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
}

shared_t *shared_create(uint64_t slots, bool tallies)
{
    CHECK(slots > 0 && (slots & (slots - 1)) == 0);
    shared_t *shared = map(shared_bytes(slots));
    if (shared == MAP_FAILED) {
        return NULL;
    }
    shared->visited_size = slots;
    if (tallies) {
        tally_t *room = map(TALLIES_MAX * sizeof(tally_t));
        if (room == MAP_FAILED) {
            shared_destroy(shared);
            return NULL;
        }
        shared->tallies = room;
    }
    return shared;
}

void shared_destroy(shared_t *shared)
{
    if (shared == NULL) {
        return;
    }
    if (shared->tallies != NULL) {
        (void)munmap(shared->tallies, TALLIES_MAX * sizeof(tally_t));
    }
    (void)munmap(shared, shared_bytes(shared->visited_size));
}

void shared_count(shared_t *shared, uint64_t image, uint32_t counter, uint64_t n)
{
    CHECK(counter < COUNTERS && n <= UINT32_MAX);
    if (n == 0) {
        return;
    }
    _Atomic uint64_t *counters = (_Atomic uint64_t *)&shared->counts;
    atomic_fetch_add_explicit(&counters[counter], n, memory_order_relaxed);
    if (shared->tallies == NULL) {
        return;
    }
    uint64_t i = atomic_fetch_add_explicit(&shared->n_tallies, 1, memory_order_relaxed);
    if (i < TALLIES_MAX) {
        shared->tallies[i] = (tally_t){.image = image, .counter = counter, .n = (uint32_t)n};
    }
}

void shared_record(shared_t *shared, const record_t *record)
{
    uint64_t i = atomic_fetch_add_explicit(&shared->n_records, 1, memory_order_relaxed);
    if (i < RECORDS_MAX) {
        shared->records[i] = *record;
    }
}

uint64_t shared_records(const shared_t *shared, uint64_t *lost)
{
    uint64_t n = atomic_load(&shared->n_records);
    *lost = n > RECORDS_MAX ? n - RECORDS_MAX : 0;
    return n - *lost;
}

/* ---- visited images ---- */

uint64_t visited_key(uint64_t key, uint32_t remaining)
{
    uint64_t mixed = remaining > 0 ? stream_mix(key, remaining, 0, 0) : key;
    return mixed == TALLY_STATE || mixed == TALLY_RECORDING ? 1 : mixed;
}

static visited_slot_t *visited_find(shared_t *shared, uint64_t key, bool *fresh)
{
    uint64_t mask = shared->visited_size - 1;
    for (uint64_t i = 0; i < PROBES_MAX && i <= mask; i++) {
        visited_slot_t *slot = &shared->visited[(key + i) & mask];
        uint64_t found = atomic_load_explicit(&slot->key, memory_order_acquire);
        if (found == 0 && atomic_compare_exchange_strong(&slot->key, &found, key)) {
            *fresh = true;
            return slot;
        }
        if (found == key) {
            *fresh = false;
            return slot;
        }
    }
    return NULL;
}

visit_t visited_enter(shared_t *shared, uint64_t key)
{
    visit_t visit = {.fresh = false};
    visit.slot = visited_find(shared, key, &visit.fresh);
    if (visit.slot == NULL) {
        shared_count(shared, TALLY_STATE, COUNT_OF(unvisited), 1);
    } else {
        visit.clean = atomic_load(&visit.slot->right) != 0;
    }
    return visit;
}

bool visited_crashed_recovery(const visit_t *visit)
{
    return visit->slot == NULL || atomic_exchange(&visit->slot->crashed_recovery, 1) == 0;
}

void visited_leave_clean(const visit_t *visit)
{
    if (visit->slot != NULL) {
        atomic_store(&visit->slot->right, 1);
    }
}
