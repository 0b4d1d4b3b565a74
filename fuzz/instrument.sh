#!/usr/bin/env bash
# Stands before rustc for the crates of this workspace, and makes those whose ways a fuzzer follows tell where it has
# been: the host's and its own. All other crates are built as ever and shared with other builds.
set -euo pipefail

rustc=$1
shift
name=
for word in "$@"; do
  [ "$name" != next ] || name=$word
  [ "$word" != --crate-name ] || name=next
done
# What most inputs spend their time in. Optimising the rest takes longer than its inputs gain.
case $name in
  wrkflw_core | wrkflw_sandbox | wrkflw_fuzz) set -- "$@" -C opt-level=1 ;;
esac
case $name in
  wrkflw | wrkflw_core | wrkflw_sandbox | wrkflw_store | wrkflw_server | wrkflw_fuzz)
    set -- "$@" -C passes=sancov-module \
      -C llvm-args=-sanitizer-coverage-level=4 \
      -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
      -C llvm-args=-sanitizer-coverage-pc-table \
      -C llvm-args=-sanitizer-coverage-trace-compares
    ;;
esac
exec "$rustc" "$@"
