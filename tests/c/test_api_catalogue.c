/** The cache of table objects after DDL: it equals what the catalogue pages say, and costs no
more. */
#include "test_api_fixture.h"

#include "api/api_int.h"
#include "dict/dict_sys.h"
#include "test_dict_fixture.h"
#include "test_random.h"

#define N_NAMES 5U

/** Fails unless both caches have the same table, each with trees that its indexes are of. */
static void assert_same_cached(const dict_table_t *a, const dict_table_t *b)
{
    assert_same_table(a, b);
    for (uint32_t i = 0; i < a->n_indexes; i++) {
        assert_ptr_equal(a->indexes[i].table, a);
        assert_int_equal(a->indexes[i].tree.id, b->indexes[i].tree.id);
        assert_int_equal(a->indexes[i].tree.space, b->indexes[i].tree.space);
    }
}

/** Compares the cache with a catalogue that is loaded from the pages. */
static void assert_cache_is_true(fixture_t *f)
{
    dict_t *fresh = NULL;
    OK(f, dict_open(f->engine->pool, &fresh));
    OK(f, dict_load(fresh));
    const dict_table_t *a = dict_first(f->engine->dict);
    const dict_table_t *b = dict_first(fresh);
    for (; a != NULL && b != NULL; a = a->next, b = b->next) {
        assert_same_cached(a, b);
    }
    assert_null(a);
    assert_null(b);
    dict_close(fresh);
}

static dberr_t random_ddl(fixture_t *f, uint64_t *seed, dict_table_t *definition)
{
    char table[16];
    (void)snprintf(table, sizeof(table), "t%u", (uint32_t)(random_next(seed) % N_NAMES));
    char name[16];
    (void)snprintf(name, sizeof(name), "t%u", (uint32_t)(random_next(seed) % N_NAMES));
    ddl_index_def_t defs[] = {index_def("", "b", 0), index_def("", "c", 0)};
    for (uint32_t i = 0; i < 2; i++) {
        (void)snprintf(defs[i].name, sizeof(defs[i].name), "i%u",
                       (uint32_t)(random_next(seed) % 6));
    }
    uint32_t n = 1 + (uint32_t)(random_next(seed) % 2);
    switch (random_next(seed) % 19) {
    case 0:
    case 1:
    case 12:
    case 13:
        define_table(definition, table);
        return engine_create_table(f->engine, definition);
    case 2:
        return engine_drop_table(f->engine, table);
    case 3:
        return engine_rename_table(f->engine, table, name);
    case 4:
    case 5:
        return add_indexes(f->engine, table, defs, n);
    case 6:
        return drop_index(f->engine, table, defs[0].name);
    case 7:
        return start_indexes(f->engine, table, defs, n);
    case 14:
        return rebuild_table(f->engine, table);
    case 15:
        return engine_start_alter(f->engine, REBUILD(table));
    case 16:
        return rename_part(f->engine, ALTER_RENAME_COLUMN, table, "b", "d");
    case 17:
        return rename_part(f->engine, ALTER_RENAME_INDEX, table, defs[0].name, "z");
    case 8:
    case 9:
        return engine_step_alter(f->engine, table, 1 + (uint32_t)(random_next(seed) % 9), 3);
    case 10:
    case 11:
        return engine_finish_alter(f->engine, table);
    default:
        return engine_abort_alter(f->engine, table);
    }
}

/** Random DDL, statements that fail included, while a transaction has changed one of the tables. */
static void test_random_ddl(void **state)
{
    fixture_t *f = *state;
    dict_table_t *definition = malloc(sizeof(*definition));
    assert_non_null(definition);
    uint64_t seed = 7;
    uint32_t n_done = 0;
    byte row[8 + B_LEN + 8];
    for (uint32_t round = 0; round < 12; round++) {
        trx_t *trx = NULL;
        OK(f, engine_begin(f->engine, &trx));
        make_row(round, row);
        const dict_table_t *held = engine_table(f->engine, "t0");
        table_id_t id = held != NULL ? held->id : 0;
        bool holds = held != NULL && engine_insert(f->engine, trx, "t0", row) == DB_SUCCESS;
        for (uint32_t i = 0; i < 120; i++) {
            n_done += random_ddl(f, &seed, definition) == DB_SUCCESS;
            assert_cache_is_true(f);
            assert_true(!holds || dict_table_by_id(f->engine->dict, id)->n_trx == 1);
        }
        OK(f, engine_commit(f->engine, trx));
    }
    free(definition);
    assert_true(n_done > 200);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    check_report_free(&report);
    fixture_open(f);
    assert_cache_is_true(f);
}

/** Adding a table to many does not read the catalogue: what the last ones cost is what the first
ones did. */
static void test_many_tables(void **state)
{
    fixture_t *f = *state;
    fixture_empty(f);
    f->options.log_file_size = 8U << 20;
    fixture_open(f);
    engine_status_t status;
    uint64_t reads[4];
    char name[16];
    for (uint32_t i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "t%u", i);
        create_table(f, name);
        if (i % 250 == 249) {
            engine_get_status(f->engine, &status);
            reads[i / 250] = status.stats.data_reads;
        }
    }
    assert_true(reads[3] - reads[2] <= 2 * (reads[1] - reads[0]) + 100);
    assert_cache_is_true(f);
    for (uint32_t i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "t%u", i);
        OK(f, engine_drop_table(f->engine, name));
    }
    assert_null(dict_first(f->engine->dict));
    create_table(f, "t");
    assert_cache_is_true(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_random_ddl, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_many_tables, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
