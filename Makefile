# Two commands on a fresh machine: `make demo` and `make test`. Needs python3 (3.11 or newer) with venv, make, and a
# package index. Everything goes into .tools, .venv and .bothways here; the system's Python is not touched.

PYTHON ?= python3
BIN := .venv/bin
UV := .tools/bin/uv
RUN := PATH="$(CURDIR)/$(BIN):$$PATH"

.PHONY: demo test bench lint unit long chaos coverage compose-test install lock clean

demo: .venv/ready
	@$(BIN)/bothways demo

test: lint unit

# Minutes, alone on the machine; see docs/benchmarks.md.
bench: .venv/ready
	@$(BIN)/python -m ops.benchmarks --json report/benchmarks.json

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests start Python hundreds of times: where it is told to keep no bytecode, each start would compile everything again.
unit long chaos: export PYTHONDONTWRITEBYTECODE =

unit: .venv/ready
	$(BIN)/pytest -n 3 --dist loadfile

# Everything, with what takes long: quotas over twenty windows, hosts that come and go. Half an hour.
long: .venv/ready
	BOTHWAYS_LONG=1 BOTHWAYS_QUOTA_WINDOWS=20 $(BIN)/pytest -n 2 --dist loadfile

# Kills for minutes: 20,000 jobs while everything dies again and again. JOBS and SEED may be given.
chaos: .venv/ready
	BOTHWAYS_CHAOS_JOBS=$(or $(JOBS),20000) BOTHWAYS_CHAOS_SEED=$(or $(SEED),1) $(BIN)/pytest -q tests/acceptance/test_chaos.py

# Whether 95 % intervals hold the truth 95 times out of 100: 1,000 studies whose truth is known.
coverage: .venv/ready
	BOTHWAYS_COVERAGE_STUDIES=1000 $(BIN)/pytest -v tests/unit/test_coverage.py

# Builds the images and runs the whole system in containers, with Docker or else Podman; takes everything down.
# Where a build reaches the package index by the host's network only: COMPOSE_TEST_BUILD_FLAGS="--network host".
compose-test: .venv/ready
	BOTHWAYS_CONTAINERS=1 $(BIN)/pytest -v -x --durations=5 tests/containers

install: .venv/ready

$(UV): requirements-uv.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Bothways needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@echo "preparing .tools (uv) ..."
	@$(PYTHON) -m venv .tools
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	@touch $@

# A marker of its own: the folder's time says nothing about what is in it.
.venv/ready: $(UV) requirements.lock pyproject.toml
	@echo "preparing .venv (about 1 GB on disk; the first time downloads it) ..."
	@test -x $(BIN)/python || $(UV) venv --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" .venv
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

# Rewrites both locks from what pyproject.toml asks for; run it after changing a dependency, or with UPGRADE=--upgrade.
lock: $(UV)
	$(UV) pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 --all-extras --group dev \
		$(UPGRADE) pyproject.toml --output-file requirements.lock

clean:
	rm -rf .venv .tools .bothways report .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
