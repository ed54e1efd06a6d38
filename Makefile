# The commands for developers. `make demo` shows the product, and `make test` tests it. You can repeat each command.
#
# make demo            build an image, start a virtual cluster, train MNIST on two nodes (KEEP=1 leaves the cluster up)
# make test            run check, unit and smoke, about ten minutes; use it before a push (CHANGED=1: only the tests that
#                      the change since the main branch can affect)
# make test-all        run make test, and each shard (group) of the tests with services. A shard runs alone too:
#                      make test-image, test-cluster, test-jobs, test-programs, test-trainers, test-courses, test-package
#                      (WORKERS=1: one test at a time, RECIPE=name: with another image)
# make image           build the training image and its SIF (RECIPE=name of another recipe; for a cluster: SITE=name of
#                      its profile, or FACTS=file that `toolkit probe -o file` wrote there)
# make fuzz            test 10,000 damaged and hostile images and facts files (N=, SEED=; failures stay in build/fuzz),
#                      2,000 hostile jobs, whose scripts bash runs (JOBS=), and as many random launches, whose scripts
#                      are compared with the predicted launches
# make garbage         call each command thousands of times; each time, one of the files that it reads has random content
# make check           check format, lint, types, import rules, and the documentation with its links
# make words           check the vocabulary of docs/writing.md in all text for readers, and the spelling
# make docs            build the documentation site: build/site/index.html
# make unit            run the unit tests only
# make smoke           run a test for each promise of the README, with real Docker, Apptainer, Slurm and sshd
# make unit-pythons    run the unit tests also under Debian's python3 and the newest Python of this machine
# make engine          start a Docker engine and leave it running (make engine-stop ends it)
# make matrix          start the images of tests/matrix in every launch mode on every kind of cluster, and record the
#                      results (hours; skips recorded launches; MATRIX="--flavour bare" runs a part)
# make faults          cause real failures of programs on this machine and in containers, and check what
#                      `toolkit explain` says about them
# make horovod-matrix  build Horovod with each framework of tests/horovod, and compare two ranks with one process (an hour;
#                      skips recorded pairs; PAIRS="tensorflow-2.20 --again" repeats a part)
# make bench-image     measure conversion, size and start of an image, compared with plain apptainer build (RECIPE=,
#                      ROUNDS=, STARTS=, COLD=1 also builds from nothing); writes build/bench/image.json and docs/images.md
# make bench-train     compare the trainers' speed with the tutorials' own scripts, plain Keras, and one rank (RECIPE=,
#                      ROUNDS=); writes build/bench and docs/performance.md
# make bench-accuracy  train on whole data sets through toolkit launch for half an hour (RECIPE=); writes
#                      build/bench/accuracy.json and docs/accuracy.md
# make bench-learning  measure the effect of large batches on MNIST, and steps with and without XLA (RECIPE=); writes
#                      build/bench/learning.json and docs/images/learning.svg
# make release         check the version, its changelog and the generated pages, build sdist and wheel in build/release,
#                      test the wheel, and create the tag (DRY=1: everything but the tag)
# make release-check   list the generated pages and files that a release would change
# make fresh           list releases on the package index that recipes/knowledge lacks; fail if a row
#                      of recipes/knowledge is too old
# make requirements    update requirements/: the newest versions that pyproject.toml allows, with their hashes
# make clean           remove the files, images and clusters that these commands made in this clone, except Debian
#                      packages, the download cache, and clusters with your jobs (ALL=1 also removes cache and clusters)

# The default recipe of `toolkit launch`.
RECIPE ?= tf2.21-cpu
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
SHARDS := test-package test-image test-cluster test-jobs test-programs test-trainers test-courses
# Start a Docker engine if none runs, and label the images and containers of this clone.
ENGINE := scripts/clone.sh scripts/with-engine.sh
SHELL  := /bin/bash
# Let Python write compiled modules: tests import thousands of modules, and take three times as long without them.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test prepared test-all $(SHARDS) image faults fuzz garbage check lint words docs unit unit-pythons smoke matrix horovod-matrix bench-image bench-train bench-accuracy bench-learning engine engine-stop fresh requirements release release-check clean help
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# make/make/p; s/^#    / /p' Makefile

# Rebuild the virtual environment when the package's metadata changes.
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

# Build the images and start the cluster for the smoke tests.
prepared: $(VENV)/ready
	$(ENGINE) $(BIN)/python -m tests.services.ready

test-all: $(VENV)/ready
	@$(MAKE) --no-print-directory test CHANGED=
	@$(MAKE) --no-print-directory unit-pythons garbage $(SHARDS)

check: $(VENV)/ready
	@$(MAKE) --no-print-directory lint words docs

# SC1091: the scripts in containers/parts source each other in the container of the build.
lint: $(VENV)/ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/mypy -p docs.generate
	$(BIN)/lint-imports
	shellcheck --exclude=SC1091 scripts/*.sh containers/*.sh containers/cluster/*.sh containers/parts/*.sh

# Check vocabulary and spelling. After you fix words, run: .venv/bin/python -m tests.words --shrink
words: $(VENV)/ready
	$(BIN)/python -m tests.words
	$(BIN)/codespell

# MkDocs checks links and anchors in the Markdown pages; toolkit's own check reads the built site.
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

# The clusters stay up for the next run; `make clean` removes them.
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
	@$(ENGINE) scripts/image.sh $(BIN) torch-cpu
	@$(ENGINE) scripts/image.sh $(BIN) jax-cpu
	$(ENGINE) $(BIN)/python -m tests.benchmarks.train.run --peers --rounds $(ROUNDS) --page docs/performance.md

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

# The generated pages in git belong to the last release; the site shows pages of the current code.
release: $(VENV)/ready
	@DRY="$(DRY)" scripts/release.sh $(BIN)

release-check: $(VENV)/ready
	$(BIN)/python -m docs.generate.released --check

engine: $(VENV)/ready
	@scripts/engine.sh start

engine-stop:
	@scripts/engine.sh stop

# `make clean` removes images and clusters from the Docker engine, so it starts an engine if it can.
clean:
	@if [ "$$(id -u)" = 0 ] && command -v dockerd > /dev/null; \
	    then ALL="$(ALL)" $(ENGINE) scripts/clean.sh $(VENV); \
	    else ALL="$(ALL)" scripts/clone.sh scripts/clean.sh $(VENV); fi
