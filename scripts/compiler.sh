#!/usr/bin/env bash
# The compiler of this workspace's crates in scripts/test.sh: clippy, so that one pass lints and compiles them. The crates with the
# feature `libfuzzer`, which are those of the fuzzer, get coverage counters.
set -euo pipefail

case " $* " in
  *' feature="libfuzzer" '*)
    . "${BASH_SOURCE%/*}/../fuzz/coverage.sh"
    set -- "$@" "${coverage[@]}"
    ;;
esac
exec clippy-driver "$@"
