#!/usr/bin/env bash
# Compiles the crates of this workspace for lint, test and fuzz: by clippy, so that what is compiled for the tests is linted in the
# same pass. The fuzzer's own crates, the only ones that have libFuzzer, are told apart by that feature.
set -euo pipefail

case " $* " in
  *' feature="libfuzzer" '*)
    . "${BASH_SOURCE%/*}/../fuzz/coverage.sh"
    set -- "$@" "${coverage[@]}"
    ;;
esac
exec clippy-driver "$@"
