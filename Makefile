# The commands of everyday work. Each installs what it lacks; scripts/ has the how.

.DEFAULT_GOAL := help
.PHONY: help dev build dist test soak bench check fuzz contract clients browser fmt lint deny doc sqlx kafka setup

# Queries compile by the committed metadata; only `make sqlx` asks a database.
export SQLX_OFFLINE = true

help: ## List these commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

dev: ## Build, and run everything locally; ARGS='--port 9000' passes through
	@scripts/setup.sh dev
	@[ -e target/debug/wrkflw ] || echo "dev: building the program and the sample flow; the first time this takes five to seven minutes on two cores, later seconds" >&2
	@exec cargo run --package wrkflw -- dev $(ARGS)

build: ## Build the release binary
	@scripts/setup.sh dev
	@cargo build --release --package wrkflw

dist: ## Make a release archive in target/dist; ARGS=try also runs it in a bare Debian root, as root
	@scripts/setup.sh dev
	@scripts/dist.sh $(ARGS)

test: ## Check and test everything, with a PostgreSQL and a Kafka of its own
	@scripts/test.sh

soak: ## The long versions: crashes, races, outages, idle connections, random questions; then fuzzing and the contract
	@WRKFLW_SOAK=1 TEST_ARGS='--test all -- crashes:: concurrency:: faults:: access:: sandbox:: subflows:: --nocapture --test-threads 1 $(ARGS)' scripts/test.sh setup test
	@fuzz/run.sh 600
	@scripts/schemathesis.sh 1200

bench: ## Measure, and hold the figures against what we want; ARGS='decisions lists' measures these
	@scripts/setup.sh test
	@bench/all.sh $(ARGS)

check: ## What needs no server: formatting, clippy, dependencies, documentation
	@scripts/test.sh setup fmt lint deny doc

fuzz: ## Feed the fuzz targets, each for SECONDS (60); a broken promise is kept in fuzz/corpus
	@scripts/setup.sh test
	@fuzz/run.sh $(or $(SECONDS),60)

contract: ## Hold a running host against /openapi.json for SECONDS (120), with schemathesis
	@scripts/setup.sh test
	@scripts/schemathesis.sh $(or $(SECONDS),120)

clients: ## Generate the clients in TypeScript and Python, and run them against a host
	@scripts/setup.sh test
	@scripts/clients.sh

browser: ## Try the console in a real browser; screenshots go to target/browser
	@scripts/setup.sh test
	@scripts/browser.sh

fmt: ## Format the code
	@cargo fmt --all

lint: ## Compile everything with clippy
	@scripts/test.sh setup lint

deny: ## What we depend on: licences, sources, and duplicates with the reason
	@scripts/setup.sh test
	@.tools/bin/cargo-deny check licenses bans sources

doc: ## Build the documentation, with warnings as errors, and run its examples
	@scripts/test.sh doc

sqlx: ## Write the query metadata anew, after changing a query or a migration
	@scripts/setup.sh dev
	@scripts/sqlx.sh

kafka: ## Run a Kafka broker on 127.0.0.1:9092; `scripts/kafka.sh stop` ends it
	@scripts/setup.sh test
	@scripts/kafka.sh start

setup: ## Install what is missing for all of these
	@scripts/setup.sh test
