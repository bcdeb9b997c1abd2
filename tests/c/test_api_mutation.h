/** Damage to a directory in memory, of every kind that a file system, a disk or a bug could do:
bits, pages and redo blocks with or without right checksums, lengths and names of files. The seed
decides everything. */
#ifndef TEST_API_MUTATION_H
#define TEST_API_MUTATION_H

#include <stdint.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mach.h"
#include "disk/image.h"
#include "os/os.h"
#include "page/fil_page.h"
#include "test_random.h"

static inline uint32_t below(uint64_t *rnd, uint64_t n)
{
    return n == 0 ? 0 : (uint32_t)(random_split(rnd) % n);
}

typedef struct mutation {
    os_t *os;
    uint64_t *rnd;
    uint32_t page_size;
} mutation_t;

static const char *const FILES[] = {"ib_logfile0", "ibdata1", "ib_dblwr", "t.ibd", "u.ibd"};
#define N_FILES (sizeof(FILES) / sizeof(FILES[0]))
#define FILE_LOG 0U

static inline byte *peek(const mutation_t *m, uint32_t file, uint64_t *size)
{
    byte *bytes = image_os_bytes(m->os, FILES[file], size);
    return bytes != NULL && *size > 0 ? bytes : NULL;
}

/** Data files only. */
static inline uint32_t some_data_file(const mutation_t *m)
{
    return 1 + below(m->rnd, N_FILES - 1);
}

/** A used page, more often than not; NULL if the file has none. */
static inline byte *some_page(const mutation_t *m, uint32_t file)
{
    uint64_t size = 0;
    byte *bytes = peek(m, file, &size);
    uint64_t n = size / m->page_size;
    if (bytes == NULL || n == 0) {
        return NULL;
    }
    byte *page = bytes;
    for (int i = 0; i < 4; i++) {
        page = bytes + (uint64_t)below(m->rnd, n) * m->page_size;
        if (mach_read_4(page) != 0) {
            break;
        }
    }
    return page;
}

/** Overwrites 1, 2, 4 or 8 bytes with a value that likes to be at the edge. */
static inline void poke(const mutation_t *m, byte *bytes, uint32_t len)
{
    static const uint64_t edges[] = {0,      1,          0xFF,       0x7FFF,
                                     0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, UINT64_MAX};
    uint32_t n = 1U << below(m->rnd, 4);
    uint32_t offset = below(m->rnd, len - n);
    byte value[8];
    uint32_t what = below(m->rnd, 4);
    if (what == 0) {
        bytes[offset] ^= (byte)(1U << below(m->rnd, 8));
        return;
    }
    mach_write_8(value, what == 1   ? edges[below(m->rnd, 8)]
                        : what == 2 ? below(m->rnd, 300)
                                    : random_split(m->rnd));
    memcpy(bytes + offset, value + 8 - n, n);
}

static inline void restamp(const mutation_t *m, byte *page)
{
    if (below(m->rnd, 4) != 0) {
        fil_page_set_lsn(page, m->page_size, fil_page_get_lsn(page));
    }
    fil_page_stamp(page, m->page_size);
}

static inline void mutate_bit(const mutation_t *m)
{
    uint64_t size = 0;
    byte *bytes = peek(m, below(m->rnd, N_FILES), &size);
    if (bytes != NULL) {
        bytes[random_split(m->rnd) % size] ^= (byte)(1U << below(m->rnd, 8));
    }
}

/** A page with a right checksum and wrong contents: header, start of the contents, or anywhere. */
static inline void mutate_page(const mutation_t *m)
{
    byte *page = some_page(m, some_data_file(m));
    if (page == NULL) {
        return;
    }
    for (uint32_t n = 1 + below(m->rnd, 3); n > 0; n--) {
        switch (below(m->rnd, 4)) {
        case 0:
            poke(m, page, 38);
            break;
        case 1:
            poke(m, page + FIL_PAGE_DATA, 300); /* descriptors and inodes too */
            break;
        case 2:
            poke(m, page + m->page_size - 200, 192);
            break;
        default:
            poke(m, page + FIL_PAGE_DATA, m->page_size - FIL_PAGE_DATA);
        }
    }
    restamp(m, page);
}

static inline void mutate_page_torn(const mutation_t *m)
{
    byte *page = some_page(m, some_data_file(m));
    if (page != NULL) {
        uint32_t from = below(m->rnd, m->page_size / 512) * 512;
        memset(page + from, (int)below(m->rnd, 2), m->page_size - from);
    }
}

static inline void mutate_page_zero(const mutation_t *m)
{
    byte *page = some_page(m, some_data_file(m));
    if (page != NULL) {
        memset(page, 0, m->page_size);
    }
}

/** A page at the place of another one, with the other's identity or its own. */
static inline void mutate_page_copy(const mutation_t *m)
{
    byte *from = some_page(m, some_data_file(m));
    byte *to = some_page(m, some_data_file(m));
    byte id[2][4];
    if (from == NULL || to == NULL || from == to) {
        return;
    }
    memcpy(id[0], to + FIL_PAGE_OFFSET, 4);
    memcpy(id[1], to + FIL_PAGE_SPACE_ID, 4);
    memcpy(to, from, m->page_size);
    if (below(m->rnd, 2) == 0) {
        memcpy(to + FIL_PAGE_OFFSET, id[0], 4);
        memcpy(to + FIL_PAGE_SPACE_ID, id[1], 4);
        restamp(m, to);
    }
}

static inline void mutate_length(const mutation_t *m)
{
    probe_t probe = {.point = NULL};
    env_t env = {.os = m->os, .probe = &probe};
    os_file_t *file = NULL;
    uint64_t size = 0;
    const char *path = FILES[below(m->rnd, N_FILES)];
    if (env_open(&env, path, OS_OPEN, &file) != DB_SUCCESS) {
        return;
    }
    assert_int_equal(env_size(&env, file, &size), DB_SUCCESS);
    switch (below(m->rnd, 4)) {
    case 0:
        size = 0;
        break;
    case 1:
        size += below(m->rnd, 100000);
        break;
    case 2:
        size -= size > m->page_size ? m->page_size : 0;
        break;
    default:
        size = below(m->rnd, size);
    }
    assert_int_equal(env_truncate(&env, file, size), DB_SUCCESS);
    env_close(&env, file);
}

static inline void mutate_entries(const mutation_t *m)
{
    probe_t probe = {.point = NULL};
    env_t env = {.os = m->os, .probe = &probe};
    const char *a = FILES[below(m->rnd, N_FILES)];
    const char *b = below(m->rnd, 2) == 0 ? "w.ibd" : FILES[some_data_file(m)];
    bool exists = false;
    assert_int_equal(env_exists(&env, a, &exists), DB_SUCCESS);
    if (exists) {
        dberr_t err = below(m->rnd, 2) == 0 ? env_unlink(&env, a) : env_rename(&env, a, b);
        assert_int_equal(err, DB_SUCCESS);
    }
}

static inline void block_stamp(byte *block)
{
    mach_write_4(block + 508, crc32c(block, 508));
}

/** Header and slots of the redo file. */
static inline void mutate_log_head(const mutation_t *m)
{
    uint64_t size = 0;
    byte *bytes = peek(m, FILE_LOG, &size);
    if (bytes != NULL && size >= 2048) {
        byte *block =
            bytes + 512 * (uint64_t)(below(m->rnd, 3) == 0 ? 0 : 1 + 2 * below(m->rnd, 2));
        poke(m, block, 40);
        block_stamp(block);
    }
}

/** A written block, or any one if luck will have it. */
static inline byte *some_block(const mutation_t *m)
{
    uint64_t size = 0;
    byte *bytes = peek(m, FILE_LOG, &size);
    if (bytes == NULL || size < 4096) {
        return NULL;
    }
    byte *block = bytes;
    for (int i = 0; i < 8; i++) {
        block = bytes + 2048 + (uint64_t)below(m->rnd, (size - 2048) / 512) * 512;
        if (mach_read_4(block) != 0) {
            break;
        }
    }
    return block;
}

/** The last `back` blocks that hold log are what recovery reads. */
static inline byte *late_block(const mutation_t *m)
{
    uint64_t size = 0;
    byte *bytes = peek(m, FILE_LOG, &size);
    byte *last = NULL;
    for (uint64_t at = 2048; bytes != NULL && at + 512 <= size; at += 512) {
        if (last == NULL || mach_read_4(bytes + at) > mach_read_4(last)) {
            last = bytes + at;
        }
    }
    if (last == NULL) {
        return NULL;
    }
    uint64_t back = (uint64_t)below(m->rnd, 60) * 512;
    return (uint64_t)(last - bytes) >= 2048 + back ? last - back : last;
}

static inline void mutate_block(const mutation_t *m)
{
    byte *block = below(m->rnd, 4) == 0 ? some_block(m) : late_block(m);
    if (block == NULL) {
        return;
    }
    for (uint32_t n = 1 + below(m->rnd, 3); n > 0; n--) {
        if (below(m->rnd, 5) == 0) {
            poke(m, block, 12);
        } else {
            poke(m, block + 12, 496);
        }
    }
    if (below(m->rnd, 8) != 0) {
        block_stamp(block);
    }
}

static inline void mutate_block_copy(const mutation_t *m)
{
    byte *from = some_block(m);
    byte *to = late_block(m);
    byte number[8];
    if (from == NULL || to == NULL || from == to) {
        return;
    }
    memcpy(number, to, 8);
    memcpy(to, from, 512);
    if (below(m->rnd, 2) == 0) {
        memcpy(to, number, 8);
        block_stamp(to);
    }
}

/** Puts a whole record of some type, space and page into the middle of a block. */
static inline void mutate_record(const mutation_t *m)
{
    static const byte types[] = {1,  2,  4,  8,  30, 31, 32, 35, 37, 38, 41,
                                 42, 43, 44, 47, 54, 55, 56, 59, 61, 63, 64};
    byte *block = late_block(m);
    if (block == NULL) {
        return;
    }
    uint32_t first = mach_read_2(block + 10);
    uint32_t at =
        first >= 12 && first < 400 && below(m->rnd, 4) != 0 ? first : 12 + below(m->rnd, 400);
    block[at] = (byte)(types[below(m->rnd, sizeof(types))] | (below(m->rnd, 2) << 7));
    for (uint32_t i = 1; i < 1 + below(m->rnd, 30); i++) {
        block[at + i] = (byte)(below(m->rnd, 3) == 0 ? random_split(m->rnd) : below(m->rnd, 6));
    }
    block_stamp(block);
}

static inline void mutate(const mutation_t *m)
{
    static void (*const kinds[])(const mutation_t *) = {
        mutate_bit,    mutate_page,      mutate_page,   mutate_page,       mutate_page_torn,
        mutate_block,  mutate_page_zero, mutate_block,  mutate_page_copy,  mutate_record,
        mutate_length, mutate_log_head,  mutate_record, mutate_block_copy, mutate_entries};
    for (uint32_t n = 1 + below(m->rnd, 4); n > 0; n--) {
        kinds[below(m->rnd, sizeof(kinds) / sizeof(kinds[0]))](m);
    }
}

#endif
