# Two commands: `make verify` proves and cross-checks every claim; `make test` passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check -c constraints.txt
INSTALL := $(BIN)/python $(PIP_INSTALL)
SETUP := pyproject.toml setup.py constraints.txt CITATION.cff

.PHONY: verify test deep bench pictures law-pages layer-page lint clean

verify: $(VENV)/.ready
	$(BIN)/isoform verify

test: $(VENV)/.ready-test
	$(BIN)/pytest -n 2

deep: $(VENV)/.ready-test
	$(BIN)/pytest -n 2 --deep

bench: $(BENCH)/.ready
	$(BENCH)/bin/python benchmarks/proofs.py
	$(BENCH)/bin/python -m benchmarks.conformance
	$(BENCH)/bin/python -m benchmarks.decoding
	$(BENCH)/bin/python -m benchmarks.speed

pictures: $(VENV)/.ready-pictures
	$(BIN)/python -m benchmarks.pictures

law-pages: $(VENV)/.ready-pictures
	$(BIN)/python -m benchmarks.law_pages

layer-page: $(VENV)/.ready
	$(BIN)/python -m benchmarks.layers

# Types are checked where the package is installed for real: mypy cannot follow an editable install.
lint: $(VENV)/.ready-lint
	$(BIN)/ruff check .
	rm -rf build
	$(INSTALL) --no-deps --target build/types .
	cd build/types && ../../$(BIN)/mypy --config-file ../../pyproject.toml -p isoform

$(VENV)/bin/python $(BENCH)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "isoform needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(@:/bin/python=)

$(VENV)/.ready: $(SETUP) | $(VENV)/bin/python
	$(INSTALL) -e .
	touch $@

$(VENV)/.ready-test: $(VENV)/.ready
	$(INSTALL) -e '.[test]'
	touch $@

$(VENV)/.ready-lint: $(VENV)/.ready
	$(INSTALL) -e '.[lint]'
	touch $@

$(VENV)/.ready-pictures: $(VENV)/.ready benchmarks/peers.txt
	$(INSTALL) -c benchmarks/peers.txt -e '.[pictures]'
	touch $@

# Peers live in a place of their own. torchscale's retention needs nothing of what torchscale asks for; fast-transformers is compiled,
# for minutes. Without them the report says so.
$(BENCH)/.ready: $(SETUP) benchmarks/peers.txt | $(BENCH)/bin/python
	$(BENCH)/bin/python $(PIP_INSTALL) -c benchmarks/peers.txt -e '.[bench]'
	-$(BENCH)/bin/python $(PIP_INSTALL) -c benchmarks/peers.txt --no-deps torchscale
	-$(BENCH)/bin/python $(PIP_INSTALL) -c benchmarks/peers.txt --no-deps --no-build-isolation pytorch-fast-transformers
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) build dist *.egg-info
