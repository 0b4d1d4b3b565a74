# A `wrkflw dev` with a PostgreSQL of its own, for checks from outside. Sourced, not run.
#
# The script that sources this sets `name`, by which messages begin. PROGRAM=... is a program that is built already.

start_seconds_max=120
work=
host=
# Further options of `wrkflw dev`.
dev_options=()
# Settings that the developer, or a step of the tests, made for other hosts do not apply to this one.
unset "${!WRKFLW_@}"

say() { echo "$name: $*"; }
fail() { say "$*" >&2; exit 1; }

# The binary that the tests use, too: it is not built again after the tests. Sets $program.
build_host() {
  program=${PROGRAM:-}
  [ -z "$program" ] || return 0
  cargo test --quiet --workspace --no-run
  program=$PWD/target/debug/wrkflw
}

# Starts the host in $work, and sets $url. It ends with the script.
start_host() {
  work=$(mktemp -d "${TMPDIR:-/tmp}/wrkflw-$name.XXXXXX")
  trap stop_host EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  # PostgreSQL's account must be able to pass through this folder.
  chmod 711 "$work"
  (cd "$work" && exec "$program" --output json dev --empty --port 0 --log warn "${dev_options[@]}" >"$work/facts" 2>"$work/log") &
  host=$!
  local deadline=$((SECONDS + start_seconds_max))
  until [ -s "$work/facts" ]; do
    kill -0 "$host" 2>/dev/null || { cat "$work/log" >&2; fail "the host ended"; }
    [ $SECONDS -lt $deadline ] || { cat "$work/log" >&2; fail "the host did not start within $start_seconds_max s"; }
    sleep 0.2
  done
  url=$(sed -n 's/.*"url": *"\([^"]*\)".*/\1/p' "$work/facts")
}

stop_host() {
  [ -n "$work" ] || return 0
  kill "$host" 2>/dev/null && wait "$host" 2>/dev/null || true
  rm -rf "$work"
}

# A token of a person of this host.
token() { (cd "$work" && "$program" token "$@"); }

# VENV REQUIREMENTS: a virtual environment with these packages. It is made again if the list changes.
install_python() {
  if cmp -s "$2" "$1/installed"; then return; fi
  say "installing ${2##*/} into ${1#"$PWD/"}"
  rm -rf "$1"
  python3 -m venv "$1" || fail "python3 cannot make a virtual environment: run scripts/setup.sh test, or install python3-venv"
  "$1/bin/pip" install --quiet --disable-pip-version-check --requirement "$2"
  cp "$2" "$1/installed"
}
