#!/usr/bin/env bash
# Debian's packages for arm64 that the programs are linked with, unpacked in build/arm64/root. Nothing is installed, and
# apt's own state stays as it is. Needs Debian's gcc-aarch64-linux-gnu.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/build/arm64/root

command -v aarch64-linux-gnu-gcc >/dev/null || {
    echo "arm64: the cross compiler is missing: apt-get install gcc-aarch64-linux-gnu" >&2
    exit 1
}
[ -e "$root/made" ] && exit 0
apt=$PWD/build/arm64/apt
rm -rf "$root"
mkdir -p "$root" "$apt"/state/lists/partial "$apt"/cache/archives/partial
: >"$apt/state/status"
own=(-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=false
     -o APT::Sandbox::User=root -o Debug::NoLocking=1
     -o Dir::State="$apt/state" -o Dir::State::status="$apt/state/status" -o Dir::Cache="$apt/cache")
{
    apt-get "${own[@]}" update -qq
    apt-get "${own[@]}" install -qq -y --download-only libc6-dev libfiu-dev libfuse3-dev libisal-dev libjansson-dev liblz4-dev \
        libsqlite3-dev libxxhash-dev libzstd-dev
} >"$apt/log" 2>&1 || { tail -20 "$apt/log" >&2; exit 1; }
for package in "$apt"/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$root"
done
touch "$root/made"
