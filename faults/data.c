/** See data.h. Above inject.c; the preload and the file system make their writes by it. */
#include "faults/data.h"

#include "faults/hash.h"
#include "faults/layer.h"

const plan_rule_t *data_write_placed(const io_call_t *call, record_op_t *op)
{
    const plan_rule_t *rule = inject_begin(op);

    layer_call_begins(op);
    if (rule == NULL) {
        op->result = layer_result(io_write_real(call));
    } else {
        op->result = inject_write(op, rule, call);
    }
    return rule;
}

/* Outside of the lock, as far as the plan lets it. */
static uint64_t data_hash(const record_op_t *op, const io_call_t *call)
{
    bool recorded = layer_log()->header != NULL && op->result > 0;

    return recorded ? hash_buffers(call->parts, call->count, (uint64_t)op->result) : 0;
}

void data_record_write(record_op_t *op, const plan_rule_t *rule, const io_call_t *call)
{
    op->hash = data_hash(op, call);
    inject_end(op, rule);
    if (layer_log()->keep_data) {
        op->flags |= TP_WRITE_PAYLOAD;
        record_append(layer_log(), op, call->parts, op->result < 0 ? 0 : (uint64_t)op->result);
    } else {
        layer_record(op);
    }
}

void data_record_call(const file_t *file, record_op_t *op, const plan_rule_t *rule)
{
    inject_end(op, rule);
    if (op->kind == TP_OP_SYNC_DIR) {
        layer_record_path(op, file->path);
    } else {
        layer_record(op);
    }
    if (op->kind == TP_OP_TRUNCATE || op->kind == TP_OP_FALLOCATE) {
        layer_call_ended();
    }
}

void data_mark(const char *text, size_t len)
{
    const plan_rule_t *rule = NULL;
    record_op_t op;

    if (!layer_enter_mark()) {
        return;
    }
    op = layer_op(TP_OP_MARK, NULL);
    op.length = len;
    /* A mark is no operation that could be prevented: it stands in the trace in any case. */
    layer_record_mark(&op, text);
    if ((layer_plan()->kinds & (1u << TP_OP_MARK)) != 0) {
        op.matches = plan_match_mark(layer_plan(), text, len);
        rule = inject_find(&op);
    }
    inject_after(&op, rule);
    (void)layer_leave(0);
}
