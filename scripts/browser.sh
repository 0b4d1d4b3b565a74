#!/usr/bin/env bash
# Tries the console in a real browser, Debian's Chromium, against a `wrkflw dev` of its own.
#
#   browser.sh [FILE...]   these files of tests/browser, or all
#
# Screenshots of the pages go to target/browser, to be looked at.
set -euo pipefail

cd "$(dirname "$0")/.."
name=browser
. scripts/host.sh
tests=$PWD/tests/browser

# Debian's name, and that of other systems.
find_browser() {
  command -v chromium || command -v chromium-browser || fail "chromium is missing: run scripts/setup.sh test, or install it"
}

install_node() {
  if cmp -s "$tests/package-lock.json" "$tests/node_modules/installed"; then return; fi
  say "installing tests/browser"
  (cd "$tests" && npm ci --silent --no-audit --no-fund --ignore-scripts)
  cp "$tests/package-lock.json" "$tests/node_modules/installed"
}

browser=$(find_browser)
install_node
build_host
start_host
# The program would take these for settings of its own, so they are exported when it has made the tokens.
tokens=()
for person in admin author reviewer reviewer2 approver product; do
  tokens+=("WRKFLW_TEST_${person^^}=$(token "$person")")
done
# The sample flow, to be published again, the database, for what no caller can bring about, and what a second host needs.
component=$(ls -t "$(dirname "$program")"/build/wrkflw-*/out/document-approval.wasm | head -1)
tokens+=("WRKFLW_TEST_COMPONENT=$component" "WRKFLW_TEST_DATABASE=$(cat "$work/.wrkflw/database.url")")
# A flow with a way back.
built=$(cd plugins/purchase-approval && "$program" --output json plugin build 2>"$work/build") || { cat "$work/build" >&2; fail "purchase-approval does not build"; }
purchase=$(sed -n 's/.*"path": *"\([^"]*\)".*/\1/p' <<<"$built")
tokens+=("WRKFLW_TEST_PURCHASE=$purchase")
# For further hosts on this database, such as one whose people sign in at an identity provider.
tokens+=("WRKFLW_TEST_PROGRAM=$program" "WRKFLW_TEST_HOME=$work/.wrkflw")
export WRKFLW_TEST_BROWSER=$browser WRKFLW_TEST_URL=$url WRKFLW_TEST_SCREENSHOTS=$PWD/target/browser "${tokens[@]}"
mkdir -p "$WRKFLW_TEST_SCREENSHOTS"
files=("$@")
[ $# -gt 0 ] || files=("$tests"/*.test.js)
# One after the other: they share the host, and some measure how soon a page changes.
(cd "$tests" && timeout 600 node --test --test-concurrency=1 "${files[@]}")
