#!/usr/bin/env bash
# Tries the console in a real browser, Debian's Chromium, against a `wrkflw dev` of its own.
#
#   browser.sh [FILE...]   these files of tests/browser, or all
#
# Screenshots of the pages go to target/browser, to be looked at. Two files are tried at once, but those with limits of time, each
# against a host and a database of its own. AT_ONCE=1 tries one after the other, for a machine that has one core or is busy.
set -euo pipefail

cd "$(dirname "$0")/.."
name=browser
. scripts/host.sh
tests=$PWD/tests/browser
# The longest file takes a third of that on two cores.
file_seconds_max=600

# Debian's names, and that of other systems. The headless shell takes half the processor time.
find_browser() {
  command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || fail "chromium is missing: run scripts/setup.sh test, or install it"
}

install_node() {
  if cmp -s "$tests/package-lock.json" "$tests/node_modules/installed"; then return; fi
  say "installing tests/browser"
  (cd "$tests" && npm ci --silent --no-audit --no-fund --ignore-scripts)
  cp "$tests/package-lock.json" "$tests/node_modules/installed"
}

# FOLDER: builds the plugin in it, and says where its component is.
build_plugin() {
  local built
  built=$(cd "$1" && "$program" --output json plugin build 2>&1) || { echo "$built" >&2; fail "$1 does not build"; }
  sed -n 's/.*"path": *"\([^"]*\)".*/\1/p' <<<"$built"
}

# Starts a host, and tries files of the list that nobody has taken, one after the other: they share the host.
try() {
  start_host
  # The program would take these for settings of its own, so they are exported when it has made the tokens.
  local tokens=() person
  for person in admin author reviewer reviewer2 approver product; do
    tokens+=("WRKFLW_TEST_${person^^}=$(token "$person")")
  done
  # A second administrator, whom no demo account is.
  tokens+=("WRKFLW_TEST_ADMIN2=$(token admin2 --role admin)")
  # For what no caller can bring about, and for further hosts on this database, such as one whose people sign in at an identity provider.
  tokens+=("WRKFLW_TEST_DATABASE=$(cat "$work"/.wrkflw/database.*.url)" "WRKFLW_TEST_PROGRAM=$program" "WRKFLW_TEST_HOME=$work/.wrkflw")
  tokens+=("WRKFLW_TEST_COMPONENT=$component" "WRKFLW_TEST_PURCHASE=$purchase" "WRKFLW_TEST_COMMITTEE=$committee")
  export WRKFLW_TEST_BROWSER=$browser WRKFLW_TEST_URL=$url WRKFLW_TEST_SCREENSHOTS=$PWD/target/browser "${tokens[@]}"
  local file failed=0
  for file in "$@"; do
    mkdir "$taken/${file##*/}" 2>/dev/null || continue
    (cd "$tests" && timeout "$file_seconds_max" node --test "$file") || failed=1
  done
  return $failed
}

browser=$(find_browser)
install_node
build_host
# The sample flow, to be published again, a flow with a way back, and one whose config and data set forms, priorities and deadlines.
component=$(ls -t "$(dirname "$program")"/build/wrkflw-*/out/document-approval.wasm | head -1)
purchase=$(build_plugin plugins/purchase-approval)
committee=$(build_plugin tests/guests/committee)
mkdir -p target/browser

logs=$(mktemp -d "${TMPDIR:-/tmp}/wrkflw-$name-logs.XXXXXX")
taken=$logs/taken
mkdir "$taken"
running=()
failed=0
trap 'kill "${running[@]}" 2>/dev/null || true; rm -rf "$logs"' EXIT

# COUNT FILE...: tries these files, as many at once, and shows the results of all.
try_all() {
  local worker first=$((workers + 1))
  workers=$((workers + $1))
  shift
  for worker in $(seq "$first" "$workers"); do
    (try "$@") >"$logs/$worker" 2>&1 &
    running+=($!)
  done
  for worker in $(seq "$first" "$workers"); do
    wait "${running[worker - first]}" || failed=1
    cat "$logs/$worker"
  done
  running=()
}

workers=0
if [ $# -gt 0 ]; then
  try_all "${AT_ONCE:-2}" "$@"
else
  # Files that give a page a second run alone. Of the others, the longest one begins.
  try_all 1 "$tests"/{embedding,hosts,live}.test.js
  try_all "${AT_ONCE:-2}" "$tests/every-page.test.js" "$tests"/*.test.js
fi
# Once more at the end, where the steps show what failed.
[ $failed = 0 ] || grep -hE -A16 '^(not ok|browser: )' "$logs"/[0-9] || true
exit $failed
