# make run   creates .venv, installs, runs the main job on the default model
# make test  the same with the test extra, then the tests
# make lint  style and types

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
	&& echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: run test lint clean

run: $(VENV)/installed
	$(BIN)/python run.py $(ARGS)

test: $(VENV)/installed-test
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build draftmesh.egg-info

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed: make PYTHON=<path>"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing into $(VENV): a few minutes the first time"
	$(INSTALL) --editable .
	@touch $@

$(VENV)/installed-test: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing into $(VENV), with the test extra"
	$(INSTALL) --editable '.[test]'
	@touch $(VENV)/installed $@
