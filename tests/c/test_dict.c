/** dict: bootstrap, id counters, rows of the system tables there and back, and a catalogue that is
not believed. */
#include "test_btr_fixture.h"
#include "test_dict_fixture.h"

typedef struct cat {
    btr_fixture_t *fx;
    dict_t *dict;
} cat_t;

static cat_t cat_create(void)
{
    cat_t c = {bfx_create(4096, 64, SPACE_SYSTEM), NULL};

    ASSERT_OK(c.fx, dict_bootstrap(c.fx->pool));
    ASSERT_OK(c.fx, dict_open(c.fx->pool, &c.dict));
    return c;
}

static void cat_free(cat_t *c)
{
    dict_close(c->dict);
    bfx_destroy(c->fx);
}

static void cat_put(void *ctx, sys_table_t which, const byte *row)
{
    cat_t *c = ctx;
    dict_table_t *sys = dict_sys_table(c->dict, which);
    byte rec[SYS_ROW_MAX + 32];

    uint32_t len = dict_row_to_rec(sys, row, NULL, 7, 0, rec);
    ASSERT_OK(c->fx, btr_insert(c->fx->pool, &sys->indexes[0].tree, rec, len));
}

static void cat_put_table(cat_t *c, const dict_table_t *table)
{
    table_each_sys_row(table, cat_put, c);
}

/** A BIGINT, b to h CHAR(255); PRIMARY (a), indexes on b and on e(10), c(4). */
static dict_table_t *table_create(cat_t *c, const char *name)
{
    dict_table_t *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    snprintf(t->name, sizeof(t->name), "%s", name);
    t->status = DICT_READY;
    t->n_cols = 8;
    for (uint32_t i = 0; i < 8; i++) {
        snprintf(t->cols[i].name, sizeof(t->cols[i].name), "%c", 'a' + (int)i);
        t->cols[i].type = i == 0 ? DICT_BIGINT : DICT_CHAR;
        t->cols[i].len = i == 0 ? 8 : 255;
    }
    t->n_indexes = 3;
    for (uint32_t i = 0; i < 3; i++) {
        snprintf(t->indexes[i].name, sizeof(t->indexes[i].name), "%s",
                 i == 0 ? "PRIMARY" : (i == 1 ? "kb" : "ke"));
        t->indexes[i].status = i == 2 ? DICT_INCOMPLETE : DICT_READY;
        t->indexes[i].n_fields = i == 2 ? 2 : 1;
        t->indexes[i].tree.root = i == 2 ? FIL_NULL : 3 + i;
    }
    t->indexes[1].fields[0].col = 1;
    t->indexes[2].fields[0] = (dict_field_t){4, 10};
    t->indexes[2].fields[1] = (dict_field_t){2, 4};
    if (c != NULL) {
        ASSERT_OK(c->fx, dict_new_table_id(c->dict, &t->id));
        ASSERT_OK(c->fx, dict_new_space_id(c->dict, &t->space));
        for (uint32_t i = 0; i < 3; i++) {
            ASSERT_OK(c->fx, dict_new_index_id(c->dict, &t->indexes[i].id));
        }
    }
    assert_int_equal(dict_table_layout(t, 4096, NULL), DB_SUCCESS);
    return t;
}

/** Fails unless the loaded table is this one, and its indexes know whose they are. */
static void assert_loaded(const dict_table_t *table, const dict_table_t *loaded)
{
    assert_same_table(table, loaded);
    for (uint32_t i = 0; i < loaded->n_indexes; i++) {
        const dict_index_t *index = &loaded->indexes[i];

        assert_ptr_equal(index->table, loaded);
        assert_int_equal(index->tree.space, loaded->space);
        assert_int_equal(index->tree.id, index->id);
    }
}

/** A new catalogue is empty, leaves the fixed pages alone, and survives a reopen. */
static void test_bootstrap(void **state)
{
    cat_t c = cat_create();

    (void)state;
    ASSERT_OK(c.fx, dict_load(c.dict));
    assert_null(dict_first(c.dict));
    for (uint32_t i = 0; i < SYS_N; i++) {
        dict_table_t *sys = dict_sys_table(c.dict, (sys_table_t)i);

        assert_int_equal(sys->id, 1 + i);
        assert_int_equal(sys->indexes[0].id, 16 + i);
        assert_true(sys->indexes[0].tree.root > RSEG_PAGE);
        assert_ptr_equal(dict_table_by_id(c.dict, sys->id), sys);
    }
    cat_free(&c);
}

/** Ids start where the layout says, and are never given out twice, also after a reopen. */
static void test_ids(void **state)
{
    cat_t c = cat_create();
    (void)state;
    table_id_t table = 0;
    index_id_t index = 0;
    space_id_t space = 0;
    for (uint32_t i = 0; i < 5; i++) {
        ASSERT_OK(c.fx, dict_new_table_id(c.dict, &table));
        ASSERT_OK(c.fx, dict_new_index_id(c.dict, &index));
        ASSERT_OK(c.fx, dict_new_space_id(c.dict, &space));
        assert_int_equal(table, 16 + i);
        assert_int_equal(index, 32 + i);
        assert_int_equal(space, 1 + i);
        dict_close(c.dict);
        c.dict = NULL;
        ASSERT_OK(c.fx, dict_open(c.fx->pool, &c.dict));
    }
    cat_free(&c);
}

/** Tables written as rows come back as the same objects, in order of id, whatever the order of
insertion; delete-marked rows do not count; n_trx survives a reload. */
static void test_round_trip(void **state)
{
    cat_t c = cat_create();
    dict_table_t *sys = dict_sys_table(c.dict, SYS_TABLES);
    (void)state;
    dict_table_t *t[40];
    for (uint32_t i = 0; i < 40; i++) {
        char name[16];

        snprintf(name, sizeof(name), "t%u", i);
        t[i] = table_create(&c, name);
    }
    for (uint32_t i = 0; i < 40; i++) {
        cat_put_table(&c, t[(i * 7) % 40]);
    }
    ASSERT_OK(c.fx, dict_load(c.dict));
    dict_table_t *found = dict_first(c.dict);
    for (uint32_t i = 0; i < 40; i++, found = found->next) {
        assert_non_null(found);
        assert_loaded(t[i], found);
        assert_ptr_equal(dict_table_get(c.dict, t[i]->name), found);
        assert_ptr_equal(dict_table_by_id(c.dict, t[i]->id), found);
        assert_non_null(dict_index_get(found, "kb"));
        assert_null(dict_index_get(found, "ke"));
    }
    assert_null(found);
    assert_null(dict_table_get(c.dict, "nothing"));

    dict_table_by_id(c.dict, t[3]->id)->n_trx = 2;
    ASSERT_OK(c.fx, dict_load(c.dict));
    assert_int_equal(dict_table_by_id(c.dict, t[3]->id)->n_trx, 2);
    assert_int_equal(dict_table_by_id(c.dict, t[4]->id)->n_trx, 0);

    byte row[SYS_ROW_MAX];
    /* A marked table row alone makes its columns orphans; marking all of them removes the table. */
    dict_sys_tables_row(t[39], row);
    byte pk[8];
    dict_row_to_pk(sys, row, pk);
    byte mark = REC_INFO_DELETE_MARK;
    ASSERT_OK(c.fx, btr_update(c.fx->pool, &sys->indexes[0].tree, pk, 0, &mark, 1));
    assert_int_equal(dict_load(c.dict), DB_CORRUPTION);
    assert_non_null(dict_table_get(c.dict, "t39"));
    for (uint32_t i = 0; i < 40; i++) {
        free(t[i]);
    }
    cat_free(&c);
}

/** One wrong thing in an otherwise good table. */
typedef void (*damage_fn)(dict_table_t *t);

static void damage_id(dict_table_t *t)
{
    t->id = 9000;
}
static void damage_system_id(dict_table_t *t)
{
    t->id = 9;
}
static void damage_space(dict_table_t *t)
{
    t->space = 5000;
}
static void damage_same_space(dict_table_t *t)
{
    t->space--; /* that of the table before it */
}
static void damage_status(dict_table_t *t)
{
    t->status = (dict_status_t)7;
}
static void damage_name(dict_table_t *t)
{
    memcpy(t->name, "a/b", 4);
}
static void damage_no_name(dict_table_t *t)
{
    t->name[0] = 0;
}
static void damage_same_name(dict_table_t *t)
{
    memcpy(t->name, "other", 6);
}
static void damage_col_name(dict_table_t *t)
{
    memcpy(t->cols[3].name, t->cols[2].name, 2);
}
static void damage_type(dict_table_t *t)
{
    t->cols[1].type = (dict_type_t)4;
}
static void damage_len(dict_table_t *t)
{
    t->cols[1].len = 256;
}
static void damage_bigint_len(dict_table_t *t)
{
    t->cols[0].len = 7;
}
static void damage_index_id(dict_table_t *t)
{
    t->indexes[1].id = 7000;
}
static void damage_index_status(dict_table_t *t)
{
    t->indexes[1].status = (dict_status_t)0;
}
static void damage_root(dict_table_t *t)
{
    t->indexes[1].tree.root = FIL_NULL;
}
static void damage_root_0(dict_table_t *t)
{
    t->indexes[0].tree.root = 0;
}
static void damage_clustered(dict_table_t *t)
{
    t->indexes[1].clustered = true;
}
static void damage_not_clustered(dict_table_t *t)
{
    t->indexes[0].clustered = false;
}
static void damage_field_col(dict_table_t *t)
{
    t->indexes[1].fields[0].col = 8;
}
static void damage_prefix(dict_table_t *t)
{
    t->indexes[1].fields[0].prefix_len = 256;
}
static void damage_pk_prefix(dict_table_t *t)
{
    t->indexes[0].fields[0].prefix_len = 4;
}
static void damage_index_name(dict_table_t *t)
{
    memcpy(t->indexes[2].name, "kb", 3);
    t->indexes[2].status = DICT_READY;
}

static void damage_unfinished_name(dict_table_t *t)
{
    memcpy(t->indexes[2].name, t->indexes[0].name, sizeof(t->indexes[0].name));
}

/** Rows with one impossible value are refused, and the old cache stays in force. */
static void test_bad_rows(void **state)
{
    static const damage_fn DAMAGES[] = {
        damage_id,
        damage_system_id,
        damage_space,
        damage_same_space,
        damage_status,
        damage_name,
        damage_no_name,
        damage_same_name,
        damage_col_name,
        damage_type,
        damage_len,
        damage_bigint_len,
        damage_index_id,
        damage_root,
        damage_index_status,
        damage_root_0,
        damage_clustered,
        damage_not_clustered,
        damage_field_col,
        damage_prefix,
        damage_pk_prefix,
        damage_index_name,
        damage_unfinished_name,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(DAMAGES) / sizeof(DAMAGES[0]); i++) {
        cat_t c = cat_create();
        dict_table_t *good = table_create(&c, "other");
        dict_table_t *bad = table_create(&c, "t");

        cat_put_table(&c, good);
        ASSERT_OK(c.fx, dict_load(c.dict));
        DAMAGES[i](bad);
        cat_put_table(&c, bad);
        if (dict_load(c.dict) != DB_CORRUPTION) {
            fail_msg("damage %zu was believed", i);
        }
        assert_non_null(strstr(c.fx->env.err.msg, "catalogue"));
        assert_non_null(dict_table_get(c.dict, "other"));
        assert_null(dict_table_get(c.dict, "t"));
        free(good);
        free(bad);
        cat_free(&c);
    }
}

/** A missing row of any kind is noticed, and so is one whose parent is missing. */
static void test_missing_rows(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < SYS_N; which++) {
        cat_t c = cat_create();
        dict_table_t *t = table_create(&c, "t");
        dict_table_t *sys = dict_sys_table(c.dict, (sys_table_t)which);
        cat_put_table(&c, t);
        ASSERT_OK(c.fx, dict_load(c.dict));
        byte row[SYS_ROW_MAX];
        switch ((sys_table_t)which) {
        case SYS_TABLES:
            dict_sys_tables_row(t, row);
            break;
        case SYS_COLUMNS:
            dict_sys_columns_row(t, 7, row);
            break;
        case SYS_INDEXES:
            dict_sys_indexes_row(&t->indexes[0], row);
            break;
        default:
            dict_sys_fields_row(&t->indexes[2], 1, row);
            break;
        }
        byte pk[16];
        dict_row_to_pk(sys, row, pk);
        ASSERT_OK(c.fx, btr_delete(c.fx->pool, &sys->indexes[0].tree, pk));
        assert_int_equal(dict_load(c.dict), DB_CORRUPTION);
        free(t);
        cat_free(&c);
    }
}

/** A damaged header is refused at open, not believed. */
static void test_bad_header(void **state)
{
    static const uint32_t OFFSETS[] = {DICT_HDR_TABLE_ID,  DICT_HDR_INDEX_ID, DICT_HDR_SPACE_ID,
                                       DICT_HDR_ROOTS + 4, DICT_HDR_MAGIC,    DICT_HDR_VERSION,
                                       FIL_PAGE_TYPE};

    (void)state;
    for (size_t i = 0; i < sizeof(OFFSETS) / sizeof(OFFSETS[0]); i++) {
        cat_t c = cat_create();
        dict_close(c.dict);
        c.dict = NULL;
        buf_block_t *block = NULL;
        ASSERT_OK(c.fx, buf_page_get(c.fx->pool, (page_id_t){0, DICT_HDR_PAGE}, &block));
        block->frame[OFFSETS[i]] = 0xF7;
        buf_block_unfix(c.fx->pool, block);
        assert_int_equal(dict_open(c.fx->pool, &c.dict), DB_CORRUPTION);
        assert_null(c.dict);
        cat_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bootstrap),    cmocka_unit_test(test_ids),
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_missing_rows), cmocka_unit_test(test_bad_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
