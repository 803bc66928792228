# Every target first makes the environment it needs in .venv: a fresh clone needs Python 3.11 or later and nothing else.
PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Threads of LightGBM that wait must sleep, not spin: on cores that others use too, spinning costs many times the work.
demo test: export OMP_WAIT_POLICY := passive

.PHONY: help demo test lint bench docs browser clean clean-cache

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.run ## train, compare and report on made-up data
	$(BIN)/python examples/demo.py

test: lint browser ## everything a change must pass
	$(BIN)/pytest -n 2 --dist worksteal

lint: .venv/.dev ## style, types and import layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy benchmarks
	$(BIN)/lint-imports

browser: # for the tests of the report; without one they are skipped
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	     && apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; } \
	|| echo "chromium and chromedriver are missing: tests in a browser are skipped"

bench: .venv/.dev ## speed beside that of other tools
	set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

docs: .venv/.dev ## build the site into site/
	$(BIN)/mkdocs build --strict --quiet

clean: clean-cache ## remove everything that can be made again
	rm -rf .venv build dist site demo *.egg-info .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

clean-cache: ## forget compiled kernels
	find gradrank \( -name '*.nbi' -o -name '*.nbc' \) -delete

.venv/bin/python:
	$(PYTHON) -m venv .venv

# What running needs; quick, for the demo.
.venv/.run: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[report]'
	touch $@

# What developing needs.
.venv/.dev: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	touch $@ .venv/.run
