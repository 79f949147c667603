# Two commands are enough for a newcomer: `make demo` and `make test`. Each sets itself up.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
BASE   := $(VENV)/.base
SPARK  := $(VENV)/.spark
PEERS  := $(VENV)/.peers
AZURITE := $(VENV)/azurite
LOCK   := $(BIN)/uv pip compile --universal --no-header --no-emit-index-url --generate-hashes --python-version 3.11 --quiet

SEEDS  ?= 1 2 3
STEPS  ?= 10000
SOAK_SHARD ?= 0/1
EXAMPLES ?= 50
WRITES ?= 10

.PHONY: demo demo-base demo-spark test test-fast test-azure soak soak-merges soak-histories soak-random soak-races check format golden bench bench-spark lock clean help

help:            ## show the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/\t/' | expand -t 14

OLD    := omnigraph needs Python 3.11 or newer; try: make PYTHON=python3.11 ...
PIP    := $(BIN)/python -m pip install --disable-pip-version-check

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "$(OLD)")'
	$(PYTHON) -m venv $(VENV)

# What users install, and no tool of ours. Each step says what it brings: the first one takes a while.
$(BASE): requirements/base.txt pyproject.toml | $(BIN)/python
	@echo "Installing omnigraph into $(VENV): about 170 MB to download, 530 MB on disk."
	$(PIP) --require-hashes -r requirements/base.txt
	$(PIP) --no-deps -e .
	@touch $@

$(SPARK): requirements/spark.txt $(BASE)
	@echo "Installing Spark and a Java runtime: about 505 MB to download, 680 MB on disk."
	$(PIP) --require-hashes -r requirements/spark.txt
	@touch $@

$(READY): requirements/dev.txt pyproject.toml | $(BIN)/python
	@echo "Installing what the tests need: Spark, Java, an S3 server and a type checker among it."
	$(PIP) -r requirements/dev.txt
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(PEERS): $(READY) requirements/bench.txt
	$(PIP) --quiet --require-hashes -r requirements/bench.txt
	@touch $@

demo: demo-base demo-spark ## build an example graph, ask, change and merge it; then load with Spark

demo-base: $(BASE) ## the part of the demo that needs no Spark
	$(BIN)/python examples/demo.py

demo-spark: demo-base $(SPARK) ## both parts
	$(BIN)/python examples/demo_spark.py

test: $(READY)   ## the whole suite
	$(BIN)/python -m pytest -n 2 --dist loadgroup --durations 10

test-fast: $(READY) ## the inner loop: guards and unit tests without the random ones
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "not hypothesis" tests/guards tests/unit

test-azure: $(READY) ## graphs on Azure's emulator, which npm installs (190 MB); not part of `make test`
	npm install --prefix $(AZURITE) --no-save --no-audit --no-fund azurite@3
	AZURITE=$(AZURITE) $(BIN)/python -m pytest -q tests/azure

soak: soak-merges soak-histories soak-random soak-races ## hours: the whole matrix of merges, long random histories, many random cases, long races

soak-merges: $(READY) ## every cell of the matrix of merges, or a part: SOAK_SHARD=0/8
	SOAK=1 SOAK_SHARD=$(SOAK_SHARD) $(BIN)/python -m pytest -q -s tests/model/test_schema_merges.py

soak-histories: $(READY) ## random histories of everything: SEEDS="1 2 3" STEPS=10000
	SEED="$(SEEDS)" STEPS=$(STEPS) $(BIN)/python -m pytest -q -s tests/model/test_whole_histories.py

soak-random: $(READY) ## every test of random cases and of samples with EXAMPLES=50 times as many of them
	EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "hypothesis or sampled" tests/unit tests/flow tests/model tests/spark

soak-races: $(READY) ## processes that race, with WRITES=10 times as many writes each
	EXAMPLES=$(WRITES) $(BIN)/python -m pytest -q tests/process

check: $(READY)  ## ruff, pyright, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest -q tests/guards

format: $(READY) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

golden: $(READY) ## rewrite golden files; review the diff
	GOLDEN_UPDATE=1 $(BIN)/python -m pytest -q tests/unit/*/test_*golden*.py tests/unit/query/test_format.py
	$(BIN)/python -m omnigraph.cli.reference > docs/reference/cli.md
	$(BIN)/python -m omnigraph.cli.manpage > docs/reference/omnigraph.1

bench: $(PEERS)  ## ratios against raw pylance and other engines, measured in one run
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/bulk_load.py
	$(BIN)/python benchmarks/single_commit.py
	$(BIN)/python benchmarks/queries.py
	$(BIN)/python benchmarks/repeated.py
	$(BIN)/python benchmarks/contains.py
	$(BIN)/python benchmarks/diff.py
	$(BIN)/python benchmarks/merge.py
	$(BIN)/python benchmarks/past.py

bench-spark: $(READY) ## loading, reading and memory on Spark against raw pylance
	$(BIN)/python benchmarks/spark_load.py
	$(BIN)/python benchmarks/spark_read.py
	$(BIN)/python benchmarks/spark_memory.py
	$(BIN)/python benchmarks/spark_auto.py

lock: $(READY)   ## compile the locked versions from pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	$(LOCK) pyproject.toml --group dev -o requirements/dev.txt
	$(LOCK) pyproject.toml --constraint requirements/dev.txt -o requirements/base.txt
	$(LOCK) pyproject.toml --extra spark --constraint requirements/dev.txt -o requirements/spark.txt
	$(LOCK) --group bench --constraint requirements/dev.txt -o requirements/bench.txt

clean:           ## remove everything that was built
	rm -rf $(VENV) .demo .bench .pytest_cache .ruff_cache .hypothesis
