/** Rows of the four system tables as C values: the one place that knows their columns. */
#ifndef DICT_DICT_SYS_H
#define DICT_DICT_SYS_H

#include "dict/dict.h"

#define SYS_ROW_MAX 256U /**< bytes of the longest system row */

/** Each fills row (SYS_ROW_MAX bytes) with the row bytes of the system table. */
void dict_sys_tables_row(const dict_table_t *table, byte *row);
void dict_sys_columns_row(const dict_table_t *table, uint32_t pos, byte *row);
void dict_sys_indexes_row(const dict_index_t *index, byte *row);
void dict_sys_fields_row(const dict_index_t *index, uint32_t pos, byte *row);

/** Column positions that DDL updates. */
#define SYS_TABLES_COL_NAME 1U
#define SYS_TABLES_COL_STATUS 4U
#define SYS_INDEXES_COL_ROOT 5U
#define SYS_INDEXES_COL_STATUS 6U

#endif
