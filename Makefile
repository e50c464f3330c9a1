# Punctual's commands. `make help` prints each target with its comment.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test check tools fmt-check clippy nextest deny contract sim chaos bench soak api docs

# Where cargo builds, so that the binary is found wherever that is.
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Extra arguments of `punctual serve`, as in `make run ARGS="--listen 127.0.0.1:8080"`.
ARGS ?=
# How many seeds the simulator tries, from FROM on; `SEED=42` tries that one alone, `TRACE=job_…` prints what happens to
# a job on the way.
SEEDS ?= 1000
SEED ?=
# How long `make chaos` goes on, and how many slots a second fire; `CHAOS_SEED=42` repeats an order of faults.
CHAOS_SECONDS ?= 600
CHAOS_RATE ?= 300
CHAOS_SEED ?=
# How long it then makes many calls at once on each SQL store; `CONCURRENT_SEED=42` picks the same calls again.
CONCURRENT_SECONDS ?= 120
CONCURRENT_SEED ?=
# What properties and random operations begin with in `make test` and `make check`; PROPTEST_RNG_SEED=42 tries the same again.
ifndef PROPTEST_RNG_SEED
PROPTEST_RNG_SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
endif

# What `make bench` measures on, sqlite or postgres; how long `make soak` takes.
STORE ?= sqlite
MINUTES ?= 20
# `make soak SNAPSHOT=second` (or `minute`) has a neighbour's transaction open instead, with jobs that are due so often.
SNAPSHOT ?=

help: ## Print every target with its comment.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Whom a server that `make run` starts may call: this machine, too, so that the first job has somebody to call.
run: export PUNCTUAL_EGRESS_ALLOW ?= public,loopback
run: ## Build the release binary and start it: `punctual serve` (more arguments: ARGS="…").
	@echo "==> building the release binary (a first build takes some minutes)"
	cargo build --release --locked -p punctual
	@echo "==> starting it; jobs may call $$PUNCTUAL_EGRESS_ALLOW addresses (PUNCTUAL_EGRESS_ALLOW); stop it with Ctrl-C"
	$(TARGET)/release/punctual serve $(ARGS)

test check: export PROPTEST_RNG_SEED := $(PROPTEST_RNG_SEED)
test: tools fmt-check contract clippy deny ## Install what tests need, then run them all: format, clippy, tidy, every suite.
	@echo "==> the examples in the documentation"
	cargo test --workspace --all-features --locked --doc --quiet
	@echo "==> every test of the workspace, PROPTEST_RNG_SEED=$$PROPTEST_RNG_SEED; a missing program fails a test here instead of skipping it"
	PUNCTUAL_TEST_COMPLETE=1 cargo nextest run --workspace --all-features --locked --no-fail-fast || \
		{ echo "==> what was random began with PROPTEST_RNG_SEED=$$PROPTEST_RNG_SEED"; exit 1; }
	@echo "==> requests made from the contract, with a key and without: no 5xx, and nothing that the contract does not name"
	scripts/schemathesis $(TARGET)/debug/punctual

check: fmt-check clippy ## The quick form: format, clippy, unit tests and tidy; installs nothing.
	@echo "==> unit tests and tidy, PROPTEST_RNG_SEED=$$PROPTEST_RNG_SEED"
	cargo test --workspace --all-features --locked --lib --bins --quiet
	cargo test --all-features --locked -p punctual --test tidy --quiet

sim: ## Run the simulator in release, an hour a seed: SEEDS=1000 tries that many seeds, SEED=42 one.
	@echo "==> the simulator: $(if $(SEED),seed $(SEED),$(SEEDS) seeds), a simulated hour each"
	SEEDS=$(SEEDS) $(if $(SEED),SEED=$(SEED)) cargo run --release --locked -p sim

chaos: ## Three real nodes over PostgreSQL, one fault after another (CHAOS_SECONDS=600, CHAOS_SEED=42, CHAOS_RATE=300); then both SQL stores under many calls at once (CONCURRENT_SECONDS=120).
	cargo build --release --locked -p punctual
	@echo "==> $(CHAOS_SECONDS) s of faults while $(CHAOS_RATE) slots a second fire"
	PUNCTUAL_TEST_COMPLETE=1 CHAOS_SECONDS=$(CHAOS_SECONDS) CHAOS_RATE=$(CHAOS_RATE) $(if $(CHAOS_SEED),CHAOS_SEED=$(CHAOS_SEED)) \
		CHAOS_BINARY=$(abspath $(TARGET))/release/punctual \
		cargo test --locked -p punctual --test it -- chaos::three_nodes --nocapture
	@echo "==> many calls at once, $(CONCURRENT_SECONDS) s on each SQL store: some order must explain the answers"
	CONCURRENT_SECONDS=$(CONCURRENT_SECONDS) $(if $(CONCURRENT_SEED),CONCURRENT_SEED=$(CONCURRENT_SEED)) \
		cargo test --release --locked --all-features -p store --lib -- some_order_explains --nocapture --test-threads=1

bench: ## Run every bench beside its floor, and write the table of docs/benchmarks.md: STORE=postgres on PostgreSQL.
	cargo build --release --locked -p punctual
	STORE=$(STORE) scripts/bench $(TARGET)/release/punctual

soak: ## Load a PostgreSQL server for MINUTES=20, and see whether its tables keep their size; or beside an open snapshot (SNAPSHOT=second, SNAPSHOT=minute).
	cargo build --release --locked -p punctual
	scripts/bench-postgres bash -c '"$$0" bench $(if $(SNAPSHOT),snapshot --every $(SNAPSHOT),soak --minutes $(MINUTES)) --store "$$PUNCTUAL_BENCH_STORE"' $(TARGET)/release/punctual

api: ## Write api/openapi.json from the server's routes.
	mkdir -p api
	cargo run --quiet --locked -p punctual -- openapi > api/openapi.json.new
	mv api/openapi.json.new api/openapi.json

docs: ## Write the tables of docs/guides that are made from the code: every setting, every metric.
	PUNCTUAL_WRITE_DOCS=1 cargo test --quiet --locked -p server the_guide_names
	PUNCTUAL_WRITE_DOCS=1 cargo test --quiet --locked -p punctual --bins the_guide_names

# What the targets above are made of.

tools:
	@scripts/install-test-tools

fmt-check:
	@echo "==> format"
	cargo fmt --all --check

clippy:
	@echo "==> clippy"
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
	@echo "==> clippy of the product, without what only tests are built with"
	cargo clippy -p punctual --locked -- -D warnings

deny:
	@echo "==> licences, versions and sources (advisories need a database from the network: cargo deny check advisories)"
	cargo deny --all-features check licenses bans sources

contract:
	@echo "==> the contract: is it OpenAPI 3.1, and do its examples fit its schemas"
	$(TARGET)/tools/openapi/bin/python scripts/check-openapi api/openapi.json
