#!/bin/sh
# Starts a single-user PostgreSQL backend on the files that a crash left, shows what is in its tables, lets amcheck
# read the indexes, and ends it: sh postgresql_by_hand.sh DIR PROGRAMS [SETTING ...]
set -u
dir=$1 programs=$2
shift 2
# Folders without files, which a cluster has and no crashed image.
for folder in pg_notify pg_tblspc pg_twophase pg_replslot pg_stat pg_stat_tmp pg_serial pg_snapshots \
    pg_dynshmem pg_commit_ts pg_logical/mappings pg_logical/snapshots pg_wal/archive_status; do
    mkdir -p "$dir/$folder"
done
chmod 0700 "$dir"
for setting; do
    set -- "$@" "-c$setting"
    shift
done
set -- "$programs/postgres" --single -D "$dir" "$@" postgres
if [ "$(id -u)" = 0 ]; then # which it refuses to be
    chown -R nobody "$dir"
    set -- setpriv --reuid=nobody --clear-groups --inh-caps=+dac_override --ambient-caps=+dac_override "$@"
fi
"$@" <<'END'
SELECT relname, query_to_xml(format('SELECT count(*) AS n, md5(string_agg(x::text, '','' ORDER BY x::text)) AS hash FROM %I x', relname), false, true, '') FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
SELECT bt_index_check(c.oid, true) FROM pg_class c JOIN pg_index ON indexrelid = c.oid JOIN pg_am a ON a.oid = relam WHERE amname = 'btree' AND relpersistence <> 't' AND indisvalid
END
