# Everything runs in a virtual environment that the first target needing it creates; only Python >= 3.11 and make are needed.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test test-all test-rounding test-order test-lowest test-wheel test-mutants coverage check format figures docs clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.installed       ## the main job: samplers compared in a particle filter, table and figures in results/demo
	@rm -f results/demo/study.sqlite
	$(BIN)/herdfilter compare ungm --filters bootstrap,herded-kh,herded-chg,auto --particles 100 --runs 12 --out results/demo

# A file goes to one worker, so that what it compiles and prepares is not done twice. Assertions stay as they are written: to
# rewrite all of them, in every worker, takes as long as a hundred tests. What has failed is run again, with the values it saw.
PYTEST := $(BIN)/pytest -n auto --dist loadfile --assert=plain

test: $(VENV)/.installed-dev   ## the tests of the product: mathematics, filters, contract, errors, one study, the short pages
	$(PYTEST) -m "not slow" || { $(BIN)/pytest --last-failed --last-failed-no-failures none; exit 1; }

test-all: $(VENV)/.installed-all  ## all tests: also those of scripts and surroundings, which are marked slow
	$(PYTEST) || { $(BIN)/pytest --last-failed --last-failed-no-failures none; exit 1; }

# All tests as another processor would round them, and in another order; both are fixed by SEED.
SEED ?= 1

test-rounding: $(VENV)/.installed-dev  ## all tests with results moved in the last bit: make test-rounding SEED=3
	HERDFILTER_ROUNDING=$(SEED) PYTHONPATH=$(CURDIR)/tests/rounding $(PYTEST) -p rounding

test-order: $(VENV)/.installed-dev     ## all tests in random order: make test-order SEED=3
	$(PYTEST) --random-order-bucket=global --random-order-seed=$(SEED)

check: $(VENV)/.installed-dev  ## formatting, lint, spelling, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

figures: $(VENV)/.installed-bench  ## every table of the pages that is older than the code it measures, then the pages; PARTS= for some
	$(BIN)/python benchmarks/make_figures.py $(PARTS)

docs: $(VENV)/.installed-dev   ## the documentation as HTML in docs/_build; the gallery is run, links and widths are checked
	@$(call told,Running the gallery and building the pages,$(BIN)/sphinx-build -W -q -j 2 docs docs/_build)
	@$(call told,Checking links and widths,$(BIN)/python docs/check_site.py docs/_build)

# $(call told,TEXT,COMMAND): a command that says nothing for long, with a dot every two seconds to tell that it works.
define told
(printf '%s ' '$(1)'; (while kill -0 $$$$ 2>/dev/null; do sleep 2; printf .; done) & dots=$$!; \
	{ $(2); }; failed=$$?; kill $$dots; echo; exit $$failed)
endef

# Bytecode is compiled after the installation, on all cores and without the tests that packages bring along: that takes half
# as long as compiling while installing.
define install
$(BIN)/pip install --quiet --no-compile --editable '.[$(1)]' && \
	{ $(BIN)/python -m compileall -q -j 0 -x '/(tests?|pip|setuptools|fontTools|cuda)/' $(VENV)/lib herdfilter >/dev/null 2>&1 || true; }
endef

# The library particles asks for a numpy below 2 and runs with later ones. Without its dependencies, which the extra `test` brings
# along, it does not hold the environment back: so it stands in no extra that is installed here.
define install-particles
{ $(BIN)/pip install --quiet --no-compile --no-deps 'particles>=0.4' || echo "particles not installed: what needs it is left out"; }
endef

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("herdfilter needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@$(call told,Making the virtual environment $(VENV),$(PYTHON) -m venv $(VENV))

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@$(call told,Installing herdfilter,$(call install,equations))
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@$(call told,Installing herdfilter and the tools of its developers,$(call install,dev) && $(install-particles))
	@touch $@ $(VENV)/.installed

# statsmodels is large, and only tests marked slow need it: `make test` does without.
$(VENV)/.installed-all: $(VENV)/.installed-dev
	@$(call told,Installing statsmodels and pykalman,$(BIN)/pip install --quiet --no-compile 'statsmodels>=0.14' 'pykalman>=0.11.1') || \
		echo "statsmodels and pykalman not installed: what needs them is left out"
	@touch $@

# The peers need a C compiler; where they do not install, the studies run without them and say so.
$(VENV)/.installed-bench: $(VENV)/.installed-dev
	@$(call told,Installing the peers of the benchmarks,$(call install,bench)) || echo "peers not installed: the benchmarks leave them out"
	@touch $@

# The test suite where everything that is installed has the lowest version that pyproject.toml promises. Its compiled loops are kept
# apart, because each version of numba throws away those of the other.
LOWEST := $(abspath $(VENV)-lowest)

test-lowest:
	@mkdir -p $(LOWEST)
	@$(PYTHON) .ci/lowest.py > $(LOWEST)/constraints.txt
	@PIP_CONSTRAINT=$(LOWEST)/constraints.txt NUMBA_CACHE_DIR=$(LOWEST)/compiled $(MAKE) --no-print-directory test VENV=$(VENV)-lowest

# The test suite on the built wheel, as a user installs it: nothing of the checkout but the tests is on the path.
WHEEL := $(VENV)-wheel

test-wheel:                    ## the test suite on the built wheel
	@rm -rf $(WHEEL) && $(PYTHON) -m venv $(WHEEL)
	@$(call told,Building and installing the wheel,$(WHEEL)/bin/pip wheel --quiet --no-deps --wheel-dir $(WHEEL) . && \
		$(WHEEL)/bin/pip install --quiet "$$(ls $(CURDIR)/$(WHEEL)/*.whl)[test]")
	@$(WHEEL)/bin/python -P -c "import herdfilter, sys; sys.exit(not herdfilter.__file__.startswith(sys.prefix))"
	$(WHEEL)/bin/pytest -n auto --dist loadfile --assert=plain

# Compiled loops are left out: their lines run where no one can count them.
coverage: $(VENV)/.installed-dev  ## which branches of filters, association and statistics the tests take
	$(BIN)/pip install --quiet pytest-cov  # in no extra: numba loads coverage wherever it is
	$(PYTEST) tests -p no:cacheprovider --cov --cov-branch --cov-report=term:skip-covered

# COUNT small changes of the program, drawn by SEED, each against the tests that run the changed line; about an hour for 500.
test-mutants: $(VENV)/.installed-dev  ## what the tests do not see
	$(BIN)/pip install --quiet pytest-cov
	$(BIN)/python tests/mutants.py --seed $(or $(SEED),0) --count $(or $(COUNT),500)

clean:                         ## what was made, compiled loops included
	rm -rf $(VENV) $(VENV)-* results docs/_build docs/examples
	find herdfilter -name '*.nb[ci]' -delete
