/** Parts of files that nobody needs: freed pages are overwritten with zeros, and behind what a
compressed page stores a hole is punched. Both by late writes of their own, without doublewrite.

Place: above buf_list.c and buf_dblwr.c; mtr/ and recovery say what is free, buf_pool.c what is used
again, buf_dblwr.c what was stored; the page cleaner and the flushes come here when there is time.
Pages are scrubbed only with a log of all frees: there the log says of each page that it is free,
and recovery neither reads nor writes one whose last record is that.

    freed --commit of the mtr--> waits --log durable--> zeros, or a hole where pages are compressed
    home write of a compressed page --> waits --file fsynced--> hole behind it
                         created anew, written again, space dropped --> forgotten

Invariants
1. (I15) nothing is done to a freed page before the log that frees it is durable: until then a crash
   makes the page one in use again, and recovery reads it;
2. (I15) a page that is given out again is forgotten before anybody can change it;
3. (I29) a hole behind a compressed page waits until that home write is durable: until then a crash
   may bring back the page that was there, which may need those bytes;
4. a lost or torn change does no harm. What the crash has left unscrubbed, or a doublewrite copy has
   brought back, recovery notes again as far as the log tells. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "buf/buf_int.h"

/** Is the write that the hole lies behind durable? The log of a freed page can be made so at any
time. */
static bool buf_blank_is_ready(const buf_pool_t *pool, const buf_blank_t *blank)
{
    const fil_space_t *space = fil_space_get(pool->fil, blank->id.space);
    CHECK(space != NULL); /* a dropped one is forgotten */
    return blank->from == 0 || fil_is_synced(space, blank->n_write);
}

/** How many may be blanked now, at most max; *newest = the newest freeing among them. */
static uint32_t buf_scrub_count(const buf_pool_t *pool, uint32_t max, lsn_t *newest)
{
    *newest = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < pool->scrub.n && n < max; i++) {
        const buf_blank_t *blank = &pool->scrub.blanks[i];
        if (buf_blank_is_ready(pool, blank)) {
            *newest = blank->lsn > *newest ? blank->lsn : *newest;
            n++;
        }
    }
    return n;
}

static dberr_t buf_blank_write(buf_pool_t *pool, const buf_blank_t *blank)
{
    fil_space_t *space = fil_space_get(pool->fil, blank->id.space);
    bool done = false;
    dberr_t err = DB_SUCCESS;
    if (pool->compression != PAGE_ALGORITHM_NONE && fil_can_punch(pool->fil)) {
        PROBE_MARK(pool->env->probe, "page_punch space=%" PRIu32 " page=%" PRIu32 " from=%" PRIu32,
                   blank->id.space, blank->id.page_no, blank->from);
        err = fil_page_punch(pool->fil, space, blank->id.page_no, blank->from, &done);
        pool->env->stats.pages_punched += done;
    }
    TRY(err);
    return !done && blank->from == 0 ? buf_dblwr_write_freed(pool, blank->id) : DB_SUCCESS;
}

dberr_t buf_scrub_pages(buf_pool_t *pool, uint32_t max)
{
    buf_scrub_t *scrub = &pool->scrub;
    lsn_t newest = 0;
    uint32_t left = buf_scrub_count(pool, max, &newest);
    if (left == 0) {
        return DB_SUCCESS;
    }
    dberr_t err = buf_dblwr_write_log(pool, newest);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < scrub->n; i++) {
        const buf_blank_t blank = scrub->blanks[i];
        bool now = err == DB_SUCCESS && left > 0 && buf_blank_is_ready(pool, &blank);
        if (now) {
            err = buf_blank_write(pool, &blank);
            left--;
        }
        if (!now || err != DB_SUCCESS) {
            scrub->blanks[kept++] = blank;
        }
    }
    scrub->n = kept;
    return err;
}
