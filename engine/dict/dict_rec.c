/* Values, rows and records: conversions by the layout of a table object (dict_layout.c).

    row       NULL bits | each column at its width
    record    info | primary key | DB_TRX_ID | DB_ROLL_PTR | (columns) | NULL bits | values, as long
              as they are, or references to them
    entry     info | key columns, each at its prefix length | primary key

1. A record that has passed dict_rec_check() is read to its end and not beyond; conversions of rows
   and of such records cannot fail.
2. A row has one form for its values: what a value does not use of its column is zero, a NULL column
   is zero, and so are the NULL bits of no column. Rows with the same values are equal as bytes. */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "btr/btr_blob.h"
#include "dict/dict.h"

/* ---- values ---- */

uint32_t dict_col_row_len(const dict_col_t *col)
{
    return col->len + (col->type == DICT_VARCHAR ? DICT_LEN_SIZE : 0);
}

static bool null_bit(const byte *bits, const dict_col_t *col)
{
    return col->nullable && (bits[col->null_bit / 8] >> (col->null_bit % 8) & 1U) != 0;
}

static void null_bit_set(byte *bits, const dict_col_t *col, bool null)
{
    byte bit = (byte)(1U << (col->null_bit % 8));
    if (null) {
        bits[col->null_bit / 8] |= bit;
    } else if (col->nullable) {
        bits[col->null_bit / 8] &= (byte)~bit;
    }
}

bool dict_col_is_null(const dict_col_t *col, const byte *row)
{
    return null_bit(row, col);
}

void dict_col_set(const dict_col_t *col, byte *row, const byte *value)
{
    uint32_t size = dict_col_row_len(col);
    CHECK(value != NULL || col->nullable);
    null_bit_set(row, col, value == NULL);
    if (value == NULL) {
        memset(row + col->row_offset, 0, size);
        return;
    }
    memcpy(row + col->row_offset, value, size);
}

const byte *dict_col_value(const dict_col_t *col, const byte *row, uint32_t *len)
{
    const byte *value = row + col->row_offset;
    if (col->type != DICT_VARCHAR) {
        *len = col->len;
        return value;
    }
    *len = mach_read_2(value);
    CHECK(*len <= col->len);
    return value + DICT_LEN_SIZE;
}

void dict_col_put(const dict_col_t *col, byte *row, const byte *bytes, uint32_t len)
{
    byte *to = row + col->row_offset;
    CHECK(len <= col->len);
    null_bit_set(row, col, false);
    if (col->type == DICT_VARCHAR) {
        mach_write_2(to, len);
        to += DICT_LEN_SIZE;
    }
    memcpy(to, bytes, len);
    memset(to + len, col->type == DICT_CHAR ? ' ' : 0, col->len - len);
}

void dict_row_init(const dict_table_t *table, byte *row)
{
    memset(row, 0, table->row_size);
    for (uint32_t i = 0; i < table->n_cols; i++) {
        const dict_col_t *col = &table->cols[i];
        if (col->nullable) {
            null_bit_set(row, col, true);
        } else if (col->type == DICT_BIGINT) {
            mach_write_8(row + col->row_offset, dict_bigint_encode(0));
        } else if (col->type == DICT_CHAR) {
            memset(row + col->row_offset, ' ', col->len);
        }
    }
}

/* ---- clustered records ---- */

dberr_t dict_row_convert(const dict_row_map_t *map, const byte *row, const dict_table_t *to,
                         byte *out, err_sink_t *err)
{
    memset(out, 0, to->row_size);
    for (uint32_t i = 0; i < to->n_cols; i++) {
        const dict_col_t *col = &to->cols[i];
        bool added = map->cols[i] == map->from->n_cols;
        const dict_col_t *source = added ? &map->added : &map->from->cols[map->cols[i]];
        const byte *values = added ? map->value : row;
        if (dict_col_is_null(source, values)) {
            dict_col_set(col, out, NULL);
            continue;
        }
        uint32_t len = 0;
        const byte *value = dict_col_value(source, values, &len);
        if (len > col->len) {
            return err_set(err, DB_ERROR,
                           "table '%s': column '%s' has a value of %" PRIu32 " bytes",
                           map->from->name, source->name, len);
        }
        dict_col_put(col, out, value, len);
    }
    return DB_SUCCESS;
}

uint32_t dict_rec_trx_id_offset(const dict_table_t *table)
{
    return 1 + table->pk_len;
}

/** Where the primary key and the ids end. */
static uint32_t rec_head_size(const dict_table_t *table)
{
    return dict_rec_trx_id_offset(table) + DATA_TRX_ID_LEN + DATA_ROLL_PTR_LEN;
}

static bool is_instant(const dict_table_t *table)
{
    return table->n_core < table->n_cols;
}

/** What a record has of the columns. */
typedef struct rec_shape {
    uint32_t n_cols;
    uint32_t nulls; /**< offset of the NULL bits */
    uint32_t n_nullable;
    uint32_t values; /**< offset of what follows them */
} rec_shape_t;

static rec_shape_t rec_shape(const dict_table_t *table, const byte *rec)
{
    bool counts = (rec[0] & REC_INFO_INSTANT) != 0;
    rec_shape_t shape = {.n_cols = counts ? rec[rec_head_size(table)] : table->n_core,
                         .nulls = rec_head_size(table) + (counts ? DICT_COUNT_SIZE : 0)};
    for (uint32_t i = 0; i < shape.n_cols && i < table->n_cols; i++) {
        shape.n_nullable += table->cols[i].nullable ? 1 : 0;
    }
    shape.values = shape.nulls + (shape.n_nullable + 7) / 8;
    return shape;
}

/** Bytes of a column in the record, if it is not in pages of its own. */
static uint32_t rec_local_size(const dict_col_t *col, const byte *row)
{
    if (dict_col_is_null(col, row)) {
        return 0;
    }
    uint32_t len = 0;
    (void)dict_col_value(col, row, &len);
    return len + (col->type == DICT_VARCHAR ? DICT_LEN_SIZE : 0);
}

/** The column whose text is the longest in the record; n_cols: none is worth it. */
static uint32_t ext_longest(const dict_table_t *table, const byte *row, const dict_ext_t *ext)
{
    uint32_t found = table->n_cols;
    uint32_t most = DICT_LEN_SIZE + DICT_LOCAL_MAX;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        const dict_col_t *col = &table->cols[i];
        if (col->type == DICT_VARCHAR && !ext->is[i] && rec_local_size(col, row) > most) {
            most = rec_local_size(col, row);
            found = i;
        }
    }
    return found;
}

void dict_ext_plan(const dict_table_t *table, const byte *row, const dict_ext_t *kept,
                   dict_ext_t *out)
{
    uint32_t max = table->indexes[0].tree.leaf_rec_size;
    uint32_t size =
        rec_head_size(table) + (is_instant(table) ? DICT_COUNT_SIZE : 0) + table->null_len;
    memset(out->is, 0, sizeof(out->is));
    out->n_cols = table->n_cols;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        out->is[i] = kept != NULL && kept->is[i];
        if (out->is[i]) {
            out->refs[i] = kept->refs[i];
            size += DICT_LEN_SIZE + BLOB_REF_SIZE;
        } else if (!table->cols[i].primary) {
            size += rec_local_size(&table->cols[i], row);
        }
    }
    while (size > max) {
        uint32_t col = ext_longest(table, row, out);
        CHECK(col < table->n_cols); /* the layout sees to that */
        size -= rec_local_size(&table->cols[col], row) - DICT_LEN_SIZE - BLOB_REF_SIZE;
        out->is[col] = true;
        out->refs[col] = (blob_ref_t){.space = table->space, .page_no = FIL_NULL, .owner = true};
    }
}

bool dict_ext_is_same(const dict_ext_t *a, const dict_ext_t *b, uint32_t col)
{
    return a->is[col] && b->is[col] && a->refs[col].page_no == b->refs[col].page_no;
}

/** Puts a column that is not NULL into the record. @return its end */
static byte *rec_put(const dict_table_t *table, uint32_t i, const byte *row, const dict_ext_t *ext,
                     byte *to)
{
    const dict_col_t *col = &table->cols[i];
    uint32_t len = 0;
    const byte *value = dict_col_value(col, row, &len);
    if (ext != NULL && ext->is[i]) {
        mach_write_2(to, DICT_LEN_EXTERNAL);
        blob_ref_write(to + DICT_LEN_SIZE, &ext->refs[i]);
        return to + DICT_LEN_SIZE + BLOB_REF_SIZE;
    }
    if (col->type == DICT_VARCHAR) {
        mach_write_2(to, len);
        to += DICT_LEN_SIZE;
    }
    memcpy(to, value, len);
    return to + len;
}

uint32_t dict_row_to_rec(const dict_table_t *table, const byte *row, const dict_ext_t *ext,
                         trx_id_t trx_id, roll_ptr_t roll_ptr, byte *rec)
{
    byte *sys_cols = rec + dict_rec_trx_id_offset(table);
    uint32_t n_cols = ext != NULL ? ext->n_cols : table->n_cols;
    rec[0] = 0;
    if (n_cols > table->n_core) {
        rec[0] = REC_INFO_INSTANT;
        rec[rec_head_size(table)] = (byte)n_cols;
    }
    dict_row_to_pk(table, row, rec + 1);
    mach_write_6(sys_cols, trx_id);
    mach_write_7(sys_cols + DATA_TRX_ID_LEN, roll_ptr);
    rec_shape_t shape = rec_shape(table, rec);
    byte *to = rec + shape.values;
    memcpy(rec + shape.nulls, row, shape.values - shape.nulls);
    if (shape.n_nullable % 8 != 0) {
        to[-1] &= (byte)((1U << (shape.n_nullable % 8)) - 1);
    }
    for (uint32_t i = 0; i < n_cols; i++) {
        if (!table->cols[i].primary && !dict_col_is_null(&table->cols[i], row)) {
            to = rec_put(table, i, row, ext, to);
        }
    }
    return (uint32_t)(to - rec);
}

uint32_t dict_row_to_meta(const dict_table_t *table, const byte *row, trx_id_t trx_id,
                          roll_ptr_t roll_ptr, byte *rec)
{
    uint32_t len = dict_row_to_rec(table, row, NULL, trx_id, roll_ptr, rec);
    CHECK(is_instant(table) && len <= table->indexes[0].tree.leaf_rec_size);
    rec[0] |= REC_INFO_MIN_REC;
    memset(rec + 1, 0, table->pk_len);
    return len;
}

/** A value as it stands in a record. */
typedef struct rec_value {
    const byte *bytes;
    uint32_t len;
    uint32_t size; /**< of the record: what it takes */
    bool external; /**< bytes are a reference */
} rec_value_t;

/** The value of a column at `at`, of `left` bytes that are left of the record. False: it is longer
than that, or than the column. */
static bool rec_value(const dict_col_t *col, const byte *at, uint32_t left, rec_value_t *value)
{
    uint32_t in_front = col->type == DICT_VARCHAR ? DICT_LEN_SIZE : 0;
    if (left < in_front) {
        return false;
    }
    value->len = col->type == DICT_VARCHAR ? mach_read_2(at) : col->len;
    value->external = col->type == DICT_VARCHAR && value->len == DICT_LEN_EXTERNAL;
    if (value->external) {
        value->len = BLOB_REF_SIZE;
    }
    value->bytes = at + in_front;
    value->size = in_front + value->len;
    return (value->external || value->len <= col->len) && value->size <= left;
}

/** Is this the reference of a chain that the record owns, of a text that the column can have? */
static bool rec_ref_is_valid(const dict_table_t *table, const dict_col_t *col, const byte *bytes)
{
    blob_ref_t ref;
    return blob_ref_read(bytes, &ref) && ref.space == table->space && ref.owner
           && ref.len <= col->len && col->len > DICT_LOCAL_MAX;
}

/** Are the NULL bits that belong to no column zero? n: those that do. */
static bool null_bits_are_valid(const byte *bits, uint32_t n)
{
    return n % 8 == 0 || bits[n / 8] >> (n % 8) == 0;
}

/** Can records of the table have such a number of columns, in this way? */
static bool rec_count_is_valid(const dict_table_t *table, const byte *rec, uint32_t len)
{
    if ((rec[0] & REC_INFO_INSTANT) == 0) {
        return true;
    }
    return is_instant(table) && len > rec_head_size(table)
           && rec[rec_head_size(table)] > table->n_core
           && rec[rec_head_size(table)] <= table->n_cols;
}

/** Are the values behind the NULL bits those of the table, and nothing else? */
static bool rec_values_are_valid(const dict_table_t *table, const byte *rec, uint32_t len)
{
    if (!rec_count_is_valid(table, rec, len)) {
        return false;
    }
    rec_shape_t shape = rec_shape(table, rec);
    uint32_t at = shape.values;
    const byte *nulls = rec + shape.nulls;
    if (len < at || !null_bits_are_valid(nulls, shape.n_nullable)) {
        return false;
    }
    for (uint32_t i = 0; i < shape.n_cols; i++) {
        const dict_col_t *col = &table->cols[i];
        if (col->primary || null_bit(nulls, col)) {
            continue;
        }
        rec_value_t value;
        if (!rec_value(col, rec + at, len - at, &value)
            || (value.external && !rec_ref_is_valid(table, col, value.bytes))) {
            return false;
        }
        at += value.size;
    }
    return at == len;
}

dberr_t dict_rec_check(const dict_table_t *table, const byte *rec, uint32_t len, err_sink_t *err)
{
    return rec_values_are_valid(table, rec, len)
               ? DB_SUCCESS
               : err_set(err, DB_CORRUPTION, "table %s: a record is not one of its rows",
                         table->name);
}

/** Calls fn for each column outside the primary key that is not NULL, in order. */
typedef dberr_t (*rec_value_fn)(void *ctx, uint32_t col, const rec_value_t *value);

static dberr_t rec_each(const dict_table_t *table, const byte *rec, rec_value_fn fn, void *ctx)
{
    rec_shape_t shape = rec_shape(table, rec);
    const byte *nulls = rec + shape.nulls;
    const byte *at = rec + shape.values;
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = 0; i < shape.n_cols; i++) {
        const dict_col_t *col = &table->cols[i];
        rec_value_t value;
        if (!col->primary && !null_bit(nulls, col)) {
            CHECK(rec_value(col, at, UINT32_MAX, &value));
            err = fn(ctx, i, &value);
            at += value.size;
        }
        TRY(err);
    }
    return err;
}

typedef struct ext_reading {
    const byte *rec;
    dict_ext_t *out;
} ext_reading_t;

static dberr_t ext_read(void *ctx, uint32_t col, const rec_value_t *value)
{
    const ext_reading_t *reading = ctx;
    if (value->external) {
        reading->out->is[col] = true;
        reading->out->offsets[col] = (uint32_t)(value->bytes - reading->rec);
        CHECK(blob_ref_read(value->bytes, &reading->out->refs[col]));
    }
    return DB_SUCCESS;
}

void dict_rec_ext(const dict_table_t *table, const byte *rec, dict_ext_t *out)
{
    ext_reading_t reading = {rec, out};
    out->n_cols = rec_shape(table, rec).n_cols;
    memset(out->is, 0, sizeof(out->is));
    CHECK(rec_each(table, rec, ext_read, &reading) == DB_SUCCESS);
}

typedef struct row_reading {
    buf_pool_t *pool;
    const dict_table_t *table;
    byte *row;
    uint32_t from; /**< columns before this one are not wanted */
} row_reading_t;

/** The text of a chain becomes that of the row's column. */
static dberr_t row_read_chain(const row_reading_t *reading, const dict_col_t *col,
                              const byte *bytes)
{
    byte *to = reading->row + col->row_offset;
    blob_ref_t ref;
    CHECK(blob_ref_read(bytes, &ref));
    mach_write_2(to, ref.len);
    memset(to + DICT_LEN_SIZE + ref.len, 0, col->len - ref.len);
    return btr_blob_read(reading->pool, &reading->table->indexes[0].tree, &ref, to + DICT_LEN_SIZE);
}

static dberr_t row_read(void *ctx, uint32_t i, const rec_value_t *value)
{
    const row_reading_t *reading = ctx;
    const dict_col_t *col = &reading->table->cols[i];
    if (i < reading->from) {
        return DB_SUCCESS;
    }
    if (value->external) {
        return row_read_chain(reading, col, value->bytes);
    }
    dict_col_put(col, reading->row, value->bytes, value->len);
    return DB_SUCCESS;
}

/** The NULL bits of the columns from `from` on that the record has, and their values. */
static dberr_t rec_read_from(row_reading_t *reading, const byte *rec)
{
    rec_shape_t shape = rec_shape(reading->table, rec);
    for (uint32_t i = reading->from; i < shape.n_cols; i++) {
        const dict_col_t *col = &reading->table->cols[i];
        null_bit_set(reading->row, col, null_bit(rec + shape.nulls, col));
    }
    return rec_each(reading->table, rec, row_read, reading);
}

/** Columns that the record is without are as the metadata record has them. */
static dberr_t row_read_meta(row_reading_t *reading)
{
    const dict_table_t *table = reading->table;
    err_sink_t *err = &buf_env(reading->pool)->err;
    byte meta[PAGE_SIZE_MAX / 2];
    uint32_t len = 0;
    TRY(btr_meta_get(reading->pool, &table->indexes[0].tree, meta, &len));
    bool valid = rec_values_are_valid(table, meta, len) && !rec_is_deleted(meta)
                 && rec_shape(table, meta).n_cols == table->n_cols;
    for (uint32_t i = 0; i < table->pk_len; i++) {
        valid = valid && rec_payload(meta)[i] == 0;
    }
    if (!valid) {
        return err_set(err, DB_CORRUPTION, "table %s: its metadata record is damaged", table->name);
    }
    return rec_read_from(reading, meta);
}

dberr_t dict_meta_read(buf_pool_t *pool, const dict_table_t *table, byte *row)
{
    row_reading_t reading = {pool, table, row, table->n_core};
    return row_read_meta(&reading);
}

dberr_t dict_rec_read(buf_pool_t *pool, const dict_table_t *table, const byte *rec, uint32_t len,
                      byte *row)
{
    const dict_index_t *primary = &table->indexes[0];
    row_reading_t reading = {pool, table, row, 0};
    if (!rec_values_are_valid(table, rec, len)) {
        return dict_rec_check(table, rec, len, &buf_env(pool)->err);
    }
    memset(row, 0, table->row_size);
    for (uint32_t i = 0; i < primary->n_fields; i++) {
        const dict_col_t *col = &table->cols[primary->fields[i].col];
        memcpy(row + col->row_offset, rec + col->rec_offset, col->len);
    }
    TRY(rec_read_from(&reading, rec));
    reading.from = rec_shape(table, rec).n_cols;
    return reading.from < table->n_cols ? row_read_meta(&reading) : DB_SUCCESS;
}

trx_id_t dict_rec_trx_id(const dict_table_t *table, const byte *rec)
{
    return mach_read_6(rec + dict_rec_trx_id_offset(table));
}

roll_ptr_t dict_rec_roll_ptr(const dict_table_t *table, const byte *rec)
{
    return mach_read_7(rec + dict_rec_trx_id_offset(table) + DATA_TRX_ID_LEN);
}

/* ---- keys and entries ---- */

void dict_row_to_pk(const dict_table_t *table, const byte *row, byte *pk)
{
    const dict_index_t *primary = &table->indexes[0];
    for (uint32_t i = 0; i < primary->n_fields; i++) {
        const dict_col_t *col = &table->cols[primary->fields[i].col];
        memcpy(pk, row + col->row_offset, col->len);
        pk += col->len;
    }
}

/** One key column: NULL byte if it may be that, then prefix_len bytes. */
static byte *key_field(const dict_col_t *col, uint32_t prefix_len, const byte *row, byte *to)
{
    if (col->nullable) {
        *to++ = dict_col_is_null(col, row) ? 0 : 1;
    }
    if (dict_col_is_null(col, row)) {
        memset(to, 0, prefix_len);
        return to + prefix_len;
    }
    uint32_t len = 0;
    const byte *value = dict_col_value(col, row, &len);
    len = len < prefix_len ? len : prefix_len;
    memcpy(to, value, len);
    memset(to + len, ' ', prefix_len - len);
    return to + prefix_len;
}

void dict_row_to_sec(const dict_index_t *index, const byte *row, byte *rec)
{
    const dict_table_t *table = index->table;
    byte *to = rec + 1;
    CHECK(!index->clustered);
    rec[0] = 0;
    for (uint32_t i = 0; i < index->n_fields; i++) {
        to = key_field(&table->cols[index->fields[i].col], index->fields[i].prefix_len, row, to);
    }
    dict_row_to_pk(table, row, to);
}

bool dict_key_has_null(const dict_index_t *index, const byte *key)
{
    for (uint32_t i = 0; i < index->n_fields; i++) {
        const dict_col_t *col = &index->table->cols[index->fields[i].col];
        if (col->nullable && *key == 0) {
            return true;
        }
        key += (col->nullable ? 1 : 0) + index->fields[i].prefix_len;
    }
    return false;
}
