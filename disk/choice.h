/** What one crash keeps of what waits: chosen event by event, made coherent, applied. Private to
models.c and choice.c. */
#ifndef DISK_CHOICE_H
#define DISK_CHOICE_H

#include "disk/models.h"

typedef enum choice_fate { FATE_LOST, FATE_KEPT, FATE_PART } choice_fate_t;

typedef struct choice_event {
    choice_fate_t fate;
    uint32_t words; /**< of FATE_PART: the first of its words in choice_t, a bit for each unit */
    bool grows;     /**< of FATE_LOST: the size that it gave the file is there */
} choice_event_t;

typedef struct choice {
    const model_config_t *config;
    const persist_t *persist;
    choice_event_t *events; /**< one of each that waits */
    uint64_t *words;
    uint32_t n_words;
    uint32_t words_capacity;
    uint32_t *sizes; /**< the truncations among the events, ascending */
    uint32_t n_sizes;
    bool garbage; /**< where a file grows without its bytes there is anything; else zeros */
    uint64_t seed;
} choice_t;

/** How a choice that no disk leaves becomes one: of two writes to a sector the later one is chosen
alone. */
typedef enum choice_rule {
    CHOICE_LOSS_WINS, /**< what was lost takes the later one along */
    CHOICE_KEEP_WINS  /**< what is kept brings the earlier one */
} choice_rule_t;

/** What is persisted whole of the write, in bytes: sectors, or more. */
uint64_t choice_unit(const model_config_t *config, const fs_event_t *event);
/** How many of these a write touches; 1 of anything else. */
uint64_t choice_units(const model_config_t *config, const fs_event_t *event);

/** All is lost at first. */
void choice_begin(choice_t *choice, const model_config_t *config, const persist_t *persist);
void choice_end(choice_t *choice);
/** The i-th event that waits is kept. */
void choice_keep(choice_t *choice, uint32_t i);
void choice_lose(choice_t *choice, uint32_t i);
/** Of the i-th event, a write, nothing is kept but the size that it gave the file. seed: of the
garbage. */
void choice_grow(choice_t *choice, uint32_t i, bool garbage, uint64_t seed);
/** Of the i-th event, a write, these units are kept as well. */
void choice_keep_units(choice_t *choice, uint32_t i, uint64_t first, uint64_t end);
/** Makes the choice one that a disk can leave, see choice.c. */
void choice_settle(choice_t *choice, choice_rule_t rule);
/** Does to the image what is kept. torn: the writes that lost anything are added. */
void choice_apply(const choice_t *choice, torn_t *torn);

#endif
