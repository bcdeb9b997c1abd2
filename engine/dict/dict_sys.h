/** Rows of the four system tables as C values: the one place that knows their columns. */
#ifndef DICT_DICT_SYS_H
#define DICT_DICT_SYS_H

#include "dict/dict.h"

/* DICT_HDR, page 1 of the system space (type FIL_PAGE_TYPE_SYS):

    38  8  next table id
    46  8  next index id
    54  8  next space id (below 2^32)
    62  4  root of SYS_TABLES, then SYS_COLUMNS, SYS_INDEXES, SYS_FIELDS, 4 bytes each
    78  4  magic "DICT"
    82  4  format version, 3
    86  .. zero */
#define DICT_HDR_TABLE_ID 38U
#define DICT_HDR_INDEX_ID 46U
#define DICT_HDR_SPACE_ID 54U
#define DICT_HDR_ROOTS 62U
#define DICT_HDR_MAGIC 78U
#define DICT_HDR_VERSION 82U
#define DICT_HDR_END 86U
#define DICT_MAGIC 0x44494354U
#define DICT_VERSION 3U /**< 1 had no unique indexes, 2 records of one size only */

#define SYS_TABLE_ID_FIRST 1U /**< SYS_TABLES; the others follow */
#define USER_TABLE_ID_FIRST 16U
#define USER_INDEX_ID_FIRST 32U /**< system indexes: INDEX_ID_FIRST + sys_table_t */
#define USER_SPACE_ID_FIRST 1U
#define DICT_TABLES_MAX 4096U /**< user tables of a database */

/** SYS_INDEXES.TYPE; 0: secondary, not unique. */
#define SYS_INDEX_CLUSTERED 1U
#define SYS_INDEX_UNIQUE 2U

/** In SYS_COLUMNS.TYPE, beside the type. */
#define SYS_COL_NULLABLE 256U
#define SYS_COL_INSTANT 512U

#define SYS_ROW_MAX 256U /**< bytes of the longest system row */

/** Each fills row (SYS_ROW_MAX bytes) with the row bytes of the system table. */
void dict_sys_tables_row(const dict_table_t *table, byte *row);
void dict_sys_columns_row(const dict_table_t *table, uint32_t pos, byte *row);
void dict_sys_indexes_row(const dict_index_t *index, byte *row);
void dict_sys_fields_row(const dict_index_t *index, uint32_t pos, byte *row);

/** Columns that DDL updates; ROOT together with the tree, the others in transactions. */
#define SYS_TABLES_COL_NAME 1U
#define SYS_TABLES_COL_N_COLS 3U
#define SYS_TABLES_COL_STATUS 4U
#define SYS_COLUMNS_COL_NAME 2U
#define SYS_COLUMNS_COL_LEN 4U
#define SYS_INDEXES_COL_NAME 2U
#define SYS_INDEXES_COL_ROOT 5U
#define SYS_INDEXES_COL_STATUS 6U

#endif
