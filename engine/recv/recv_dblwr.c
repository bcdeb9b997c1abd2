/** Doublewrite restore: torn home pages from their copies.

Place: between the registration of spaces and apply; reads the doublewrite file through
buf_dblwr_each_copy().

Which copies count: those with C <= LSN <= end of the log. An older page had no change after the
checkpoint, so it was not being written when the crash came. One from before the TRIM_PAGES of its
space is of a life that is over. A newer one does not exist: a batch makes its log durable before
its copies. If one is found, log and area do not belong together.

Invariants
1. an undamaged home page is left alone, even if the copy is newer: redo brings it forward;
2. a page that the log frees last is restored like any other: given out again in a space with an
   INDEX_LOAD it will be read, and torn it would be refused then; a page beyond the committed size
   is not written;
3. the area is fsynced before a home page is written from it: a killed process may have left copies
   of pages that never went home in the page cache only, and the write that a power loss tears then
   has no copy (I22);
4. a log of all frees leaves homes torn that are free. When it has been converted, and before the
   first start, they are made zero: an INDEX_LOAD would have them read, once they are in use again;
5. all files, restored or not, are fsynced before anything writes the doublewrite area again (I22),
   so a crash during the restore finds all copies still there (I17). */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "recv/recv_int.h"

static dberr_t recv_copy_seen(void *ctx, page_id_t id, lsn_t lsn, const byte *page,
                              const byte *image)
{
    recv_t *recv = ctx;
    (void)image;
    const recv_space_t *space = recv_space_find(recv, id.space);
    if (lsn < recv->ckpt.lsn || lsn > recv->end_lsn || (space != NULL && lsn < space->trim_lsn)) {
        return DB_SUCCESS;
    }
    recv_copy_t *copy = NULL;
    for (uint32_t i = 0; i < recv->n_copies && copy == NULL; i++) {
        copy = page_id_eq(recv->copies[i].id, id) ? &recv->copies[i] : NULL;
    }
    if (copy == NULL) {
        CHECK(recv->n_copies < RECV_COPIES_MAX); /* what buf_dblwr_each_copy looks at */
        copy = &recv->copies[recv->n_copies++];
    } else if (copy->lsn >= lsn) {
        return DB_SUCCESS;
    }
    copy->id = id;
    copy->lsn = lsn;
    copy->fsp_size = id.page_no == 0 ? recv_page0_size(recv, page) : 0;
    return DB_SUCCESS;
}

dberr_t recv_dblwr_collect(recv_t *recv)
{
    return buf_dblwr_each_copy(recv->env, recv->page_size, recv_copy_seen, recv);
}

static bool recv_copy_is_newest(const recv_t *recv, page_id_t id, lsn_t lsn)
{
    for (uint32_t i = 0; i < recv->n_copies; i++) {
        if (page_id_eq(recv->copies[i].id, id)) {
            return recv->copies[i].lsn == lsn;
        }
    }
    return false;
}

static dberr_t recv_copy_restore(void *ctx, page_id_t id, lsn_t lsn, const byte *page,
                                 const byte *image)
{
    recv_t *recv = ctx;
    (void)page;
    fil_space_t *space = fil_space_get(recv->fil, id.space);
    if (space == NULL || id.page_no >= space->size_pages || !recv_copy_is_newest(recv, id, lsn)) {
        return DB_SUCCESS;
    }
    dberr_t err = fil_page_read(recv->fil, space, id.page_no, recv->page_buf);
    if (err != DB_SUCCESS || fil_page_verify(recv->page_buf, recv->page_size, id) == PAGE_OK) {
        return err;
    }
    PROBE_MARK(recv->env->probe,
               "recv_dblwr_restore space=%" PRIu32 " page=%" PRIu32 " lsn=%" PRIu64, id.space,
               id.page_no, lsn);
    TRY(fil_page_write(recv->fil, space, id.page_no, image));
    recv->env->stats.recv_dblwr_restored++;
    return DB_SUCCESS;
}

/** Zeros over the homes that are torn and free by the descriptors before them. */
static dberr_t recv_blank_torn(recv_t *recv, fil_space_t *space)
{
    byte xdes[PAGE_SIZE_MAX];
    uint32_t extent_pages = log_info(recv->log)->extent_pages;
    for (page_id_t id = {space->id, 0}; id.page_no < space->size_pages; id.page_no++) {
        TRY(fil_page_read(recv->fil, space, id.page_no, recv->page_buf));
        page_verdict_t verdict = fil_page_verify(recv->page_buf, recv->page_size, id);
        if (id.page_no % xdes_page_covers(recv->page_size, extent_pages) == 0) {
            memcpy(xdes, recv->page_buf, recv->page_size);
            memset(xdes, 0xFF, verdict == PAGE_OK ? 0 : recv->page_size);
        } else if (verdict != PAGE_OK && verdict != PAGE_ZERO
                   && !xdes_frame_has_page(xdes, recv->page_size, extent_pages, id.page_no)) {
            memset(recv->page_buf, 0, recv->page_size);
            TRY(fil_page_write(recv->fil, space, id.page_no, recv->page_buf));
        }
    }
    return fil_sync(recv->fil, space);
}

dberr_t recv_dblwr_converted(recv_t *recv)
{
    bool converted = recv->ckpt.no == 0 && log_format(recv->log)->unlogged_loads;
    fil_space_t *space = fil_first(recv->fil);
    for (; converted && space != NULL; space = space->next) {
        TRY(recv_blank_torn(recv, space));
    }
    return DB_SUCCESS;
}

dberr_t recv_dblwr_restore(recv_t *recv)
{
    TRY(recv->n_copies > 0 ? buf_dblwr_sync_found(recv->env) : DB_SUCCESS);
    if (recv->n_copies > 0) {
        TRY(buf_dblwr_each_copy(recv->env, recv->page_size, recv_copy_restore, recv));
    }
    TRY(fil_sync_all(recv->fil));
    PROBE_POINT(recv->env->probe, "recv.dblwr_restored");
    return DB_SUCCESS;
}
