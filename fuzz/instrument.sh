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
    . "${BASH_SOURCE%/*}/coverage.sh"
    set -- "$@" "${coverage[@]}"
    ;;
esac
exec "$rustc" "$@"
