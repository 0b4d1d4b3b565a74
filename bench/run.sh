#!/usr/bin/env bash
# Decisions over HTTP and pgbench runs of the same statements, in turn, on one private and durable PostgreSQL.
#
#   bench/run.sh [ROUNDS] [SECONDS]     default 3 rounds, 5 seconds of pgbench each
#
# Y1 is one decision per statement, Y2 is 32. Prints a line per measurement; compare within one run only. CLIENTS="1 32" sets the
# numbers of callers, DECISIONS=500 the decisions per line.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

rounds=${1:-3}
seconds=${2:-5}
instances=20000
decisions=${DECISIONS:-3000}
callers=${CLIENTS:-1 8 32 64 256}
port=18080

begin
start_database
start_host $port
wrkflw-bench fill $instances | psql -q -v ON_ERROR_STOP=1 "$url"
wrkflw-bench statement $instances >"$work/y1.sql"
wrkflw-bench statement $instances --batch 32 >"$work/y2.sql"

# NAME SCRIPT MEMBERS CLIENTS: runs the script, whose statements have MEMBERS decisions, and prints the decisions a second and the cost of each.
pg() {
  local used before after out
  used=$(wrkflw-bench usage "$database") before=$(wal)
  out=$(PGOPTIONS='-c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off' \
    pgbench -n -M prepared -f "$2" -c "$4" -j 2 -T "$seconds" "$url")
  sleep 0.3 # until the server has counted the sessions that ended
  used=$(($(wrkflw-bench usage "$database") - used)) after=$(wal)
  awk -v name="$1" -v members="$3" -v clients="$4" -v used=$used -v wal=$((after - before)) '
    /actually processed/ {split($NF, part, "/"); done = part[1] * members}
    /latency average/ {latency = $4}
    /^tps/ {rate = $3 * members}
    END {printf "%-7s %3d clients  %6d/s  mean %6.2f ms  postgres %4d us  WAL %5d B\n", name, clients, rate, latency, used / done, wal / done}
  ' <<<"$out"
}

wrkflw-bench decide --address 127.0.0.1:$port --clients 8 --count 500 >/dev/null # warm
psql -q "$url" -c analyze
await_quiet
for _ in $(seq "$rounds"); do
  for clients in $callers; do decisions_over_http $port "$clients" "$decisions"; done
  for clients in 1 8 16 32; do pg Y1 "$work/y1.sql" 1 $clients; done
  for clients in 1 4; do pg Y2 "$work/y2.sql" 32 $clients; done
done
