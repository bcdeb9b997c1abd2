/** The compiled fault plan: which operation is hit, and what happens to it. See README.md. */
#ifndef FAULTS_PLAN_H
#define FAULTS_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "faults/trace.h"

#define PLAN_TEXT_MAX 256u
#define PLAN_BYTES_MAX 65536u

typedef enum plan_keep {
    PLAN_KEEP_UNSET = 0,
    PLAN_KEEP_NONE,
    PLAN_KEEP_ALL,
    PLAN_KEEP_PREFIX,
    PLAN_KEEP_SUFFIX,
    PLAN_KEEP_MASK,
    PLAN_KEEP_BYTES
} plan_keep_t;

typedef enum plan_when { PLAN_WHEN_UNSET = 0, PLAN_WHEN_BEFORE, PLAN_WHEN_AFTER } plan_when_t;

/** One `fault` line. */
typedef struct plan_rule {
    uint32_t kinds;  /**< bit TP_OP_* per kind of operation that the line counts */
    uint32_t action; /**< TP_ACTION_* */
    uint32_t sector; /**< a power of two from 512 to 65536 */
    int error;       /**< errno to give */
    plan_keep_t keep;
    plan_when_t when;
    uint64_t nth;        /**< from 1 */
    uint64_t times;      /**< how many operations in a row are hit, from the nth */
    uint64_t keep_count; /**< sectors (prefix, suffix) or bytes */
    uint64_t offset_min; /**< with ranged: first and last byte that the operation must touch */
    uint64_t offset_max;
    int64_t shift;
    bool ranged;
    char pattern[PLAN_TEXT_MAX]; /**< fnmatch pattern on the relative path, or prefix of a mark */
    char *mask;                  /**< of '0' and '1' */
    uint64_t mask_len;
    bool follows; /**< counts from the fault of the line before on */
} plan_rule_t;

typedef struct plan {
    uint32_t count;
    uint32_t kinds; /**< union of the rules' kinds: most operations are cleared by it */
    plan_rule_t rules[TP_FAULT_RULES_MAX];
} plan_t;

/** Why a plan was refused: one line without its newline, naming the line of the plan. */
typedef struct plan_error {
    char text[512];
} plan_error_t;

/** Reads the plan in `text` (0-terminated, cut up by the parser, must outlive the plan).
Returns false with *error filled if any part of it is not understood or cannot be done. */
bool plan_parse(char *text, plan_t *plan, plan_error_t *error);

/** Bit i of the result: rule i is about the file with this relative path. */
uint64_t plan_match_path(const plan_t *plan, const char *path);

/** Bit i of the result: rule i is about a mark with this text. */
uint64_t plan_match_mark(const plan_t *plan, const char *text, uint64_t len);

#endif
