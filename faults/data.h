/** What the preload and the file system have in common: calls on open files from their beginning to
their record, and marks. */
#ifndef FAULTS_DATA_H
#define FAULTS_DATA_H

#include "faults/files.h"
#include "faults/inject.h"
#include "faults/io.h"
#include "faults/record.h"

/** Makes the write, or does to it what the plan says; op has its offset, length and flags, and gets
its result. It is under way until layer_call_ended(). */
const plan_rule_t *data_write_placed(const io_call_t *call, record_op_t *op);

/** Takes the lock and records the bytes that were reported as written. */
void data_record_write(record_op_t *op, const plan_rule_t *rule, const io_call_t *call);

/** Takes the lock and records another call on an open file, which has ended. */
void data_record_call(const file_t *file, record_op_t *op, const plan_rule_t *rule);

/** See tp_trace_mark(). */
void data_mark(const char *text, size_t len);

#endif
