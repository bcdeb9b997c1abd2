#!/usr/bin/env bash
# Everything that a build and a run need: Debian packages, then the Python environment.
#     tools/setup.sh [EXTRA...]      extras of pyproject.toml beside `dev`, or `all` of them
# Does nothing where it has been done. Packages are installed as root or through sudo; otherwise the one
# command to run is printed and the exit code is 1.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(build-essential chromium chromium-driver clang clang-format clang-tidy cmake cppcheck
          fio fiu-utils gcovr libcmocka-dev libclang-rt-14-dev libfiu-dev libisal-dev libjansson-dev liblz4-dev
          libsqlite3-dev libxxhash-dev libzstd-dev llvm mariadb-server-core ninja-build pkg-config python3 python3-venv)
if [ "${*:-}" = all ]; then
    set -- cluster docs frames package store
    packages+=(postgresql)      # what the shared store is tested on
fi

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' \
        || missing+=("$package")
done
if ((${#missing[@]})); then
    command=(apt-get install -y --no-install-recommends "${missing[@]}")
    if [ "$(id -u)" = 0 ]; then
        as_root=(env DEBIAN_FRONTEND=noninteractive)
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
    else
        echo "setup: Debian packages are missing. Run this as root, then call make again:" >&2
        echo "    apt-get update && ${command[*]}" >&2
        exit 1
    fi
    echo "setup: installing ${missing[*]}"
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" "${command[@]}" >/dev/null
fi

# The stamp holds what the environment was made from, and a line for each extra, so that a changed pyproject.toml
# makes it again, and a further extra adds to it.
want=$(sha256sum pyproject.toml | cut -d' ' -f1)
stamp=.venv/.made-from
if [ "$(head -n 1 $stamp 2>/dev/null)" != "$want" ]; then
    echo "setup: making the Python environment in .venv"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
        || { echo "setup: Python 3.11 or newer is needed" >&2; exit 1; }
    python3 -m venv .venv
    .venv/bin/pip install --quiet --disable-pip-version-check --editable '.[dev]'
    echo "$want" > $stamp
fi
for extra in "$@"; do
    grep -qx "$extra" $stamp && continue
    echo "setup: adding what '$extra' needs"
    .venv/bin/pip install --quiet --disable-pip-version-check --editable ".[$extra]"
    echo "$extra" >> $stamp
done
