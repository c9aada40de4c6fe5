# Each target sets up what it needs: python3 with venv, make and gcc are enough on a fresh machine.
# make venv | demo | test | lint | bench | eval | scoreboard | live | real | e2e | real-gpu | boards-check | render | docs
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: venv demo test lint bench eval scoreboard live real e2e real-gpu boards-check render docs clean
.DEFAULT_GOAL := help

help:
	@sed -n '2p' Makefile | cut -c3-

venv: $(STAMP)

# the stamp comes last, so that an installation that broke off is begun again
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	@# setuptools warns at length that folders of a checkout can be imported, which is what an editable one is for
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,analysis]'
	@touch $@

demo: $(STAMP)
	$(BIN)/python -m drill.demo

test: $(STAMP)
	@# several processes, a file's tests in one of them, long files first; what is compiled is kept for all of them
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m tests.bench

eval: $(STAMP)
	$(BIN)/python -m tests.evaluation
	$(BIN)/python -m tests.evaluation.detection --if-there

# SEEDS of each scenario; TOOLS=--tools installs and asks tools of others too
SEEDS ?= 2
scoreboard: $(STAMP)
	$(BIN)/python -m tests.evaluation.scoreboard --seeds $(SEEDS) $(TOOLS)

live: $(STAMP)
	@# half an hour in real time; make live SCENARIO=gpu-lost OPTIONS="--size full"
	$(BIN)/python -m tests.evaluation.live $(or $(SCENARIO),incident) $(OPTIONS)

real: $(STAMP)
	$(BIN)/python -m pytest -m real tests/real_engine

e2e: $(STAMP)
	$(BIN)/python -m pytest -m e2e tests/e2e

real-gpu: $(STAMP)
	$(BIN)/python -m pytest -m real_gpu tests/real_gpu

# both fetch node packages into .boards (650 MB) the first time: Grafana's own types, and its own components
boards-check: $(STAMP)
	$(BIN)/python -m tests.dashboards.schema
	THRASHOLD_BOARDS=1 $(BIN)/python -m pytest tests/dashboards

render: $(STAMP)
	$(BIN)/python -m tests.dashboards.render

docs: $(STAMP)
	$(BIN)/python -m exporter.reference docs/signals.md
	$(BIN)/python -m exporter.settings_reference docs/settings.md
	$(BIN)/python -m tests.exporter.engines_page docs/engines.md
	$(BIN)/python -m drill.scenarios.reference docs/scenarios.md
	$(BIN)/python -m alerts.reference docs/alerts.md
	$(BIN)/python -m alerts.runbooks_index docs/runbooks/README.md
	$(BIN)/python -m alerts.lint.reference docs/lint/README.md
	$(BIN)/python -m analysis.desk.reference docs/desk.md
	$(BIN)/python -m analysis.cascade.reference docs/causes.md

clean:
	rm -rf .venv .boards .real_engine .real_gpu .bench-peers build dist ./*.egg-info
