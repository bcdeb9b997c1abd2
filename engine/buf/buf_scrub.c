/** Scrubbing: freed pages are overwritten with zeros, by late writes of their own.

Place: beside buf_flush.c; mtr/ and recovery say what is free, buf_pool.c what is used again, the page
cleaner and the flushes when there is time. Only with a physical log: there the log says of each page
that it is free, and recovery neither reads nor writes one whose last record is that.

    freed --commit of the mtr--> waits --log durable--> zeros, without doublewrite
                                   \--created anew, its space dropped--> forgotten

Invariants
1. (I15) zeros go to a page only when the log that frees it is durable: until then a crash makes the
   page one in use again, and recovery reads it;
2. (I15) a page that is given out again is forgotten before anybody can change it;
3. a lost or torn write of zeros does no harm: nobody reads a free page before it is created anew. What the crash
   has left unscrubbed, or a doublewrite copy has brought back, recovery notes again as far as the log tells. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "buf/buf_int.h"

void buf_scrub_note(buf_pool_t *pool, page_id_t id, lsn_t lsn)
{
    buf_scrub_t *scrub = &pool->scrub;
    if (!scrub->on) {
        return;
    }
    if (scrub->n == scrub->capacity) {
        scrub->capacity = scrub->capacity == 0 ? 64 : 2 * scrub->capacity;
        scrub->pages = realloc(scrub->pages, scrub->capacity * sizeof(scrub->pages[0]));
        CHECK(scrub->pages != NULL); /* a commit cannot fail */
    }
    scrub->pages[scrub->n++] = (buf_freed_t){.id = id, .lsn = lsn};
}

/** Keeps the entries of other pages: of those with this space, and this number or any (FIL_NULL). */
static void buf_scrub_filter(buf_scrub_t *scrub, space_id_t space, page_no_t page_no)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < scrub->n; i++) {
        page_id_t id = scrub->pages[i].id;
        if (id.space != space || (page_no != FIL_NULL && id.page_no != page_no)) {
            scrub->pages[kept++] = scrub->pages[i];
        }
    }
    scrub->n = kept;
}

void buf_scrub_forget(buf_pool_t *pool, page_id_t id)
{
    buf_scrub_filter(&pool->scrub, id.space, id.page_no);
}

void buf_scrub_forget_space(buf_pool_t *pool, space_id_t space)
{
    buf_scrub_filter(&pool->scrub, space, FIL_NULL);
}

/** The newest freeing among the first n pages. */
static lsn_t buf_scrub_newest(const buf_scrub_t *scrub, uint32_t n)
{
    lsn_t newest = 0;
    for (uint32_t i = 0; i < n; i++) {
        newest = scrub->pages[i].lsn > newest ? scrub->pages[i].lsn : newest;
    }
    return newest;
}

dberr_t buf_scrub_pages(buf_pool_t *pool, uint32_t max)
{
    buf_scrub_t *scrub = &pool->scrub;
    uint32_t n = scrub->n < max ? scrub->n : max;
    if (n == 0) {
        return DB_SUCCESS;
    }
    dberr_t err = buf_dblwr_write_log(pool, buf_scrub_newest(scrub, n));
    uint32_t done = 0;
    while (err == DB_SUCCESS && done < n) {
        err = buf_dblwr_write_freed(pool, scrub->pages[done].id);
        done += err == DB_SUCCESS;
    }
    scrub->n -= done;
    memmove(scrub->pages, scrub->pages + done, scrub->n * sizeof(scrub->pages[0]));
    return err;
}
