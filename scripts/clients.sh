#!/usr/bin/env bash
# Checks the clients: the document is valid, the generators take it, and what they make works against a running host.
#
#   clients.sh
#
# It validates tests/api/openapi.json, generates the clients of clients/ and those of two more generators, checks their
# types (tsc in strict mode, mypy), starts a Kafka broker and `wrkflw dev`, and runs their examples and tests against these.
set -euo pipefail

cd "$(dirname "$0")/.."
name=clients
. scripts/host.sh
document=$PWD/tests/api/openapi.json
typescript=$PWD/clients/typescript
python=$PWD/clients/python
venv=$PWD/target/clients

install_node() {
  if cmp -s "$typescript/package-lock.json" "$typescript/node_modules/installed"; then return; fi
  say "installing clients/typescript"
  (cd "$typescript" && npm ci --silent --no-audit --no-fund)
  cp "$typescript/package-lock.json" "$typescript/node_modules/installed"
}

check_document() {
  say "validating the document"
  "$venv/bin/openapi-spec-validator" --subschema-errors all "$document"
}

build_typescript() {
  say "generating and compiling TypeScript"
  (
    cd "$typescript"
    npm run --silent generate >"$logs/generate"
    npx openapi-ts --input "$document" --output build-hey --client @hey-api/client-fetch --logs "$logs" >>"$logs/generate"
    npx tsc
  ) || { cat "$logs/generate" >&2; fail "TypeScript"; }
}

# A warning of the generator is a part of the document that it left out.
build_python() {
  say "generating Python and checking its types"
  rm -rf "$python/wrkflw/api"
  "$venv/bin/openapi-python-client" generate --path "$document" --config "$python/generator.yaml" --meta none \
    --output-path "$python/wrkflw/api" --overwrite --fail-on-warning >"$logs/python" 2>&1 || { cat "$logs/python" >&2; fail "Python"; }
  (cd "$python" && "$venv/bin/mypy")
}

run() {
  export WRKFLW_TEST_URL=$url WRKFLW_TEST_AUTHOR WRKFLW_TEST_REVIEWER
  WRKFLW_TEST_AUTHOR=$(token author) WRKFLW_TEST_REVIEWER=$(token reviewer)
  local example
  for example in openapi-fetch hey-api; do
    say "running $example"
    (cd "$typescript" && expect FinalReview node "build/examples/$example.js" "$url" "$WRKFLW_TEST_AUTHOR" "$WRKFLW_TEST_REVIEWER")
  done
  say "running the example in Python"
  (cd "$python" && PYTHONPATH=. expect FinalReview "$venv/bin/python" examples/approval.py "$url" "$WRKFLW_TEST_AUTHOR" "$WRKFLW_TEST_REVIEWER")
  (cd "$typescript" && timeout 120 node --test build/test/)
  (cd "$python" && timeout 300 "$venv/bin/python" -m unittest discover --start-directory tests --top-level-directory . --verbose)
}

# The broker of the example consumers. It ends with this script.
start_broker() {
  WRKFLW_TEST_KAFKA=$(KAFKA_OWNER_PID=$$ scripts/kafka.sh start "$venv/kafka" 0)
  export WRKFLW_TEST_KAFKA
  dev_options=(--kafka "$WRKFLW_TEST_KAFKA")
}

# LINE COMMAND...: fails unless the command prints just this line.
expect() {
  local expected=$1 printed
  shift
  printed=$("$@")
  [ "$printed" = "$expected" ] || fail "expected $expected, got $printed"
}

logs=$venv/logs
install_python "$venv" "$python/requirements.txt"
mkdir -p "$logs"
rm -rf "$venv/kafka"
install_node
check_document
build_typescript
build_python
build_host
start_broker
start_host
run
