# Everything a person or a machine does with this checkout. Each target sets up what it needs, once, in .venv;
# nothing but Python 3.11 or newer, make and a package registry has to be there.
#
#   make demo PYTHON=python3.12     choose the interpreter for a new .venv
#   make test ARGS=tests/ledger     give pytest more arguments
#   make test-browser CHROMIUM=/opt/chrome/chrome   choose the browser

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet
READY  := $(VENV)/.ready
AGENTDOJO := .venv-agentdojo
NODE   := $(CURDIR)/$(BIN)/node
ifeq ($(origin CHROMIUM),undefined)
CHROMIUM := $(firstword $(foreach name,chromium chromium-browser google-chrome,$(shell command -v $(name) 2>/dev/null)))
endif
NO_CHROMIUM := make: there is no Chromium (Debian: apt-get install chromium; elsewhere: CHROMIUM=/path/to/it)
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

# Tests start some thousand processes. Without compiled modules, each of them would compile Aver anew.
unexport PYTHONDONTWRITEBYTECODE
export CHROMIUM

.DEFAULT_GOAL := help
.PHONY: look-for-chromium need-chromium help demo test test-more test-all test-clients test-browser web lint bench bench-agentdojo bench-tools fuzz clean

help:
	@echo "make demo          everything end to end; what it makes stays in .demo until the next time"
	@echo "make test          the essential tests, in about five minutes; needs no npm"
	@echo "make test-more     frameworks, PostgreSQL and other faults, kill storms, the README in a clean copy"
	@echo "make test-all      all tests, the long ones and large samples included; without Chromium, none of a browser"
	@echo "make test-clients  those with real coding agents, from npm, which are kept for the next time"
	@echo "make test-browser  the Explorer's page in a real Chromium (Debian: apt-get install chromium)"
	@echo "make web           types, lints, tests and builds the Explorer's page; only this needs npm"
	@echo "make lint          ruff (rules and format) and mypy"
	@echo "make bench         how fast, as ratios to the bare primitives"
	@echo "make bench-agentdojo  how calls of a hijacked agent fare: AgentDojo through the gateway"
	@echo "make bench-tools   how tools of public MCP servers, from npm, are classified"
	@echo "make fuzz          hostile input to every parser and verb; ARGS='--target bundle --runs 5000'"
	@echo "make clean         remove .venv and what tools have left behind"

demo: $(READY)-core
	@rm -rf .demo
	@$(BIN)/aver demo --keep .demo

test: $(READY)-test
	@$(PYTEST) -m "not more and not long" $(ARGS)

test-more: $(READY)-more $(READY)-web
	@$(PYTEST) -m "more and not long" $(ARGS)

# Without Chromium, the tests of a browser are left out by their mark. That is said at once, and again at the end.
test-all: look-for-chromium $(READY)-more $(READY)-web $(READY)-browser
	@$(PYTEST) --hypothesis-profile=full $(if $(CHROMIUM),,-m "not browser") $(ARGS); tested=$$?; \
	  $(if $(CHROMIUM),,$(MAKE) --no-print-directory look-for-chromium;) exit $$tested

look-for-chromium:
	@$(if $(CHROMIUM),:,echo "$(NO_CHROMIUM); left out: $$(cd tests && grep -l '^pytestmark.*browser' */test_*.py | xargs)" >&2)

need-chromium:
	@$(if $(CHROMIUM),:,echo "$(NO_CHROMIUM)" >&2; exit 1)

test-clients: $(READY)-test
	@$(BIN)/python -m pytest -m clients tests/clients

test-browser: need-chromium $(READY)-browser $(READY)-web
	@$(BIN)/python -m pytest -m browser tests/explorer tests/sessions $(ARGS)

# The built page is committed, so that installing Aver needs neither Node.js nor npm.
web: $(READY)-web
	@cd web && $(NODE) node_modules/typescript/bin/tsc --noEmit
	@$(BIN)/python -m pytest tests/house/test_page_source.py
	@cd web && $(NODE) build.ts
	@$(NODE) --test "web/tests/*.test.mjs"

lint: $(READY)-lint
	@$(BIN)/ruff check --output-format concise .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(READY)-test
	@$(BIN)/python bench/run.py

bench-agentdojo: $(AGENTDOJO)/.ready
	@$(AGENTDOJO)/bin/python bench/agentdojo/run.py $(ARGS)

bench-tools: $(READY)-test
	@$(BIN)/python bench/mcp_tools/run.py $(ARGS)

fuzz: $(READY)-fuzz
	@$(BIN)/python fuzz/run.py $(ARGS)

clean:
	rm -rf $(VENV) $(AGENTDOJO) .demo build dist web/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per set of extras, made anew whenever pyproject.toml changes.
# The demo ends with the command that opens the Explorer, so its environment has the server.
$(READY)-core: pyproject.toml | $(BIN)/python
	@$(PIP) install --editable ".[explorer]"
	@touch $@

$(READY)-test: pyproject.toml | $(BIN)/python
	@$(PIP) install --editable ".[test,peer]"
	@touch $@

# The frameworks that Aver has adapters for are large, and only these tests need them.
$(READY)-more: pyproject.toml | $(BIN)/python
	@$(PIP) install --editable ".[test,peer,frameworks]"
	@touch $@ $(READY)-test

$(READY)-browser: pyproject.toml | $(BIN)/python
	@$(PIP) install --editable ".[test,peer,browser]"
	@touch $@ $(READY)-test

# npm trusts the certificates that this machine trusts, as pip does: a company's own registry may have its own.
$(READY)-web: pyproject.toml $(wildcard web/package-lock.json) $(READY)-test
	@cd web && NODE_OPTIONS=--use-system-ca $(CURDIR)/$(BIN)/npm install --no-save --no-audit --no-fund --silent
	@touch $@

$(READY)-fuzz: pyproject.toml | $(BIN)/python
	@$(PIP) install --editable ".[test,peer,fuzz]" --only-binary atheris || $(PIP) install --editable ".[test,peer]"
	@touch $@ $(READY)-test

# AgentDojo brings the clients of many models, so it gets an environment of its own.
$(AGENTDOJO)/.ready: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m venv $(AGENTDOJO)
	@$(AGENTDOJO)/bin/python -m pip install --quiet --editable ".[agentdojo]"
	@touch $@

$(READY)-lint: pyproject.toml | $(BIN)/python
	@$(PIP) install --editable ".[lint]"
	@touch $@

# A half-made environment is worse than none: it would look ready the next time.
$(BIN)/python:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "make: there is no $(PYTHON); choose an interpreter: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: Aver needs Python 3.11 or newer, and $(PYTHON) is $$("$(PYTHON)" -V 2>&1);" \
	       "choose another: make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "make: $(PYTHON) cannot make a virtual environment; install its venv and ensurepip modules" >&2; exit 1; }
	@$(PIP) install --upgrade pip  # The pip of Python 3.11 finds no versions that fit all frameworks together.
