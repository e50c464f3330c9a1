# Punctual's commands. `make help` prints each target with its comment.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test check tools fmt-check clippy nextest deny sim bench api

# Where cargo builds, so that the binary is found wherever that is.
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Extra arguments of `punctual serve`, as in `make run ARGS="--listen 127.0.0.1:8080"`.
ARGS ?=
# How many seeds the simulator tries; `SEED=42` tries that one alone.
SEEDS ?= 1000
SEED ?=

help: ## Print every target with its comment.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build the release binary and start it: `punctual serve` (more arguments: ARGS="…").
	@echo "==> building the release binary (a first build takes some minutes)"
	cargo build --release --locked -p punctual
	@echo "==> starting it; stop it with Ctrl-C"
	$(TARGET)/release/punctual serve $(ARGS)

test: tools fmt-check clippy deny ## Install what tests need, then run them all: format, clippy, tidy, every suite.
	@echo "==> the examples in the documentation"
	cargo test --workspace --all-features --locked --doc --quiet
	@echo "==> every test of the workspace; a missing program fails a test here instead of skipping it"
	PUNCTUAL_TEST_COMPLETE=1 cargo nextest run --workspace --all-features --locked --no-fail-fast

check: fmt-check clippy ## The quick form: format, clippy, unit tests and tidy; installs nothing.
	@echo "==> unit tests and tidy"
	cargo test --workspace --all-features --locked --lib --bins --quiet
	cargo test --all-features --locked -p punctual --test tidy --quiet

sim: ## Run the simulator in release: SEEDS=1000 tries that many seeds, SEED=42 one.
	@echo "==> the simulator: $(if $(SEED),seed $(SEED),$(SEEDS) seeds)"
	SEEDS=$(SEEDS) $(if $(SEED),SEED=$(SEED)) cargo run --release --locked -p sim

bench: ## Run every bench beside its floor, and write the table of docs/benchmarks.md.
	cargo build --release --locked -p punctual
	scripts/bench $(TARGET)/release/punctual

api: ## Write api/openapi.json anew from the server's routes.
	mkdir -p api
	cargo run --quiet --locked -p punctual -- openapi > api/openapi.json.new
	mv api/openapi.json.new api/openapi.json

# What the targets above are made of.

tools:
	@scripts/install-test-tools

fmt-check:
	@echo "==> format"
	cargo fmt --all --check

clippy:
	@echo "==> clippy"
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings

deny:
	@echo "==> licences, versions and sources (advisories need a database from the network: cargo deny check advisories)"
	cargo deny --all-features check licenses bans sources
