# What the measurements share: a folder of their own, a private and durable PostgreSQL, a host on it. Sourced, not run.
#
# PROFILE=dev measures the development build. Whatever was begun here is ended at exit, by its process id.

profile=${PROFILE:-release}
host=
# What a script does first when it ends; it may define it anew.
end_more() { :; }

# Builds, and makes $work, which is gone at the end.
begin() {
  cargo build --quiet --profile "$profile" --package wrkflw --package wrkflw-bench
  export PATH=$PWD/target/${profile/dev/debug}:$PATH
  work=$(mktemp -d "${TMPDIR:-/tmp}/wrkflw-bench.XXXXXX")
  chmod 711 "$work"
  trap finish EXIT
}

finish() {
  end_more
  end_host
  scripts/postgres.sh stop "$work/pg" || true
  rm -rf "$work"
}

end_host() {
  [ -z "$host" ] || kill "$host" 2>/dev/null || true
  [ -z "$host" ] || wait "$host" 2>/dev/null || true
  host=
}

# Sets $url, and $database to the server's first process. It does what a durable server does: sync every commit.
# Checkpoints are far apart, so that no line pays for another's.
start_database() {
  url=$(scripts/postgres.sh start "$work/pg")
  psql -q "$url" -c "alter system set fsync = on" -c "alter system set full_page_writes = on" \
    -c "alter system set synchronous_commit = on" -c "alter system set max_wal_size = '8GB'" \
    -c "alter system set checkpoint_timeout = '30min'" -c "select pg_reload_conf()" >/dev/null
  database=$(psql -Atq "$url" -c "select split_part(pg_read_file('postmaster.pid'), E'\n', 1)")
}

# PORT: `wrkflw dev` on $url, in $work; sets $host, and a token in the environment for each person who acts.
start_host() {
  (cd "$work" && exec wrkflw dev --database-url "$url" --port "$1" >"$work/host.log" 2>&1) &
  host=$!
  for _ in $(seq 300); do
    if grep -q '^ready' "$work/host.log"; then break; fi
    kill -0 $host || { cat "$work/host.log" >&2; exit 1; }
    sleep 0.1
  done
  for person in admin author reviewer reviewer2; do
    export "BENCH_${person^^}=$(cd "$work" && wrkflw token $person)"
  done
}

# The demo people were entered just now: open work is looked at again because of them. Waits until that is done.
await_quiet() {
  for _ in $(seq 600); do
    if [ "$(psql -Atq "$url" -c 'select count(*) from recheck')" = 0 ]; then return; fi
    sleep 0.5
  done
  echo "the host still looks at open work again, after five minutes" >&2
  exit 1
}

# The checkpointer takes in what was written, some at a time.
await_checkpoints() {
  for _ in $(seq 1200); do
    if [ "$(psql -Atq "$url" -c 'select (select count(*) from audit_leaf) >= (select count(*) from audit_entry)')" = t ]; then return; fi
    sleep 0.5
  done
  echo "the checkpoints did not catch up within ten minutes" >&2
  exit 1
}

wal() { psql -Atq "$url" -c "select pg_current_wal_lsn() - '0/0'::pg_lsn"; }

# Sessions report their transactions once they have been idle for a second.
transactions() {
  sleep 1.5
  psql -Atq "$url" -c "select xact_commit from pg_stat_database where datname = current_database()"
}

# PORT CLIENTS DECISIONS: decisions a second over HTTP, and what each cost. Tasks are prepared by a run of its own.
decisions_over_http() {
  local before_wal before out after_wal
  wrkflw-bench decide --address "127.0.0.1:$1" --clients "$2" --count "$3" --prepare >"$work/tasks"
  before=$(transactions) before_wal=$(wal)
  out=$(wrkflw-bench decide --address "127.0.0.1:$1" --clients "$2" --tasks "$work/tasks" --host "$host" --database "$database")
  after_wal=$(wal)
  awk -v line="$out" -v wal=$((after_wal - before_wal)) -v transactions=$(($(transactions) - before)) -v done="$3" \
    'BEGIN {printf "%s  WAL %5d B  %.2f transactions\n", line, wal / done, transactions / done}'
}
