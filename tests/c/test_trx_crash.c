/** A crash after every single mini-transaction: undo first, rollback, commit and purge at each
instant.

The log of a workload is replayed onto images of the pages, one record group after the other. After
each group a database is opened on a copy of the images, exactly as recovery's redo would leave it
there. */
#include "test_trx_fixture.h"

#define N_ROWS 16U
#define N_TRX 2U
#define N_SPACES 2U
#define IMAGE_PAGES 256U
#define N_COMMITS_MAX 200U

typedef struct commit_state {
    lsn_t lsn; /**< end of the commit's mtr */
    tfx_row_t rows[N_ROWS];
} commit_state_t;

typedef struct history {
    commit_state_t states[N_COMMITS_MAX];
    uint32_t n;
} history_t;

static void history_add(history_t *h, lsn_t lsn, const tfx_row_t *rows)
{
    assert_true(h->n < N_COMMITS_MAX);
    h->states[h->n].lsn = lsn;
    memcpy(h->states[h->n].rows, rows, sizeof(h->states[h->n].rows));
    h->n++;
}

/** A statement that succeeds, on a row of transaction t (a % N_TRX == t). */
static void statement(trx_fixture_t *fx, trx_t *trx, uint32_t t, tfx_row_t *rows, uint64_t *seed)
{
    uint32_t a = tfx_random(seed, N_ROWS / N_TRX) * N_TRX + t;
    tfx_row_t row = {true, tfx_random(seed, 5), tfx_random(seed, 60)};
    if (!rows[a].present) {
        ASSERT_OK(fx, tfx_insert(fx, trx, a, row.b, row.c));
    } else if (tfx_random(seed, 3) == 0) {
        ASSERT_OK(fx, tfx_delete(fx, trx, a));
        row.present = false;
    } else {
        ASSERT_OK(fx, tfx_update(fx, trx, a, row.b, row.c));
    }
    rows[a] = row;
}

static void copy_rows(tfx_row_t *to, const tfx_row_t *from, uint32_t t)
{
    for (uint32_t a = t; a < N_ROWS; a += N_TRX) {
        to[a] = from[a];
    }
}

static void run(trx_fixture_t *fx, history_t *h, uint64_t seed, uint32_t n_steps)
{
    trx_t *trx[N_TRX] = {NULL};
    tfx_row_t committed[N_ROWS] = {0};
    history_add(h, log_lsn(fx->log), committed);
    tfx_row_t newest[N_ROWS] = {0};
    for (uint32_t step = 0; step < n_steps; step++) {
        uint32_t t = tfx_random(&seed, N_TRX);
        uint32_t what = tfx_random(&seed, 20);
        if (trx[t] == NULL) {
            trx[t] = tfx_begin(fx);
        } else if (what < 13) {
            statement(fx, trx[t], t, newest, &seed);
        } else if (what < 15) {
            uint64_t savepoint = trx_savepoint(trx[t]);
            tfx_row_t scratch[N_ROWS];
            memcpy(scratch, newest, sizeof(scratch));
            statement(fx, trx[t], t, scratch, &seed);
            statement(fx, trx[t], t, scratch, &seed);
            ASSERT_OK(fx, trx_rollback_to(trx[t], savepoint));
        } else if (what < 17) {
            ASSERT_OK(fx, trx_commit(trx[t]));
            trx[t] = NULL;
            copy_rows(committed, newest, t);
            history_add(h, log_lsn(fx->log), committed);
        } else if (what < 18) {
            ASSERT_OK(fx, trx_rollback(trx[t]));
            trx[t] = NULL;
            copy_rows(newest, committed, t);
        } else {
            bool done = false;
            ASSERT_OK(fx, trx_purge_step(fx->sys, 5, &done));
        }
    }
}

typedef struct images {
    uint32_t page_size;
    space_id_t ids[N_SPACES];
    byte *bytes[N_SPACES];
} images_t;

static const char *const IMAGE_PATHS[N_SPACES] = {FIL_SYSTEM_PATH, "t1.ibd"};

static void images_take(images_t *images, trx_fixture_t *fx)
{
    images->page_size = fx->options.page_size;
    images->ids[0] = SPACE_SYSTEM;
    images->ids[1] = fx->table->space;
    for (uint32_t i = 0; i < N_SPACES; i++) {
        uint64_t size = 0;
        byte *bytes = image_os_bytes(fx->os, IMAGE_PATHS[i], &size);
        assert_non_null(bytes);
        assert_true(size <= (uint64_t)IMAGE_PAGES * images->page_size);
        images->bytes[i] = calloc(IMAGE_PAGES, images->page_size);
        memcpy(images->bytes[i], bytes, size);
    }
}

static bool images_apply(images_t *images, const log_group_t *group)
{
    bool applied = false;
    for (uint32_t r = 0; r < group->n_recs; r++) {
        const redo_rec_t *rec = &group->recs[r];
        for (uint32_t i = 0; redo_op_is_page(rec->op) && i < N_SPACES; i++) {
            if (images->ids[i] == rec->space) {
                assert_true(rec->page_no < IMAGE_PAGES);
                byte *page = images->bytes[i] + (size_t)rec->page_no * images->page_size;
                assert_int_equal(log_rec_apply(rec, page, images->page_size), DB_SUCCESS);
                applied = true;
            }
        }
    }
    return applied;
}

/** Opens a database on a copy of the images; its log is new, so the pages' LSNs are set back. */
static trx_fixture_t *images_open(const images_t *images)
{
    trx_fixture_t *fx = tfx_alloc(images->page_size, 128);
    fx->options.doublewrite = false;
    fx->options.log_file_size = 1 << 20;
    tfx_create_files(fx);
    byte *copy = malloc((size_t)IMAGE_PAGES * images->page_size);
    for (uint32_t i = 0; i < N_SPACES; i++) {
        uint32_t n_pages = mach_read_4(images->bytes[i] + FSP_SIZE);
        assert_in_range(n_pages, FX_EXTENT_PAGES, IMAGE_PAGES);
        size_t size = (size_t)n_pages * images->page_size;
        memcpy(copy, images->bytes[i], size);
        for (byte *page = copy; page < copy + size; page += images->page_size) {
            if (mach_read_4(page + FIL_PAGE_OFFSET) != 0 || page == copy) {
                fil_page_set_lsn(page, images->page_size, 0);
                fil_page_stamp(page, images->page_size);
            }
        }
        os_file_t *file = NULL;
        ASSERT_OK(fx, env_open(&fx->env, IMAGE_PATHS[i], OS_CREATE_NEW, &file));
        ASSERT_OK(fx, env_write(&fx->env, file, 0, copy, size));
        env_close(&fx->env, file);
        fil_space_t *space = NULL;
        ASSERT_OK(fx, fil_space_open(fx->fil, images->ids[i], IMAGE_PATHS[i], n_pages, &space));
    }
    free(copy);
    ASSERT_OK(fx, buf_pool_create(&fx->env, fx->log, fx->fil, &fx->options, &fx->pool));
    return fx;
}

/** After a crash at lsn: exactly the last commit at or before it; and after purge nothing of the
rest. */
static void check_crash(const images_t *images, const history_t *h, lsn_t lsn, uint32_t *n_undone)
{
    const commit_state_t *want = &h->states[0];
    for (uint32_t i = 0; i < h->n && h->states[i].lsn <= lsn; i++) {
        want = &h->states[i];
    }
    trx_fixture_t *fx = images_open(images);
    tfx_open_sys(fx);
    *n_undone += trx_sys_n_active(fx->sys);
    ASSERT_OK(fx, trx_sys_rollback_resurrected(fx->sys, NULL, NULL));
    fx->table = dict_table_get(fx->dict, "t1");
    assert_non_null(fx->table);
    tfx_purge_and_verify(fx, want->rows, N_ROWS);
    tfx_destroy(fx);
}

static void crash_everywhere(uint64_t seed)
{
    trx_fixture_t *fx = tfx_create(4096, 256);
    history_t *h = calloc(1, sizeof(*h));
    ASSERT_OK(fx, buf_checkpoint_full(fx->pool));
    lsn_t from = log_checkpoint_lsn(fx->log);
    images_t images;
    images_take(&images, fx);
    run(fx, h, seed, 160);
    assert_int_equal(log_checkpoint_lsn(fx->log), from);
    ASSERT_OK(fx, log_write_up_to(fx->log, log_lsn(fx->log), true));

    log_reader_t *reader = NULL;
    ASSERT_OK(fx, log_reader_create(fx->log, from, &reader));
    dberr_t err;
    log_group_t group;
    uint32_t n_crashes = 0;
    uint32_t n_undone = 0;
    while ((err = log_reader_next(reader, &group)) == DB_SUCCESS) {
        if (images_apply(&images, &group)) {
            check_crash(&images, h, group.end_lsn, &n_undone);
            n_crashes++;
        }
    }
    assert_int_equal(err, DB_NOT_FOUND);
    assert_true(n_crashes > 300 && n_undone > n_crashes / 2);
    log_reader_free(reader);
    for (uint32_t i = 0; i < N_SPACES; i++) {
        free(images.bytes[i]);
    }
    free(h);
    tfx_destroy(fx);
}

/** At every instant a crash leaves a state that rollback turns into the last committed one (I2, I3,
I10), and that purge brings to rest (I11, I25). */
static void test_crash_everywhere(void **state)
{
    (void)state;
    crash_everywhere(1);
    crash_everywhere(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crash_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
