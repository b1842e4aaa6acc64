# One verb each. Every environment is made when it is first needed, from pyproject.toml
# alone: a machine needs Python 3.11 or later and make.
PYTHON ?= python3
ENVS := .venvs
JOBS ?= 2
# Tests run in JOBS processes, so that each of them needs one thread: with two of OpenMP's
# those of PyTorch take 14 % more time.
ALONE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: demo demo-all test test-compiled test-gpu test-oldest test-pythons version versions dist lint format bench figures picture wild adoption docs browser screenshot gallery clean

demo: $(ENVS)/demo/made
	@$(ENVS)/demo/bin/python -m examples

# One definition in five frameworks, which the environment of the tests has.
demo-all: $(ENVS)/test/made
	@$(ENVS)/test/bin/python -m examples --all

test: $(ENVS)/test/made browser
	$(ALONE) $(ENVS)/test/bin/python -m pytest -n $(JOBS) --dist loadfile \
	  --no-loadscope-reorder $(ARGS)

# Kernels on a GPU, in the environment that this is started in: it needs PyTorch and JAX
# for CUDA, and jax-triton. Each has a process of its own: JAX has crashed where PyTorch's
# libraries for CUDA were loaded before. (No doctests of modules: their environment is
# another.)
ON_GPU = python3 -m pytest -m gpu -o addopts=-ra

test-gpu:
	$(ON_GPU) tests/frameworks/torch/test_cuda.py $(ARGS)
	XLA_PYTHON_CLIENT_PREALLOCATE=false $(ON_GPU) tests/frameworks/jax/test_cuda.py $(ARGS)

# The engine's own tests, all of them, on the oldest NumPy and SciPy that it supports
# (a minute and a half on one core).
ENGINE := tests/core tests/rules tests/operations tests/optimizers

test-oldest: $(ENVS)/oldest/made
	$(ALONE) $(ENVS)/oldest/bin/python -m pytest -q -n $(JOBS) --dist loadfile $(ENGINE) $(ARGS)

# The same with those modules compiled that are compiled in wheels for a platform, with what
# traces their rules, and the frameworks, whose compilers follow calls into Python alone.
COMPILED = $(abspath $(ENVS)/compiled)

test-compiled: $(ENVS)/test/made $(ENVS)/compiled/made
	$(ALONE) GRADSMITH_COMPILE=1 PYTHONPATH=$(COMPILED) $(ENVS)/test/bin/python -m pytest \
	  -q -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ENGINE) tests/program \
	  tests/frameworks tests/tools/memory --ignore tests/program/kernels $(ARGS)

# The same on each Python that is installed, from 3.11 on, with the newest NumPy it has.
PYTHONS := python3.11 python3.12 python3.13 python3.14

test-pythons:
	$(PYTHON) -m tests.release.pythons --pythons "$(PYTHONS)" -n $(JOBS) --dist loadfile \
		$(or $(TESTS),$(ENGINE)) $(ARGS)

# The table of docs/versions.md.
versions: $(ENVS)/test/made
	$(ENVS)/test/bin/python -m tests.release.versions

version:
	@sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml

# Wheel and sdist in dist/, installed into an empty environment and tried there.
dist: $(ENVS)/release/made
	$(ENVS)/release/bin/python -m tests.release.dist

lint: $(ENVS)/lint/made
	$(ENVS)/lint/bin/ruff format --check .
	$(ENVS)/lint/bin/ruff check .
	$(ENVS)/lint/bin/pyright --pythonpath $(ENVS)/lint/bin/python
	$(ENVS)/lint/bin/pyright -p pyright-strict.json --pythonpath $(ENVS)/lint/bin/python
	$(ENVS)/lint/bin/lint-imports

format: $(ENVS)/lint/made
	$(ENVS)/lint/bin/ruff format .
	$(ENVS)/lint/bin/ruff check --fix .

# With the engine compiled, as most users install it; NAME=overhead for one of them.
BENCHMARKS = PYTHONPATH=$(COMPILED) $(ENVS)/bench/bin/python -m benchmarks

bench: $(ENVS)/bench/made $(ENVS)/compiled/made
	$(BENCHMARKS) $(or $(NAME),all) $(ARGS)

# The figures that the README and the docs quote, from docs/figures.json (three minutes).
figures: $(ENVS)/bench/made $(ENVS)/compiled/made
	$(BENCHMARKS) overhead --record
	$(BENCHMARKS) lse --record
	$(BENCHMARKS) import --record

# The maps of lost digits, in the README and on the landing page.
picture: $(ENVS)/test/made
	$(ENVS)/test/bin/python -m tests.docs.lost_digits

wild: $(ENVS)/wild/made
	$(ENVS)/wild/bin/python -m benchmarks wild $(ARGS)

adoption: $(ENVS)/wild/made
	$(ENVS)/wild/bin/python -m benchmarks adoption $(ARGS)

docs: $(ENVS)/docs/made
	NO_MKDOCS_2_WARNING=1 $(ENVS)/docs/bin/mkdocs build --strict --quiet
	@echo "site/index.html"

# The page is tested in Chromium; where there is none and it can't be installed, those
# tests are skipped and say so.
CHROMIUM := chromium chromium-driver
ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n)

browser:
	@{ command -v chromium && command -v chromedriver; } > /dev/null \
	|| { $(ROOT) apt-get install -qq --yes $(CHROMIUM) > /dev/null; } \
	|| { $(ROOT) apt-get update -qq && $(ROOT) apt-get install -qq --yes $(CHROMIUM) > /dev/null; } \
	|| echo "no Chromium, and it can't be installed: its tests will be skipped"

screenshot: $(ENVS)/test/made browser
	$(ENVS)/test/bin/python -m tests.report.screenshot docs/report.png

gallery: $(ENVS)/test/made browser
	$(ENVS)/test/bin/python -m tests.report.gallery

clean:
	rm -rf $(ENVS) site dist

# Public packages and all that they import, pinned; no solver finds versions that suit
# all of them, and they work together all the same.
$(ENVS)/wild/made: benchmarks/wild/requirements.txt
	@echo "Making the environment $(@D) (once; a few minutes)"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $<
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

# A folder for PYTHONPATH: no editable install is compiled.
$(ENVS)/compiled/made: pyproject.toml hatch_build.py $(shell find src -name "*.py" -o -name "*.pxd")
	@echo "Compiling the engine into $(@D) (half a minute)"
	@rm -rf $(@D)
	@GRADSMITH_COMPILE=1 $(PYTHON) -m pip install --quiet --disable-pip-version-check \
	  --root-user-action=ignore --no-deps --target $(@D) .
	@touch $@

# Each environment has a dependency group of its name, which pip knows from 25.1 on.
$(ENVS)/%/made: pyproject.toml
	@echo "Making the environment $(@D) (once; about a minute at most)"
	@$(PYTHON) -c "import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else f'Gradsmith needs Python 3.11 or later, and this is {v[0]}.{v[1]}. Try make PYTHON=python3.12')"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -e . --group $*
	@touch $@
