#!/usr/bin/env bash
# A private PostgreSQL for a test run or a refresh of the query metadata.
#
#   postgres.sh bindir       print the folder of the server's programs
#   postgres.sh start DIR    start a server with its data in DIR; prints its URL
#   postgres.sh stop  DIR    stop it
#
# It listens on a Unix socket in DIR alone, trusts whoever may enter DIR, and
# does not sync to disk: fast, and nothing to keep data in. With PG_DURABLE set it
# keeps what it acknowledged, as a server for production does. With PG_OWNER_PID
# set it ends when that process does. Started as root, it runs as `postgres` (or
# `nobody`), which must be able to reach DIR. `stop` is a crash: the next start
# recovers.
set -euo pipefail

start_seconds_max=60
# The kernel's limit for a socket's path is 107 bytes, of which the name of the socket's file takes 16.
socket_folder_bytes_max=90

fail() { echo "postgres: $*" >&2; exit 1; }

bindir() {
  local dir
  for dir in "$(dirname "$(command -v initdb || echo /)")" "$(pg_config --bindir 2>/dev/null || true)" \
    $(compgen -G '/usr/lib/postgresql/*/bin' | sort -Vr) $(compgen -G '/usr/pgsql-*/bin' | sort -Vr) \
    $(compgen -G '/opt/homebrew/opt/postgresql*/bin' | sort -Vr) $(compgen -G '/usr/local/opt/postgresql*/bin' | sort -Vr); do
    if [ -x "$dir/initdb" ] && [ -x "$dir/pg_ctl" ] && [ -x "$dir/postgres" ]; then echo "$dir"; return; fi
  done
  return 1
}

# PostgreSQL refuses to run as root.
as_server() {
  if [ "$(id -u)" != 0 ]; then (cd / && "$@"); else (cd / && runuser -u "$(server_user)" -- "$@"); fi
}

server_user() { if id postgres >/dev/null 2>&1; then echo postgres; else echo nobody; fi; }

start() {
  local dir bin
  mkdir -p "$1"
  dir=$(realpath "$1")
  bin=$(bindir) || fail "no PostgreSQL server found: run scripts/setup.sh, or install the package postgresql"
  [ "${#dir}" -le "$socket_folder_bytes_max" ] || fail "$dir is too long for a socket's path: choose a shorter folder"
  if [ "$(id -u)" = 0 ]; then chown "$(server_user)" "$dir"; fi
  if ! [ -e "$dir/data/PG_VERSION" ]; then
    as_server "$bin/initdb" -D "$dir/data" -U postgres -A trust --no-sync --encoding UTF8 --locale C >"$dir/initdb.log" 2>&1 ||
      { cat "$dir/initdb.log" >&2; fail "initdb failed"; }
    settings "$dir" | as_server tee -a "$dir/data/postgresql.conf" >/dev/null
  fi
  as_server "$bin/pg_ctl" start -D "$dir/data" -w -t "$start_seconds_max" -l "$dir/postgres.log" >"$dir/pg_ctl.log" 2>&1 8>&- 9>&- ||
    { tail -20 "$dir/pg_ctl.log" "$dir/postgres.log" >&2; fail "the server did not start"; }
  end_with_owner "$dir"
  echo "postgres://postgres@localhost/postgres?host=$dir"
}

end_with_owner() {
  local owner=${PG_OWNER_PID:-} server
  [ -n "$owner" ] || return 0
  server=$(head -1 "$1/data/postmaster.pid")
  setsid bash -c 'while kill -0 "$1" 2>/dev/null && kill -0 "$2" 2>/dev/null; do sleep 1; done; kill -QUIT "$2" 2>/dev/null' \
    postgres-owner-watch "$owner" "$server" >/dev/null 2>&1 </dev/null &
}

settings() {
  local keeps=off
  [ -z "${PG_DURABLE:-}" ] || keeps=on
  cat <<CONF
listen_addresses = ''
unix_socket_directories = '$1'
max_connections = 300
shared_buffers = 128MB
fsync = $keeps
synchronous_commit = $keeps
full_page_writes = $keeps
max_wal_size = 2GB
autovacuum_naptime = 10min
jit = off
log_min_messages = warning
CONF
}

stop() {
  local dir bin
  [ -d "$1" ] || return 0
  dir=$(realpath "$1")
  bin=$(bindir)
  [ -e "$dir/data/postmaster.pid" ] || return 0
  as_server "$bin/pg_ctl" stop -D "$dir/data" -m immediate -w >/dev/null
}

case ${1:-} in
  bindir) bindir ;;
  start) start "${2:?the folder for the data}" ;;
  stop) stop "${2:?the folder of the data}" ;;
  *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
