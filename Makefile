# Every target first makes the environment it needs in .venv: a fresh clone needs Python 3.11 or later and nothing else.
PYTHON ?= python3
# The oldest versions of the dependencies are older than Python 3.12.
OLDEST_PYTHON ?= python3.11
# Exact versions of all dependencies; "make test CONSTRAINTS=" takes the newest that there are.
CONSTRAINTS ?= constraints.txt
BIN := .venv/bin
OLDEST := .venv-oldest/bin
RELEASE := .venv-release/bin
PIP = -m pip install --quiet --disable-pip-version-check
INSTALL = $(BIN)/python $(PIP) $(addprefix -c ,$(CONSTRAINTS))
# One more than cores: tests that kill, wait for one another's processes or for a browser leave a core idle.
PYTEST := pytest -n 3 --dist worksteal
# Where kernels and scorers are tested.
CHECKED := $(addprefix tests/unit/,combine data/formats learners measures models objectives optimality test_ranking.py) \
  tests/contracts/test_measures.py tests/contracts/test_objectives.py tests/contracts/test_rankers.py tests/reference tests/fuzz/test_models.py

# Threads of LightGBM that wait must sleep, not spin: on cores that others use too, spinning costs many times the work.
demo test test-oldest test-checked coverage fuzz: export OMP_WAIT_POLICY := passive

.PHONY: help demo test test-oldest test-checked fuzz coverage lint bench docs constraints package notices sbom audit browser java clean clean-cache

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.run ## train, compare and report on made-up data
	$(BIN)/python examples/demo.py

test: lint browser java ## everything a change must pass
	$(BIN)/$(PYTEST)

test-oldest: .venv-oldest/.test browser java ## all tests with the oldest dependencies that are allowed
	$(OLDEST)/$(PYTEST)

# Kernels compiled with checks have a cache of their own.
test-checked: .venv/.dev ## all tests of kernels and scorers with a check of every index, in about 20 minutes
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.numba-checked $(BIN)/$(PYTEST) -W ignore::RuntimeWarning $(CHECKED)

MINUTES ?= 10
fuzz: .venv/.dev ## changed inputs for MINUTES=10; those that make trouble are kept in .fuzz/
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) --processes 2

coverage: .venv/.dev browser java ## which lines the tests run, into htmlcov/; kernels count where tests run them without Numba
	$(BIN)/$(PYTEST) --cov --cov-report=term --cov-report=html

lint: .venv/.dev ## style, types and import layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy benchmarks
	$(BIN)/lint-imports

browser: # for the tests of the report; without one they are skipped
	@{ command -v chromium || command -v google-chrome; } >/dev/null && command -v chromedriver >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	     && apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; } \
	|| echo "chromium and chromedriver are missing: tests in a browser are skipped"

java: # for the tests on Spark; without it they are skipped
	@command -v java >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	     && apt-get update -qq && apt-get install -y -qq default-jre-headless >/dev/null; } \
	|| echo "java is missing: tests on Spark are skipped"

bench: .venv/.dev ## speed beside that of other tools
	set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

constraints: | .venv/bin/python ## take the newest versions of all dependencies into constraints.txt
	$(BIN)/python .ci/constraints.py > constraints.new
	mv constraints.new constraints.txt

package: .venv-release/.tools ## build sdist and wheel into dist/, and try the wheel in clean environments, base and each extra
	$(RELEASE)/python .ci/package.py dist $(EXTRAS)

notices: .venv/.dev ## the licences of what gradrank needs, into docs/third-party.md
	$(BIN)/python docs/make_notices.py

# Of what users install, not of what developers do.
sbom: .venv-release/.tools .venv-release/.shipped ## a CycloneDX list of what gradrank[all] installs, into dist/sbom.json
	mkdir -p dist
	$(RELEASE)/cyclonedx-py environment --pyproject pyproject.toml --of JSON -o dist/sbom.json .venv-shipped/bin/python

audit: .venv-release/.tools .venv-release/.shipped ## known vulnerabilities of what gradrank[all] installs
	$(RELEASE)/python .ci/audit.py $(RELEASE)/pip-audit .venv-shipped/lib/python3*/site-packages

docs: .venv/.dev ## build the site into site/
	$(BIN)/mkdocs build --strict --quiet

clean: clean-cache ## remove everything that can be made again
	rm -rf .venv .venv-oldest .venv-release .venv-shipped .numba-checked .fuzz build dist site demo htmlcov *.egg-info .coverage .coverage.* .hypothesis .pytest_cache \
	  .mypy_cache .ruff_cache .import_linter_cache constraints.new

clean-cache: ## forget compiled kernels
	find gradrank \( -name '*.nbi' -o -name '*.nbc' \) -delete

.venv/bin/python:
	$(PYTHON) -m venv .venv

# What running needs; quick, for the demo.
.venv/.run: pyproject.toml $(CONSTRAINTS) | .venv/bin/python
	$(INSTALL) -e '.[report]'
	touch $@

# What developing needs.
.venv/.dev: pyproject.toml $(CONSTRAINTS) | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	touch $@ .venv/.run

# What the tests need, as old as pyproject.toml allows.
.venv-oldest/.test: pyproject.toml constraints-oldest.txt
	$(OLDEST_PYTHON) -m venv .venv-oldest
	$(OLDEST)/python $(PIP) -c constraints-oldest.txt -e '.[test]'
	touch $@

# Tools for releases, apart from what is developed with.
.venv-release/.tools:
	$(PYTHON) -m venv .venv-release
	$(RELEASE)/python $(PIP) build cyclonedx-bom pip-audit
	touch $@

# What users get.
.venv-release/.shipped: pyproject.toml $(CONSTRAINTS) | .venv-release/.tools
	$(PYTHON) -m venv .venv-shipped
	.venv-shipped/bin/python $(PIP) $(addprefix -c ,$(CONSTRAINTS)) '.[all]'
	touch $@
