/** Lists of extents, of a space and of its segments.

Place: check/, below check_seg.c and check_fsp.c, which know the lists. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mach.h"
#include "check/check_fsp.h"

void chk_fsp_find(const chk_fsp_t *fsp, page_no_t page_no, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char what[160];
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    chk_find(fsp->chk, 11, fsp->file, page_no, "%s", what);
}

chk_addr_t chk_addr_read(const byte *at)
{
    return (chk_addr_t){mach_read_4(at), mach_read_2(at + 4)};
}

chk_list_t chk_list_read(const byte *base)
{
    return (chk_list_t){mach_read_4(base), chk_addr_read(base + 4), chk_addr_read(base + 10)};
}

static bool chk_addr_eq(chk_addr_t a, chk_addr_t b)
{
    return a.page_no == b.page_no && a.offset == b.offset;
}

static const chk_addr_t CHK_NOWHERE = {FIL_NULL, 0};

/** Number of the extent whose node lies there; UINT32_MAX: none does. */
static uint32_t chk_extent_at(const chk_fsp_t *fsp, chk_addr_t addr)
{
    uint32_t at = addr.offset - CHK_FSP_XDES - CHK_XDES_NODE;
    uint32_t slot = at / fsp->xdes_size;
    if (addr.page_no % fsp->covers != 0 || addr.offset < CHK_FSP_XDES + CHK_XDES_NODE
        || at % fsp->xdes_size != 0 || slot >= fsp->covers / fsp->chk->extent_pages) {
        return UINT32_MAX;
    }
    uint64_t no = (uint64_t)addr.page_no / fsp->chk->extent_pages + slot;
    return no < fsp->n_extents ? (uint32_t)no : UINT32_MAX;
}

void chk_extent_list(chk_fsp_t *fsp, const chk_list_t *list, const chk_rule_t *rule,
                     uint64_t *n_used)
{
    const char *name = rule->name;
    chk_addr_t at = list->first;
    *n_used = 0;
    chk_addr_t prev = CHK_NOWHERE;
    uint32_t n = 0;
    while (at.page_no != FIL_NULL) {
        uint32_t no = chk_extent_at(fsp, at);
        if (no == UINT32_MAX) {
            chk_fsp_find(fsp, at.page_no, "list %s: no descriptor at offset %" PRIu32, name,
                         at.offset);
            return;
        }
        chk_extent_t *extent = &fsp->extents[no];
        page_no_t first = no * fsp->chk->extent_pages;
        if (extent->listed) {
            chk_fsp_find(fsp, first, "extent on two lists, one of them %s", name);
            return;
        }
        extent->listed = true;
        if (extent->state != rule->state || extent->seg != rule->seg
            || extent->n_used < rule->used_min || extent->n_used > rule->used_max) {
            chk_fsp_find(fsp, first,
                         "extent in state %" PRIu32 " of segment %" PRIu64 " with %" PRIu32
                         " used pages on list %s",
                         extent->state, extent->seg, extent->n_used, name);
        }
        if (!chk_addr_eq(extent->prev, prev)) {
            chk_fsp_find(fsp, first, "list %s: wrong link back", name);
        }
        *n_used += extent->n_used;
        prev = at;
        at = extent->next;
        n++;
    }
    if (n != list->len || !chk_addr_eq(prev, list->last) || at.offset != 0) {
        chk_fsp_find(fsp, 0,
                     "list %s: %" PRIu32 " extents, but its base says %" PRIu32
                     ", or has another end",
                     name, n, list->len);
    }
}
