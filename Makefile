# `make help` lists the targets. After `make setup`, plain cargo works too: nothing has to be exported.

PYTHON ?= python3
CARGO ?= cargo
# One profile for `demo` and `test`, so that nothing is compiled twice: the core optimised, with debug assertions, tests and examples compiled
# quickly. The packages are the default members of Cargo.toml: all but the Python package, which pip builds.
PROFILE = --profile ci

.PHONY: help setup demo test fuzz audit lint bench doc doctor python
.DEFAULT_GOAL := help

help: ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## fetch libtorch into .libtorch/, or link there to the one that you have
	@command -v $(CARGO) >/dev/null || { echo "setup: error: no cargo; what to do: install Rust from https://rustup.rs" >&2; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "setup: error: no $(PYTHON); what to do: install Python 3 with pip" >&2; exit 1; }
	@$(PYTHON) scripts/fetch_libtorch.py

demo: setup ## train on rings, print exact probabilities beside the target, draw them in out/ring.svg
	$(CARGO) run $(PROFILE) --example ring

# Examples aren't tests: `.ci/run` runs each of them. Not `--lib`: it would build test programs of libraries that have no test inside.
test: setup ## all tests of all packages
	$(CARGO) test $(PROFILE) --tests
	$(CARGO) test $(PROFILE) --doc

fuzz: setup ## half a million attacks on each reader, environment and distribution; GFN_FUZZ_SEED chooses others
	GFN_FUZZ_EXECUTIONS=500000 $(CARGO) test --release -p gfn-fuzz --features descriptors -- --nocapture

audit: ## licences, sources and known faults of the dependencies; needs `cargo install cargo-deny`, and a way to the database of faults
	$(CARGO) deny check

lint: setup ## rustfmt and clippy, warnings denied
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --all-targets -- -D warnings

bench: setup ## all criterion benches
	$(CARGO) bench

doc: setup ## the API documentation, in target/doc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps

python: setup ## install the Python package into an environment of its own, and test it there
	$(PYTHON) scripts/check_python.py

doctor: ## Rust, compiler, libtorch and CUDA as seen from here, without a build
	@$(PYTHON) scripts/doctor.py
