/* Properties of base/: checksum, byte order, messages, options, markers, counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mach.h"
#include "base/options.h"
#include "base/probe.h"
#include "base/stats.h"

/* The checksum is the CRC-32C of RFC 3720, for the check value and for its all-zero and all-one
blocks. */
static void test_crc32c_known_values(void **state)
{
    (void)state;
    byte ones[32];
    memset(ones, 0xFF, sizeof(ones));
    assert_int_equal(crc32c((const byte *)"123456789", 9), 0xE3069283U);
    byte zeros[32] = {0};
    assert_int_equal(crc32c(zeros, 32), 0x8A9136AAU);
    assert_int_equal(crc32c(ones, 32), 0x62A8AB43U);
    assert_int_equal(crc32c(zeros, 0), 0);
}

/* The checksum does not depend on the alignment of the buffer. */
static void test_crc32c_alignment(void **state)
{
    (void)state;
    byte buf[64 + 300];
    uint32_t expected = 0;
    for (size_t shift = 0; shift < 64; shift++) {
        for (size_t i = 0; i < 300; i++) {
            buf[shift + i] = (byte)(i * 7);
        }
        if (shift == 0) {
            expected = crc32c(buf, 300);
        }
        assert_int_equal(crc32c(buf + shift, 300), expected);
    }
}

/* Loads give back what stores wrote, big-endian, at every width. */
static void test_mach_round_trip(void **state)
{
    (void)state;
    byte b[8];
    mach_write_8(b, 0x0102030405060708ULL);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(b[i], i + 1);
    }
    assert_true(mach_read_8(b) == 0x0102030405060708ULL);
    assert_true(mach_read_7(b) == 0x01020304050607ULL);
    assert_true(mach_read_6(b) == 0x010203040506ULL);
    assert_int_equal(mach_read_4(b), 0x01020304);
    assert_int_equal(mach_read_2(b), 0x0102);
    mach_write_7(b, 0xF1F2F3F4F5F6F7ULL);
    assert_true(mach_read_7(b) == 0xF1F2F3F4F5F6F7ULL);
    mach_write_6(b, 0xE1E2E3E4E5E6ULL);
    assert_true(mach_read_6(b) == 0xE1E2E3E4E5E6ULL);
}

/* A message is one printable line of UTF-8, whatever bytes went into it; good UTF-8 stays. */
static void test_err_set_is_one_clean_line(void **state)
{
    err_sink_t err = {.msg = ""};

    (void)state;
    assert_int_equal(err_set(&err, DB_CORRUPTION, "a\nb\x7f%s", "\xC3\xA9\xFF\xC0\x80\xED\xA0\x80"),
                     DB_CORRUPTION);
    assert_string_equal(err.msg, "a?b?\xC3\xA9??????");
    assert_int_equal(err_set(NULL, DB_ERROR, "x"), DB_ERROR);
}

/* The old message may be an argument of the new one, and a long one is cut, not overrun. */
static void test_err_set_wraps_and_cuts(void **state)
{
    err_sink_t err = {.msg = ""};
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)err_set(&err, DB_ERROR, "inner");
    (void)err_set(&err, DB_ERROR, "outer: %s", err.msg);
    assert_string_equal(err.msg, "outer: inner");
    (void)err_set(&err, DB_ERROR, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
}

/* Every status has a name of its own. */
static void test_err_names(void **state)
{
    (void)state;
    for (int a = DB_SUCCESS; a <= DB_PAUSED; a++) {
        assert_string_not_equal(err_name((dberr_t)a), "DB_UNKNOWN");
        for (int b = DB_SUCCESS; b < a; b++) {
            assert_string_not_equal(err_name((dberr_t)a), err_name((dberr_t)b));
        }
    }
    assert_string_equal(err_name(DB_CORRUPTION), "DB_CORRUPTION");
}

/* Every refusal has a name of its own that a script can match: lower case and hyphens. A status
stands for one, err_refuse() says another, and a message that is none has none. */
static void test_refusal_names(void **state)
{
    err_sink_t err = {.msg = ""};

    (void)state;
    assert_string_equal(refusal_name(REFUSAL_NONE), "");
    for (int a = REFUSAL_NONE + 1; a <= REFUSAL_OUT_OF_MEMORY; a++) {
        const char *name = refusal_name((refusal_t)a);

        assert_true(strlen(name) > 0
                    && strspn(name, "abcdefghijklmnopqrstuvwxyz-") == strlen(name));
        for (int b = REFUSAL_NONE; b < a; b++) {
            assert_string_not_equal(name, refusal_name((refusal_t)b));
        }
    }
    (void)err_set(&err, DB_CORRUPTION, "x");
    assert_int_equal(err.refusal, REFUSAL_CORRUPTION);
    assert_int_equal(err_refuse(&err, DB_CORRUPTION, REFUSAL_TORN_PAGE, "x"), DB_CORRUPTION);
    assert_int_equal(err.refusal, REFUSAL_TORN_PAGE);
    (void)err_set(&err, DB_ERROR, "x");
    assert_int_equal(err.refusal, REFUSAL_NONE);
}

static dberr_t parse(engine_options_t *o, const char *name, const char *value)
{
    err_sink_t err = {.msg = ""};
    dberr_t e = options_parse(o, name, value, &err);

    assert_true((e == DB_SUCCESS) == (err.msg[0] == '\0'));
    return e;
}

/* The defaults are valid, and each option takes its text form. */
static void test_options_parse(void **state)
{
    err_sink_t err = {.msg = ""};

    (void)state;
    engine_options_t o;
    options_set_defaults(&o);
    assert_int_equal(options_validate(&o, &err), DB_SUCCESS);
    assert_int_equal(parse(&o, "page_size", "16k"), DB_SUCCESS);
    assert_int_equal(o.page_size, 16384);
    assert_int_equal(parse(&o, "extent_pages", "8"), DB_SUCCESS);
    assert_int_equal(o.extent_pages, 8);
    assert_int_equal(parse(&o, "atomic_write_unit", "2k"), DB_SUCCESS);
    assert_int_equal(o.atomic_write_unit, 2048);
    assert_int_equal(parse(&o, "log_file_size", "2M"), DB_SUCCESS);
    assert_int_equal(o.log_file_size, 2097152);
    assert_int_equal(parse(&o, "log_optimize_ddl", "off"), DB_SUCCESS);
    assert_false(o.log_optimize_ddl);
    assert_int_equal(parse(&o, "doublewrite", "0"), DB_SUCCESS);
    assert_false(o.doublewrite);
    assert_int_equal(parse(&o, "doublewrite", "on"), DB_SUCCESS);
    assert_true(o.doublewrite);
    assert_int_equal(parse(&o, "cleaner_interval", "3"), DB_SUCCESS);
    assert_int_equal(o.cleaner_interval, 3);
    assert_int_equal(parse(&o, "log_write_through", "on"), DB_SUCCESS);
    assert_true(o.log_write_through);
    assert_int_equal(parse(&o, "flush_log_at_trx_commit", "2"), DB_SUCCESS);
    assert_int_equal(o.flush_log_at_trx_commit, 2);
    assert_int_equal(parse(&o, "log_format", "10.5"), DB_SUCCESS);
    assert_int_equal(o.log_format, LOG_FORMAT_10_5);
    assert_int_equal(parse(&o, "log_format", "10.4"), DB_SUCCESS);
    assert_int_equal(o.log_format, LOG_FORMAT_10_4);
    assert_int_equal(parse(&o, "log_format", "10.6"), DB_ERROR);
    assert_int_equal(parse(&o, "log_format", "204"), DB_ERROR);
    assert_int_equal(parse(&o, "log_page_checksums", "on"), DB_SUCCESS);
    assert_true(o.log_page_checksums);
    assert_int_equal(parse(&o, "recv_memory", "65536"), DB_SUCCESS);
    assert_int_equal(o.recv_memory, 65536);
    assert_int_equal(options_validate(&o, &err), DB_SUCCESS);
}

/* Bad text is refused and leaves the option as it was. */
static void test_options_parse_refuses(void **state)
{
    static const char *const BAD[][2] = {
        {"page_size", "5000"},
        {"page_size", "2k"},
        {"page_size", "128k"},
        {"page_size", ""},
        {"page_size", "4k "},
        {"page_size", "-4096"},
        {"atomic_write_unit", "256"},
        {"atomic_write_unit", "3k"},
        {"atomic_write_unit", "128k"},
        {"page_size", "4kk"},
        {"extent_pages", "4"},
        {"extent_pages", "24"},
        {"extent_pages", "512"},
        {"buffer_pool_pages", "1k"},
        {"buffer_pool_pages", "31"},
        {"dblwr_pages", "257"},
        {"dblwr_pages", "3"},
        {"doublewrite", "yes"},
        {"doublewrite", "2"},
        {"flush_log_at_trx_commit", "3"},
        {"log_file_size", "99999999999999999999"},
        {"log_file_size", "99999999999g"},
        {"sort_buffer_size", "1k"},
        {"no_such_option", "1"},
    };
    (void)state;
    engine_options_t before;
    options_set_defaults(&before);
    engine_options_t o;
    memset(&o, 0, sizeof(o));
    options_set_defaults(&o);
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        assert_int_equal(parse(&o, BAD[i][0], BAD[i][1]), DB_ERROR);
    }
    assert_int_equal(o.page_size, before.page_size);
    assert_int_equal(o.buffer_pool_pages, before.buffer_pool_pages);
    assert_true(o.log_file_size == before.log_file_size && o.doublewrite == before.doublewrite);
}

/** Every option tells its name, meaning and values, and its default as text is the default. */
static void test_options_describe(void **state)
{
    (void)state;
    engine_options_t defaults;
    options_set_defaults(&defaults);
    engine_options_t o;
    memcpy(&o, &defaults, sizeof(o));
    option_text_t text;
    size_t n = 0;
    for (; options_describe(n, &text); n++) {
        assert_true(strlen(text.what) > 0 && strlen(text.values) > 0);
        assert_int_equal(parse(&o, text.name, text.by_default), DB_SUCCESS);
    }
    assert_int_equal(n, 29);
    assert_memory_equal(&o, &defaults, sizeof(o));
    assert_true(options_describe(2, &text));
    assert_string_equal(text.name, "log_file_size");
    assert_string_equal(text.values, "0, 256k to 1024g");
    assert_true(options_describe(3, &text));
    assert_string_equal(text.name, "log_format");
    assert_string_equal(text.values, "0, 10.4, 10.5");
}

/* Validation sees what parsing one option at a time cannot: the log against the page size. */
static void test_options_validate_together(void **state)
{
    err_sink_t err = {.msg = ""};

    (void)state;
    engine_options_t o;
    options_set_defaults(&o);
    o.page_size = 65536;
    o.log_file_size = 1024 * 1024;
    assert_int_equal(options_validate(&o, &err), DB_ERROR);
    assert_non_null(strstr(err.msg, "log_file_size"));
    o.log_file_size = 64 * 65536;
    assert_int_equal(options_validate(&o, &err), DB_SUCCESS);
    o.log_file_size += 100;
    assert_int_equal(options_validate(&o, &err), DB_ERROR);
    o.log_file_size = 0;
    o.page_size = 12288;
    assert_int_equal(options_validate(&o, &err), DB_ERROR);
    o.page_size = 4096;
    o.extent_pages = 24;
    assert_int_equal(options_validate(&o, &err), DB_ERROR);
    assert_non_null(strstr(err.msg, "extent_pages"));
    o.extent_pages = 0;
    o.dblwr_pages = 0;
    assert_int_equal(options_validate(&o, &err), DB_ERROR);
    assert_non_null(strstr(err.msg, "dblwr_pages"));
}

typedef struct trace {
    char text[512];
} trace_t;

static void trace_mark(void *ctx, const char *text, size_t len)
{
    trace_t *trace = ctx;

    strncat(trace->text, text, len);
    strcat(trace->text, "|");
}

static void trace_point(void *ctx, const char *name)
{
    trace_t *trace = ctx;

    strcat(trace->text, "hook:");
    strcat(trace->text, name);
    strcat(trace->text, "|");
}

/* A point's marker precedes its hook; an unarmed probe calls neither. */
static void test_probe_order(void **state)
{
    trace_t trace = {""};
    probe_t probe = {.point = trace_point, .mark = trace_mark, .ctx = &trace};

    (void)state;
    PROBE_POINT(&probe, "a.b");
    PROBE_MARK(&probe, "never n=%d", 1);
    assert_string_equal(trace.text, "");
    atomic_store(&probe.armed, true);
    PROBE_MARK(&probe, "page_write space=%u", 5U);
    PROBE_POINT(&probe, "dblwr.area_synced");
    assert_string_equal(trace.text,
                        "page_write space=5|point name=dblwr.area_synced|hook:dblwr.area_synced|");
}

/* A marker is a note as well, and so is a failure where it is told first: not of a copy, nor while
another message stays. */
static void test_notes(void **state)
{
    trace_t trace = {""};
    probe_t probe = {.note = trace_mark, .ctx = &trace};
    err_sink_t err = {.probe = &probe};
    err_sink_t copy;

    (void)state;
    (void)err_set(&err, DB_ERROR, "nobody listens");
    atomic_store(&probe.armed, true);
    PROBE_MARK(&probe, "never n=%d", 1);
    assert_string_equal(trace.text, "");
    probe.mark = trace_mark;
    PROBE_MARK(&probe, "batch n=%d", 1);
    (void)err_refuse(&err, DB_CORRUPTION, REFUSAL_TORN_PAGE, "x");
    err_copy(&copy, &err);
    (void)err_set(&copy, DB_ERROR, "x");
    err.held = true;
    (void)err_set(&err, DB_ERROR, "x");
    assert_string_equal(trace.text,
                        "batch n=1|batch n=1|error err=DB_CORRUPTION refusal=torn-page|");
}

typedef struct stat_list {
    uint64_t n;
    bool in_order;
    const char *first;
    const char *last;
} stat_list_t;

static void add_stat(void *ctx, const char *name, uint64_t value)
{
    stat_list_t *list = ctx;

    list->in_order &= value == list->n;
    list->first = list->n == 0 ? name : list->first;
    list->last = name;
    list->n++;
}

/* Every counter is listed once, in the order of the header: each field holds its position. */
static void test_stats_each(void **state)
{
    uint64_t values[sizeof(stats_t) / sizeof(uint64_t)];
    uint64_t n = sizeof(values) / sizeof(values[0]);
    stat_list_t list = {0, true, NULL, NULL};
    (void)state;
    for (uint64_t i = 0; i < n; i++) {
        values[i] = i;
    }
    stats_t stats;
    memcpy(&stats, values, sizeof(stats));
    stats_each(&stats, add_stat, &list);
    assert_true(list.n == n && list.in_order);
    assert_string_equal(list.first, "data_reads");
    assert_string_equal(list.last, "recv_swaps_finished");
}

/* Counters of two starts add up; what is held now is the later one's, the most is the larger. */
static void test_stats_add(void **state)
{
    stats_t sum = {.data_reads = 3, .sort_bytes = 7, .sort_bytes_max = 9, .recv_swaps_finished = 1};
    const stats_t later = {
        .data_reads = 4, .sort_bytes = 2, .sort_bytes_max = 5, .recv_swaps_finished = 2};

    (void)state;
    stats_add(&sum, &later);
    assert_true(sum.data_reads == 7 && sum.recv_swaps_finished == 3);
    assert_true(sum.sort_bytes == 2 && sum.sort_bytes_max == 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c_known_values),
        cmocka_unit_test(test_crc32c_alignment),
        cmocka_unit_test(test_mach_round_trip),
        cmocka_unit_test(test_err_set_is_one_clean_line),
        cmocka_unit_test(test_err_set_wraps_and_cuts),
        cmocka_unit_test(test_refusal_names),
        cmocka_unit_test(test_err_names),
        cmocka_unit_test(test_options_parse),
        cmocka_unit_test(test_options_parse_refuses),
        cmocka_unit_test(test_options_describe),
        cmocka_unit_test(test_options_validate_together),
        cmocka_unit_test(test_probe_order),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_stats_each),
        cmocka_unit_test(test_stats_add),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
