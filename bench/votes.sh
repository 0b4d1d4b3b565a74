#!/usr/bin/env bash
# Many voters who vote on one instance at the same time, over HTTP, on a private and durable PostgreSQL.
#
#   bench/votes.sh [COUNT]     default 20 votes of each crowd
#
# Every vote is needed, so every one of them changes the instance. Compare within one run only.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

count=${1:-20}
port=18084

begin
start_database
start_host $port
(cd tests/guests/committee && wrkflw plugin build --quiet &&
  wrkflw definition publish --quiet --key committee --activate --server http://127.0.0.1:$port --token "$BENCH_ADMIN" >/dev/null)
for n in $(seq 200); do echo "voter-$n $(cd "$work" && wrkflw token "voter-$n")"; done >"$work/voters"
await_quiet
for voters in 2 50 50 200; do
  head -n $voters "$work/voters" >"$work/crowd"
  wrkflw-bench votes --address 127.0.0.1:$port --voters "$work/crowd" --count "$count" --host "$host" --database "$database"
done
