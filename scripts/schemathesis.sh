#!/usr/bin/env bash
# Checks a running host against the OpenAPI document that it serves.
#
#   schemathesis.sh [SECONDS]   for so long (default: 120)
#
# It starts `wrkflw dev` with a PostgreSQL of its own, makes some of everything,
# and has schemathesis send what the document allows and what it forbids: no
# answer may be a server error, have an undocumented status, header or body, or
# take what the document forbids. SEED repeats a run; each run prints its own.
# scripts/schemathesis/ has its further configuration.
set -euo pipefail

cd "$(dirname "$0")/.."
seconds=${1:-120}
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
# With more workers, its own caches conflict.
workers=1
here=$PWD/scripts/schemathesis
venv=$PWD/target/schemathesis
name=schemathesis
. scripts/host.sh

# A sample flow besides the one of `dev`.
publish() {
  (
    cd "plugins/$1"
    export WRKFLW_SERVER=$TARGET_URL WRKFLW_TOKEN=$admin
    "$program" --quiet plugin build
    "$program" --quiet definition publish --key "$1"
    "$program" --quiet definition activate "$1" 1 --force
  ) >>"$work/published" 2>&1 || { cat "$work/published" >&2; fail "$1 cannot be published"; }
}

install_python "$venv" "$here/requirements.txt"
build_host
start_host
export TARGET_URL=$url
admin=$(token admin --role admin)
publish purchase-approval
publish order-handling
python3 "$here/seed.py" "$(token author)" "$(token reviewer)" "$admin" "$(token approver)" "$(token fay)"
TARGET_TOKEN=$(token admin --role admin --role user)
SAMPLE_COMPONENT=$(find "$PWD/target/debug/build" -path '*/out/document-approval.wasm' -print -quit)
export TARGET_TOKEN SAMPLE_COMPONENT

say "$seconds s with SEED=$seed"
# It writes files to its working folder.
cp "$here"/{config.toml,hooks.py} "$work"
if (cd "$work" && "$venv/bin/schemathesis" --config-file config.toml run "$TARGET_URL/openapi.json" \
  --checks all --phases examples,coverage,fuzzing,stateful --mode all --max-time "$seconds" --seed "$seed" \
  --workers "$workers" --generation-database none --no-color --warnings off >"$work/report" 2>&1); then
  tail -25 "$work/report"
else
  cat "$work/report"
  grep -E ' (ERROR|WARN) ' "$work/log" | tail -20 || true
  fail "the host and its document differ; again with: SEED=$seed scripts/schemathesis.sh $seconds"
fi
if grep -q 'a handler panicked' "$work/log"; then
  grep 'panicked' "$work/log"
  fail "the host panicked"
fi
