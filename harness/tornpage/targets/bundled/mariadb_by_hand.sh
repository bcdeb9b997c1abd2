#!/bin/sh
# Starts a MariaDB server on the files that a crash left, reads and checks every table of the database t, and
# ends it: sh mariadb_by_hand.sh DIR PROGRAM LIBRARIES SHARE UNDO [VARIABLE ...]
set -u
dir=$1 program=$2 libraries=$3 share=$4 undo=$5
shift 5
told=$(mktemp -d)
trap 'rm -rf "$told"' EXIT
for variable; do
    set -- "$@" "--$variable"
    shift
done
[ -z "$libraries" ] || export LD_LIBRARY_PATH="$libraries"
case $program in */*) share=${share:-$(dirname "$program")/../share} ;; esac
messages=$([ -z "$share" ] || find "$share" -path '*english/errmsg.sys' | head -1)
[ -z "$messages" ] || set -- "$@" "--lc-messages-dir=$(dirname "$messages")"
[ "$undo" = truncated ] && tablespaces=2 || tablespaces=0
for table in "$dir"/t/*.frm; do
    name=$(basename "$table" .frm)
    case $name in '#sql'*) continue ;; esac # of an ALTER that the crash cut: no client sees it, the start ends it
    echo "SELECT * FROM t.\`$name\` INTO OUTFILE '$told/$name.rows';"
    echo "CHECK TABLE t.\`$name\` EXTENDED;"
done >"$told/statements"
"$program" --no-defaults --bootstrap --datadir="$dir" --user="$(id -un)" --tmpdir="$told" \
    --innodb-buffer-pool-size=6M --innodb-log-file-size=1M --innodb-use-native-aio=0 \
    --innodb-data-file-path=ibdata1:1M:autoextend --innodb-autoextend-increment=1 \
    --innodb-temp-data-file-path=ibtmp1:1M:autoextend --loose-innodb-log-files-in-group=1 \
    --innodb-undo-tablespaces="$tablespaces" --aria-log-file-size=8M --skip-log-bin --skip-networking \
    "$@" <"$told/statements" >"$told/said" 2>&1
code=$?
for rows in "$told"/*.rows; do
    [ -e "$rows" ] && echo "$(basename "$rows" .rows): $(wc -l <"$rows") rows, checksum $(cksum <"$rows")"
done
grep -E 'ERROR|FATAL|orrupt|got signal' "$told/said" | cut -c1-300
echo "the server ended with $code"
exit "$code"
