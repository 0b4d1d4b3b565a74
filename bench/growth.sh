#!/usr/bin/env bash
# Decisions over HTTP with ten times the rows, and with ten times the callers, in turn on one private and durable PostgreSQL.
#
#   bench/growth.sh [INSTANCES] [DECISIONS]     default 20000 instances and then 200000, 3000 decisions a line
#
# A tenth of the smaller number of instances is decided over HTTP and copied with all of its rows (grow.sql). Compare within one
# run only.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

instances=${1:-20000}
decisions=${2:-3000}
port=18082

begin
start_database
start_host $port

# FIRST LAST: copies of the instances that were decided over HTTP.
copy() {
  psql -q -v first="$1" -v last="$2" -f bench/grow.sql "$url"
  psql -q "$url" -c "vacuum analyze" -c checkpoint
}

# The copies resemble the rows that measured commands write: each instance of the base was decided once.
wrkflw-bench decide --address 127.0.0.1:$port --clients 32 --count $((instances / 10)) >/dev/null
await_quiet
psql -q "$url" -c "create table bench_base as select id from instance"
copied=0
for copies in 9 99; do
  copy $((copied + 1)) $copies
  copied=$copies
  rows=$(psql -Atq "$url" -c "select count(*) from instance")
  for clients in 1 64 640; do
    printf '%7d instances  ' "$rows"
    decisions_over_http $port $clients "$decisions"
  done
done
