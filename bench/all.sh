#!/usr/bin/env bash
# Runs all measurements, one after the other, and compares the figures with the targets: `make bench`.
#
#   bench/all.sh [PART ...]     default: decisions votes growth deadlines lists restricted history searches guests authors audit relay peers
#
# Takes about an hour with all engines of `peers` (PEERS="wrkflw restate" chooses some). The output of each part is kept in
# target/bench. Ends with one table. The exit code is 1 if a figure misses its target. PROGRAMS=FOLDER measures what was built there.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

parts=("$@")
[ $# -gt 0 ] || parts=(decisions votes growth deadlines lists restricted history searches guests authors audit relay peers)
kept=target/bench
mkdir -p $kept

measure() {
  case $1 in
  decisions) bench/run.sh 1 ;;
  votes) bench/votes.sh ;;
  growth) bench/growth.sh ;;
  deadlines) bench/deadlines.sh 2 1500 ;;
  lists) bench/lists.sh ;;
  restricted) bench/lists.sh 1000000 200 restricted ;;
  history) bench/history.sh ;;
  searches) bench/search.sh ;;
  guests) build_programs && wrkflw-bench guests ;;
  authors) bench/authors.sh ;;
  audit) build_programs && wrkflw-bench verify ;;
  relay) bench/relay.sh 1 60000 ;;
  # shellcheck disable=SC2086 # a list of engines
  peers) CALLERS=32 SECONDS_A_RUN=8 RUNS=2 bench/peers/run.sh ${PEERS:-} ;;
  *)
    echo "there is no part $1; the parts are decisions, votes, growth, deadlines, lists, restricted, history, searches, guests, authors, audit, relay or peers" >&2
    exit 2
    ;;
  esac
}

files=()
for part in "${parts[@]}"; do
  echo "== $part"
  measure "$part" 2>&1 | tee "$kept/$part.txt"
  files+=("$kept/$part.txt")
done
echo "== targets"
awk -f bench/targets.awk "${files[@]}" | tee $kept/targets.txt
! grep -q missed $kept/targets.txt
