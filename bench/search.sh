#!/usr/bin/env bash
# Searches by attributes over HTTP, on a private PostgreSQL filled with a million instances.
#
#   bench/search.sh [INSTANCES] [REQUESTS] [SET]     default 1000000 instances, 200 requests for each question, searches
#   SEARCH_DATABASE=postgres://... bench/search.sh     on a database of that server, made anew and dropped again
set -euo pipefail
cd "$(dirname "$0")/.."

instances=${1:-1000000}
requests=${2:-200}
set=${3:-searches}
port=18081
profile=${PROFILE:-release}

cargo build --quiet --profile "$profile" --package wrkflw --package wrkflw-bench
folder=$profile
[ "$profile" = dev ] && folder=debug
export PATH=$PWD/target/$folder:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/wrkflw-search.XXXXXX")
chmod 711 "$work"
host=
finish() {
  [ -z "$host" ] || kill "$host" 2>/dev/null || true
  [ -z "$host" ] || wait "$host" 2>/dev/null || true
  if [ -n "${SEARCH_DATABASE:-}" ]; then
    psql -q "$SEARCH_DATABASE" -c 'drop database if exists wrkflw_search with (force)' || true
  else
    scripts/postgres.sh stop "$work/pg" || true
  fi
  rm -rf "$work"
}
trap finish EXIT

if [ -n "${SEARCH_DATABASE:-}" ]; then
  psql -q "$SEARCH_DATABASE" -c 'drop database if exists wrkflw_search with (force)' -c 'create database wrkflw_search'
  url=${SEARCH_DATABASE%/*}/wrkflw_search
else
  url=$(scripts/postgres.sh start "$work/pg")
fi

(cd "$work" && exec wrkflw dev --database-url "$url" --port $port >"$work/host.log" 2>&1) &
host=$!
for _ in $(seq 300); do
  if grep -q '^ready' "$work/host.log"; then break; fi
  kill -0 $host || { cat "$work/host.log" >&2; exit 1; }
  sleep 0.1
done
for person in author reviewer reviewer2; do
  export "BENCH_${person^^}=$(cd "$work" && wrkflw token $person)"
done

wrkflw-bench fill-for "$set" "$instances" | psql -q -v ON_ERROR_STOP=1 "$url"
wrkflw-bench search --set "$set" --address 127.0.0.1:$port --count 20 >/dev/null # warm
wrkflw-bench search --set "$set" --address 127.0.0.1:$port --count "$requests"
