/** What all workers share: counters, findings, the set of visited images. One anonymous shared
mapping. */
#ifndef EXPLORER_SHARED_H
#define EXPLORER_SHARED_H

#include <stdatomic.h>
#include <stddef.h>

#include "disk/models.h"
#include "explorer/judge/outcome.h"
#include "explorer/judge/sites.h"

#define DEPTH_MAX 3U
#define JOBS_MAX 64U
#define RECORDS_MAX 65536U

/** Where a state came from: crash point, model and k; then the same inside its recovery, and so on.
*/
typedef struct state_path {
    uint32_t depth; /**< 1 ... DEPTH_MAX */
    struct {
        uint64_t seq; /**< event that the crash came after; 0: before the first */
        uint32_t model;
        uint32_t k;
    } level[DEPTH_MAX];
} state_path_t;

#define STATE_ID_MAX 160U
/** "SEQ.MODEL.K", one per level, with '/' between. */
void state_path_format(const state_path_t *path, char text[STATE_ID_MAX]);
/** False if text is no state id. */
bool state_path_parse(const char *text, state_path_t *path);
/** Order of the trace, then of models. */
int state_path_compare(const state_path_t *a, const state_path_t *b);

/** One finding of one state. */
typedef struct record {
    uint64_t key;  /**< of the image and its range */
    uint64_t kind; /**< of its state, see report.c */
    state_path_t path;
    verdict_finding_t finding;
    uint32_t low;
    uint32_t high;
    fs_site_t site;
} record_t;

/** What a worker's child is doing, for the one that finds it dead. */
typedef struct progress {
    _Atomic uint64_t beats; /**< grows with each state */
    uint64_t position;      /**< of the first-level state among the batch's */
    uint64_t key;
    uint32_t low;
    uint32_t high;
    fs_site_t site;
    state_path_t path;
} progress_t;

typedef struct visited_slot {
    _Atomic uint64_t key;              /**< 0: free */
    _Atomic uint32_t right;            /**< the state and all below it were found so */
    _Atomic uint32_t crashed_recovery; /**< it has been counted as such a crash */
} visited_slot_t;

/** All that is counted. Only counters, so that COUNT_OF() names each by a number. */
typedef struct counts {
    _Atomic uint64_t states;
    _Atomic uint64_t images; /**< sum over all states of a half of their image's hash */
    _Atomic uint64_t distinct;
    _Atomic uint64_t second_crash; /**< distinct states in which a recovery was crashed that had
                                        changed something by then */
    _Atomic uint64_t recovered_twice;
    _Atomic uint64_t hung;
    _Atomic uint64_t crashed;
    _Atomic uint64_t
        unfinished; /**< states, or processes between two, that the end of the time has ended */
    _Atomic uint64_t unvisited; /**< states run without a place in the set of visited ones */
    _Atomic uint64_t model_states[MODEL_KINDS + 1];
    _Atomic uint64_t of_target[OUTCOME_COUNTERS_MAX]; /**< what the kind of target counts, one per
                                                         distinct state */
    /** Of the torn-page matrix: states with such a loss, and writes that could be lost that way. */
    _Atomic uint64_t torn[SITE_KINDS][2][TEAR_KINDS];
    _Atomic uint64_t possible[SITE_KINDS][2][TEAR_KINDS];
} counts_t;

#define COUNT_OF(member) ((uint32_t)(offsetof(counts_t, member) / sizeof(uint64_t)))
#define COUNTERS ((uint32_t)(sizeof(counts_t) / sizeof(uint64_t)))

/** What a slice adds to a counter, and for which image: another slice that meets the same one adds
the same, and one of them counts (slice.h). */
typedef struct tally {
    uint64_t image; /**< the key under which it was visited; TALLY_STATE: it counts always */
    uint32_t counter;
    uint32_t n;
} tally_t;

#define TALLY_STATE 0U
#define TALLY_RECORDING UINT64_MAX /**< what is the same in each slice */
#define TALLIES_MAX (1U << 24)

typedef struct shared {
    counts_t counts;
    _Atomic uint64_t next_batch;
    _Atomic uint64_t machine_failures; /**< no verdict on any state */
    _Atomic uint64_t n_tallies;
    tally_t *tallies; /**< room for TALLIES_MAX; NULL: nobody asks whose they are */
    _Atomic uint64_t n_records;
    progress_t progress[JOBS_MAX];
    record_t records[RECORDS_MAX];
    uint64_t visited_size;
    visited_slot_t visited[];
} shared_t;

/** slots: room for visited images, a power of two; tallies: it is kept what each image adds. NULL
if there is no memory. */
shared_t *shared_create(uint64_t slots, bool tallies);
void shared_destroy(shared_t *shared);

/** Adds to the counter of this number. image: that of a first visit, TALLY_STATE or
TALLY_RECORDING. */
void shared_count(shared_t *shared, uint64_t image, uint32_t counter, uint64_t n);

void shared_record(shared_t *shared, const record_t *record);
/** How many records are there. *lost: those that found no room. */
uint64_t shared_records(const shared_t *shared, uint64_t *lost);

typedef struct visit {
    visited_slot_t *slot; /**< NULL: the table is full */
    bool fresh;           /**< nobody was here before */
    bool clean;           /**< all was found right before: nothing to do */
} visit_t;

/** The key under which an image is visited, where so many more crashes may follow in it: what was
found right with less below it must be seen again with more. Neither TALLY_STATE, which is a free
slot, nor TALLY_RECORDING. key: of the image, and of what may follow it. */
uint64_t visited_key(uint64_t key, uint32_t remaining);
/** key: see visited_key(); not 0. */
visit_t visited_enter(shared_t *shared, uint64_t key);
/** A recovery that had changed something was crashed, which led to this state. @return for the
first time, or nobody knows */
bool visited_crashed_recovery(const visit_t *visit);
/** The state and all below it were found right. */
void visited_leave_clean(const visit_t *visit);

#endif
