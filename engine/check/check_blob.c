/** Long values: chains of pages that hang from rows and from undo records.

Place: check/, below check_rows.c and check_undo.c.

Checked: I6 fields of the pages, length of the value; I11 each page of a chain belongs to the
segment of its table's leaves and is reached once: a chain with two owners, or a page in two chains,
is met the second time. A chain that nobody owns is left over as pages that nothing leads to.

A walk ends, because a page is entered only when its bit is not set yet. */
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "check/check_table.h"

bool chk_ref_read(const byte *from, space_id_t space, chk_ref_t *out, bool *owner)
{
    uint32_t flags = mach_read_4(from + CHK_REF_FLAGS);
    *out = (chk_ref_t){.page_no = mach_read_4(from + CHK_REF_PAGE),
                       .len = mach_read_4(from + CHK_REF_LEN)};
    *owner = flags == 0;
    return mach_read_4(from + CHK_REF_SPACE) == space
           && mach_read_4(from + CHK_REF_OFFSET) == CHK_BLOB_PART_LEN
           && (flags == 0 || flags == CHK_REF_NOT_OWNER) && out->len <= VARCHAR_LEN_MAX
           && (out->page_no == FIL_NULL) == (out->len == 0);
}

/** The page in chk->page as the next one of a chain of which `left` bytes are to come. */
static bool chk_blob_page_fits(const chk_t *chk, const chk_table_t *table, uint32_t left)
{
    const byte *page = chk->page;
    uint32_t part = mach_read_4(page + CHK_BLOB_PART_LEN);
    uint32_t room = chk->page_size - FIL_PAGE_TRAILER - CHK_BLOB_DATA;
    return fil_page_get_type(page) == FIL_PAGE_TYPE_BLOB
           && mach_read_8(page + CHK_BLOB_INDEX_ID) == table->indexes[0].id
           && chk_is_zero(page + CHK_BLOB_RESERVED, CHK_BLOB_INDEX_ID - CHK_BLOB_RESERVED)
           && part > 0 && part <= left && part <= room
           && (part == left) == (mach_read_4(page + CHK_BLOB_NEXT) == FIL_NULL)
           && chk_is_zero(page + CHK_BLOB_DATA + part, room - part);
}

dberr_t chk_blob_walk(chk_t *chk, const chk_table_t *table, const chk_ref_t *ref, byte *to,
                      bool *whole)
{
    chk_file_t *file = chk_file_of_space(chk, table->space);
    page_no_t page_no = ref->page_no;
    uint32_t left = ref->len;
    while (left > 0) {
        chk_reach(chk, file, page_no, table->leaves, 11, whole);
        if (!*whole) {
            return DB_SUCCESS;
        }
        TRY(chk_page_read(chk, file, page_no, chk->page));
        if (!chk_blob_page_fits(chk, table, left)) {
            chk_find(chk, 6, file, page_no, "table %s: a page of a long value does not fit there",
                     table->name);
            *whole = false;
            return DB_SUCCESS;
        }
        uint32_t part = mach_read_4(chk->page + CHK_BLOB_PART_LEN);
        if (to != NULL) {
            memcpy(to, chk->page + CHK_BLOB_DATA, part);
            to += part;
        }
        left -= part;
        page_no = mach_read_4(chk->page + CHK_BLOB_NEXT);
    }
    *whole = true;
    return DB_SUCCESS;
}

/* ---- of undo records ---- */

static dberr_t chk_undo_ref_add(chk_t *chk, table_id_t table, const chk_ref_t *ref)
{
    uint32_t n = chk->n_undo_refs;
    if ((n & (n - 1)) == 0) { /* grows at each power of two */
        size_t size = (n == 0 ? 1 : 2 * (size_t)n) * sizeof(*chk->undo_refs);
        chk_undo_ref_t *refs = realloc(chk->undo_refs, size);
        if (refs == NULL) {
            return err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory for undo records");
        }
        chk->undo_refs = refs;
    }
    chk->undo_refs[chk->n_undo_refs++] = (chk_undo_ref_t){.table = table, .ref = *ref};
    return DB_SUCCESS;
}

/** One column at p, of room bytes. *size: what it takes; 0: it cannot be. */
static dberr_t chk_undo_col(chk_t *chk, table_id_t table, const byte *p, uint32_t room,
                            uint32_t *size)
{
    uint32_t len = room < CHK_UNDO_COL_FIXED ? 0 : mach_read_2(p + 2);
    bool external = len != CHK_UNDO_COL_NULL && (len & CHK_UNDO_COL_EXTERNAL) != 0;
    *size = 0;
    len = len == CHK_UNDO_COL_NULL ? 0 : len & ~CHK_UNDO_COL_EXTERNAL;
    if (room < CHK_UNDO_COL_FIXED || len > room - CHK_UNDO_COL_FIXED) {
        return DB_SUCCESS;
    }
    chk_ref_t ref = {.len = 0};
    bool owner = false;
    if (external) {
        const byte *value = p + CHK_UNDO_COL_FIXED;
        if (len < CHK_REF_SIZE
            || !chk_ref_read(value, mach_read_4(value + CHK_REF_SPACE), &ref, &owner)) {
            return DB_SUCCESS;
        }
    }
    *size = CHK_UNDO_COL_FIXED + len;
    return owner && ref.len > 0 ? chk_undo_ref_add(chk, table, &ref) : DB_SUCCESS;
}

dberr_t chk_undo_refs_note(chk_t *chk, const byte *rec, uint32_t len, bool *valid)
{
    table_id_t table = mach_read_8(rec + CHK_UNDO_REC_TABLE_ID);
    uint32_t at = CHK_UNDO_REC_PK + mach_read_2(rec + CHK_UNDO_REC_PK_LEN);
    uint32_t end = len - 2;
    *valid = true;
    if (mach_read_1(rec + CHK_UNDO_REC_TYPE) != CHK_UNDO_TYPE_UPDATE) {
        return DB_SUCCESS;
    }
    *valid = at + CHK_UNDO_COLS <= end;
    uint32_t n = *valid ? mach_read_2(rec + at + 1) : 0;
    at += CHK_UNDO_COLS;
    for (uint32_t i = 0; i < n && *valid; i++) {
        uint32_t size = 0;
        TRY(chk_undo_col(chk, table, rec + at, end - at, &size));
        *valid = size > 0;
        at += size;
    }
    *valid = *valid && at == end;
    return DB_SUCCESS;
}

dberr_t chk_undo_refs_walk(chk_t *chk)
{
    for (uint32_t i = 0; i < chk->n_undo_refs; i++) {
        const chk_undo_ref_t *item = &chk->undo_refs[i];
        const chk_table_t *table = chk_table_by_id(chk, item->table);
        if (table == NULL || table->leaves == CHK_OWNER_UNKNOWN) {
            continue; /* dropped since, or reported */
        }
        bool whole = true;
        TRY(chk_blob_walk(chk, table, &item->ref, NULL, &whole));
        if (!whole) {
            chk_broken(chk_file_of_space(chk, table->space), table->leaves);
        }
    }
    return DB_SUCCESS;
}
