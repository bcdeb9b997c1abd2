# Every target does the set-up that it needs; a second call does no work again.
.DEFAULT_GOAL := help
.PHONY: help setup build torture test test-all test-touched test-c test-py asan mutants nightly coverage
.PHONY: check fmt
.PHONY: bench docs finds screenshots site dist dist-arm64 setup-all clean

PRESET := release
PY := .venv/bin/python
# Campaigns and tests start Python again and again: its modules are compiled once.
unexport PYTHONDONTWRITEBYTECODE

help: ## This list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: ## Debian packages and the Python environment: what a build and a run need
	@tools/setup.sh

setup-all: setup ## And what checks, tests, the site and a release need: compilers, browser, servers
	@tools/setup.sh all

build: setup ## The engine and the fault layer, in build/release
	@cmake --preset $(PRESET) >/dev/null
	@cmake --build --preset $(PRESET) -- --quiet

torture: build ## The smoke campaign on the bundled engine: summary and report
	@.venv/bin/tornpage run smoke

test: check test-c test-py ## Static checks, then the tests: C, mostly under sanitizers, Python, end-to-end trials

test-all: test ## And those that are slow and far from the core: wheel, site, recipes, MariaDB, benchmarks, all C under sanitizers
	@$(PY) tools/second_tier.py --all

test-touched: setup-all build asan ## Of those that `make test` leaves out, what this branch touches
	@$(PY) tools/second_tier.py

# Once each: what takes longest without sanitizers, which make it five times as long.
test-c: asan build
	@ctest --preset asan --parallel 2 --label-exclude long
	@ctest --preset $(PRESET) --parallel 2 --label-regex long

# A file's tests stay in one process, which makes once what they share; the long ones come first, the small ones fill up.
# Four processes on two cores: a test waits for programs of its own.
test-py: setup-all build
	@$(PY) -m pytest -n 4 --dist loadscope --no-loadscope-reorder -m "not extended" tests/e2e tests/py

asan: setup-all
	@cmake --preset asan >/dev/null
	@cmake --build --preset asan -- --quiet

mutants: build ## The default campaigns on every planted bug: which do they find? Goes on after an interruption
	@.venv/bin/tornpage mutants --as-shipped --seeds 1

nightly: build ## A million crash states of the clean engine, no alarm; goes on after an interruption
	@.venv/bin/tornpage run million --go-on --out out/million

coverage: setup-all ## Lines of engine/buf and engine/recv that the campaigns alone reach; every other one needs a reason
	@cmake --preset coverage >/dev/null
	@cmake --build --preset coverage -- --quiet
	@$(PY) tools/coverage.py

check: setup-all build ## Formats, linters, types, layering
	@tools/check.sh

fmt: setup-all ## Formats C and Python in place
	@git ls-files '*.c' '*.h' | xargs clang-format -i
	@$(PY) -m ruff check --quiet --fix harness tests tools
	@$(PY) -m ruff format --quiet harness tests tools

bench: asan build ## Speed, side by side: crashes, kills, preload, loads, other targets, time to find bugs, published figures
	@.venv/bin/tornpage bench speed
	@.venv/bin/tornpage bench finds
	@.venv/bin/tornpage bench seeds

docs: setup-all ## What is written from the sources: docs/CAMPAIGNS.md, the layers in docs/ARCHITECTURE.md
	@$(PY) tools/campaigns_page.py
	@$(PY) tools/layers_page.py

finds: setup-all build ## Runs workloads/finds on the engines that are here, or FINDS="NAME ..."; TORNPAGE_TMP on a disk: docs/FINDS.md
	@$(PY) tools/finds_page.py $(FINDS)

screenshots: setup-all build ## The pictures of the report in docs/, at three widths
	@$(PY) tools/screenshots.py

site: setup-all build ## The documentation as a site, in build/site/html, with the report of a control run
	@$(PY) tools/site_pages.py

dist: setup-all ## The files of a release, in build/dist: sdist and wheel
	@tools/dist.sh build/dist

dist-arm64: setup-all ## The wheel for arm64, cross-compiled, in build/dist
	@tools/dist.sh build/dist arm64

clean: ## Removes what was built or run
	rm -rf build out .venv
