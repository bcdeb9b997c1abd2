/* `engine page`: one page of a file, decoded as far as its bytes allow.

Place: cli/; shares the byte map of page/ and fsp/, nothing else.

Rules
1. The file may be anything: every field is checked before it is used, and a damaged page is shown
   with what is wrong instead of with records.
2. The verdict on the envelope comes first, because everything below it may be nonsense. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "cli/cli.h"
#include "fsp/fsp.h"
#include "page/page_blob.h"
#include "page/page_compress.h"
#include "page/page_index.h"

#define DUMP_WIDTH 16U

typedef struct page_view {
    const byte *page;
    uint32_t page_size;
    page_id_t id;          /**< where it was read from */
    uint32_t extent_pages; /**< 0: page 0 does not tell */
    page_verdict_t verdict;
    uint32_t stored;       /**< bytes: fewer than page_size if it was compressed */
    const char *algorithm; /**< then; NULL: unknown */
    const char *shape;     /**< index pages: what is wrong with the shape, or NULL */
} page_view_t;

/* ---- text ---- */

static void print_envelope(const page_view_t *v)
{
    (void)printf("page %" PRIu32 " of space %" PRIu32 ": %s\n", v->id.page_no, v->id.space,
                 page_verdict_name(v->verdict));
    (void)printf("type %s, LSN %" PRIu64 ", says page %" PRIu32 " of space %" PRIu32 "\n",
                 page_type_name(fil_page_get_type(v->page)), fil_page_get_lsn(v->page),
                 fil_page_get_id(v->page).page_no, fil_page_get_id(v->page).space);
    if (v->stored < v->page_size) {
        (void)printf("compressed by %s, %" PRIu32 " bytes are stored\n",
                     v->algorithm != NULL ? v->algorithm : "an unknown algorithm", v->stored);
    }
}

static void print_link(const char *name, page_no_t page_no)
{
    if (page_no == FIL_NULL) {
        (void)printf("%s none", name);
    } else {
        (void)printf("%s %" PRIu32, name, page_no);
    }
}

static void print_record(const page_view_t *v, uint32_t slot)
{
    const byte *rec = page_rec(v->page, v->page_size, slot);
    uint32_t len = page_rec_len(v->page, v->page_size, slot);
    uint32_t key_len = page_key_len(v->page);
    char *key = cli_hex(rec_payload(rec), key_len);
    (void)printf("%5" PRIu32 " at %" PRIu32, slot, page_rec_offset(v->page, v->page_size, slot));
    if (page_rec_size(v->page) == PAGE_REC_VARIES) {
        (void)printf(" length %" PRIu32, len);
    }
    (void)printf(" info %02" PRIx32 " key %s", rec_info(rec), key != NULL ? key : "?");
    free(key);
    if (page_level(v->page) > 0) {
        (void)printf(" child %" PRIu32 "\n", mach_read_4(rec_payload(rec) + key_len));
        return;
    }
    char *rest = cli_hex(rec_payload(rec) + key_len, len - 1 - key_len);
    (void)printf(" data %s\n", rest != NULL ? rest : "?");
    free(rest);
}

static void print_index(const page_view_t *v)
{
    print_link("prev", fil_page_get_prev(v->page));
    print_link(", next", fil_page_get_next(v->page));
    (void)printf(", index %" PRIu64 ", level %" PRIu32 ", %" PRIu32 " records of ",
                 page_index_id(v->page), page_level(v->page), page_n_recs(v->page));
    if (page_rec_size(v->page) == PAGE_REC_VARIES) {
        (void)printf("any size, key %" PRIu32 " bytes, %u bytes of garbage\n",
                     page_key_len(v->page), mach_read_2(v->page + PAGE_GARBAGE));
    } else {
        (void)printf("%" PRIu32 " bytes, key %" PRIu32 " bytes, %u freed\n", page_rec_size(v->page),
                     page_key_len(v->page), mach_read_2(v->page + PAGE_N_FREE));
    }
    if (v->shape != NULL) {
        (void)printf("damaged: %s\n", v->shape);
        return;
    }
    for (uint32_t slot = 0; slot < page_n_recs(v->page); slot++) {
        print_record(v, slot);
    }
}

static const char *xdes_state_name(uint32_t state)
{
    static const char *const NAMES[] = {"none", "FREE", "FREE_FRAG", "FULL_FRAG", "FSEG"};
    return state < sizeof(NAMES) / sizeof(NAMES[0]) ? NAMES[state] : "impossible";
}

/** The descriptor of extent i of the page. */
static const byte *view_xdes(const page_view_t *v, uint32_t i)
{
    return v->page + FSP_XDES + (size_t)i * xdes_size(v->extent_pages);
}

static uint32_t view_n_xdes(const page_view_t *v)
{
    return v->extent_pages != 0 ? xdes_page_covers(v->page_size, v->extent_pages) / v->extent_pages
                                : 0;
}

static void print_list(const char *name, const byte *base)
{
    (void)printf("list %s: length %" PRIu32, name, mach_read_4(base + FLST_LEN));
    print_link(", first in page", mach_read_4(base + FLST_FIRST));
    print_link(", last in page", mach_read_4(base + FLST_LAST));
    (void)printf("\n");
}

static void print_space_header(const byte *page)
{
    (void)printf("space %" PRIu32 ", %" PRIu32 " pages, free limit %" PRIu32 ", page size %" PRIu32
                 ", extents of %" PRIu32 " pages, version %" PRIu32 "\n",
                 mach_read_4(page + FSP_SPACE_ID), mach_read_4(page + FSP_SIZE),
                 mach_read_4(page + FSP_FREE_LIMIT), mach_read_4(page + FSP_PAGE_SIZE),
                 mach_read_4(page + FSP_EXTENT_PAGES), mach_read_4(page + FSP_VERSION));
    (void)printf("%" PRIu32 " used pages in FREE_FRAG, next segment %" PRIu64 "\n",
                 mach_read_4(page + FSP_FRAG_N_USED), mach_read_8(page + FSP_SEG_ID));
    print_list("FREE", page + FSP_FREE);
    print_list("FREE_FRAG", page + FSP_FREE_FRAG);
    print_list("FULL_FRAG", page + FSP_FULL_FRAG);
    print_list("SEG_INODES_FULL", page + FSP_SEG_INODES_FULL);
    print_list("SEG_INODES_FREE", page + FSP_SEG_INODES_FREE);
}

static void print_xdes(const page_view_t *v)
{
    if (fil_page_get_type(v->page) == FIL_PAGE_TYPE_FSP_HDR) {
        print_space_header(v->page);
    }
    for (uint32_t i = 0; i < view_n_xdes(v); i++) {
        const byte *xdes = view_xdes(v, i);
        if (mach_read_4(xdes + XDES_STATE) == 0) {
            continue;
        }
        page_no_t first = v->id.page_no + i * v->extent_pages;
        char *bitmap = cli_hex(xdes + XDES_BITMAP, v->extent_pages / 8);
        (void)printf("pages %" PRIu32 " to %" PRIu32 ": %s, segment %" PRIu64 ", used %s\n", first,
                     first + v->extent_pages - 1, xdes_state_name(mach_read_4(xdes + XDES_STATE)),
                     mach_read_8(xdes + XDES_ID), bitmap != NULL ? bitmap : "?");
        free(bitmap);
    }
}

static const byte *view_inode(const page_view_t *v, uint32_t i)
{
    return v->page + FSEG_INODES + (size_t)i * fseg_inode_size(v->extent_pages);
}

static uint32_t view_n_inodes(const page_view_t *v)
{
    return v->extent_pages != 0 ? fseg_inodes_per_page(v->page_size, v->extent_pages) : 0;
}

static void print_inodes(const page_view_t *v)
{
    for (uint32_t i = 0; i < view_n_inodes(v); i++) {
        const byte *inode = view_inode(v, i);
        if (mach_read_8(inode + FSEG_ID) == 0) {
            continue;
        }
        (void)printf("segment %" PRIu64 " at %td: extents %" PRIu32 " free, %" PRIu32
                     " not full with %" PRIu32 " used pages, %" PRIu32 " full; pages",
                     mach_read_8(inode + FSEG_ID), inode - v->page, mach_read_4(inode + FSEG_FREE),
                     mach_read_4(inode + FSEG_NOT_FULL), mach_read_4(inode + FSEG_NOT_FULL_N_USED),
                     mach_read_4(inode + FSEG_FULL));
        for (uint32_t slot = 0; slot < v->extent_pages / 2; slot++) {
            if (mach_read_4(inode + FSEG_FRAGS + 4 * slot) != FIL_NULL) {
                (void)printf(" %" PRIu32, mach_read_4(inode + FSEG_FRAGS + 4 * slot));
            }
        }
        (void)printf("\n");
    }
}

/** Contents of a page without a decoder here: lines that are not all zero. */
static void print_dump(const page_view_t *v)
{
    static const byte ZEROS[DUMP_WIDTH];
    for (uint32_t at = 32; at < v->page_size; at += DUMP_WIDTH) {
        if (memcmp(v->page + at, ZEROS, DUMP_WIDTH) != 0) {
            char *hex = cli_hex(v->page + at, DUMP_WIDTH);
            (void)printf("%6" PRIu32 " %s\n", at, hex != NULL ? hex : "?");
            free(hex);
        }
    }
}

static void print_blob(const page_view_t *v)
{
    (void)printf("part of a long value of index %" PRIu64 ", %" PRIu32 " bytes",
                 mach_read_8(v->page + BLOB_INDEX_ID), mach_read_4(v->page + BLOB_PART_LEN));
    print_link(", next", mach_read_4(v->page + BLOB_NEXT));
    (void)putchar('\n');
    print_dump(v);
}

static void print_page(const page_view_t *v)
{
    print_envelope(v);
    switch (fil_page_get_type(v->page)) {
    case FIL_PAGE_INDEX:
        print_index(v);
        break;
    case FIL_PAGE_TYPE_FSP_HDR:
    case FIL_PAGE_TYPE_XDES:
        print_xdes(v);
        break;
    case FIL_PAGE_INODE:
        print_inodes(v);
        break;
    case FIL_PAGE_TYPE_BLOB:
        print_blob(v);
        break;
    default:
        print_dump(v);
        break;
    }
}

/* ---- JSON ---- */

static json_t *hex_json(const byte *bytes, size_t len)
{
    char *hex = cli_hex(bytes, len);
    json_t *string = hex != NULL ? json_string(hex) : json_null();
    free(hex);
    return string;
}

static json_t *link_json(page_no_t page_no)
{
    return page_no == FIL_NULL ? json_null() : cli_u64(page_no);
}

static json_t *records_json(const page_view_t *v)
{
    json_t *records = json_array();
    uint32_t key_len = page_key_len(v->page);
    bool leaf = page_level(v->page) == 0;
    for (uint32_t slot = 0; slot < page_n_recs(v->page); slot++) {
        const byte *rec = page_rec(v->page, v->page_size, slot);
        json_t *r = json_pack("{s:o, s:o, s:o}", "offset",
                              cli_u64(page_rec_offset(v->page, v->page_size, slot)), "info",
                              cli_u64(rec_info(rec)), "key", hex_json(rec_payload(rec), key_len));
        if (leaf) {
            (void)json_object_set_new(
                r, "data",
                hex_json(rec_payload(rec) + key_len,
                         page_rec_len(v->page, v->page_size, slot) - 1 - key_len));
        } else {
            (void)json_object_set_new(r, "child", cli_u64(mach_read_4(rec_payload(rec) + key_len)));
        }
        (void)json_array_append_new(records, r);
    }
    return records;
}

static void index_to_json(const page_view_t *v, json_t *o)
{
    (void)json_object_set_new(o, "prev", link_json(fil_page_get_prev(v->page)));
    (void)json_object_set_new(o, "next", link_json(fil_page_get_next(v->page)));
    (void)json_object_set_new(o, "index", cli_u64(page_index_id(v->page)));
    (void)json_object_set_new(o, "level", cli_u64(page_level(v->page)));
    (void)json_object_set_new(o, "n_recs", cli_u64(page_n_recs(v->page)));
    (void)json_object_set_new(o, "rec_size", cli_u64(page_rec_size(v->page)));
    (void)json_object_set_new(o, "garbage", cli_u64(mach_read_2(v->page + PAGE_GARBAGE)));
    (void)json_object_set_new(o, "key_len", cli_u64(page_key_len(v->page)));
    (void)json_object_set_new(o, "damage", v->shape != NULL ? json_string(v->shape) : json_null());
    (void)json_object_set_new(o, "records", v->shape != NULL ? json_null() : records_json(v));
}

static void xdes_to_json(const page_view_t *v, json_t *o)
{
    if (fil_page_get_type(v->page) == FIL_PAGE_TYPE_FSP_HDR) {
        (void)json_object_set_new(o, "size_pages", cli_u64(mach_read_4(v->page + FSP_SIZE)));
        (void)json_object_set_new(o, "free_limit", cli_u64(mach_read_4(v->page + FSP_FREE_LIMIT)));
        (void)json_object_set_new(o, "page_size", cli_u64(mach_read_4(v->page + FSP_PAGE_SIZE)));
        (void)json_object_set_new(o, "extent_pages",
                                  cli_u64(mach_read_4(v->page + FSP_EXTENT_PAGES)));
    }
    json_t *extents = json_array();
    for (uint32_t i = 0; i < view_n_xdes(v); i++) {
        const byte *xdes = view_xdes(v, i);
        if (mach_read_4(xdes + XDES_STATE) != 0) {
            json_t *e = json_pack("{s:I, s:s, s:o, s:o}", "first",
                                  (json_int_t)v->id.page_no + (json_int_t)i * v->extent_pages,
                                  "state", xdes_state_name(mach_read_4(xdes + XDES_STATE)),
                                  "segment", cli_u64(mach_read_8(xdes + XDES_ID)), "used",
                                  hex_json(xdes + XDES_BITMAP, v->extent_pages / 8));
            (void)json_array_append_new(extents, e);
        }
    }
    (void)json_object_set_new(o, "extents", extents);
}

static void inodes_to_json(const page_view_t *v, json_t *o)
{
    json_t *segments = json_array();
    for (uint32_t i = 0; i < view_n_inodes(v); i++) {
        const byte *inode = view_inode(v, i);
        if (mach_read_8(inode + FSEG_ID) == 0) {
            continue;
        }
        json_t *pages = json_array();
        for (uint32_t slot = 0; slot < v->extent_pages / 2; slot++) {
            page_no_t page_no = mach_read_4(inode + FSEG_FRAGS + 4 * slot);
            if (page_no != FIL_NULL) {
                (void)json_array_append_new(pages, cli_u64(page_no));
            }
        }
        json_t *s = json_pack("{s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "id",
                              cli_u64(mach_read_8(inode + FSEG_ID)), "offset",
                              (json_int_t)(inode - v->page), "free",
                              cli_u64(mach_read_4(inode + FSEG_FREE)), "not_full",
                              cli_u64(mach_read_4(inode + FSEG_NOT_FULL)), "not_full_n_used",
                              cli_u64(mach_read_4(inode + FSEG_NOT_FULL_N_USED)), "full",
                              cli_u64(mach_read_4(inode + FSEG_FULL)), "pages", pages);
        (void)json_array_append_new(segments, s);
    }
    (void)json_object_set_new(o, "segments", segments);
}

static void print_page_json(const page_view_t *v)
{
    uint32_t type = fil_page_get_type(v->page);
    json_t *o = json_pack("{s:b, s:I, s:I, s:s, s:s, s:o, s:I, s:I}", "ok", 1, "page",
                          (json_int_t)v->id.page_no, "space", (json_int_t)v->id.space, "verdict",
                          page_verdict_name(v->verdict), "type", page_type_name(type), "lsn",
                          cli_u64(fil_page_get_lsn(v->page)), "says_page",
                          (json_int_t)fil_page_get_id(v->page).page_no, "says_space",
                          (json_int_t)fil_page_get_id(v->page).space);
    if (v->stored < v->page_size) {
        (void)json_object_set_new(o, "stored_bytes", cli_u64(v->stored));
        (void)json_object_set_new(o, "compression",
                                  json_string(v->algorithm != NULL ? v->algorithm : "unknown"));
    }
    if (type == FIL_PAGE_INDEX) {
        index_to_json(v, o);
    } else if (type == FIL_PAGE_TYPE_FSP_HDR || type == FIL_PAGE_TYPE_XDES) {
        xdes_to_json(v, o);
    } else if (type == FIL_PAGE_INODE) {
        inodes_to_json(v, o);
    } else {
        (void)json_object_set_new(
            o, "contents",
            hex_json(v->page + FIL_PAGE_DATA, v->page_size - FIL_PAGE_DATA - FIL_PAGE_TRAILER));
    }
    cli_print_json(o);
}

/* ---- reading ---- */

typedef struct page_source {
    env_t env;
    cli_probe_t probe;
    os_file_t *file;
    char name[PATH_LEN_MAX + 1];
    byte *page;
} page_source_t;

/** Splits the path, so that the file is opened through the engine's only door. */
static dberr_t source_open(page_source_t *source, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t dir_len = slash != NULL ? (size_t)(slash - path) : 0;
    source->env.probe = &source->probe.base;
    char dir[4096] = ".";
    if (strlen(name) > PATH_LEN_MAX || strlen(name) == 0 || dir_len >= sizeof(dir)) {
        return err_set(&source->env.err, DB_ERROR, "not a file name: %.200s", path);
    }
    if (slash == path) {
        memcpy(dir, "/", 2);
    } else if (slash != NULL) {
        memcpy(dir, path, dir_len);
        dir[dir_len] = '\0';
    }
    memcpy(source->name, name, strlen(name) + 1);
    TRY(os_posix_create(dir, false, &source->env.err, &source->env.os));
    return env_open(&source->env, source->name, OS_OPEN, &source->file);
}

static void source_close(page_source_t *source)
{
    env_close(&source->env, source->file);
    os_destroy(source->env.os);
    free(source->page);
}

/** Page size, extent size and space id as page 0 tells them, where that can be believed. */
static dberr_t source_header(page_source_t *source, uint32_t *page_size, uint32_t *extent_pages,
                             space_id_t *space)
{
    byte head[FSP_XDES];
    size_t n_read = 0;
    TRY(env_read(&source->env, source->file, 0, head, sizeof(head), &n_read));
    bool known = n_read == sizeof(head) && fil_page_get_type(head) == FIL_PAGE_TYPE_FSP_HDR;
    *space = known ? mach_read_4(head + FSP_SPACE_ID) : FIL_NULL;
    *extent_pages = known && extent_pages_is_valid(mach_read_4(head + FSP_EXTENT_PAGES))
                        ? mach_read_4(head + FSP_EXTENT_PAGES)
                        : 0;
    if (*page_size == 0 && known && page_size_is_valid(mach_read_4(head + FSP_PAGE_SIZE))) {
        *page_size = mach_read_4(head + FSP_PAGE_SIZE);
    }
    if (*page_size == 0) {
        return err_set(&source->env.err, DB_CORRUPTION,
                       "%s: page 0 does not tell the page size; give --page-size", source->name);
    }
    return DB_SUCCESS;
}

static dberr_t source_read(page_source_t *source, uint32_t page_size, page_no_t page_no)
{
    source->page = malloc(page_size);
    if (source->page == NULL) {
        return err_set(&source->env.err, DB_OUT_OF_MEMORY, "no memory for a page");
    }
    size_t n_read = 0;
    dberr_t err = env_read(&source->env, source->file, (uint64_t)page_no * page_size, source->page,
                           page_size, &n_read);
    if (err == DB_SUCCESS && n_read == 0) {
        return err_set(&source->env.err, DB_ERROR,
                       "%s: page %" PRIu32 " is beyond the end of the file", source->name, page_no);
    }
    if (err == DB_SUCCESS && n_read != page_size) {
        return err_set(&source->env.err, DB_CORRUPTION,
                       "%s: page %" PRIu32 " is cut off after %zu of %" PRIu32 " bytes",
                       source->name, page_no, n_read, page_size);
    }
    return err;
}

static int page_show(const cli_args_t *args, const page_source_t *source, uint32_t page_size,
                     uint32_t extent_pages, space_id_t space)
{
    page_view_t v = {.page = source->page, .page_size = page_size, .extent_pages = extent_pages};
    v.id.page_no = args->page_no;
    v.id.space = space != FIL_NULL ? space : fil_page_get_id(source->page).space;
    v.verdict = page_verify_stored(v.page, page_size, v.id);
    v.stored = page_stored_bytes(v.page, page_size);
    v.algorithm = page_algorithm_name(mach_read_8(v.page + PAGE_COMP_ALGORITHM));
    page_decompress(source->page, page_size);
    if (fil_page_get_type(v.page) == FIL_PAGE_INDEX
        && page_index_validate(v.page, page_size, &v.shape) == DB_SUCCESS) {
        v.shape = NULL;
    }
    if (args->json) {
        print_page_json(&v);
    } else {
        print_page(&v);
    }
    bool whole = (v.verdict == PAGE_OK || v.verdict == PAGE_ZERO) && v.shape == NULL;
    return cli_finish(whole ? EXIT_OK : EXIT_FINDINGS);
}

int cli_page(const cli_args_t *args)
{
    page_source_t source = {.file = NULL};
    uint32_t page_size = args->page_size;
    uint32_t extent_pages = 0;
    space_id_t space = FIL_NULL;
    dberr_t err = source_open(&source, args->path);
    AND_THEN(err, source_header(&source, &page_size, &extent_pages, &space));
    AND_THEN(err, source_read(&source, page_size, args->page_no));
    int code = err == DB_SUCCESS ? page_show(args, &source, page_size, extent_pages, space)
                                 : cli_fail(args, err, &source.env.err);
    source_close(&source);
    return code;
}
