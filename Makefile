# Everything starts here: `make demo` shows the product, `make test` proves it. Both can be repeated.
#
# make demo            build an image, start a virtual cluster, train MNIST on two nodes (KEEP=1 leaves the cluster up)
# make test            all checks and tests, the integration tests against real Docker, Apptainer and Slurm included
# make image           the training image and its SIF (RECIPE=name for another)
# make check           lint, types, import rules
# make unit            the fast tests alone
# make engine          start a Docker engine and leave it running (make engine-stop ends it)
# make clean           remove everything that these commands made

RECIPE ?= tf2.15-cpu
KEEP   ?=
VENV   := .venv
BIN    := $(VENV)/bin
SHELL  := /bin/bash

.PHONY: demo test image check unit integration engine engine-stop clean help
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# make/make/p' Makefile

# The environment is made anew when the package's metadata changes.
$(VENV)/ready: pyproject.toml scripts/setup.sh
	@scripts/setup.sh $(VENV)

demo: $(VENV)/ready
	@KEEP="$(KEEP)" scripts/with-engine.sh scripts/demo.sh $(BIN) "$(RECIPE)"

image: $(VENV)/ready
	@scripts/with-engine.sh scripts/image.sh $(BIN) "$(RECIPE)"

test: $(VENV)/ready
	@$(MAKE) --no-print-directory check unit integration

check: $(VENV)/ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	shellcheck scripts/*.sh containers/*.sh containers/cluster/*.sh

unit: $(VENV)/ready
	$(BIN)/pytest tests/unit -n auto -q

integration: $(VENV)/ready
	scripts/with-engine.sh $(BIN)/pytest tests/integration -q --durations=15

engine: $(VENV)/ready
	@scripts/engine.sh start

engine-stop:
	@scripts/engine.sh stop

# Images and clusters are in the engine, so one is started for this too where that is possible.
clean:
	@if [ "$$(id -u)" = 0 ] && command -v dockerd > /dev/null; \
	    then scripts/with-engine.sh scripts/clean.sh $(VENV); else scripts/clean.sh $(VENV); fi
