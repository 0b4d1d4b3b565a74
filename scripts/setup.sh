#!/usr/bin/env bash
# Installs what is missing on this machine. Prints nothing if nothing is missing.
#
#   setup.sh [dev]   to build and to run `wrkflw dev`: a C and C++ compiler, make,
#                    PostgreSQL, the pinned Rust toolchain, the plugins' target
#   setup.sh test    that, and what the tests use: Java and Maven, Kafka's jars, Python,
#                    Node.js and clang for flows in other languages, Chromium for the console,
#                    clippy and rustfmt, cargo-deny (in .tools/)
#
# System packages come from the distribution (apt), as root or through sudo. On
# other systems it names what to install, all at once, and stops.
set -euo pipefail

cargo_deny_version=0.20.2
java_version_min=17

cd "$(dirname "$0")/.."
say() { echo "setup: $*" >&2; }
fail() { say "$*"; exit 1; }
has() { command -v "$1" >/dev/null; }

java_version() { java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'; }
has_java() { has javac && has java && [ "$(java_version)" -ge "$java_version_min" ]; }

# Prints the missing packages by Debian's names.
missing_packages() {
  has cc && has c++ && has make || echo build-essential
  scripts/postgres.sh bindir >/dev/null && has psql || echo postgresql
  [ "$1" = test ] || return 0
  has_java || echo openjdk-17-jdk-headless
  has mvn || echo maven
  python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  has node || echo nodejs
  has npm || echo npm
  has clang || echo clang
  has wasm-ld || echo lld
  has chromium-headless-shell || has chromium || has chromium-browser || echo chromium fonts-noto-core
}

install_packages() {
  local packages=$*
  has apt-get || fail "install these by your package manager (named here as Debian does) and run again: $packages"
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    has sudo || fail "not root, and no sudo: run as root 'apt-get install -y $packages' and then this again"
    as_root=(sudo)
  fi
  say "installing $packages"
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $packages >&2 ||
    fail "apt-get could not install: $packages"
}

# Chromium's headless shell takes half the processor time of the complete Chromium. Not every distribution has it.
prefer_headless_shell() {
  has chromium-headless-shell && return
  has apt-cache && apt-cache show chromium-headless-shell >/dev/null 2>&1 || return 0
  (install_packages chromium-headless-shell) || say "the complete Chromium is used, which takes longer"
}

# rust-toolchain.toml names the toolchain and its components.
ensure_toolchain() {
  has rustup || fail "rustup is missing: install it from https://rustup.rs"
  if ! rustc --version >/dev/null 2>&1; then
    say "installing the Rust toolchain of rust-toolchain.toml"
    rustup toolchain install --no-self-update --profile minimal >&2 || fail "rustup could not install the toolchain of rust-toolchain.toml"
  fi
  [ "$1" = test ] || return 0
  cargo clippy --version >/dev/null 2>&1 && cargo fmt --version >/dev/null 2>&1 || rustup component add clippy rustfmt >&2
}

# Without debug information and optimisation the build takes half a minute. Checking the whole dependency graph still takes only
# two seconds.
ensure_cargo_deny() {
  [ "$(.tools/bin/cargo-deny --version 2>/dev/null)" = "cargo-deny $cargo_deny_version" ] && return
  say "building cargo-deny $cargo_deny_version"
  cargo install --quiet --locked --debug --no-default-features --root .tools --target-dir target/tools \
    --config profile.dev.debug=0 --config profile.dev.incremental=false "cargo-deny@$cargo_deny_version" >&2
  rm -rf target/tools
}

purpose=${1:-dev}
case $purpose in dev | test) ;; *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;; esac

packages=$(missing_packages "$purpose" | xargs)
[ -z "$packages" ] || install_packages $packages
ensure_toolchain "$purpose"
scripts/wasm-target.sh >/dev/null
if [ "$purpose" = test ]; then
  prefer_headless_shell
  scripts/kafka.sh install
  ensure_cargo_deny
fi
