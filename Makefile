# Everything starts here: `make demo` shows the product, `make test` proves it. You can repeat both.
#
# make demo            build an image, start a virtual cluster, train MNIST on two nodes (KEEP=1 leaves the cluster up)
# make test            what to run before a push: check, unit and smoke, in about ten minutes (CHANGED=1: only what
#                      the change since the main branch can reach)
# make test-all        everything: make test, and each shard of the tests with services. A shard runs alone too:
#                      make test-image, test-cluster, test-trainers, test-courses, test-package (WORKERS=1: one at a time,
#                      RECIPE=name: with another image)
# make image           the training image and its SIF (RECIPE=name for another; for a cluster: SITE=name of its
#                      profile, or FACTS=file, what `toolkit probe -o file` saved of it)
# make fuzz            10,000 damaged and hostile images and facts files (N=, SEED=; what fails is kept in build/fuzz),
#                      and 2,000 hostile jobs, whose scripts real bash runs (JOBS=), and as many random launches, whose
#                      scripts are compared with what was judged
# make garbage         every kind of garbage instead of every file that a command takes: thousands of calls
# make check           lint, types, import rules, the documentation with its links
# make words           the vocabulary of docs/writing.md in all text that people read, and spelling
# make docs            the documentation site: build/site/index.html
# make unit            the fast tests alone
# make smoke           a test for each promise of the README, with real Docker, Apptainer, Slurm and sshd
# make unit-pythons    the fast tests under Debian's python3 and the newest Python of this machine too
# make engine          start a Docker engine and leave it running (make engine-stop ends it)
# make matrix          start the images of tests/matrix in every way on every kind of cluster, record what happens
#                      (hours; what is recorded is not run again; MATRIX="--flavour bare" for a part)
# make faults          make programs fail for real, here and in containers, and compare `toolkit explain` with the truth
# make horovod-matrix  build Horovod with each framework of tests/horovod and compare two ranks with one process; what is
#                      recorded is not run again (an hour; PAIRS="tensorflow-2.20 --again" for a part)
# make bench-image     conversion, size and start of an image beside plain apptainer build (RECIPE=, ROUNDS=, STARTS=,
#                      COLD=1 builds from nothing too); writes build/bench/image.json and docs/images.md
# make bench-train     trainers beside the tutorials' own scripts, plain Keras, and one rank (RECIPE=, ROUNDS=); writes
#                      build/bench/train.json and docs/performance.md
# make bench-accuracy  trains on whole data sets through toolkit launch, for half an hour (RECIPE=); writes
#                      build/bench/accuracy.json and docs/accuracy.md
# make bench-learning  what large batches do to MNIST, and steps with and without XLA (RECIPE=); writes
#                      build/bench/learning.json and docs/images/learning.svg
# make release         check the version, its changelog and the generated pages, build sdist and wheel in build/release,
#                      try the wheel, and make the tag (DRY=1: all but the tag)
# make release-check   name the generated pages and files that a release would change
# make fresh           what the package index has beside the rows of recipes/knowledge; fails if a row is older than its limit
# make requirements    update requirements/: the newest versions that pyproject.toml allows, with their hashes
# make clean           remove what these commands made in this clone; Debian packages, the download cache, and
#                      clusters that hold jobs of yours stay (ALL=1 removes the cache, these clusters and their jobs)

RECIPE ?= tf2.15-cpu
FACTS  ?=
SITE   ?=
KEEP   ?=
N      ?= 10000
JOBS   ?= 2000
SEED   ?= 1
MATRIX ?=
PAIRS  ?=
ROUNDS ?= 2
STARTS ?= 5
COLD   ?=
ALL    ?=
DRY    ?=
WORKERS ?= 2
CHANGED ?=
VENV   := .venv
BIN    := $(VENV)/bin
SHARDS := test-package test-image test-cluster test-trainers test-courses
# Run with a Docker engine, and mark the objects in it as objects of this clone.
ENGINE := scripts/clone.sh scripts/with-engine.sh
SHELL  := /bin/bash
# Tests import thousands of modules again and again; without compiled modules a start takes three times as
# long.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test prepared test-all $(SHARDS) image faults fuzz garbage check lint words docs unit unit-pythons smoke matrix horovod-matrix bench-image bench-train bench-accuracy bench-learning engine engine-stop fresh requirements release release-check clean help
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# make/make/p; s/^#    / /p' Makefile

# The environment is built again when the package's metadata changes.
$(VENV)/ready: pyproject.toml requirements/dev.txt scripts/setup.sh
	@scripts/setup.sh $(VENV)

demo: $(VENV)/ready
	@KEEP="$(KEEP)" $(ENGINE) scripts/demo.sh $(BIN) "$(RECIPE)"

image: $(VENV)/ready
	@$(ENGINE) scripts/image.sh $(BIN) "$(RECIPE)" $(if $(FACTS),--facts "$(FACTS)") $(if $(SITE),--site "$(SITE)")

ifeq ($(CHANGED),)
test: $(VENV)/ready
	@MAKE="$(MAKE)" scripts/test.sh
else
test: $(VENV)/ready
	@$(MAKE) --no-print-directory lint words
	@$(BIN)/python -m tests.changed
endif

# The images and the cluster that the smoke tests need.
prepared: $(VENV)/ready
	$(ENGINE) $(BIN)/python -m tests.services.ready

test-all: $(VENV)/ready
	@$(MAKE) --no-print-directory test CHANGED=
	@$(MAKE) --no-print-directory unit-pythons garbage $(SHARDS)

check: $(VENV)/ready
	@$(MAKE) --no-print-directory lint words docs

lint: $(VENV)/ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/mypy -p docs.generate
	$(BIN)/lint-imports
	shellcheck scripts/*.sh containers/*.sh containers/cluster/*.sh containers/parts/*.sh

# The vocabulary of docs/writing.md, and spelling. After a fix: .venv/bin/python -m tests.words --shrink
words: $(VENV)/ready
	$(BIN)/python -m tests.words
	$(BIN)/codespell

# MkDocs checks links and anchors in the pages; toolkit's own check reads the finished site.
docs: $(VENV)/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	$(BIN)/python -m docs.generate.links build/site

unit: $(VENV)/ready
	$(BIN)/pytest tests/unit -n $$(( $$(nproc) + 1 )) --dist worksteal -q

fuzz: $(VENV)/ready
	$(BIN)/python -m tests.fuzz.run --count $(N) --seed $(SEED) --keep build/fuzz
	HOSTILE_JOBS=$(JOBS) $(BIN)/pytest -q tests/unit/launch/test_hostile.py
	LAUNCHES=$(JOBS) $(BIN)/pytest -q tests/unit/launch/test_launched.py

unit-pythons: $(VENV)/ready
	@scripts/unit-pythons.sh $(VENV)

garbage: $(VENV)/ready
	$(BIN)/pytest tests/full/garbage -n auto -q

smoke: $(VENV)/ready
	$(ENGINE) $(BIN)/pytest tests/smoke -q --durations=5

# Each worker has its own cluster.
$(SHARDS): test-%: $(VENV)/ready
	RECIPE="$(RECIPE)" $(ENGINE) $(BIN)/pytest tests/full/$* -q --durations=15 -n $(WORKERS) --no-loadscope-reorder

# The clusters stay up for the next run; make clean removes them.
faults: $(VENV)/ready
	$(ENGINE) $(BIN)/python -m tests.faults $(FAULTS)

matrix: $(VENV)/ready
	XDG_STATE_HOME="$(CURDIR)/build/matrix/state" $(ENGINE) scripts/matrix.sh $(BIN) $(MATRIX)

horovod-matrix: $(VENV)/ready
	$(ENGINE) $(BIN)/python -m tests.horovod.run $(PAIRS)

bench-image: $(VENV)/ready
	$(ENGINE) $(BIN)/python -m tests.benchmarks.image.run --recipe "$(RECIPE)" --rounds $(ROUNDS) \
	    --starts $(STARTS) $(if $(COLD),--cold) --page docs/images.md

bench-learning: $(VENV)/ready
	@$(ENGINE) scripts/image.sh $(BIN) "$(RECIPE)"
	$(BIN)/toolkit data get mnist
	$(ENGINE) $(BIN)/python -m tests.benchmarks.learning.run --recipe "$(RECIPE)"

bench-train: $(VENV)/ready
	@$(ENGINE) scripts/image.sh $(BIN) "$(RECIPE)"
	$(BIN)/toolkit data get mnist
	$(ENGINE) $(BIN)/python -m tests.benchmarks.train.run --recipe "$(RECIPE)" --rounds $(ROUNDS) \
	    --page docs/performance.md

bench-accuracy: $(VENV)/ready
	@$(ENGINE) scripts/image.sh $(BIN) "$(RECIPE)"
	$(BIN)/toolkit data get mnist
	$(BIN)/toolkit data get cifar10
	$(ENGINE) $(BIN)/python -m tests.benchmarks.accuracy.run --sif "build/images/$(RECIPE).sif" \
	    --page docs/accuracy.md

fresh: $(VENV)/ready
	@$(BIN)/python -m tests.fresh.run

requirements: $(VENV)/ready
	@scripts/requirements.sh $(BIN)

# The committed generated pages belong to the last release; the site shows pages of the current code.
release: $(VENV)/ready
	@DRY="$(DRY)" scripts/release.sh $(BIN)

release-check: $(VENV)/ready
	$(BIN)/python -m docs.generate.released --check

engine: $(VENV)/ready
	@scripts/engine.sh start

engine-stop:
	@scripts/engine.sh stop

# Images and clusters are in the Docker engine, so this target also starts an engine if it can.
clean:
	@if [ "$$(id -u)" = 0 ] && command -v dockerd > /dev/null; \
	    then ALL="$(ALL)" $(ENGINE) scripts/clean.sh $(VENV); \
	    else ALL="$(ALL)" scripts/clone.sh scripts/clean.sh $(VENV); fi
