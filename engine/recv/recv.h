/** Recovery, in the order of RECOVERY.md: slot, marker, scan, spaces, doublewrite, apply, marker,
incomplete DDL, rollback. Split in two because the catalogue can be read only after the pages are
right:

recv_redo():   everything up to and including "apply"; the owner then opens dict and trx_sys;
recv_finish(): rolls resurrected transactions back, drops incomplete DDL (ddl_recover). Neither
takes a checkpoint.

Idempotent: a crash at any of its I/Os and a repeat give the same logical state (I17); memory for
parsed records is bounded by recv_memory, several batches giving the same result as one (I18).
Refuses with DB_UNRECOVERABLE and the cause what cannot be recovered (I30). */
#ifndef RECV_RECV_H
#define RECV_RECV_H

#include "base/options.h"
#include "buf/buf.h"
#include "ddl/ddl.h"

/** log: opened, not yet writable. On success the log is writable, all redo is applied, pages are in
the pool or files, spaces are registered in fil with their committed size and enable_lsn
set. */
WARN_UNUSED dberr_t recv_redo(log_t *log, fil_t *fil, buf_pool_t *pool,
                              const engine_options_t *options);

WARN_UNUSED dberr_t recv_finish(trx_sys_t *sys);

#endif
