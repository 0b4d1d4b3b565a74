#!/usr/bin/env bash
# The query metadata in .sqlx, by which the checked queries compile without a database.
#
#   sqlx.sh   write it again, after a change of a query or a migration
#
# No sqlx-cli is needed: the query macros write the files themselves while they
# expand, if they are shown a database and a folder. The database is a private
# one with the migrations applied by psql, since the program itself may not compile before.
set -euo pipefail

cd "$(dirname "$0")/.."
fail() { echo "sqlx: $*" >&2; exit 1; }

[ $# -eq 0 ] || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
metadata=$PWD/.sqlx
server=$(mktemp -d "${TMPDIR:-/tmp}/wrkflw-sqlx.XXXXXX")
chmod 711 "$server"
trap 'scripts/postgres.sh stop "$server"; rm -rf "$server"' EXIT
url=$(scripts/postgres.sh start "$server")
for migration in migrations/*.sql; do
  [ -e "$migration" ] || continue
  psql "$url" -X -q -v ON_ERROR_STOP=1 -1 -f "$migration" >/dev/null || fail "$migration does not apply"
done

rm -f "$metadata"/query-*.json
# The configuration named at the end is not used. It is new in each run, so that cargo expands the macros again although no file
# has changed.
DATABASE_URL=$url SQLX_OFFLINE=false SQLX_OFFLINE_DIR=$metadata \
  cargo clippy --quiet --workspace --all-targets -- --cfg "query_metadata=\"$(date +%s)\""
