# Everything runs in a virtual environment that the first target needing it creates; only Python >= 3.11 and make are needed.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test check format bench docs clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.installed       ## the main job: samplers compared in a particle filter, table and figures in results/demo
	@rm -f results/demo/study.sqlite
	$(BIN)/herdfilter compare ungm --filters bootstrap,herded-kh,herded-chg,auto-kh --out results/demo

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
	@$(PYTHON) -c 'import sys; sys.exit("herdfilter needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

# pip says nothing for long; a dot every two seconds tells that it works. What it installs is compiled afterwards, on all
# cores and without the tests that packages bring along: half the time of compiling as it installs.
define install
	@printf '%s ' "$(1)"; (while sleep 2; do printf .; done) & dots=$$!; \
	$(BIN)/pip install --quiet --no-compile --editable '.$(2)' && \
	{ $(BIN)/python -m compileall -q -j 0 -x '/tests?/' $(VENV)/lib herdfilter >/dev/null 2>&1 || true; }; \
	failed=$$?; kill $$dots; echo; exit $$failed
endef

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(call install,Installing herdfilter into $(VENV),[equations])
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(call install,Installing herdfilter and the tools of its developers into $(VENV),[dev])
	@touch $@ $(VENV)/.installed

# The peers need a C compiler; where they do not install, the studies run without them and say so.
$(VENV)/.installed-bench: $(VENV)/.installed-dev
	$(call install,Installing the peers of the benchmarks,[bench]) || echo "peers not installed: the benchmarks leave them out"
	@touch $@

clean:
	rm -rf $(VENV) results docs/_build
