#!/usr/bin/env bash
# Decisions over HTTP with and without a million open deadlines, in turn, on one private and durable PostgreSQL.
#
#   bench/deadlines.sh [ROUNDS] [DECISIONS]     default 3 rounds of 2000 decisions a line
#
# PROFILE=dev takes the development build of the host. Compare within one run only.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-3}
decisions=${2:-2000}
deadlines=1000000
profile=${PROFILE:-release}
port=18081

cargo build --quiet --profile "$profile" --package wrkflw --package wrkflw-bench
export PATH=$PWD/target/${profile/dev/debug}:$PATH

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
psql -q "$url" -c "alter system set fsync = on" -c "alter system set full_page_writes = on" \
  -c "alter system set synchronous_commit = on" -c "select pg_reload_conf()" >/dev/null

(cd "$work" && exec wrkflw dev --database-url "$url" --port $port >"$work/host.log" 2>&1) &
host=$!
for _ in $(seq 300); do
  if grep -q '^ready' "$work/host.log"; then break; fi
  kill -0 $host || { cat "$work/host.log" >&2; exit 1; }
  sleep 0.1
done
BENCH_AUTHOR=$(cd "$work" && wrkflw token author)
BENCH_REVIEWER=$(cd "$work" && wrkflw token reviewer)
export BENCH_AUTHOR BENCH_REVIEWER

# None is due while this runs: what is measured is the cost of their being there.
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
