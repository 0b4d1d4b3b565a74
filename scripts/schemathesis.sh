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
start_seconds_max=120
# With more workers, its own caches conflict.
workers=1
here=$PWD/scripts/schemathesis
# Settings that the developer, or a step of the tests, made for other hosts do not apply to this one.
unset "${!WRKFLW_@}"
venv=$PWD/target/schemathesis
work=

say() { echo "schemathesis: $*"; }
fail() { say "$*" >&2; exit 1; }

install() {
  if cmp -s "$here/requirements.txt" "$venv/installed"; then return; fi
  say "installing"
  rm -rf "$venv"
  python3 -m venv "$venv" || fail "python3 cannot make a virtual environment: run scripts/setup.sh test, or install python3-venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
  cp "$here/requirements.txt" "$venv/installed"
}

# The binary that the tests use, too: it is not built again after the tests.
build() {
  program=${PROGRAM:-}
  [ -z "$program" ] || return 0
  cargo test --quiet --workspace --no-run
  program=$PWD/target/debug/wrkflw
}

start() {
  work=$(mktemp -d "${TMPDIR:-/tmp}/wrkflw-schemathesis.XXXXXX")
  # PostgreSQL's account must be able to pass through this folder.
  chmod 711 "$work"
  (cd "$work" && exec "$program" --output json dev --port 0 --log warn >"$work/facts" 2>"$work/log") &
  host=$!
  local deadline=$((SECONDS + start_seconds_max))
  until [ -s "$work/facts" ]; do
    kill -0 "$host" 2>/dev/null || { cat "$work/log" >&2; fail "the host ended"; }
    [ $SECONDS -lt $deadline ] || { cat "$work/log" >&2; fail "the host did not start within $start_seconds_max s"; }
    sleep 0.2
  done
  TARGET_URL=$(sed -n 's/.*"url": *"\([^"]*\)".*/\1/p' "$work/facts")
  export TARGET_URL
}

stop() {
  [ -n "$work" ] || return 0
  kill "$host" 2>/dev/null && wait "$host" 2>/dev/null || true
  rm -rf "$work"
}

token() { (cd "$work" && "$program" token "$@"); }

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

trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

install
build
start
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
