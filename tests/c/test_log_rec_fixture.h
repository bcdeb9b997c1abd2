/** Redo records: what the tests of both formats encode, compare and apply. */
#ifndef TEST_LOG_REC_FIXTURE_H
#define TEST_LOG_REC_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "log/log_rec.h"
#include "page/page_index.h"
#include "test_random.h"

static const byte DATA[] = "\0twelve bytes, and some more behind them";
static const char PATH[] = "t1.ibd";

static inline bool same_bytes(const void *a, const void *b, size_t len)
{
    return len == 0 || memcmp(a, b, len) == 0;
}

static inline void assert_same(const redo_rec_t *a, const redo_rec_t *b)
{
    assert_int_equal(a->op, b->op);
    assert_true(a->space == b->space && a->page_no == b->page_no && a->offset == b->offset
                && a->from == b->from && a->slot == b->slot && a->info == b->info
                && a->shared == b->shared && a->value == b->value && a->level == b->level
                && a->rec_size == b->rec_size && a->key_len == b->key_len
                && a->index_id == b->index_id && a->len == b->len);
    assert_true((a->data == NULL) == (b->data == NULL));
    assert_true(a->data == NULL || same_bytes(a->data, b->data, a->len));
    assert_true(a->path_len == b->path_len && same_bytes(a->path, b->path, a->path_len));
    assert_true(a->path2_len == b->path2_len && same_bytes(a->path2, b->path2, a->path2_len));
}

/** Whatever was decoded, applied to an index page, succeeds or changes nothing. */
static inline void assert_whole_or_nothing(const redo_rec_t *rec)
{
    const page_shape_t shape = {.level = 0, .index_id = 1, .rec_size = 13, .key_len = 4};
    byte page[PAGE_SIZE_MIN];
    byte copy[PAGE_SIZE_MIN];

    fil_page_init(page, sizeof(page), (page_id_t){rec->space, rec->page_no}, 0);
    assert_int_equal(page_index_create(page, sizeof(page), &shape), DB_SUCCESS);
    memcpy(copy, page, sizeof(page));
    if (log_rec_apply(rec, page, sizeof(page)) != DB_SUCCESS) {
        assert_memory_equal(page, copy, sizeof(page));
    }
}

#endif
