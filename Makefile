# make test    style, types and tests             make demo    the whole loop on generated scenes (about 3 minutes)
# make wheel   build dist/*.whl                    make bench   speed of a bundle on this machine
# make site    the documents as pages, into build/site/
# make lock    versions and hashes for a device  make sbom    its bill of materials (CycloneDX), checked
# make demo-model  train anew what the demo begins with (samples/demo_model)
# make mutation  do tests notice small edits?     (docs/development.md; about half an hour, not part of make test)
# make clean   remove what was built, .venv too    Each makes its own .venv once; PYTHON=python3.12 chooses another,
#                                                  VENV=.venv-3.12 beside it.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PACKAGES := ptedge training export runtime samples

.PHONY: test lint types pytest demo demo-model bench mutation wheel format lock sbom site clean
.DEFAULT_GOAL := test

test: lint types pytest

lint: $(STAMP)
	$(BIN)/ruff check $(PACKAGES) tests .ci
	$(BIN)/ruff format --check $(PACKAGES) tests .ci

types: $(STAMP)
	$(BIN)/mypy

pytest: $(STAMP)
	$(BIN)/python -m pytest

format: $(STAMP)
	$(BIN)/ruff check --fix $(PACKAGES) tests .ci
	$(BIN)/ruff format $(PACKAGES) tests .ci

# DEMO="--quick" takes about a minute
demo: $(STAMP)
	$(BIN)/ptedge demo $(DEMO)

# seed 250 of all is seed 1000 of the source scenes, as in samples/walk.py
demo-model: $(STAMP)
	rm -rf build/demo-model
	$(BIN)/python -m ptedge.samples.draw build/demo-model --source 600 --target 2 --val 2 --seed 250
	cd build/demo-model && $(abspath $(BIN))/ptedge train source/annotations.json \
	  --config ../../samples/demo_train.toml --out run
	cp build/demo-model/run/model.pt samples/demo_model/model.pt

# BUNDLE=folder measures your own; without it, a bundle with untrained weights, which is as fast as a trained one
BUNDLE ?= build/bench/bundle
bench: $(STAMP)
	test -e $(BUNDLE) || $(BIN)/python .ci/make_bundle.py build/bench
	$(BIN)/ptedge benchmark $(BUNDLE)

# EDITS="NAME..." tries these again
mutation: $(STAMP)
	@$(BIN)/python -c 'import mutmut' 2> /dev/null || $(BIN)/python -m pip install --quiet "mutmut==3.8.*"
	nice -n 10 $(BIN)/python .ci/mutation.py $(EDITS)

wheel: $(STAMP)
	rm -rf build/lib dist
	$(BIN)/python -m build --wheel

# a device's packages with hashes, for this Python on this machine, into requirements/
lock: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=23.2"
	$(BIN)/python .ci/lock.py

site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# into build/sbom/
sbom:
	.ci/sbom $(PYTHON)

$(STAMP): pyproject.toml .ci/tensorrt_stubs.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "ptedge needs Python 3.10 or newer, but $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "installing ptedge and what its tests need into $(VENV) (about 6 GB with torch, some minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]" || \
	  { echo "Installing failed (message above). torch is the large part: it needs about 6 GB of free disk and the package index." >&2; \
	    echo "On a machine without a GPU, install the CPU build of torch and torchvision into $(VENV) first, then make." >&2; exit 1; }
	@$(BIN)/python .ci/tensorrt_stubs.py $(VENV)/stubs
	@touch $(STAMP)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
