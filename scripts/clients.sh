#!/usr/bin/env bash
# Checks the clients: the document is valid, the generators take it, and what they make works against a running host.
#
#   clients.sh
#
# It validates tests/api/openapi.json, generates the clients of clients/ and those of two more generators, checks their
# types (tsc in strict mode, mypy), packs the first ones, starts a Kafka broker and `wrkflw dev`, and runs the tests and examples
# against these: the examples `approval` with the packages, as another project installs them.
set -euo pipefail

cd "$(dirname "$0")/.."
name=clients
. scripts/host.sh
document=$PWD/tests/api/openapi.json
typescript=$PWD/clients/typescript
python=$PWD/clients/python
venv=$PWD/target/clients
# A project that installs the packages.
project=$venv/project

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

# Packs the client, and compiles its example in a project that has only the package.
pack_typescript() {
  say "packing TypeScript"
  rm -rf "$project"
  mkdir -p "$project"
  (cd "$typescript" && npm pack --silent --pack-destination "$project" >"$logs/pack" 2>&1) || { cat "$logs/pack" >&2; fail "npm pack"; }
  cp "$typescript/examples/approval.ts" "$project"
  (
    cd "$project"
    expect "$(printf 'package/%s\n' LICENSE README.md package.json)" eval 'tar -tzf ./*.tgz | grep -v "^package/dist/" | LC_ALL=C sort'
    echo '{ "private": true, "type": "module" }' >package.json
    npm install --silent --no-audit --no-fund ./*.tgz
    cat >tsconfig.json <<END
{
  "extends": "$typescript/tsconfig.json",
  "compilerOptions": { "outDir": ".", "typeRoots": ["$typescript/node_modules/@types"] },
  "include": ["approval.ts"],
  "exclude": []
}
END
    "$typescript/node_modules/.bin/tsc"
  ) || fail "the package in TypeScript"
}

# Packs the client, installs it, and checks the types of its example by those that the package has.
pack_python() {
  say "packing Python"
  rm -rf "$python/build"
  "$venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$project" "$python"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall "$project"/*.whl
  "$venv/bin/pip" check --disable-pip-version-check >"$logs/pack" || { cat "$logs/pack" >&2; fail "the package in Python"; }
  expect 1 eval 'python3 -m zipfile --list "$project"/*.whl | grep -c "licenses/LICENSE "'
  cp "$python/examples/approval.py" "$project"
  (cd "$project" && "$venv/bin/mypy" --strict approval.py >"$logs/pack") || { cat "$logs/pack" >&2; fail "the package in Python"; }
}

run() {
  export WRKFLW_TEST_URL=$url WRKFLW_TEST_AUTHOR WRKFLW_TEST_REVIEWER
  WRKFLW_TEST_AUTHOR=$(token author) WRKFLW_TEST_REVIEWER=$(token reviewer)
  local example
  for example in openapi-fetch hey-api; do
    say "running $example"
    (cd "$typescript" && expect FinalReview node "build/examples/$example.js" "$url" "$WRKFLW_TEST_AUTHOR" "$WRKFLW_TEST_REVIEWER")
  done
  say "running the examples with the packages"
  # As in Node 18, which has no global `crypto`.
  (cd "$project" && expect FinalReview node --no-experimental-global-webcrypto approval.js "$url" "$WRKFLW_TEST_AUTHOR" "$WRKFLW_TEST_REVIEWER")
  (cd "$project" && expect FinalReview "$venv/bin/python" approval.py "$url" "$WRKFLW_TEST_AUTHOR" "$WRKFLW_TEST_REVIEWER")
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
  printed=$("$@") || fail "$* failed"
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
pack_typescript
pack_python
build_host
start_broker
start_host
run
