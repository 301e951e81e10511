# The commands of this project; `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
# The stamp is named after a hash of pyproject.toml, so that an edit triggers a new installation.
STAMP := $(VENV)/.installed-$(shell sha256sum pyproject.toml | cut -c1-16)

# If it is set, every worker and every operator that a test starts compiles the same files again.
unexport PYTHONDONTWRITEBYTECODE
# A new clone checks only what differs from the last one: mypy compares the content of the files.
export MYPY_CACHE_DIR ?= $(HOME)/.cache/kafka-rebalance-operator/mypy
# tests/workers.py assigns the tests to the workers.
WORKERS := --numprocesses 6 --no-loadscope-reorder

.PHONY: install demo demo-local demo-load test e2e contract-all soak-property soak-short soak broken-rules optima e2e-node images release fleet servers crds docs docs-diagrams docs-pictures chart lint bench bench-plan bench-hashes bench-files bench-throttle bench-engine bench-schedule bench-tool bench-pipeline bench-fleet bench-load clean help

install: $(STAMP)  ## create .venv with the operator, the pipeline and the development tools

$(STAMP):
	@e2e/bench/prerequisites.sh python
	@test -x $(PYTHON) || python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[pipeline,dev]'
	@rm -f $(VENV)/.installed-*
	@touch $@

demo: servers  ## run a rebalance, a rollback and a rebalance by load on real brokers and a real API server; KEEP=1 leaves them running
	@$(PYTHON) -m e2e.demo $(KEEP)

demo-local: install  ## run a rebalance and a rollback without Kubernetes, on real brokers; four minutes
	@e2e/bench/prerequisites.sh brokers
	@$(PYTHON) -m e2e.bench kafka
	@$(PYTHON) -m e2e.demo.local

demo-load: servers  ## run the rebalance by load with more brokers, more traffic and minutes of samples
	@$(PYTHON) -m e2e.demo.at_length

# Lint runs in parallel with the tests, which mostly wait; its output is printed when it ends.
test: servers  ## run lint and the tests, including end-to-end tests on real clusters; 15 to 40 minutes on two cores
	@(said=$$(make --no-print-directory lint 2>&1) && echo "$$said" || { echo "$$said"; exit 1; }) & lint=$$!; \
	failed=0; $(PYTHON) -m pytest tests e2e -m "not campaign and not node" $(WORKERS) || failed=$$?; \
	wait $$lint || { echo "lint failed, see above" >&2; exit 1; }; exit $$failed

e2e: servers  ## run all end-to-end tests, including the long ones
	@e2e/bench/prerequisites.sh browser
	@failed=0; $(PYTHON) -m pytest e2e -m "not node and not alone" $(WORKERS) || failed=$$?; \
	$(PYTHON) -m pytest e2e -m alone || failed=$$?; \
	$(PYTHON) -m pytest tests/pipeline -m campaign --numprocesses 0 || failed=$$?; exit $$failed

contract-all: servers  ## by hand: record each supported Kafka version, one after the other; half an hour
	@for version in 3.9 4.0 4.1 4.2 4.3; do echo "Kafka $$version"; \
	KAFKA_VERSION=$$version $(PYTHON) -m pytest tests/contract --numprocesses 0 || failed=1; done; test -z "$${failed:-}"

soak-property: install  ## run the property tests with twenty times as many random examples, and recompute the recorded optima
	@$(PYTHON) -m pytest tests/property --hypothesis-profile soak --numprocesses 2

soak-short: install  ## simulate 2,000 seeds of each kind: usual, log dirs, more faults, overlapping, and those that have failed once; more than half an hour of CPU
	@$(PYTHON) -m pytest tests/simulation -m campaign --numprocesses 2
	@$(PYTHON) -m tests.simulation 0-1999
	@$(PYTHON) -m tests.simulation 0-1999 --log-dirs
	@$(PYTHON) -m tests.simulation 0-1999 --more-faults
	@$(PYTHON) -m tests.simulation 0-1999 --overlapping

soak: install  ## by hand: simulate 100,000 seeds of each kind; hours of CPU
	@$(PYTHON) -m tests.simulation 0-99999
	@$(PYTHON) -m tests.simulation 0-99999 --log-dirs
	@$(PYTHON) -m tests.simulation 0-99999 --more-faults
	@$(PYTHON) -m tests.simulation 0-99999 --overlapping

broken-rules: servers  ## by hand: break the rules listed in docs/testing.md one at a time; a test has to fail for each
	@$(PYTHON) -m tests.broken_rules

optima: install  ## recompute the recorded optima, and write tests/golden/optima.json
	@OPTIMA=write $(PYTHON) -m pytest tests/property --numprocesses 0 --quiet

e2e-node: servers  ## as root: test images, chart and Pods on a real node; 17 minutes the first time, then 5
	@e2e/bench/prerequisites.sh node
	@$(PYTHON) -m e2e.node
	@$(PYTHON) -m pytest e2e/node

images: install  ## as root: build the images and print their sizes
	@e2e/bench/prerequisites.sh node
	@$(PYTHON) -m e2e.node.images

release: install  ## as root: write wheel, sdist, chart, images, command line, krew manifest, SBOM and checksums into dist/, twice, and compare (IMAGES=no: without the images, and not as root); half an hour
	@$(if $(filter no,$(IMAGES)),true,e2e/bench/prerequisites.sh node)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	@rm -rf dist
	@$(PYTHON) -m release --twice $(if $(URL),--url $(URL)) $(if $(filter no,$(IMAGES)),--without-images)

fleet: servers  ## run fifty rebalances on ten clusters, one of which hangs; manual test, needs 10 GB
	@$(PYTHON) -m e2e.fleet

servers: install  ## download Kafka, and build Kubernetes and helm, into the cache
	@e2e/bench/prerequisites.sh bench
	@$(PYTHON) -m e2e.bench

crds: install  ## regenerate the CRDs (also the chart's) and the field reference from the models
	@$(PYTHON) -m tests.arch.crd_files

docs: install  ## build the site of the documentation into site/; fails on a broken link
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet

docs-diagrams: install  ## regenerate the diagrams in docs/architecture.md, and the tables in docs/testing.md and docs/metrics.md
	@$(PYTHON) -m tests.arch.state_diagram docs/architecture.md
	@$(PYTHON) -m tests.arch.diagrams
	@$(PYTHON) -m tests.broken_rules.table
	@$(PYTHON) -m tests.arch.metrics_table

docs-pictures: install  ## take the pictures in docs/pictures again, with a browser and real brokers; two minutes
	@e2e/bench/prerequisites.sh browser brokers
	@$(PYTHON) -m e2e.bench kafka
	@$(PYTHON) -m e2e.pictures

chart: install  ## regenerate the chart's CRDs, table of values and snapshots
	@$(PYTHON) -m tests.chart.write

lint: install  ## run ruff, mypy and import-linter, and check the source root
	@# A package operator/ would shadow the standard library's module for all programs started here.
	@test ! -e operator/__init__.py || { echo "operator/__init__.py must not exist: operator/ is a source root" >&2; exit 1; }
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/ruff format --check --quiet .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

bench: install  ## time the planner, and the start of the program
	@$(PYTHON) -m benchmarks

bench-files: install  ## time reading and writing a million partitions, and write docs/benchmarks.md; several minutes
	@$(PYTHON) -m benchmarks.files --write docs/benchmarks.md

bench-throttle: servers  ## measure the throttle on real brokers: accuracy, reaction time, side effects; half an hour
	@$(PYTHON) -m benchmarks.throttle

# DuckDB and Polars are only compared with, so they are not installed in .venv.
BENCH_ENGINES := $(HOME)/.cache/kafka-rebalance-operator/bench-engines
bench-pipeline: install  ## compare the load model job with DuckDB and Polars, and write docs/benchmarks.md; fifteen minutes
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --target $(BENCH_ENGINES) --upgrade duckdb polars
	@$(PYTHON) -m kafka_rebalance.pipeline.class_archive
	@PYTHONPATH=$(BENCH_ENGINES) $(PYTHON) -m benchmarks.pipeline --write docs/benchmarks.md

bench-fleet: install  ## plan a hundred clusters in one Spark job and each alone, and write docs/benchmarks.md; five minutes
	@$(PYTHON) -m benchmarks.fleet --write docs/benchmarks.md

bench-engine: install  ## measure what rounds of the engine cost with up to 200,000 planned partitions, and write docs/benchmarks.md; ten minutes
	@$(PYTHON) -m benchmarks.engine --write docs/benchmarks.md

bench-schedule: install  ## compute how close the choice of steps comes to the shortest possible time, and write docs/benchmarks-schedule.md; half an hour
	@$(PYTHON) -m benchmarks.schedule --write docs/benchmarks-schedule.md

bench-tool: servers  ## by hand: carry out the same plans with the operator and with Kafka's own tool on real brokers, and write docs/benchmarks-schedule.md; twenty minutes
	@$(PYTHON) -m benchmarks.kafka_tool --write docs/benchmarks-schedule.md

bench-hashes: install  ## compare plans with recorded ones (benchmarks/results/plan-hashes.json); two minutes
	@$(PYTHON) -m benchmarks.plan_hashes

bench-plan: install  ## time plans of up to a million partitions, and baselines on the same clusters; ten minutes
	@$(PYTHON) -m benchmarks.planning

bench-load: install  ## time plans by load and a greedy planner on the same clusters, and write docs/benchmarks-load.md; three minutes
	@$(PYTHON) -m benchmarks.load

clean:  ## delete .venv and generated files; the cache of Kafka and Kubernetes stays
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse metastore_db
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
