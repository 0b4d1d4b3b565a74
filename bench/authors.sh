#!/usr/bin/env bash
# What an author of a flow waits for, in each language, from the template of `wrkflw plugin new`.
#
#   bench/authors.sh [LANGUAGE...]     default: rust c ts js python
#
# The first build has nothing to begin with, and installs the tools of other languages than Rust. The later build follows a change. `save`
# is the median time from saving a file to the activated version, with `wrkflw plugin watch`.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

root=$PWD
port=18086
saves=5
save_seconds_max=60
languages=("$@")
[ $# -gt 0 ] || languages=(rust c ts js python)

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# COMMAND...: sets $took to the milliseconds that it takes.
timed() {
  local began
  began=$(now_ms)
  "$@" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
  took=$(($(now_ms) - began))
}

# NUMBER: gives an outcome of the flow in this folder another name.
change() { sed -i "s/\"WITHDRAWN[0-9]*\"/\"WITHDRAWN$1\"/" "$(echo src/*.*)"; }

# WORDS COUNT: waits until the watch has said these words so many times.
said() {
  for _ in $(seq $((save_seconds_max * 100))); do
    [ "$(grep -c "$1" "$work/watch")" -lt "$2" ] || return 0
    kill -0 $watch || break
    sleep 0.01
  done
  cat "$work/watch" >&2
  exit 1
}

end_more() { [ -z "${watch:-}" ] || kill "$watch" 2>/dev/null || true; }

# Sets $saved to the median of some saves. The first round of the watch publishes what is there.
saves() {
  wrkflw plugin watch --server http://127.0.0.1:$port --token "$BENCH_ADMIN" >/dev/null 2>"$work/watch" &
  watch=$!
  said 'waiting for changes' 1
  local each=() number began before
  for number in $(seq $saves); do
    before=$(grep -c 'published and activated' "$work/watch" || true)
    began=$(now_ms)
    change "$number"
    said 'published and activated' $((before + 1))
    each+=($(($(now_ms) - began)))
    said 'waiting for changes' $((number + 1))
  done
  kill $watch
  wait $watch 2>/dev/null || true
  watch=
  saved=$(printf '%s\n' "${each[@]}" | sort -n | sed -n "$(((saves + 1) / 2))p")
}

begin
start_database
start_host $port
await_quiet
for language in "${languages[@]}"; do
  cd "$work"
  wrkflw plugin new "in-$language" --language "$language" --quiet >/dev/null
  cd "in-$language"
  timed wrkflw plugin build
  first=$took
  timed wrkflw plugin test
  tested=$took
  change 100
  timed wrkflw plugin build
  later=$took
  saves
  awk -v language="$language" -v first="$first" -v tested="$tested" -v later="$later" -v saved="$saved" 'BEGIN {
    printf "%-7s first build %5.1f s  first test %5.1f s  later build %5.1f s  save %5.1f s\n", language, first / 1000, tested / 1000, later / 1000, saved / 1000 }'
  cd "$root"
done
