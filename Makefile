# Two commands: `make verify` proves and cross-checks every claim; `make test` passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
SETUP := pyproject.toml setup.py constraints.txt

.PHONY: verify test deep bench lint clean

verify: $(VENV)/.ready
	$(BIN)/isoform verify

test: $(VENV)/.ready-test
	$(BIN)/pytest -n 2

deep: $(VENV)/.ready-test
	$(BIN)/pytest -n 2 --deep

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/proofs.py

# Types are checked where the package is installed for real: mypy cannot follow an editable install.
lint: $(VENV)/.ready-lint
	$(BIN)/ruff check .
	rm -rf build
	$(INSTALL) --no-deps --target build/types .
	cd build/types && ../../$(BIN)/mypy --config-file ../../pyproject.toml -p isoform

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "isoform needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: $(SETUP) | $(VENV)/bin/python
	$(INSTALL) -e .
	touch $@

$(VENV)/.ready-test: $(VENV)/.ready
	$(INSTALL) -e '.[test]'
	touch $@

$(VENV)/.ready-lint: $(VENV)/.ready
	$(INSTALL) -e '.[lint]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
