/** The oracle's commit prefixes, and the comparison of a recovered state with them (I1, I2, I3,
I10). */
#ifndef EXPLORER_ALLOWED_H
#define EXPLORER_ALLOWED_H

#include "check/check.h"
#include "explorer/judge/verdict.h"

typedef struct allowed_prefix {
    /** of the script; its acknowledgement makes the prefix durable; 0 for the first */
    uint32_t line;
    /** what the line makes is a backup of this name, of the state of this prefix; or "" */
    char backup[NAME_LEN_MAX + 1];
    char exported[NAME_LEN_MAX + 1]; /**< table that is exported from that line on; or "" */
    bool backup_is_sure;             /**< it cannot have been given up instead */
    bool is_end;                     /**< made by the clean end, which may follow its line */
    /** whose tables these are alone, a hash of the name; 0: all tables there are */
    uint64_t client;
    uint32_t n_tables;
    uint64_t *table_names;   /**< hashes */
    uint64_t *table_digests; /**< of each table with its indexes */
    uint64_t digest;         /**< of all of them */
    uint64_t rows_digest;    /**< of the tables without their indexes */
} allowed_prefix_t;

typedef struct allowed {
    allowed_prefix_t *prefixes;
    uint32_t n;
    uint32_t n_lent; /**< the first ones belong to another list */
    bool by_client;  /**< several clients, each with tables of its own and a sequence of prefixes */
    uint64_t id;     /**< of what was added to the script's; 0: nothing */
} allowed_t;

/** Reads JSON lines, one prefix each, in order from 0. DB_ERROR and a message. */
WARN_UNUSED dberr_t allowed_load(const char *path, allowed_t *allowed, err_sink_t *err);
void allowed_free(allowed_t *allowed);

/** The prefixes of another list up to `last`, lent, to which others are added. The other list stays
where it is. */
void allowed_extend(allowed_t *allowed, const allowed_t *other, uint32_t last, uint64_t id);
/** One more prefix: these tables. */
void allowed_add(allowed_t *allowed, const check_table_t *tables, uint32_t n);

/** The newest prefix that `line` makes visible. */
uint32_t allowed_at(const allowed_t *allowed, uint32_t line);
/** The newest one that may be there when this line was acknowledged and that one issued. */
uint32_t allowed_newest(const allowed_t *allowed, uint32_t acked, uint32_t issued);

/** The table that is exported in the newest prefix from low to high that has one; *sure: in all of
them. NULL: there is none. */
const char *allowed_export(const allowed_t *allowed, uint32_t low, uint32_t high, bool *sure);
/** The table whose export `last` is the last prefix of, if none from low to high exports it again.
NULL: there is none. last: below low. */
const char *allowed_export_over(const allowed_t *allowed, uint32_t last, uint32_t low,
                                uint32_t high);

/** One number for all tables and indexes of a report. */
uint64_t allowed_digest(const check_table_t *tables, uint32_t n);

/** Judges a report: it must equal a prefix between low and high. Of several clients each one's
tables must be those of its last prefix up to low, of a later one up to high, or of the next one,
which may be under way. what: the beginning of a finding's text. prefix: gets the newest one that it
equals; of several clients low. @return it equals one */
bool allowed_judge(const allowed_t *allowed, const check_report_t *report, uint32_t low,
                   uint32_t high, const char *what, verdict_t *verdict, uint32_t *prefix);

#endif
