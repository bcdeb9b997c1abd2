/** Where things lie on disk, as FORMAT.md tells it.

These constants repeat those of fil/, fsp/, dict/ and trx/ on purpose. The scanner is an independent
judge: it shares the decoding of pages and of the log, which every byte passes through, and nothing
above. If one side changes a format and forgets the document, both disagree, and every test that
scans says so. */
#ifndef CHECK_CHECK_FORMAT_H
#define CHECK_CHECK_FORMAT_H

#define CHK_SYSTEM_PATH "ibdata1"
#define CHK_IBD_SUFFIX ".ibd"
#define CHK_UNDO_PATH "undo%03" PRIu32
#define CHK_TMP_PREFIX "#sql-tmp-"
#define CHK_LOG_TMP_PATH "ib_logfile101"
#define CHK_PAGES_MAX (1U << 26)

/* Page 0, extent descriptors, segment inodes */
#define CHK_FSP_SPACE_ID 38
#define CHK_FSP_SIZE 42
#define CHK_FSP_FREE_LIMIT 46
#define CHK_FSP_PAGE_SIZE 50
#define CHK_FSP_VERSION 54
#define CHK_FSP_EXTENT_PAGES 58
#define CHK_FSP_FRAG_N_USED 62
#define CHK_FSP_SEG_ID 66
#define CHK_FSP_FREE 74
#define CHK_FSP_FREE_FRAG 90
#define CHK_FSP_FULL_FRAG 106
#define CHK_FSP_INODES_FULL 122
#define CHK_FSP_INODES_FREE 138
#define CHK_FSP_XDES 154
#define CHK_FSP_FORMAT_VERSION 2U

#define CHK_XDES_ID 0
#define CHK_XDES_NODE 8
#define CHK_XDES_STATE 20
#define CHK_XDES_BITMAP 24
#define CHK_XDES_FREE 1U
#define CHK_XDES_FREE_FRAG 2U
#define CHK_XDES_FULL_FRAG 3U
#define CHK_XDES_FSEG 4U

#define CHK_INODE_NODE 38
#define CHK_INODES 50
#define CHK_INODE_NOT_FULL_N_USED 8
#define CHK_INODE_FREE 12
#define CHK_INODE_NOT_FULL 28
#define CHK_INODE_FULL 44
#define CHK_INODE_MAGIC 60
#define CHK_INODE_FRAGS 64
#define CHK_INODE_MAGIC_VALUE 97937874U

#define CHK_SEG_HEADER_PAGE 4
#define CHK_SEG_HEADER_OFFSET 8
#define CHK_SEG_HEADER_SIZE 10U
#define CHK_PAGE_SEG_LEAF 64
#define CHK_PAGE_SEG_TOP 74
#define CHK_RSEG_UNDO_SEG 320

#define CHK_SYSTEM_PAGES 4U
#define CHK_UNDO_SPACE_PAGES 2U
#define CHK_INDEX_ID_FIRST 16U

/* Fixed pages of the system space */
#define CHK_DICT_HDR_PAGE 1U
#define CHK_TRX_SYS_PAGE 2U
#define CHK_RSEG_PAGE 3U
#define CHK_RSEG_PAGE_UNDO_SPACE 1U

/* Catalogue */
#define CHK_DICT_TABLE_ID 38
#define CHK_DICT_ROOTS 62
#define CHK_DICT_MAGIC 78
#define CHK_DICT_VERSION 82
#define CHK_DICT_END 86
#define CHK_DICT_MAGIC_VALUE 0x44494354U /* "DICT" */
#define CHK_DICT_FORMAT_VERSION 3U
#define CHK_INDEX_CLUSTERED 1U
#define CHK_INDEX_UNIQUE 2U
#define CHK_SYS_TABLES 4U
#define CHK_SYS_INDEX_ID_FIRST CHK_INDEX_ID_FIRST
#define CHK_USER_TABLE_ID_FIRST 16U
#define CHK_USER_INDEX_ID_FIRST 32U
#define CHK_TABLES_MAX 4096U

/* Transactions */
#define CHK_TRX_SYS_MAX_ID 38
#define CHK_TRX_SYS_NEXT_NO 46
#define CHK_TRX_SYS_N_UNDO_SPACES 54
#define CHK_TRX_SYS_END 58

#define CHK_RSEG_HISTORY_HEAD 38
#define CHK_RSEG_HISTORY_TAIL 42
#define CHK_RSEG_HISTORY_LEN 46
#define CHK_RSEG_RESERVED 54
#define CHK_RSEG_SLOTS 64
#define CHK_RSEG_N_SLOTS 64U
#define CHK_RSEG_END 330

#define CHK_UNDO_PREV 38
#define CHK_UNDO_NEXT 42
#define CHK_UNDO_FREE 46
#define CHK_UNDO_N_RECS 48
#define CHK_UNDO_STATE 50
#define CHK_UNDO_TRX_ID 52
#define CHK_UNDO_TRX_NO 60
#define CHK_UNDO_HISTORY_NEXT 68
#define CHK_UNDO_LAST_PAGE 72
#define CHK_UNDO_RECS 96
#define CHK_UNDO_ACTIVE 1U
#define CHK_UNDO_COMMITTED 2U

#define CHK_UNDO_REC_PK_LEN 24
#define CHK_UNDO_REC_PK 26
#define CHK_UNDO_REC_TYPE 2
#define CHK_UNDO_REC_MIN 29U
#define CHK_UNDO_TYPE_MAX 4U
#define CHK_UNDO_TYPE_UPDATE 2U
#define CHK_UNDO_REC_TABLE_ID 3
#define CHK_UNDO_COLS 3 /**< behind the primary key */
#define CHK_UNDO_COL_FIXED 4U
#define CHK_UNDO_COL_NULL 0xFFFFU
#define CHK_UNDO_COL_EXTERNAL 0x8000U

/* Rows */
#define CHK_TYPE_BIGINT 1U
#define CHK_TYPE_CHAR 2U
#define CHK_TYPE_VARCHAR 3U
#define CHK_TYPE_NULLABLE 256U /**< beside the type */
#define CHK_TYPE_INSTANT 512U
#define CHK_COUNT_SIZE 1U /**< of a record that says how many columns it has */
#define CHK_LEN_SIZE 2U   /**< in front of a VARCHAR */
#define CHK_KEY_LEN_MAX 3072U
#define CHK_LOCAL_MAX 40U /**< texts up to this length stay in their record */

/* Long values: instead of the length of a VARCHAR; reference; pages */
#define CHK_LEN_EXTERNAL 0x8014U
#define CHK_REF_SPACE 0
#define CHK_REF_PAGE 4
#define CHK_REF_OFFSET 8
#define CHK_REF_FLAGS 12
#define CHK_REF_LEN 16
#define CHK_REF_SIZE 20U
#define CHK_REF_NOT_OWNER 0x80000000U
#define CHK_BLOB_PART_LEN 38
#define CHK_BLOB_NEXT 42
#define CHK_BLOB_RESERVED 46
#define CHK_BLOB_INDEX_ID 50
#define CHK_BLOB_DATA 58
#define CHK_TRX_ID_LEN 6U
#define CHK_ROLL_PTR_LEN 7U

#define CHK_READY 1U
#define CHK_INCOMPLETE 2U
#define CHK_DROPPING 3U

#endif
