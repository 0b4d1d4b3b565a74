#!/usr/bin/env bash
# Runs each target with inputs that libFuzzer derives from its corpus.
#
#   run.sh [SECONDS] [TARGET...]   run each target for SECONDS (default: 60, all targets), two at a time;
#                                  `config` and `jwks` run for half of it
#   run.sh keep [TARGET...]        add the inputs that reached new code in the last runs, as few and small as possible
#
# FUZZ_SEED is libFuzzer's seed. Without it, each run has another one. With FUZZ_HOST=tested
# it uses the host that is compiled for the tests, and libFuzzer has the coverage of the targets only. Without it, the host is compiled
# again, with coverage counters.
#
# An input that violates a property is written to the corpus at once. Commit it
# with the fix: from then on the everyday tests run it.
set -euo pipefail

cd "$(dirname "$0")/.."
at_once=2
input_seconds_max=20
memory_mb_max=2048
files_max=200
work=target/fuzz

say() { echo "fuzz: $*"; }

build() {
  local compiler=fuzz/instrument.sh
  [ "${FUZZ_HOST:-}" != tested ] || compiler=scripts/compiler.sh
  # With the features of the whole workspace, so that dependencies are those of every other build.
  cargo --config "build.rustc-workspace-wrapper=\"$PWD/$compiler\"" build --quiet --workspace --bin wrkflw-fuzz --features wrkflw-fuzz/libfuzzer
  mkdir -p "$work"
  # A copy: another build may replace the file while this one runs.
  cp "$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/debug/wrkflw-fuzz" "$work/fuzzer"
}

targets() { find fuzz/corpus -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort; }

# Text inputs stay short; a component takes more.
bytes_max() { if [ "$1" = scan ]; then echo 16384; else echo 4096; fi; }

# Only operators and identity providers write settings and key sets, and an input of `config` takes long.
seconds_of() { case $1 in config | jwks) echo $((($2 + 1) / 2)) ;; *) echo "$2" ;; esac; }

fuzzer() {
  local target=$1
  shift
  WRKFLW_FUZZ_TARGET=$target "$work/fuzzer" -seed="${FUZZ_SEED:-0}" -max_len="$(bytes_max "$target")" -timeout="$input_seconds_max" \
    -rss_limit_mb="$memory_mb_max" "$@"
}

# Runs one target. Its output goes to a file, whose end is shown if the target failed.
run_one() {
  local target=$1 log=$work/$1.log dictionary=() seconds
  seconds=$(seconds_of "$1" "$2")
  mkdir -p "$work/$target"
  [ ! -f "fuzz/dictionaries/$target" ] || dictionary=(-dict="fuzz/dictionaries/$target")
  if fuzzer "$target" -max_total_time="$seconds" -artifact_prefix="fuzz/corpus/$target/" "${dictionary[@]}" \
    "$work/$target" "fuzz/corpus/$target" >"$log" 2>&1; then
    say "$target: $(grep -o 'Done .*' "$log" | tail -1), $(grep -o 'cov: [0-9]*' "$log" | tail -1)"
  else
    say "$target: BROKEN"
    grep -vE '^#[0-9]+' "$log" | tail -40
    return 1
  fi
}

run_all() {
  local seconds=$1 failed=0 target pids=()
  shift
  for target in "$@"; do
    if [ ${#pids[@]} -ge $at_once ]; then
      wait "${pids[0]}" || failed=1
      pids=("${pids[@]:1}")
    fi
    run_one "$target" "$seconds" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  return $failed
}

keep_one() {
  local target=$1 fresh=$work/$1.kept
  rm -rf "$fresh"
  mkdir -p "$fresh" "$work/$target"
  fuzzer "$target" -set_cover_merge=1 "$fresh" "fuzz/corpus/$target" "$work/$target" >"$work/$target.log" 2>&1
  find "$fresh" -type f | sort | awk -v most=$((files_max - $(find "fuzz/corpus/$target" -type f | wc -l))) "NR <= most" | xargs -r cp -t "fuzz/corpus/$target"
  say "$target: $(find "fuzz/corpus/$target" -type f | wc -l) inputs"
}

action=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || mapfile -t all < <(targets)
[ $# -gt 0 ] || set -- "${all[@]}"
case $action in
  keep) build && for target in "$@"; do keep_one "$target"; done ;;
  *[!0-9]*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  *) build && run_all "$action" "$@" ;;
esac
