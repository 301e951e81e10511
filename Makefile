# The commands of this project; `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
# Installed is what pyproject.toml said then: the stamp is named after its content, so an edit makes it stale.
STAMP := $(VENV)/.installed-$(shell sha256sum pyproject.toml | cut -c1-16)

# With it every worker, and every operator that a test starts, compiles the same files again.
unexport PYTHONDONTWRITEBYTECODE
# tests/workers.py says what each of them runs.
WORKERS := --numprocesses 4 --no-loadscope-reorder

.PHONY: install demo test e2e soak-property optima e2e-node images fleet servers crds docs-diagrams chart lint bench bench-plan bench-hashes bench-files bench-throttle clean help

install: $(STAMP)  ## make .venv with the operator, the pipeline and the developers' tools

$(STAMP):
	@e2e/bench/prerequisites.sh python
	@test -x $(PYTHON) || python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[pipeline,dev]'
	@rm -f $(VENV)/.installed-*
	@touch $@

demo: servers  ## real brokers, a real API server, a rebalance and a rollback; KEEP=1 leaves them running
	@$(PYTHON) -m e2e.demo $(KEEP)

# Lint runs beside the tests, which mostly wait; what it says is printed as soon as it ends.
test: servers  ## lint and the tests, end-to-end ones on real clusters included; 20 minutes on two cores
	@(said=$$(make --no-print-directory lint 2>&1) && echo "$$said" || { echo "$$said"; exit 1; }) & lint=$$!; \
	failed=0; $(PYTHON) -m pytest tests e2e -m "not campaign and not node" $(WORKERS) || failed=$$?; \
	wait $$lint || { echo "lint failed, see above" >&2; exit 1; }; exit $$failed

e2e: servers  ## every end-to-end test, the longer ones too
	@$(PYTHON) -m pytest e2e -m "not node" $(WORKERS)

soak-property: install  ## the properties with ten times the examples, new ones each time, and the recorded optima anew
	@$(PYTHON) -m pytest tests/property --hypothesis-profile soak --numprocesses 2

optima: install  ## compute the recorded optima anew, and write tests/golden/optima.json
	@OPTIMA=write $(PYTHON) -m pytest tests/property --numprocesses 0 --quiet

e2e-node: servers  ## as root, on a real node: images, chart, Pods; 17 minutes the first time, then 5
	@e2e/bench/prerequisites.sh node
	@$(PYTHON) -m e2e.node
	@$(PYTHON) -m pytest e2e/node

images: install  ## as root: build the images, and print their sizes
	@e2e/bench/prerequisites.sh node
	@$(PYTHON) -m e2e.node.images

fleet: servers  ## fifty rebalances on ten clusters, one of which hangs; by hand, 10 GB
	@$(PYTHON) -m e2e.fleet

servers: install  ## fetch Kafka, and build Kubernetes and helm, into the cache
	@e2e/bench/prerequisites.sh bench
	@$(PYTHON) -m e2e.bench

crds: install  ## write the CRDs, the chart's too, and the field reference anew from the models
	@$(PYTHON) -m kafka_rebalance.api.crd crds
	@cp crds/*.yaml charts/kafka-rebalance-operator/files/crds/
	@$(PYTHON) -m kafka_rebalance.api.reference docs/reference.md

docs-diagrams: install  ## write the diagrams in docs/architecture.md: states and layers
	@$(PYTHON) -m tests.arch.state_diagram docs/architecture.md
	@$(PYTHON) -m tests.arch.diagrams

chart: install  ## write the chart's CRDs, table of values and snapshots anew
	@$(PYTHON) -m tests.chart.write

lint: install  ## ruff, mypy, the layers, and the guard of the source root
	@# A package operator/ would shadow the standard library's module for everyone who runs from here.
	@test ! -e operator/__init__.py || { echo "operator/__init__.py must not exist: operator/ is a source root" >&2; exit 1; }
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/ruff format --check --quiet .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

bench: install  ## time the planner
	@$(PYTHON) -m benchmarks

bench-files: install  ## time reading and writing a million partitions, and write docs/benchmarks.md; some minutes
	@$(PYTHON) -m benchmarks.files --write docs/benchmarks.md

bench-throttle: servers  ## measure the throttle on real brokers: exactness, reaction, cost to others; half an hour
	@$(PYTHON) -m benchmarks.throttle

bench-hashes: install  ## compare plans with the recorded ones (benchmarks/results/plan-hashes.json); two minutes
	@$(PYTHON) -m benchmarks.plan_hashes

bench-plan: install  ## time plans of up to a million partitions, others on the same clusters; ten minutes
	@$(PYTHON) -m benchmarks.planning

clean:  ## delete .venv and what builds and tools left; the cache of brokers and API server stays
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse metastore_db
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
