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
#include "page/page_index.h"

#define DUMP_WIDTH 16U

typedef struct page_view {
    const byte *page;
    uint32_t page_size;
    page_id_t id; /**< where it was read from */
    page_verdict_t verdict;
    const char *shape; /**< index pages: what is wrong with the shape, or NULL */
} page_view_t;

/* ---- text ---- */

static void print_envelope(const page_view_t *v)
{
    (void)printf("page %" PRIu32 " of space %" PRIu32 ": %s\n", v->id.page_no, v->id.space,
                 page_verdict_name(v->verdict));
    (void)printf("type %s, LSN %" PRIu64 ", says page %" PRIu32 " of space %" PRIu32 "\n",
                 page_type_name(fil_page_get_type(v->page)), fil_page_get_lsn(v->page),
                 fil_page_get_id(v->page).page_no, fil_page_get_id(v->page).space);
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
    uint32_t len = page_rec_size(v->page);
    uint32_t key_len = page_key_len(v->page);
    char *key = cli_hex(rec_payload(rec), key_len);
    (void)printf("%5" PRIu32 " at %" PRIu32 " info %02" PRIx32 " key %s", slot,
                 page_rec_offset(v->page, v->page_size, slot), rec_info(rec),
                 key != NULL ? key : "?");
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
    (void)printf(", index %" PRIu64 ", level %" PRIu32 ", %" PRIu32 " records of %" PRIu32
                 " bytes, key %" PRIu32 " bytes, %u freed\n",
                 page_index_id(v->page), page_level(v->page), page_n_recs(v->page),
                 page_rec_size(v->page), page_key_len(v->page), mach_read_2(v->page + PAGE_N_FREE));
    if (v->shape != NULL) {
        (void)printf("damaged: %s\n", v->shape);
        return;
    }
    for (uint32_t slot = 0; slot < page_n_recs(v->page); slot++) {
        print_record(v, slot);
    }
}

static void print_map(const page_view_t *v)
{
    uint32_t m = fsp_map_pages(v->page_size);
    if (fil_page_get_type(v->page) == FIL_PAGE_TYPE_FSP_HDR) {
        (void)printf("space %" PRIu32 ", %" PRIu32 " pages, %" PRIu32 " used, page size %" PRIu32
                     ", version %" PRIu32 "\n",
                     mach_read_4(v->page + FSP_SPACE_ID), mach_read_4(v->page + FSP_SIZE),
                     mach_read_4(v->page + FSP_N_USED), mach_read_4(v->page + FSP_PAGE_SIZE),
                     mach_read_4(v->page + FSP_VERSION));
    }
    for (uint32_t first = 0, i = 0; i < m; first = i) {
        uint32_t owner = mach_read_4(v->page + FSP_MAP + 4 * first);
        while (i < m && mach_read_4(v->page + FSP_MAP + 4 * i) == owner) {
            i++;
        }
        if (owner != FSP_OWNER_FREE) {
            (void)printf("pages %" PRIu32 " to %" PRIu32 ": owner %" PRIu32 "\n",
                         v->id.page_no + first, v->id.page_no + i - 1, owner);
        }
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

static void print_page(const page_view_t *v)
{
    print_envelope(v);
    switch (fil_page_get_type(v->page)) {
    case FIL_PAGE_INDEX:
        print_index(v);
        break;
    case FIL_PAGE_TYPE_FSP_HDR:
    case FIL_PAGE_TYPE_XDES:
        print_map(v);
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
                hex_json(rec_payload(rec) + key_len, page_rec_size(v->page) - 1 - key_len));
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
    (void)json_object_set_new(o, "key_len", cli_u64(page_key_len(v->page)));
    (void)json_object_set_new(o, "damage", v->shape != NULL ? json_string(v->shape) : json_null());
    (void)json_object_set_new(o, "records", v->shape != NULL ? json_null() : records_json(v));
}

static void map_to_json(const page_view_t *v, json_t *o)
{
    if (fil_page_get_type(v->page) == FIL_PAGE_TYPE_FSP_HDR) {
        (void)json_object_set_new(o, "size_pages", cli_u64(mach_read_4(v->page + FSP_SIZE)));
        (void)json_object_set_new(o, "n_used", cli_u64(mach_read_4(v->page + FSP_N_USED)));
        (void)json_object_set_new(o, "page_size", cli_u64(mach_read_4(v->page + FSP_PAGE_SIZE)));
    }
    json_t *owners = json_array();
    for (uint32_t i = 0; i < fsp_map_pages(v->page_size); i++) {
        uint32_t owner = mach_read_4(v->page + FSP_MAP + 4 * i);
        if (owner != FSP_OWNER_FREE) {
            (void)json_array_append_new(
                owners, json_pack("[I, I]", (json_int_t)v->id.page_no + i, (json_int_t)owner));
        }
    }
    (void)json_object_set_new(o, "owners", owners);
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
    if (type == FIL_PAGE_INDEX) {
        index_to_json(v, o);
    } else if (type == FIL_PAGE_TYPE_FSP_HDR || type == FIL_PAGE_TYPE_XDES) {
        map_to_json(v, o);
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
    char dir[4096] = ".";
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t dir_len = slash != NULL ? (size_t)(slash - path) : 0;
    source->env.probe = &source->probe.base;
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
    dberr_t err = os_posix_create(dir, false, &source->env.err, &source->env.os);
    return err == DB_SUCCESS ? env_open(&source->env, source->name, OS_OPEN, &source->file) : err;
}

static void source_close(page_source_t *source)
{
    env_close(&source->env, source->file);
    os_destroy(source->env.os);
    free(source->page);
}

/** Page size and space id as page 0 tells them, where that can be believed. */
static dberr_t source_header(page_source_t *source, uint32_t *page_size, space_id_t *space)
{
    byte head[FSP_MAP];
    size_t n_read = 0;
    dberr_t err = env_read(&source->env, source->file, 0, head, sizeof(head), &n_read);
    if (err != DB_SUCCESS) {
        return err;
    }
    bool known = n_read == sizeof(head) && fil_page_get_type(head) == FIL_PAGE_TYPE_FSP_HDR;
    *space = known ? mach_read_4(head + FSP_SPACE_ID) : FIL_NULL;
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
    size_t n_read = 0;
    source->page = malloc(page_size);
    if (source->page == NULL) {
        return err_set(&source->env.err, DB_OUT_OF_MEMORY, "no memory for a page");
    }
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
                     space_id_t space)
{
    page_view_t v = {.page = source->page, .page_size = page_size};
    v.id.page_no = args->page_no;
    v.id.space = space != FIL_NULL ? space : fil_page_get_id(source->page).space;
    v.verdict = fil_page_verify(v.page, page_size, v.id);
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
    space_id_t space = FIL_NULL;
    dberr_t err = source_open(&source, args->path);
    if (err == DB_SUCCESS) {
        err = source_header(&source, &page_size, &space);
    }
    if (err == DB_SUCCESS) {
        err = source_read(&source, page_size, args->page_no);
    }
    int code = err == DB_SUCCESS ? page_show(args, &source, page_size, space)
                                 : cli_fail(args, err, &source.env.err);
    source_close(&source);
    return code;
}
