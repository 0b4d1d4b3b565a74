#!/usr/bin/env bash
# Decisions over HTTP beside pgbench runs of the very statements, in turn, on one private and durable PostgreSQL.
#
#   bench/run.sh [ROUNDS] [SECONDS]     default 3 rounds, 5 seconds of pgbench each
#
# Y1 is one decision a statement, Y2 are 32. Prints a line per measurement; compare within one run only.
# CLIENTS="1 32" chooses other numbers of callers, DECISIONS=500 other lengths of a line.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-3}
seconds=${2:-5}
instances=20000
decisions=${DECISIONS:-3000}
callers=${CLIENTS:-1 8 32 64 256}
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
# What a durable server does: sync every commit. Checkpoints far apart, so that no line pays for another's.
psql -q "$url" -c "alter system set fsync = on" -c "alter system set full_page_writes = on" \
  -c "alter system set synchronous_commit = on" -c "alter system set max_wal_size = '8GB'" \
  -c "alter system set checkpoint_timeout = '30min'" -c "select pg_reload_conf()" >/dev/null
database=$(psql -Atq "$url" -c "select split_part(pg_read_file('postmaster.pid'), E'\n', 1)")

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
wrkflw-bench statement $instances >"$work/y1.sql"
wrkflw-bench statement $instances --batch 32 >"$work/y2.sql"

wal() { psql -Atq "$url" -c "select pg_current_wal_lsn() - '0/0'::pg_lsn"; }
# Sessions report their transactions once they have been idle for a second.
transactions() {
  sleep 1.5
  psql -Atq "$url" -c "select xact_commit from pg_stat_database where datname = current_database()"
}

# NAME SCRIPT MEMBERS CLIENTS: decisions a second, and what each cost.
pg() {
  local used before after out
  used=$(wrkflw-bench usage "$database") before=$(wal)
  out=$(PGOPTIONS='-c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off' \
    pgbench -n -M prepared -f "$2" -c "$4" -j 2 -T "$seconds" "$url" 2>&1)
  sleep 0.3 # until the server has counted the sessions that ended
  used=$(($(wrkflw-bench usage "$database") - used)) after=$(wal)
  awk -v name="$1" -v members="$3" -v clients="$4" -v used=$used -v wal=$((after - before)) '
    /actually processed/ {split($NF, part, "/"); done = part[1] * members}
    /latency average/ {latency = $4}
    /^tps/ {rate = $3 * members}
    END {printf "%-7s %3d clients  %6d/s  mean %6.2f ms  postgres %4d us  WAL %5d B\n", name, clients, rate, latency, used / done, wal / done}
  ' <<<"$out"
}

# CLIENTS: the same over HTTP.
http() {
  local wal before out
  wrkflw-bench decide --address 127.0.0.1:$port --clients "$1" --count "$decisions" --prepare >"$work/tasks"
  before=$(transactions) wal=$(wal)
  out=$(wrkflw-bench decide --address 127.0.0.1:$port --clients "$1" --tasks "$work/tasks" --host "$host" --database "$database")
  wal=$(($(wal) - wal))
  awk -v line="$out" -v wal=$wal -v transactions=$(($(transactions) - before)) -v done="$decisions" \
    'BEGIN {printf "%s  WAL %5d B  %.2f transactions\n", line, wal / done, transactions / done}'
}

wrkflw-bench decide --address 127.0.0.1:$port --clients 8 --count 500 >/dev/null # warm
psql -q "$url" -c analyze
# The demo people were entered just now: open work is looked at again because of them.
for _ in $(seq 600); do
  if [ "$(psql -Atq "$url" -c 'select count(*) from recheck')" = 0 ]; then break; fi
  sleep 0.5
done
for _ in $(seq "$rounds"); do
  for clients in $callers; do http "$clients"; done
  for clients in 1 8 16 32; do pg Y1 "$work/y1.sql" 1 $clients; done
  for clients in 1 4; do pg Y2 "$work/y2.sql" 32 $clients; done
done
