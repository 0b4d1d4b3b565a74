#!/usr/bin/env bash
# The same two-review approval on wrkflw and on four other engines, one after the other on this machine.
#
#   bench/peers/run.sh [ENGINE ...]      default: wrkflw flowable operaton restate dbos
#   CALLERS=1,8,32 SECONDS_A_RUN=10 RUNS=3 bench/peers/run.sh
#
# Prints the rows of one table and, per engine, its memory. Builds and downloads are kept in target/peers. Needs, besides what
# wrkflw needs: Java 17 and Maven (Flowable, Operaton), Node 20 and npm (Restate), Python 3 (DBOS).
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/lib.sh

callers=${CALLERS:-1,8,32}
seconds=${SECONDS_A_RUN:-10}
runs=${RUNS:-3}
engines=("$@")
[ $# -gt 0 ] || engines=(wrkflw flowable operaton restate dbos)
root=$PWD
here=$root/bench/peers
built=$root/target/peers
port=18180
mkdir -p "$built"
export DO_NOT_TRACK=1 RESTATE_DISABLE_TELEMETRY=true

work=$(mktemp -d "${TMPDIR:-/tmp}/wrkflw-peers.XXXXXX")
chmod 711 "$work"
running=()
end_running() {
  for process in "${running[@]}"; do
    kill "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
  running=()
}
finish() {
  end_running
  scripts/postgres.sh stop "$work/pg" || true
  rm -rf "$work"
}
trap finish EXIT

needs() {
  for tool in "$@"; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed; this engine needs it" >&2; exit 1; }
  done
}

build() {
  case $1 in
  wrkflw) ;;
  flowable | operaton)
    needs java mvn
    [ -f "$built/$1/peer.jar" ] || (cd "$here/jvm" && mvn -q -B -P"$1" -Dout="$built/$1" package)
    ;;
  restate)
    needs node npm
    [ -d "$built/restate/node_modules" ] || {
      mkdir -p "$built/restate"
      (cd "$built/restate" && npm install --silent --ignore-scripts @restatedev/restate-server@1.7.12 @restatedev/restate-sdk@1.17.2)
    }
    ;;
  dbos)
    needs python3
    [ -x "$built/dbos/bin/dbos" ] || {
      python3 -m venv "$built/dbos"
      "$built/dbos/bin/pip" install --quiet dbos==3.4.0 'psycopg[binary]'
    }
    ;;
  *)
    echo "no engine is called $1: wrkflw, flowable, operaton, restate or dbos" >&2
    exit 2
    ;;
  esac
}

# Waits until an address responds with success.
await() {
  for _ in $(seq 240); do
    if curl -fs -o /dev/null "$1"; then return; fi
    kill -0 "${running[-1]}" 2>/dev/null || break
    sleep 0.5
  done
  echo "nothing answers at $1:" >&2
  tail -n 20 "$work"/*.log >&2
  exit 1
}

start() {
  psql -q "$url" -c "create database \"$1\""
  local database=${url%/*}/$1
  case $1 in
  wrkflw)
    (cd "$work" && exec wrkflw dev --database-url "$database" --port $port >"$work/wrkflw.log" 2>&1) &
    running+=($!)
    # Its demo people are added after its port is open.
    for _ in $(seq 240); do
      if grep -q '^ready' "$work/wrkflw.log"; then break; fi
      sleep 0.5
    done
    for person in author reviewer approver; do
      export "BENCH_${person^^}=$(cd "$work" && wrkflw token $person)"
    done
    ;;
  flowable | operaton)
    java -Xms1g -Xmx2g -jar "$built/$1/peer.jar" --server.port=$port --spring.datasource.url="jdbc:${database/postgres:\/\/postgres@/postgresql://}" >"$work/$1.log" 2>&1 &
    running+=($!)
    if [ "$1" = flowable ]; then
      await http://127.0.0.1:$port/process-api/management/engine
    else
      await http://127.0.0.1:$port/engine-rest/engine
    fi
    ;;
  restate)
    cp "$here/restate.mjs" "$built/restate/"
    PORT=$((port + 1)) node "$built/restate/restate.mjs" >"$work/service.log" 2>&1 &
    running+=($!)
    RESTATE_INGRESS__BIND_ADDRESS=127.0.0.1:$port RESTATE_ADMIN__BIND_ADDRESS=127.0.0.1:$((port + 2)) \
      "$built"/restate/node_modules/@restatedev/restate-server-linux-*/bin/restate-server --listen-mode tcp \
      --bind-ip 127.0.0.1 --advertised-host 127.0.0.1 --bind-port $((port + 3)) --node-name bench \
      --base-dir "$work/restate" >"$work/restate.log" 2>&1 &
    running+=($!)
    await http://127.0.0.1:$port/restate/health
    await http://127.0.0.1:$((port + 2))/health
    curl -fsS -o /dev/null -H content-type:application/json -d '{"uri":"http://127.0.0.1:'$((port + 1))'","force":true}' \
      http://127.0.0.1:$((port + 2))/deployments
    ;;
  esac
}

# A Java engine becomes faster for minutes. Measured too early, it would look slower than it is.
warm_up() {
  case $1 in
  flowable) echo 130 ;;
  operaton) echo 100 ;;
  # Until PostgreSQL analyses the new tables. Before that, its plans are those of nearly empty tables.
  wrkflw) echo 75 ;;
  restate) echo 20 ;;
  esac
}

measure() {
  wrkflw-bench flows --engine "$1" --address 127.0.0.1:$port --callers "$callers" --seconds "$seconds" \
    --runs "$runs" --warm-up "${WARM_UP:-$(warm_up "$1")}"
  for process in "${running[@]}"; do
    awk -v engine="$1" -v comm="$(cat "/proc/$process/comm")" \
      '/^VmRSS/ { printf "memory %s %s %d MiB\n", engine, comm, $2 / 1024 }' "/proc/$process/status"
  done
}

build_programs
for engine in "${engines[@]}"; do build "$engine"; done
# One server for all, over TCP because not every client supports sockets; durable, with the memory settings of a small real
# server.
url=$(scripts/postgres.sh start "$work/pg")
psql -q "$url" -c "alter system set fsync = on" -c "alter system set full_page_writes = on" \
  -c "alter system set synchronous_commit = on" -c "alter system set shared_buffers = '1GB'" \
  -c "alter system set max_wal_size = '4GB'" -c "alter system set autovacuum_naptime = '1min'" \
  -c "alter system set listen_addresses = '127.0.0.1'" -c "alter system set port = $((port + 9))"
scripts/postgres.sh stop "$work/pg"
scripts/postgres.sh start "$work/pg" >/dev/null
url=postgres://postgres@127.0.0.1:$((port + 9))/postgres

echo "| engine | callers | flows/s (each run) | flow p50 / p95 ms | start | look up | claim | decide | wait |"
echo "|---|---|---|---|---|---|---|---|---|"
for engine in "${engines[@]}"; do
  if [ "$engine" = dbos ]; then
    psql -q "$url" -c "create database dbos"
    DATABASE_URL=${url%/*}/dbos "$built/dbos/bin/python" "$here/dbos_flows.py" "$callers" "$seconds" "$runs" "${WARM_UP:-10}"
  else
    start "$engine"
    measure "$engine"
    end_running
  fi
done
