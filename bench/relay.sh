#!/usr/bin/env bash
# The relay with a real broker: events a second from a backlog, beside decisions a second of the database alone, and the time
# from commit to acknowledgement at 70 % of the relay's rate.
#
#   bench/relay.sh [ROUNDS] [EVENTS]     default 2 rounds, 100000 events of backlog each
#
# Compare within one run only.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

rounds=${1:-2}
# Each instance has ten.
events=$((${2:-100000} / 10 * 10))
lag_seconds=15
instances=20000
port=18081
relay=
end_more() {
  [ -z "$relay" ] || kill "$relay" 2>/dev/null || true
  [ -z "$relay" ] || wait "$relay" 2>/dev/null || true
  scripts/kafka.sh stop "$work/kafka" || true
}

begin
start_database
brokers=$(KAFKA_OWNER_PID=$$ scripts/kafka.sh start "$work/kafka" 0)
export WRKFLW_DATABASE_URL=$url
wrkflw migrate --quiet >/dev/null
wrkflw-bench fill-relay 1 1 | psql -q -v ON_ERROR_STOP=1 "$url" >/dev/null
wrkflw-bench fill $instances | psql -q -v ON_ERROR_STOP=1 "$url"
wrkflw-bench statement $instances >"$work/decide.sql"

start_relay() {
  wrkflw serve --roles relay --listen 127.0.0.1:$port --kafka-brokers "$brokers" --log warn >"$work/relay.log" 2>&1 &
  relay=$!
  for _ in $(seq 200); do
    if curl -fsS "http://127.0.0.1:$port/readyz" >/dev/null 2>&1; then return; fi
    kill -0 $relay || { cat "$work/relay.log" >&2; exit 1; }
    sleep 0.05
  done
}

stop_relay() { kill $relay && wait $relay; relay=; }

for round in $(seq "$rounds"); do
  y1=$(PGOPTIONS='-c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off' \
    pgbench -n -M prepared -f "$work/decide.sql" -c 1 -T 5 "$url" | awk '/^tps/ {printf "%d", $3}')
  # The events that pgbench wrote are not part of the backlog.
  psql -q "$url" -c "delete from outbox_event" -c "select bench_events($((events / 10)), 10)" -c "vacuum analyze outbox_event" >/dev/null
  start_relay
  rate=$(wrkflw-bench relay --address 127.0.0.1:$port drain "$events")
  echo "round $round  Y1 $y1/s  relay $rate events/s  ratio $(awk "BEGIN { printf \"%.2f\", $rate / $y1 }")"
  # Each transaction commits four events; together they are 70 % of the relay's rate.
  echo 'select bench_events(4, 1)' >"$work/feed.sql"
  pgbench -n -f "$work/feed.sql" -c 4 -R $((rate * 7 / 40)) -T $((lag_seconds + 4)) "$url" >"$work/feed.log" 2>&1 &
  feed=$!
  sleep 2
  echo "round $round  lag at 70 %: $(wrkflw-bench relay --address 127.0.0.1:$port lag $lag_seconds)"
  wait $feed
  stop_relay
done
