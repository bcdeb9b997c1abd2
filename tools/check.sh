#!/usr/bin/env bash
# Every static check. Runs all of them and fails at the end, so that one call shows everything.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
step() {
    local name=$1
    shift
    echo "check: $name"
    "$@" || failed+=("$name")
}

c_files() {
    git ls-files 'engine/*.c' 'engine/*.h' 'faults/*.c' 'faults/*.h' \
        'disk/*.c' 'disk/*.h' 'explorer/*.c' 'explorer/*.h' 'tests/*.c' 'tests/*.h'
}

format() {
    c_files | xargs clang-format --dry-run --Werror
}

# readdir() is only unsafe on one stream shared by threads; real.c's list of calls is a macro on purpose;
# cppcheck's model of mmap() does not know -1, the descriptor of an anonymous mapping; across files it takes a
# pointer that is only written through for one that is read. What it said of a file holds until the file or what
# it includes changes.
analyse() {
    mkdir -p build/cppcheck
    cppcheck --cppcheck-build-dir=build/cppcheck --quiet --std=c11 --inline-suppr --enable=warning,performance,portability \
        --error-exitcode=1 --suppress=missingIncludeSystem --library=posix \
        --suppress=readdirCalled --suppress=unknownMacro:faults/real.c --suppress=invalidFunctionArg --suppress=ctuuninitvar \
        -j 2 -I engine engine faults disk explorer
}

imports() {
    local said
    said=$(.venv/bin/lint-imports --no-logo --no-cache) || { echo "$said"; return 1; }
}

step "clang-format" format
step "cppcheck" analyse
step "form of C" .venv/bin/python tools/c_form.py
step "layering" .venv/bin/python tools/layering.py
step "imports" imports
step "ruff" .venv/bin/python -m ruff check harness tests tools
step "ruff format" .venv/bin/python -m ruff format --check harness tests tools
step "mypy" .venv/bin/python -m mypy

if ((${#failed[@]})); then
    echo "check: failed: ${failed[*]}" >&2
    exit 1
fi
echo "check: clean"
