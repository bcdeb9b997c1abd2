/** What the parts of the scan stand on: findings, and pages as they are in their files.

Place: bottom of check/, above nothing but the formats. check_space.c opens the files.

Files are read one after the other, so one of them is open at a time. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"
#include "page/page_compress.h"

void chk_find(chk_t *chk, uint32_t invariant, const chk_file_t *file, page_no_t page_no,
              const char *format, ...)
{
    check_report_t *report = chk->report;
    if (report->n_findings++ >= CHECK_FINDINGS_MAX) {
        return;
    }
    check_finding_t *finding = &report->findings[report->n_findings - 1];
    *finding = (check_finding_t){.invariant = invariant, .page_no = page_no};
    if (file != NULL) {
        memcpy(finding->path, file->path, sizeof(finding->path));
    }
    va_list args;
    va_start(args, format);
    vsnprintf(finding->what, sizeof(finding->what), format, args);
    va_end(args);
}

bool chk_is_zero(const byte *bytes, uint32_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

void chk_bit_set(byte *bits, uint32_t i)
{
    bits[i / 8] = (byte)(bits[i / 8] | 1U << (i % 8));
}

bool chk_is_bad(const chk_file_t *file, page_no_t page_no)
{
    return chk_bit(file->bad, page_no);
}

uint32_t chk_xdes_covers(const chk_t *chk)
{
    return chk->page_size / extent_pages_default(chk->page_size) * chk->extent_pages;
}

static void chk_file_close(chk_t *chk)
{
    if (chk->open_file != NULL) {
        env_close(chk->env, chk->open_file->file);
        chk->open_file->file = NULL;
        chk->open_file = NULL;
    }
}

/** Opens the file unless it is the one that is open. */
dberr_t chk_file_use(chk_t *chk, chk_file_t *file)
{
    if (file->file != NULL) {
        return DB_SUCCESS;
    }
    chk_file_close(chk);
    TRY(env_open(chk->env, file->path, OS_OPEN, &file->file));
    chk->open_file = file;
    return DB_SUCCESS;
}

dberr_t chk_page_read(chk_t *chk, chk_file_t *file, page_no_t page_no, byte *page)
{
    TRY(chk_file_use(chk, file));
    size_t n_read = 0;
    TRY(env_read(chk->env, file->file, (uint64_t)page_no * chk->page_size, page, chk->page_size,
                 &n_read));
    memset(page + n_read, 0, chk->page_size - n_read);
    page_decompress(page, chk->page_size);
    return DB_SUCCESS;
}

bool chk_page_view(chk_t *chk, chk_file_t *file, page_no_t page_no, os_view_t *view)
{
    return chk_file_use(chk, file) == DB_SUCCESS
           && env_view(chk->env, file->file, (uint64_t)page_no * chk->page_size, chk->page_size,
                       view);
}

chk_file_t *chk_file_of_space(chk_t *chk, space_id_t space)
{
    for (chk_file_t *file = chk->files; file != NULL; file = file->next) {
        if (file->usable && file->space == space) {
            return file;
        }
    }
    return NULL;
}

void chk_files_close(chk_t *chk)
{
    chk_file_close(chk);
    while (chk->files != NULL) {
        chk_file_t *next = chk->files->next;
        free(chk->files->owner);
        free(chk->files->facts);
        free(chk->files->segs);
        free(chk->files->reached);
        free(chk->files->bad);
        free(chk->files);
        chk->files = next;
    }
}
