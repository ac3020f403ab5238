# Every target sets itself up: `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
# Folder of the data sets that benchmarks read where they are there.
DATA ?= ../shared/data
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The systems we are compared with, in an environment of their own.
PEERS := .venv-peers
PEERS_STAMP := $(PEERS)/.installed
# Annif, which asks a served model.
ANNIF := .venv-annif
ANNIF_STAMP := $(ANNIF)/.installed
# The lowest versions of what the project needs.
LOWEST := .venv-lowest
# Environments with nothing but the wheel.
CLEAN := .venv-clean
# One BLAS thread per process: two collapse on a busy machine, and the test workers are the parallelism.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help setup browser test test-lowest fuzz lint format bench bench-baselines bench-dense bench-distributed bench-fit bench-growing bench-index bench-latency bench-linear bench-mlp bench-models bench-multilabel bench-names bench-read bench-scale bench-serve bench-softmax bench-solver bench-storage bench-study check-annif check-dist check-hosts demo dist docs plots clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-12s %s\n", $$1, $$2}'

setup: $(STAMP)  ## create .venv with everything the project needs

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all]'
	@touch $@

# The page of `locole report` is tested in a real browser; where there is none, Debian's is installed.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do command -v $$name > /dev/null && exit 0; done; \
	echo "installing Chromium for the tests" && apt-get update -qq && apt-get install -y -qq chromium \
	|| { echo "make test needs a browser: install Chromium or Chrome and repeat." >&2; exit 1; }

test: setup browser  ## run the tests and doctests
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 -q

test-lowest: browser  ## run the tests with the lowest versions that pyproject.toml allows
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e '.[all]'
	$(ONE_THREAD) $(LOWEST)/bin/python -m pytest -n 2 -q $(ARGS)

fuzz: setup  ## forged models and mutated files of every format, with bounds checks in kernels
	NUMBA_BOUNDSCHECK=1 $(ONE_THREAD) $(BIN)/python tests/fuzz $(ARGS)

lint: setup  ## ruff, mypy and the import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: setup  ## let ruff format and fix what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup  ## decoding and coherence against BLAS; saves benchmarks/records/core.json
	$(BIN)/python benchmarks/bench_core.py

bench-linear: setup $(PEERS_STAMP)  ## train against peers from PyPI; saves benchmarks/records/linear.json
	$(BIN)/python benchmarks/bench_linear.py --data $(DATA) $(ARGS)

bench-multilabel: setup $(PEERS_STAMP)  ## several labels against peers; resumes; saves benchmarks/records/multilabel.json
	$(BIN)/python benchmarks/bench_multilabel.py --data $(DATA) $(ARGS)

bench-names: setup $(PEERS_STAMP)  ## texts of labels, with and without rows; saves benchmarks/records/names.json
	$(BIN)/python benchmarks/bench_names.py --data $(DATA) $(ARGS)

$(PEERS_STAMP): benchmarks/peers/requirements.txt benchmarks/peers/install.py constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python benchmarks/peers/install.py
	@touch $@

bench-baselines: setup  ## the systems of locole.baselines side by side; saves benchmarks/records/baselines.json
	$(BIN)/python benchmarks/bench_baselines.py --data $(DATA) $(ARGS)

bench-dense: setup $(PEERS_STAMP)  ## dense rows against heads and neighbours; saves benchmarks/records/dense.json
	$(BIN)/python benchmarks/bench_dense.py --data $(DATA) $(ARGS)

bench-index: setup $(PEERS_STAMP)  ## best of many labels, exactly and by an index; saves benchmarks/records/index.json
	$(BIN)/python benchmarks/bench_index.py $(ARGS)

bench-solver: setup  ## scaling and memory of the elastic-net solver; saves benchmarks/records/solver.json
	$(BIN)/python benchmarks/bench_solver.py

bench-calibration: setup $(PEERS_STAMP)  ## probabilities, abstention and label sets; saves benchmarks/records/calibration.json
	$(BIN)/python benchmarks/bench_calibration.py --data $(DATA) $(ARGS)

bench-growing: setup  ## updates of a model day by day; saves benchmarks/records/growing.json
	$(ONE_THREAD) $(BIN)/python benchmarks/bench_growing.py --data $(DATA) $(ARGS)

bench-storage: setup  ## accuracy of weights in fewer bits on the data sets in $(DATA)
	$(BIN)/python benchmarks/bench_storage.py --data $(DATA)

bench-read: setup  ## reading LIBSVM files against scikit-learn; saves benchmarks/records/read.json
	$(BIN)/python benchmarks/bench_read.py --data $(DATA)

bench-fit: setup  ## locole fit on raw texts, part by part; saves benchmarks/records/end_to_end.json
	$(BIN)/python benchmarks/bench_end_to_end.py --data $(DATA) $(ARGS)

bench-latency: setup  ## one row at a time at 10^4 and 10^5 labels; saves benchmarks/records/latency.json
	$(ONE_THREAD) $(BIN)/python benchmarks/bench_scale.py latency $(ARGS)

bench-scale: setup  ## time and memory as data grow, up to 10^6 labels; saves benchmarks/records/scale.json
	$(ONE_THREAD) $(BIN)/python benchmarks/bench_scale.py scale $(ARGS)

bench-models: setup  ## a model of a gigabyte: save, load, first answer; saves benchmarks/records/models.json
	$(BIN)/python benchmarks/bench_models.py

bench-mlp: setup  ## a step of the network against the obvious torch program; saves benchmarks/records/mlp.json
	$(BIN)/python benchmarks/bench_mlp.py $(ARGS)

bench-study: setup  ## accuracy against time by loss, dim and family; saves benchmarks/records/study.json
	$(BIN)/python benchmarks/bench_study.py --data $(DATA) $(ARGS)

bench-distributed: setup  ## Ray against plain threads at equal cores; saves benchmarks/records/distributed.json
	$(ONE_THREAD) $(BIN)/python benchmarks/bench_distributed.py --data $(DATA) $(ARGS)

bench-serve: setup  ## locole serve under load by wrk; saves benchmarks/records/serve.json
	$(ONE_THREAD) $(BIN)/python benchmarks/bench_serve.py --data $(DATA) $(ARGS)

check-annif: setup $(ANNIF_STAMP)  ## Annif from PyPI asks a served model through its http backend
	$(ONE_THREAD) $(BIN)/python benchmarks/annif_client.py --annif $(ANNIF)/bin/annif $(ARGS)

$(ANNIF_STAMP):
	$(PYTHON) -m venv $(ANNIF)
	$(ANNIF)/bin/python -m pip install --quiet --disable-pip-version-check 'annif>=1.4,<2'
	@touch $@

check-hosts: setup  ## a fit on two hosts in two network namespaces, with the bytes on the wire; needs root
	$(ONE_THREAD) $(BIN)/python benchmarks/two_hosts.py $(ARGS)

plots: setup  ## draw the figures of the documentation from the records
	$(BIN)/pip install -q -c constraints.txt -e '.[plots]'
	$(BIN)/python benchmarks/plots.py

bench-softmax: setup  ## softmax over all labels against dense products; saves benchmarks/records/softmax.json
	$(BIN)/python benchmarks/bench_softmax.py

docs: setup  ## build the documentation site in build/docs, offline, warnings as errors
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,docs]'
	rm -rf docs/reference build/docs
	$(ONE_THREAD) $(BIN)/python -m sphinx -b html -W --keep-going -q docs build/docs
	@echo "build/docs/index.html is the site."

dist: setup  ## build sdist and wheel in dist/ and check them
	rm -rf dist build/lib build/bdist.*
	$(BIN)/python -m build --quiet
	$(BIN)/python -m twine check --strict dist/*

check-dist: dist  ## install the wheel without extras, with the newest and the lowest versions, and ask it something
	rm -rf $(CLEAN)
	$(PYTHON) -m venv $(CLEAN)/newest && $(PYTHON) -m venv $(CLEAN)/lowest
	$(CLEAN)/newest/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	$(CLEAN)/lowest/bin/pip install --quiet --disable-pip-version-check -c constraints-lowest.txt dist/*.whl
	@mkdir -p build && printf 'cat\tit purrs\ndog\tit barks\n%.0s' 1 2 3 4 5 > build/animals.tsv
	cd build && for versions in newest lowest; do \
	  ../$(CLEAN)/$$versions/bin/locole fit animals.tsv -o animals --force && \
	  echo 'what purrs?' | ../$(CLEAN)/$$versions/bin/locole predict animals -k 1 | grep cat || exit 1; \
	done

# What `locole demo` needs; an environment that has everything has that too.
$(VENV)/.demo:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[data,serve]'
	@touch $@

demo: $(if $(wildcard $(STAMP)),setup,$(VENV)/.demo)  ## learn the names of about 16,600 cities, compare with centroids, answer misspelt ones; writes a page; ARGS=--serve lets you ask in the browser
	@mkdir -p build
	$(BIN)/locole demo --html build/demo.html $(ARGS)

clean:  ## remove the environment and caches
	rm -rf $(VENV) $(PEERS) $(ANNIF) $(LOWEST) $(CLEAN) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info docs/gallery docs/reference
