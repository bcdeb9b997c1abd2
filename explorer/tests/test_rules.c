/* The rules about a recovery: a right one, then one wrong step at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "explorer/judge/rules.h"

/* "w PATH OFFSET LENGTH": a write; "s PATH": an fsync; "d": of the directory; "c PATH", "u PATH": a name comes, goes;
anything else is a marker. The log has 64 blocks; the block of LSN 9700 lies at 3072. */
static const char *const GOOD[] = {
    "recv_start c=9000 marker=9100 end=9700",
    "log_write start=9700 end=9700", /* 1: the cut */
    "w ib_logfile0 3072 512",
    "s ib_logfile0", /* 3 */
    "recv_batch n=1 pages=3 final=1",
    "recv_create space=3 page=7 init_lsn=9300", /* 5 */
    "recv_read space=3 page=8 why=redo",
    "recv_free space=3 page=9 lsn=9400",
    "point name=recv.applied",
    "w ib_dblwr 0 4096", /* 9 */
    "s ib_dblwr",
    "page_write space=3 page=7 lsn=9500 dblwr=skip why=init init_lsn=9300", /* 11 */
    "w t1.ibd 28672 4096",
    "page_write space=3 page=8 lsn=9600 dblwr=used why=batch init_lsn=0", /* 13 */
    "w t1.ibd 32768 4096",
    "s t1.ibd", /* 15 */
    "log_write start=9700 end=9720",
    "w ib_logfile0 3072 512", /* 17 */
    "s ib_logfile0",
    "checkpoint no=4 slot=0 c=9700 marker=9700", /* 19 */
    "w ib_logfile0 512 512",
    "s ib_logfile0", /* 21 */
    "checkpoint_done no=4",
    "file_op op=delete path=t2.ibd lsn=9720", /* 23 */
    "u t2.ibd",
    "d", /* 25 */
    "file_op_done op=delete path=t2.ibd",
};
#define N_GOOD (sizeof(GOOD) / sizeof(GOOD[0]))
#define LOG_SIZE (2048U + 64U * 512U)

static void step(rules_t *rules, const char *text)
{
    static const char VERBS[] = "wsduc";
    static const fs_kind_t KINDS[] = {FS_WRITE, FS_SYNC, FS_SYNC_DIR, FS_UNLINK, FS_LINK};
    const char *verb = strchr(VERBS, text[0]);
    if (verb == NULL || (text[1] != ' ' && text[1] != '\0')) {
        rules_mark(rules, text, strlen(text));
        return;
    }
    char path[32] = "";
    unsigned long offset = 0;
    unsigned long length = 0;
    (void)sscanf(text + 1, "%31s %lu %lu", path, &offset, &length);
    /* Files are told apart by how their names begin. */
    fs_event_t event = {.kind = KINDS[verb - VERBS],
                        .inode = (uint32_t)(path[0] + path[1]),
                        .offset = offset,
                        .length = length};
    rules_event(rules, &event, path);
}

/** The invariants that break when step `at` of the right recovery is replaced, or left out if text is "". One more
step may follow the last. */
static void judge(size_t at, const char *text, verdict_t *verdict)
{
    rules_t rules;
    rules_init(&rules, true);
    rules_start(&rules, verdict, LOG_SIZE);
    for (size_t i = 0; i < N_GOOD; i++) {
        const char *now = i == at ? text : GOOD[i];
        if (now[0] != '\0') {
            step(&rules, now);
        }
    }
    if (at == N_GOOD) {
        step(&rules, text);
    }
    rules_free(&rules);
}

static void test_a_right_recovery(void **state)
{
    verdict_t verdict = {.n = 0};
    (void)state;
    judge(SIZE_MAX, "", &verdict);
    assert_int_equal(verdict.n, 0);
}

typedef struct wrong_step {
    size_t at;
    const char *text;
    uint32_t invariant;
} wrong_step_t;

static void test_each_wrong_step(void **state)
{
    static const wrong_step_t WRONG[] = {
        {13, "page_write space=3 page=8 lsn=9701 dblwr=used why=batch init_lsn=0", 4},
        /* I13: no initialisation; not the latest checkpoint's; non-logged; switched off. */
        {11, "page_write space=3 page=6 lsn=9500 dblwr=skip why=init init_lsn=9300", 13},
        {11, "page_write space=3 page=7 lsn=9500 dblwr=skip why=init init_lsn=9000", 13},
        {11, "page_write space=3 page=7 lsn=9500 dblwr=skip why=off init_lsn=9300", 13},
        {6, "recv_read space=3 page=8 why=index_load", 13},
        {6, "nonlogged space=3", 13},
        {6, "page_noredo space=3 page=2 lsn=9700", 13},
        {6, "recv_read space=3 page=7 why=redo", 14},
        {8, "recv_read space=3 page=9 why=redo", 15},
        {8, "recv_apply space=3 page=9 from=1 to=2 n=1 page_lsn=1", 15},
        {8, "page_drop_freed space=3 page=8 lsn=9701", 15},
        {13, "page_write space=3 page=9 lsn=9600 dblwr=used why=batch init_lsn=0", 15},
        {15, "", 19},
        {17, "", 19},
        {18, "", 19},
        {19, "checkpoint no=4 slot=1 c=9700 marker=9700", 19},
        {19, "checkpoint no=4 slot=0 c=9700 marker=9720", 19},
        {N_GOOD, "checkpoint no=4 slot=0 c=9700 marker=9700", 19},
        {17, "w ib_logfile0 3584 512", 20},
        {17, "w ib_logfile0 3072 33280", 20}, /* around the whole log and over C */
        {1, "", 20},
        {1, "log_write start=9700 end=9720", 21},
        {3, "", 21},
        {10, "", 22},
        {N_GOOD, "w ib_dblwr 0 4096", 0},
        {15, "w ib_dblwr 0 4096", 22},
        {23, "", 24},
        {23, "file_op op=delete path=t2.ibd lsn=9721", 24},
        {25, "", 24},
        {N_GOOD, "c t3.ibd", 24},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        verdict_t verdict = {.n = 0};
        judge(WRONG[i].at, WRONG[i].text, &verdict);
        bool found = WRONG[i].invariant == 0 && verdict.n == 0;
        for (uint32_t k = 0; k < verdict.n; k++) {
            found |= verdict.findings[k].invariant == WRONG[i].invariant;
        }
        if (!found) {
            fail_msg("\"%s\" instead of step %zu: no I%u among %u findings", WRONG[i].text,
                     WRONG[i].at, WRONG[i].invariant, verdict.n);
        }
    }
}

/** How far the log is durable is read from its writes and fsyncs: a marker that claims more changes nothing. */
static void test_a_claim_is_no_fsync(void **state)
{
    verdict_t verdict = {.n = 0};
    (void)state;
    judge(18, "log_durable lsn=9720", &verdict);
    assert_int_equal(verdict.n, 1);
    assert_int_equal(verdict.findings[0].invariant, 19);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_right_recovery),
        cmocka_unit_test(test_each_wrong_step),
        cmocka_unit_test(test_a_claim_is_no_fsync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
