#!/usr/bin/env bash
# Builds the program with profile-guided optimisation (PGO), and prints the program's path.
#
# An instrumented build serves decisions, lists and searches of the benchmarks, each on a private PostgreSQL. Then the program is
# built once more with the profiles. Takes two release builds and five minutes of benchmarks. Log: target/pgo/training.log
set -euo pipefail

cd "$(dirname "$0")/.."
say() { echo "pgo: $*" >&2; }
fail() { say "$*"; exit 1; }

folder=$PWD/target/pgo
target=$(rustc -vV | sed -n 's/^host: //p')
tools=$(rustc --print sysroot)/lib/rustlib/$target/bin
built=$folder/$target/release

# The version must be the compiler's: those of distributions cannot read its profiles.
ensure_tools() {
  [ -x "$tools/llvm-profdata" ] && return
  command -v rustup >/dev/null || fail "install llvm-profdata of this Rust's LLVM as $tools/llvm-profdata"
  rustup --quiet component add llvm-tools >&2
}

# FLAGS PACKAGE...: builds with flags for the target alone, so that build scripts and macros run without them.
build() {
  local flags=$1 packages=() package variable
  shift
  for package in "$@"; do packages+=(--package "$package"); done
  variable=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_RUSTFLAGS
  env "$variable=$flags" cargo build --release --locked --target "$target" --target-dir "$folder" "${packages[@]}" >&2
}

# Only hosts write profiles, into HOST_PROFILES. The default path in the program, below /dev/null, cannot be opened: the process that
# compiles components may not write files, and would be killed.
train() {
  rm -rf "$folder/profiles" && mkdir -p "$folder/profiles"
  export PROGRAMS=$built HOST_PROFILES=$folder/profiles
  CLIENTS='1 8 64 256' bench/run.sh 1 1
  bench/search.sh 20000 20 lists
  bench/search.sh 20000 20 searches
}

ensure_tools
say "building an instrumented program"
build -Cprofile-generate=/dev/null wrkflw wrkflw-bench
say "serving decisions, lists and searches"
# All other commands report that they cannot write a profile.
train 2>&1 | grep -v '^LLVM Profile Error' >"$folder/training.log" || { tail -20 "$folder/training.log" >&2; fail "the training failed: $folder/training.log"; }
"$tools/llvm-profdata" merge -o "$folder/merged.profdata" "$folder"/profiles/*.profraw
say "building with the profiles of $(ls "$folder/profiles" | wc -l) hosts"
build "-Cprofile-use=$folder/merged.profdata" wrkflw
echo "$built/wrkflw"
