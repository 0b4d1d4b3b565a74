# Shared by the measurements: a work folder, a private and durable PostgreSQL, and a host on it. Sourced, not run.
#
# PROFILE=dev measures the development build, PROGRAMS=FOLDER what was built there. All processes that were started here are ended at exit, by process id.

profile=${PROFILE:-release}
programs=${PROGRAMS:-$PWD/target/${profile/dev/debug}}
host=
# Called first when a script ends. A script may redefine it.
end_more() { :; }

# Builds the programs, unless they are in PROGRAMS. From then on they are found by their names.
build_programs() {
  [ -n "${PROGRAMS:-}" ] || cargo build --quiet --profile "$profile" --package wrkflw --package wrkflw-bench
  export PATH=$programs:$PATH
}

# Builds, and makes $work, which is removed at the end.
begin() {
  build_programs
  work=$(mktemp -d "${TMPDIR:-/tmp}/wrkflw-bench.XXXXXX")
  chmod 711 "$work"
  trap finish EXIT
}

finish() {
  # The log has the reason of a failed request.
  if [ $? != 0 ] && [ -e "$work/host.log" ]; then grep -E 'ERROR|panicked' "$work/host.log" | tail -5 >&2 || true; fi
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

# Sets $url, and $database to the server's first process. The server is durable: it syncs every commit. Checkpoints are rare, so
# that no line includes the cost of another.
start_database() {
  url=$(scripts/postgres.sh start "$work/pg")
  psql -q "$url" -c "alter system set fsync = on" -c "alter system set full_page_writes = on" \
    -c "alter system set synchronous_commit = on" -c "alter system set max_wal_size = '8GB'" \
    -c "alter system set checkpoint_timeout = '30min'" -c "select pg_reload_conf()" >/dev/null
  database=$(psql -Atq "$url" -c "select split_part(pg_read_file('postmaster.pid'), E'\n', 1)")
}

# PORT: starts `wrkflw dev` on $url, in $work; sets $host, and environment variables with a token for each person. An instrumented
# host writes its profile into the folder HOST_PROFILES.
start_host() {
  (cd "$work" && exec env ${HOST_PROFILES:+"LLVM_PROFILE_FILE=$HOST_PROFILES/%p.profraw"} wrkflw dev --empty --database-url "$url" --port "$1" >"$work/host.log" 2>&1) &
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

# The demo people were just added, so open tasks are reassessed. Waits until that is done.
await_quiet() {
  for _ in $(seq 600); do
    if [ "$(psql -Atq "$url" -c 'select count(*) from reassessment')" = 0 ]; then return; fi
    sleep 0.5
  done
  echo "the reassessments did not end within five minutes" >&2
  exit 1
}

# Waits until checkpoints contain all entries. The checkpointer takes some at a time.
await_checkpoints() {
  for _ in $(seq 1200); do
    if [ "$(psql -Atq "$url" -c 'select (select coalesce(sum(leaves_in(digests)), 0) from audit_leaf) >= (select count(*) from audit_entry)')" = t ]; then return; fi
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

# PORT CLIENTS DECISIONS: decisions a second over HTTP, and the cost of each. A separate run prepares the tasks.
decisions_over_http() {
  local before_wal before out after_wal
  wrkflw-bench decide --address "127.0.0.1:$1" --clients "$2" --count "$3" --prepare >"$work/tasks"
  before=$(transactions) before_wal=$(wal)
  out=$(wrkflw-bench decide --address "127.0.0.1:$1" --clients "$2" --tasks "$work/tasks" --host "$host" --database "$database")
  after_wal=$(wal)
  awk -v line="$out" -v wal=$((after_wal - before_wal)) -v transactions=$(($(transactions) - before)) -v done="$3" \
    'BEGIN {printf "%s  WAL %5d B  %.2f transactions\n", line, wal / done, transactions / done}'
}
