#!/usr/bin/env bash
# Debian packages, then the Python environment in .venv, in two sizes:
#     tools/setup.sh           what a build and a run need
#     tools/setup.sh all       and what checks, tests, the site and a release need
# Tells what it does, and does nothing where it has been done. Packages are installed as root or through sudo;
# otherwise the one command to run is printed and the exit code is 1.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(build-essential cmake libcmocka-dev libfiu-dev libisal-dev libjansson-dev liblz4-dev libsqlite3-dev
          libxxhash-dev libzstd-dev ninja-build pkg-config python3 python3-venv)
size=${1:-run}
case $size in
run) ;;
all)
    packages+=(btrfs-progs chromium chromium-driver clang clang-format clang-tidy cppcheck e2fsprogs fio fiu-utils
               gcovr libclang-rt-14-dev libfuse3-dev liblmdb0 llvm mariadb-client-core mariadb-server-core
               postgresql xfsprogs)
    ;;
*)
    sed -n '2,4s/^# \?//p' "$0" >&2
    exit 2
    ;;
esac

tell() { echo "setup: $*"; }

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
    tell "reading Debian's lists of packages"
    "${as_root[@]}" apt-get update -qq
    amount=$("${as_root[@]}" "${command[@]}" --print-uris -qq | awk '{n++; s += $3} END {printf "%d, %d MB", n, s / 1e6}')
    tell "installing ${missing[*]} and what they need ($amount to fetch)"
    "${as_root[@]}" "${command[@]}" >/dev/null
    tell "the packages are installed after $SECONDS s"
fi

# The stamp holds what the environment was made from, and a line for the larger size.
want=$(sha256sum pyproject.toml | cut -d' ' -f1)
stamp=.venv/.made-from
install() { .venv/bin/pip install --quiet --disable-pip-version-check --editable "$1"; }
if [ "$(head -n 1 $stamp 2>/dev/null)" != "$want" ]; then
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
        || { echo "setup: Python 3.11 or newer is needed" >&2; exit 1; }
    tell "making the Python environment in .venv"
    python3 -m venv .venv
    install .
    echo "$want" > $stamp
    tell "done after $SECONDS s"
fi
if [ "$size" = all ] && ! grep -qx all $stamp; then
    extras=$(python3 -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"], sep=",")')
    tell "adding the Python packages of tests, site and release ($extras)"
    install ".[$extras]"
    echo all >> $stamp
    tell "done after $SECONDS s"
fi
