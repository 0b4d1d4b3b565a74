#!/usr/bin/env bash
# Decisions over HTTP beside a pgbench run of the very statements, in turn, on one private and durable PostgreSQL.
#
#   bench/run.sh [ROUNDS] [SECONDS]     default 3 rounds, 5 seconds of pgbench each
#
# Prints a line per measurement; compare within one run only.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-3}
seconds=${2:-5}
instances=20000
decisions=2000
port=18080

cargo build --quiet --release --package wrkflw --package wrkflw-bench
export PATH=$PWD/target/release:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/wrkflw-bench.XXXXXX")
chmod 711 "$work"
host=
finish() {
  [ -z "$host" ] || kill "$host" 2>/dev/null || true
  [ -z "$host" ] || wait "$host" 2>/dev/null || true
  scripts/postgres.sh stop "$work/pg" || true
  rm -rf "$work"
}
trap finish EXIT

url=$(scripts/postgres.sh start "$work/pg")
# What a durable server does: sync every commit.
psql -q "$url" -c "alter system set fsync = on" -c "alter system set full_page_writes = on" \
  -c "alter system set synchronous_commit = on" -c "select pg_reload_conf()" >/dev/null

(cd "$work" && exec wrkflw dev --database-url "$url" --port $port >"$work/host.log" 2>&1) &
host=$!
for _ in $(seq 100); do
  if grep -q '^ready' "$work/host.log"; then break; fi
  kill -0 $host || { cat "$work/host.log" >&2; exit 1; }
  sleep 0.1
done
BENCH_AUTHOR=$(cd "$work" && wrkflw token author)
BENCH_REVIEWER=$(cd "$work" && wrkflw token reviewer)
export BENCH_AUTHOR BENCH_REVIEWER

wrkflw-bench fill $instances | psql -q -v ON_ERROR_STOP=1 "$url"
wrkflw-bench statement $instances >"$work/decide.sql"

pg() {
  PGOPTIONS='-c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off' \
    pgbench -n -M prepared -f "$work/decide.sql" -c "$1" -j 2 -T "$seconds" "$url" 2>&1 |
    awk -v clients="$1" '/latency average/ {latency=$4} /^tps/ {printf "pgbench %3d clients  %6d/s  mean %6.2f ms\n", clients, $3, latency}'
}

wrkflw-bench decide --address 127.0.0.1:$port --clients 8 --count 500 >/dev/null # warm
for _ in $(seq "$rounds"); do
  for clients in 1 8 32; do
    wrkflw-bench decide --address 127.0.0.1:$port --clients $clients --count $decisions
    pg $clients
  done
done
