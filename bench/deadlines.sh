#!/usr/bin/env bash
# Decisions over HTTP with and without a million open deadlines, in turn, on one private and durable PostgreSQL.
#
#   bench/deadlines.sh [ROUNDS] [DECISIONS]     default 3 rounds of 2000 decisions a line
#
# Compare within one run only.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

rounds=${1:-3}
decisions=${2:-2000}
deadlines=1000000
port=18081

begin
start_database
start_host $port

# None is due while this runs: only their presence is measured.
fill="insert into job (tenant_id, id, kind, instance_id, due_at, payload)
  select 1, gen_random_uuid(), 'deadline', gen_random_uuid(), now() + '1 day' + random() * interval '300 days', '{}'
  from generate_series(1, $deadlines)"

measure() {
  for clients in 1 8; do
    printf '%-9s' "$1"
    wrkflw-bench decide --address 127.0.0.1:$port --clients $clients --count "$decisions"
  done
}

wrkflw-bench decide --address 127.0.0.1:$port --clients 8 --count 500 >/dev/null # warm
for _ in $(seq "$rounds"); do
  psql -q -v ON_ERROR_STOP=1 "$url" -c "truncate job" -c "checkpoint"
  measure without
  psql -q -v ON_ERROR_STOP=1 "$url" -c "$fill" -c "analyze job" -c "checkpoint"
  measure with
done
