/** Decides which operation is hit, and kills, replaces or damages it.

Above layer.c, damage.c and io.c; below the interposed functions.
1. Every rule counts for itself, and counts attempts, whether they then succeed or not.
2. A kill happens under the lock, which is never given back: no thread, and no other process of the
   recording, gets another operation on a tracked file recorded; the other processes end when they
   come to one. Nothing is synced on the way.
3. The record of a kill or fault is committed after its effect on the file, the process is told or
   killed after that: a trace that says "fired" tells the truth.
4. FAULT stands directly before the record of the operation that it changed. */
#include "faults/inject.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "faults/damage.h"
#include "faults/fiu_points.h"
#include "faults/layer.h"
#include "faults/real.h"

static bool rule_touches(const plan_rule_t *rule, const record_op_t *op)
{
    uint64_t last = op->length == 0 ? op->offset : op->offset + op->length - 1;

    return !rule->ranged || (op->offset <= rule->offset_max && last >= rule->offset_min);
}

/* libfiu's wish in the form of a rule. Under the lock, hence one static instance is enough. */
static const plan_rule_t *fiu_find(const record_op_t *op)
{
    static plan_rule_t rule;
    int error = fiu_points_fail(op->kind);

    if (error == 0) {
        return NULL;
    }
    rule = (plan_rule_t){.action = TP_ACTION_ERROR, .error = error, .sector = 512};
    return &rule;
}

const plan_rule_t *inject_find(const record_op_t *op)
{
    const plan_t *plan = layer_plan();
    const plan_rule_t *injected = layer_uses_fiu() ? fiu_find(op) : NULL;
    uint32_t kind = 1u << op->kind;

    if ((plan->kinds & kind) == 0) {
        return injected;
    }
    const plan_rule_t *found = NULL;
    for (uint64_t left = op->matches; left != 0; left &= left - 1) {
        int number = __builtin_ctzll(left);
        const plan_rule_t *rule = &plan->rules[number];
        share_rule_t *count = &layer_share()->rules[number];
        if ((rule->kinds & kind) == 0 || !rule_touches(rule, op)
            || (rule->follows && !count[-1].fired)) {
            continue;
        }
        count->seen++;
        if (found == NULL && count->seen >= rule->nth && count->seen - rule->nth < rule->times) {
            found = rule;
        }
    }
    if (injected != NULL || found == NULL) {
        return injected;
    }
    layer_share()->rules[found - plan->rules].fired = true;
    return found;
}

const plan_rule_t *inject_begin(record_op_t *op)
{
    if (!layer_uses_fiu() && (layer_plan()->kinds & 1u << op->kind) == 0) {
        return NULL;
    }
    layer_lock();
    op->thread = layer_thread();
    const plan_rule_t *rule = inject_find(op);
    if (rule == NULL) {
        layer_unlock();
    }
    return rule;
}

void inject_end(record_op_t *op, const plan_rule_t *rule)
{
    if (rule == NULL) {
        layer_lock();
        op->thread = layer_thread();
    }
}

static uint16_t fault_flags(const record_op_t *op, const plan_rule_t *rule)
{
    const plan_t *plan = layer_plan();
    uint32_t number = TP_FAULT_RULE_FIU;

    if (rule >= plan->rules && rule < plan->rules + plan->count) {
        number = (uint32_t)(rule - plan->rules);
    }
    return (uint16_t)(op->kind | number << TP_FAULT_RULE_SHIFT);
}

__attribute__((noreturn)) static void inject_die(void)
{
    layer_share()->ended = true;
    layer_die();
}

/* A kill or fault of an operation that is no write, or of one that has happened already. */
static void fault_record(uint16_t kind, const record_op_t *op, const plan_rule_t *rule,
                         uint16_t extra_flags)
{
    record_op_t fault = *op;
    uint32_t words[4] = {rule->action, (uint32_t)rule->error, 0, 0};
    struct iovec part = {words, sizeof(words)};

    if (rule->action != TP_ACTION_ERROR) {
        words[1] = 0;
    }
    if (kind == TP_OP_KILL) {
        part = (struct iovec){words + 2, 8};
    }
    fault.kind = kind;
    fault.flags = fault_flags(op, rule) | extra_flags;
    fault.result = 0;
    record_set_flag(layer_log(), TP_TRACE_FIRED);
    record_append(layer_log(), &fault, &part, part.iov_len);
}

bool inject_replaces(record_op_t *op, const plan_rule_t *rule)
{
    if (rule == NULL) {
        return false;
    }
    if (rule->action == TP_ACTION_KILL) {
        if (rule->when != PLAN_WHEN_AFTER) {
            fault_record(TP_OP_KILL, op, rule, 0);
            inject_die();
        }
        return false;
    }
    fault_record(TP_OP_FAULT, op, rule, 0);
    op->result = rule->action == TP_ACTION_ERROR ? -rule->error : 0;
    return true;
}

bool inject_before(record_op_t *op, const plan_rule_t **rule)
{
    *rule = inject_find(op);
    return inject_replaces(op, *rule);
}

void inject_after(const record_op_t *op, const plan_rule_t *rule)
{
    if (rule != NULL && rule->action == TP_ACTION_KILL) {
        fault_record(TP_OP_KILL, op, rule, TP_FAULT_AFTER);
        inject_die();
    }
}

/* What the rule keeps of a write. */
static damage_keep_t write_keep(const record_op_t *op, const plan_rule_t *rule)
{
    damage_keep_t kept = {.keep = rule->keep,
                          .count = rule->keep_count,
                          .mask = rule->mask,
                          .mask_len = rule->mask_len};

    switch (rule->action) {
    case TP_ACTION_MISDIRECT:
        kept.keep = PLAN_KEEP_ALL;
        break;
    case TP_ACTION_SHORT:
        /* A write that is complete is not short. */
        if (kept.count >= op->length) {
            kept.count = op->length == 0 ? 0 : op->length - 1;
        }
        break;
    case TP_ACTION_KILL:
        if (op->mapped) {
            kept.keep = PLAN_KEEP_ALL;
        } else if (kept.keep == PLAN_KEEP_UNSET) {
            kept.keep = rule->when == PLAN_WHEN_AFTER ? PLAN_KEEP_ALL : PLAN_KEEP_NONE;
        }
        break;
    case TP_ACTION_TEAR:
    case TP_ACTION_CORRUPT:
        break;
    default:
        kept.keep = PLAN_KEEP_NONE;
        break;
    }
    return kept;
}

static uint64_t write_place(const record_op_t *op, const plan_rule_t *rule)
{
    uint64_t shift = (uint64_t)rule->shift; /* two's complement: a negative shift wraps right */
    uint64_t offset = op->offset + shift;

    if ((rule->shift < 0 && offset > op->offset) || offset > INT64_MAX - op->length) {
        layer_refuse("misdirect: offset %" PRIu64 " shifted by %" PRId64 " is outside of any file",
                     op->offset, rule->shift);
    }
    return offset;
}

static int64_t write_told(const record_op_t *op, const plan_rule_t *rule, const damage_keep_t *keep,
                          int failure)
{
    if (rule->action == TP_ACTION_ERROR) {
        return -rule->error;
    }
    if (failure != 0) {
        return -failure;
    }
    return (int64_t)(rule->action == TP_ACTION_SHORT ? keep->count : op->length);
}

int64_t inject_write(const record_op_t *op, const plan_rule_t *rule, const io_call_t *call)
{
    damage_keep_t keep = write_keep(op, rule);
    record_op_t fault = *op;
    fault.kind = rule->action == TP_ACTION_KILL ? TP_OP_KILL : TP_OP_FAULT;
    fault.flags = fault_flags(op, rule);
    fault.offset = rule->action == TP_ACTION_MISDIRECT ? write_place(op, rule) : op->offset;
    damage_t damage;
    if (!damage_prepare(&damage, call, &fault, rule->sector, &keep)) {
        layer_refuse("no memory to apply a fault to a write of %" PRIu64 " bytes", op->length);
    }
    if (rule->action == TP_ACTION_CORRUPT) {
        damage_flip(&damage);
    }
    damage_describe(&damage, &fault, rule->action,
                    rule->action == TP_ACTION_ERROR ? rule->error : 0);
    int failure = damage_apply(&damage);
    record_set_flag(layer_log(), TP_TRACE_FIRED);
    damage_commit(&damage, failure);
    if (rule->action == TP_ACTION_KILL) {
        inject_die();
    }
    damage_release(&damage);
    int64_t told = write_told(op, rule, &keep, failure);
    if (told > 0 && io_is_sequential(call)) {
        (void)lseek(call->fd, (off_t)(op->offset + (uint64_t)told), SEEK_SET);
    }
    return told;
}
