/** Where things lie on disk, as FORMAT.md tells it.

These constants repeat those of fil/, fsp/, dict/ and trx/ on purpose. The scanner is an independent
judge: it shares the decoding of pages and of the log, which every byte passes through, and nothing
above. If one side changes a format and forgets the document, both disagree, and every test that
scans says so. */
#ifndef CHECK_CHECK_FORMAT_H
#define CHECK_CHECK_FORMAT_H

#define CHK_SYSTEM_PATH "ibdata1"
#define CHK_IBD_SUFFIX ".ibd"
#define CHK_TMP_PREFIX "#sql-tmp-"
#define CHK_LOG_TMP_PATH "ib_logfile101"
#define CHK_PAGES_MAX (1U << 26)

/* Space header and allocation map */
#define CHK_FSP_SPACE_ID 38
#define CHK_FSP_SIZE 42
#define CHK_FSP_N_USED 46
#define CHK_FSP_PAGE_SIZE 50
#define CHK_FSP_VERSION 54
#define CHK_FSP_RESERVED 58
#define CHK_FSP_MAP 64
#define CHK_FSP_HEADER_END 64
#define CHK_FSP_FORMAT_VERSION 1U

#define CHK_OWNER_FREE 0U
#define CHK_OWNER_MAP 1U
#define CHK_OWNER_UNDO 2U
#define CHK_INDEX_ID_FIRST 16U

/* Fixed pages of the system space */
#define CHK_DICT_HDR_PAGE 1U
#define CHK_TRX_SYS_PAGE 2U
#define CHK_RSEG_PAGE 3U

/* Catalogue */
#define CHK_DICT_TABLE_ID 38
#define CHK_DICT_INDEX_ID 46
#define CHK_DICT_SPACE_ID 54
#define CHK_DICT_ROOTS 62
#define CHK_DICT_MAGIC 78
#define CHK_DICT_VERSION 82
#define CHK_DICT_END 86
#define CHK_DICT_MAGIC_VALUE 0x44494354U /* "DICT" */
#define CHK_DICT_FORMAT_VERSION 1U
#define CHK_SYS_TABLES 4U
#define CHK_SYS_INDEX_ID_FIRST CHK_INDEX_ID_FIRST
#define CHK_USER_TABLE_ID_FIRST 16U
#define CHK_USER_INDEX_ID_FIRST 32U
#define CHK_TABLES_MAX 4096U

/* Transactions */
#define CHK_TRX_SYS_MAX_ID 38
#define CHK_TRX_SYS_NEXT_NO 46
#define CHK_TRX_SYS_END 54

#define CHK_RSEG_HISTORY_HEAD 38
#define CHK_RSEG_HISTORY_TAIL 42
#define CHK_RSEG_HISTORY_LEN 46
#define CHK_RSEG_RESERVED 54
#define CHK_RSEG_SLOTS 64
#define CHK_RSEG_N_SLOTS 64U
#define CHK_RSEG_END 320

#define CHK_UNDO_PREV 38
#define CHK_UNDO_NEXT 42
#define CHK_UNDO_FREE 46
#define CHK_UNDO_N_RECS 48
#define CHK_UNDO_STATE 50
#define CHK_UNDO_TRX_ID 52
#define CHK_UNDO_TRX_NO 60
#define CHK_UNDO_HISTORY_NEXT 68
#define CHK_UNDO_LAST_PAGE 72
#define CHK_UNDO_RESERVED 76
#define CHK_UNDO_RECS 96
#define CHK_UNDO_ACTIVE 1U
#define CHK_UNDO_COMMITTED 2U

#define CHK_UNDO_REC_PK_LEN 24
#define CHK_UNDO_REC_PK 26
#define CHK_UNDO_REC_TYPE 2
#define CHK_UNDO_REC_MIN 29U
#define CHK_UNDO_TYPE_MAX 3U

/* Rows */
#define CHK_TYPE_BIGINT 1U
#define CHK_TYPE_CHAR 2U
#define CHK_TRX_ID_LEN 6U
#define CHK_ROLL_PTR_LEN 7U

#define CHK_READY 1U
#define CHK_INCOMPLETE 2U
#define CHK_DROPPING 3U

#endif
