# The project's verbs. `make demo` and `make test` do all the set-up by themselves.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test test-full conformance table equivalence study lint types bench ci setup lock clean run-setup dev-setup

bin := .venv/bin
export PYTHON
# An ordinary user's PATH lacks the folders in which Debian keeps nft, and tests look at rules with it.
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin

help: ## List the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: run-setup ## Set up, then watch one flow go dark (20 s)
	@$(bin)/lab demo

test: dev-setup ## Set up, then the unit tests and the experiments (7 min; 11 with a Docker engine)
	scripts/tests.sh -n 4 --dist loadfile -m "not slow and not containers and not conformance"
	scripts/tests.sh -n 4 -m "not slow and containers"
	scripts/tests.sh -m "not slow" lab/

test-full: dev-setup ## The same, with the experiments that take minutes each
	scripts/tests.sh -n 4 --dist loadfile -m "not containers and not conformance"
	scripts/tests.sh -n 4 -m containers
	scripts/tests.sh lab/

conformance: dev-setup ## Bring releases of others' clients, and run them against the lab (3 min)
	scripts/conformance.sh
	scripts/tests.sh -n 6 tests/conformance

table: dev-setup ## Run the experiments, write docs/experiments.md and the README's table
	$(bin)/python -m pytest -m "not slow" lab/ --lab-table docs/experiments.md
	$(bin)/python scripts/readme_table.py

equivalence: dev-setup ## Run the experiments on both backends, write docs/equivalence.md (10 min)
	@# With 36 testbeds beside 12 sets of containers Docker 20.10 stopped answering: networks made while others went.
	LAB_SIDE_BY_SIDE=$${LAB_SIDE_BY_SIDE:-8} $(bin)/python -m pytest -m "not slow" lab/ --backend both \
	  --lab-equivalence docs/equivalence.md

study: run-setup ## Run the whole study, write docs/findings.md; STUDY=--full for real waits
	scripts/study_page.sh $(bin)/lab $(STUDY)

lint: dev-setup ## Format and lint, changing nothing
	$(bin)/ruff format --check .
	$(bin)/ruff check .

types: dev-setup ## Type check, strict
	$(bin)/mypy

bench: dev-setup ## Measure against other tools; BENCH_OUT=docs/bench.md writes the page
	$(bin)/python -m pytest benchmarks/ $(if $(BENCH_OUT),--figures $(BENCH_OUT))

ci: ## What CI runs, on a new machine as root
	.ci/run

setup: dev-setup ## The set-up alone: system packages, .venv, the lab in it

lock: dev-setup ## Resolve the locks in requirements/ anew
	scripts/lock.sh

clean: ## Remove .venv, caches and built packages; runs/ stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

run-setup:
	@scripts/setup.sh run

dev-setup:
	@scripts/setup.sh dev
