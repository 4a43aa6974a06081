# Everything runs in a virtual environment that the first target needing it creates; only Python >= 3.11 and make are needed.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test check format bench docs clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.installed       ## the main job: samplers compared in a particle filter, table and figures in results/demo
	rm -f results/demo/study.sqlite
	$(BIN)/herdfilter compare ungm --out results/demo

test: $(VENV)/.installed-dev   ## the test suite
	$(BIN)/pytest -n auto

check: $(VENV)/.installed-dev  ## formatting, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.installed-bench  ## the studies behind the published figures; long
	for study in benchmarks/bench_*.py; do $(BIN)/python $$study || exit 1; done

docs: $(VENV)/.installed-dev   ## the documentation as HTML in docs/_build
	$(BIN)/sphinx-build -W -q docs docs/_build

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("herdfilter needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/.installed

# The peers need a C compiler; where they do not install, the studies run without them and say so.
$(VENV)/.installed-bench: $(VENV)/.installed-dev
	$(BIN)/pip install --quiet --editable '.[bench]' || echo "peers not installed: benchmarks/bench_peers.py leaves them out"
	touch $@

clean:
	rm -rf $(VENV) results docs/_build
