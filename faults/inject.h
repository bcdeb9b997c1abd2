/** What the plan and libfiu do to operations. Every call happens under the layer's lock. */
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

/** For an operation that is no write: kills before it, or replaces it (true, op->result is set), or
lets it happen (false). *rule is for inject_after. */
bool inject_before(record_op_t *op, const plan_rule_t **rule);

/** Kills after an operation whose record has been appended, if the rule (or NULL) says so. */
void inject_after(const record_op_t *op, const plan_rule_t *rule);

/** Does to a write what the rule says and returns what the program is told: a count or -errno. */
int64_t inject_write(const record_op_t *op, const plan_rule_t *rule, const io_call_t *call);

#endif
