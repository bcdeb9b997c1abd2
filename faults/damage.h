/** A write of which only a part reaches the file, or reaches it wrong. */
#ifndef FAULTS_DAMAGE_H
#define FAULTS_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "faults/io.h"
#include "faults/plan.h"
#include "faults/record.h"

/** Which part of a write is meant. */
typedef struct damage_keep {
    plan_keep_t keep;
    uint64_t count;
    const char *mask;
    uint64_t mask_len;
} damage_keep_t;

typedef struct damage {
    int fd;
    uint32_t sector;  /**< bytes */
    uint64_t sectors; /**< chunks of the file, aligned to `sector`, that the write touches */
    uint64_t first;   /**< number of the first of them in the file */
    uint64_t offset;
    uint64_t length;
    uint64_t bytes; /**< with PLAN_KEEP_BYTES: how many of the first bytes are kept */
    uint8_t *map;   /**< TP_SECTOR_* per sector */
    uint8_t *data;  /**< the program's data in one piece */
    size_t mapped_bytes;
    bool flipped;    /**< the map names damaged sectors; all data is written */
    int64_t *result; /**< result field of the reserved record, or NULL */
} damage_t;

/** Gathers the data and works out the map. False if memory is exhausted. */
bool damage_prepare(damage_t *damage, const io_call_t *call, const record_op_t *op, uint32_t sector,
                    const damage_keep_t *keep);

/** Flips one bit of the data in the middle of every sector of the map. */
void damage_flip(damage_t *damage);

/** Reserves the KILL or FAULT record `op`, with the old content of the file, read now. */
void damage_describe(damage_t *damage, record_op_t *op, uint32_t action, int error);

/** Writes what is kept. Returns 0 or an errno. */
int damage_apply(const damage_t *damage);

/** Completes the record: result is the number of bytes that reached the file, or -failure. */
void damage_commit(const damage_t *damage, int failure);

void damage_release(damage_t *damage);

#endif
