# `make help` lists the targets. After `make setup`, cargo can be used directly, without any exported
# variables.

PYTHON ?= python3
CARGO ?= cargo
# `demo` and `test` use the same profile, so that nothing is compiled twice. The core is optimised and has
# debug assertions, and tests and examples are compiled quickly. Cargo builds the default members of
# Cargo.toml, which are all packages but the Python package. pip builds the Python package.
PROFILE = --profile ci

.PHONY: help setup demo test fuzz audit lint bench doc doctor python
.DEFAULT_GOAL := help

help: ## lists the targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## downloads libtorch to .libtorch/, or makes .libtorch/ a link to an existing libtorch
	@command -v $(CARGO) >/dev/null || { echo "setup: error: no cargo; what to do: install Rust from https://rustup.rs" >&2; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "setup: error: no $(PYTHON); what to do: install Python 3 with pip" >&2; exit 1; }
	@$(PYTHON) scripts/fetch_libtorch.py

demo: setup ## trains on rings, compares exact probabilities with the target, draws them in out/ring.svg
	$(CARGO) run $(PROFILE) --example ring

# `--tests` excludes examples, which `.ci/run` builds and runs. `--lib` isn't used, because it would build
# test programs of libraries that contain no tests.
test: setup ## runs all tests of all packages
	$(CARGO) test $(PROFILE) --tests
	$(CARGO) test $(PROFILE) --doc

fuzz: setup ## tests all readers, environments, distributions with random inputs; GFN_FUZZ_SEED sets the seed
	GFN_FUZZ_EXECUTIONS=500000 $(CARGO) test --release -p gfn-fuzz --features descriptors -- --nocapture

audit: ## checks licences, sources and faults of dependencies; needs `cargo install cargo-deny` and the web
	$(CARGO) deny check

lint: setup ## runs rustfmt and clippy; warnings are errors
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --all-targets -- -D warnings

bench: setup ## runs all criterion benches
	$(CARGO) bench

doc: setup ## builds the API documentation in target/doc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps

python: setup ## installs the Python package in a new virtual environment, and tests it there
	$(PYTHON) scripts/check_python.py

doctor: ## checks Rust, compiler, libtorch and CUDA on this machine, without a build
	@$(PYTHON) scripts/doctor.py
