#!/usr/bin/env bash
# Searches by attributes, lists or history over HTTP, on a private PostgreSQL filled with a million instances.
#
#   bench/search.sh [INSTANCES] [REQUESTS] [SET]     default 1000000 instances, 200 requests for each question, searches
#                                                  (or lists, restricted, history: see lists.sh and history.sh)
#
# The server does not sync: writes are not measured here.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

instances=${1:-1000000}
requests=${2:-200}
set=${3:-searches}
port=18081

begin
url=$(scripts/postgres.sh start "$work/pg")
start_host $port
# A list shows titles by the definition of each instance.
component=$(ls -t "$programs"/build/wrkflw-*/out/document-approval.wasm | head -1)
for key in bench-orders bench-returns; do
  wrkflw definition publish --quiet --key "$key" --activate --server http://127.0.0.1:$port --token "$BENCH_ADMIN" "$component" >/dev/null
done
wrkflw-bench fill-for "$set" "$instances" | psql -q -v ON_ERROR_STOP=1 "$url"
[ "$set" != history ] || await_checkpoints
wrkflw-bench search --set "$set" --address 127.0.0.1:$port --count 20 >/dev/null # warm
wrkflw-bench search --set "$set" --address 127.0.0.1:$port --count "$requests"
