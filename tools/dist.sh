#!/usr/bin/env bash
# The files of a release in a folder: the sdist, and the wheel that is built from it. The libraries that the programs
# need travel in the wheel, whose tag then says which C library is old enough (manylinux). Needs the extra `package`.
set -euo pipefail
folder=$(realpath -m "$1")
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT

"$python" -m build --no-isolation --outdir "$raw" >"$raw/log" 2>&1 || { tail -50 "$raw/log" >&2; exit 1; }
mkdir -p "$folder"
PATH="$PWD/.venv/bin:$PATH" "$python" -m auditwheel repair --wheel-dir "$folder" "$raw"/*.whl >"$raw/log" 2>&1 \
    || { cat "$raw/log" >&2; exit 1; }
mv "$raw"/*.tar.gz "$folder"
