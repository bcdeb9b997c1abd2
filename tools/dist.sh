#!/usr/bin/env bash
# The files of a release in a folder. The libraries that the programs need travel in the wheel, whose tag then says which
# C library is old enough (manylinux). Needs the extra `package`.
#     tools/dist.sh FOLDER          the sdist, and the wheel for this machine, built from it
#     tools/dist.sh FOLDER arm64    the wheel for arm64, cross-compiled
set -euo pipefail
folder=$(realpath -m "$1")
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT

built=() libraries=()
if [ "${2-}" = arm64 ]; then
    tools/arm64.sh
    root=$PWD/build/arm64/root
    export CMAKE_TOOLCHAIN_FILE=$PWD/tools/arm64.cmake _PYTHON_HOST_PLATFORM=linux-aarch64
    built=(--wheel)
    libraries=(--ldpaths "$root/usr/lib/aarch64-linux-gnu:$root/lib/aarch64-linux-gnu:$root/usr/lib")
fi
"$python" -m build --no-isolation "${built[@]}" --outdir "$raw" >"$raw/log" 2>&1 || { tail -50 "$raw/log" >&2; exit 1; }
mkdir -p "$folder"
PATH="$PWD/.venv/bin:$PATH" "$python" -m auditwheel repair "${libraries[@]}" --wheel-dir "$folder" "$raw"/*.whl \
    >"$raw/log" 2>&1 || { cat "$raw/log" >&2; exit 1; }
find "$raw" -name '*.tar.gz' -exec mv -t "$folder" {} +
