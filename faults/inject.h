/** What the plan and libfiu do to operations. Every call but inject_begin() happens under the
lock. */
#ifndef FAULTS_INJECT_H
#define FAULTS_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "faults/io.h"
#include "faults/plan.h"
#include "faults/record.h"

/** Counts the operation for every rule that it matches and returns the rule that hits it, or NULL.
With several, the first line of the plan wins. libfiu's points come before the plan. */
const plan_rule_t *inject_find(const record_op_t *op);

/** The same for an operation that layer_begin() has begun: takes the lock if there is anything to
count, and keeps it if the operation is hit. */
const plan_rule_t *inject_begin(record_op_t *op);

/** Takes the lock if the operation was not hit, to record it. */
void inject_end(record_op_t *op, const plan_rule_t *rule);

/** For an operation that is no write: kills before it, or replaces it (true, op->result is set), or
lets it happen (false). *rule is for inject_after. */
bool inject_before(record_op_t *op, const plan_rule_t **rule);

/** The same with the rule that was found. */
bool inject_replaces(record_op_t *op, const plan_rule_t *rule);

/** Kills after an operation whose record has been appended, if the rule (or NULL) says so. */
void inject_after(const record_op_t *op, const plan_rule_t *rule);

/** Does to a write what the rule says and returns what the program is told: a count or -errno. */
int64_t inject_write(const record_op_t *op, const plan_rule_t *rule, const io_call_t *call);

#endif
