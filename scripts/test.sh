#!/usr/bin/env bash
# Everything that must hold before a change is merged.
#
#   test.sh             all steps
#   test.sh STEP...     some of: setup fmt lint deny test doc contract clients browser fuzz
#
# Steps joined by + run at once: `contract+doc`. Every step runs even if an earlier
# one failed; the summary names each with its time, and one failure fails the
# whole. For the tests, it starts a private PostgreSQL and a Kafka broker on
# loopback, and stops them however it ends.
# Arguments for the tests go into TEST_ARGS, as in TEST_ARGS='--test all api::'.
set -euo pipefail

cd "$(dirname "$0")/.."
advisory_seconds_max=60
contract_seconds=120
# For each target, two at a time. The seed is fixed, so that a change does not fail because of an old bug that a random run
# finds. `make fuzz` uses another seed each time.
fuzz_seconds=20
fuzz_seed=1
# The last lines that are shown of a failed step, except of the tests, whose failures are listed one by one.
log_lines_max=40
events_topic=wrkflw.events
events_partitions=3
# What the servers of the tests write, in KiB.
memory_kib_min=$((4 * 1024 * 1024))
# Tests that compare latencies, measure the memory of their process, or let a guest use up its time at low priority. Each runs by itself,
# after all others.
timed=(api::fairness api::hostile::a_ api::hostile::bombs::the_child api::hostile::costs api::hostile::raw api::hostile::uploads::a_component
  faults::costs sandbox::limits subflows::cancellations subflows::neighbours)

say() { echo "== $*"; }

# --- Steps --------------------------------------------------------------------

step_setup() { scripts/setup.sh test; }

step_fmt() { cargo fmt --all --check; }

# The wrapper is no variable of the environment, because builds of flows would inherit it.
checked() { cargo --config "build.rustc-workspace-wrapper=\"$PWD/scripts/compiler.sh\"" "$@"; }

# Compiles what the tests use. A warning fails this step, but not the build, so the tests run in any case.
step_lint() {
  checked build --workspace --all-targets 2>&1 | tee "$logs/clippy" || return 1
  ! grep -q '^warning' "$logs/clippy"
}

step_deny() {
  .tools/bin/cargo-deny --log-level error check licenses bans sources || return 1
  if GIT_TERMINAL_PROMPT=0 timeout "$advisory_seconds_max" .tools/bin/cargo-deny --log-level off fetch db >/dev/null 2>&1; then
    .tools/bin/cargo-deny --log-level error check --disable-fetch advisories
  else
    say "deny: advisories were NOT checked, because their database cannot be reached from here"
  fi
}

# The documentation of each library, and the examples in it.
step_doc() { DOC_DIR=$PWD/target/doc RUSTDOC=$PWD/scripts/rustdoc.sh run_tests --no-fail-fast --doc; }

step_test() {
  start_servers || return 1
  if [ -n "${TEST_ARGS:-}" ]; then
    # shellcheck disable=SC2086 # TEST_ARGS is a list of words
    run_tests $TEST_ARGS
    return
  fi
  local skips=() part failed=0
  for part in "${timed[@]}"; do skips+=(--skip "$part"); done
  run_tests --no-run || return 1
  # The steps that follow need not ask cargo, which waits while another step builds.
  export PROGRAM=$PWD/target/debug/wrkflw
  # The tests of the command line mostly wait for builds and for single hosts, the others for servers.
  # Beside each other they take less time. A group of its own, which can be ended with all that it started.
  set -m
  tests_beside >"$logs/beside" 2>&1 &
  beside[tests]=$!
  set +m
  # Half as many again as there are cores: many tests wait for servers.
  run_tests --no-fail-fast --lib --bins --test '[!c]*' -- --test-threads $(($(nproc) * 3 / 2)) "${skips[@]}" || failed=1
  wait "${beside[tests]}" || failed=1
  unset "beside[tests]"
  cat "$logs/beside"
  # Not through a pipe: grep ends at the first match, and cargo would fail to write the rest.
  local known
  known=$(run_tests --test all -- --list "${timed[@]}") || failed=1
  for part in "${timed[@]}"; do
    grep -q "^$part.*: test\$" <<<"$known" || { echo "FAILED no test is called $part"; failed=1; }
  done
  run_tests --test all -- --test-threads 1 "${timed[@]}" || failed=1
  return $failed
}

run_tests() { checked test --workspace "$@"; }

# The test targets whose names begin with c. `step_test` runs all others but the examples, so none is left out.
tests_beside() { run_tests --no-fail-fast --test 'c*'; }

# The runners' closing lines, then each failed test with its reason in one line.
tests_summary() {
  awk '
    function flush() { if (test) failed[++count] = substr("FAILED " test " " reason, 1, 240); test = reason = ""; message_follows = 0 }
    /^FAILED no test/ { failed[++count] = $0 }
    /^test result:/ && ($4 > 0 || $6 > 0) { results[++runs] = $0 }
    /^ *process didn.t exit successfully: .*signal/ { sub(/^ */, ""); failed[++count] = $0 }
    /^---- .* stdout ----$/ { flush(); test = $2; next }
    /^failures:$/ { flush(); next }
    message_follows { reason = reason " " $0; message_follows = 0 }
    test && !reason && /panicked at|^Error: / { reason = $0; sub(/.*panicked at /, "at ", reason); message_follows = /panicked at/ }
    END { for (i = 1; i <= runs; i++) print "   " results[i]; for (i = 1; i <= count; i++) print "   " failed[i] }
  ' "$logs/test.log"
}

# The end of what a step printed: of most tools the reason why it failed.
end_of() { grep -v '^ *$' "$logs/$1.log" | tail -"$log_lines_max" | sed 's/^/   /'; }

# Checks a new host against the document that it serves.
step_contract() { scripts/schemathesis.sh "$contract_seconds"; }

# Generates the clients, and runs them against a new host.
step_clients() { scripts/clients.sh; }

# Tries the console in a browser, against a new host.
step_browser() { scripts/browser.sh; }

# The tests run the stored inputs. This step makes new ones, without coverage of the host: that needs another build of it, as `make fuzz`
# does.
step_fuzz() { FUZZ_HOST=tested FUZZ_SEED=$fuzz_seed fuzz/run.sh "$fuzz_seconds"; }

# --- Servers ------------------------------------------------------------------

servers=

# Where the servers write: in memory if it is large enough. On a disk the tests take a fifth longer, because ext4 looks for numbers for
# the files of new databases, and passes over those of files that were deleted in the last seconds.
servers_parent() {
  local free available
  free=$(df --output=avail /dev/shm 2>/dev/null | tail -1)
  available=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null)
  if [ "${free:-0}" -ge "$memory_kib_min" ] && [ "${available:-0}" -ge "$memory_kib_min" ]; then echo /dev/shm; else echo "${TMPDIR:-/tmp}"; fi
}

start_servers() {
  servers=$(mktemp -d "$(servers_parent)/wrkflw-test.XXXXXX")
  # PostgreSQL's account must be able to pass through this folder.
  chmod 711 "$servers"
  WRKFLW_TEST_DATABASE_URL=$(scripts/postgres.sh start "$servers/pg") || return 1
  WRKFLW_TEST_KAFKA=$(KAFKA_OWNER_PID=$$ scripts/kafka.sh start "$servers/kafka" 0) || return 1
  scripts/kafka.sh topic "$events_topic" "$events_partitions" "$servers/kafka" >/dev/null || return 1
  WRKFLW_TEST_KAFKA_TOPIC=$events_topic
  # For #[sqlx::test], which reads only this variable.
  DATABASE_URL=$WRKFLW_TEST_DATABASE_URL
  export WRKFLW_TEST_DATABASE_URL WRKFLW_TEST_KAFKA WRKFLW_TEST_KAFKA_TOPIC DATABASE_URL
}

stop_servers() {
  [ -n "$servers" ] || return 0
  scripts/kafka.sh stop "$servers/kafka" || true
  scripts/postgres.sh stop "$servers/pg" || true
  rm -rf "$servers"
}

# --- The run ------------------------------------------------------------------

logs=$(mktemp -d "${TMPDIR:-/tmp}/wrkflw-logs.XXXXXX")
# The process groups of what runs beside something else.
declare -A beside=()
clean_up() {
  local group
  for group in "${beside[@]}"; do kill -- "-$group" 2>/dev/null || true; done
  stop_servers
  rm -rf "$logs"
}

# Queries are compiled with .sqlx, although DATABASE_URL is set for the tests.
export SQLX_OFFLINE=true
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

steps=("$@")
# Those that run at once mostly need one core each, or wait.
[ $# -gt 0 ] || steps=(setup fmt lint deny test contract+doc+clients browser fuzz)
for step in ${steps[*]//+/ }; do
  declare -F "step_$step" >/dev/null || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
done

summary=()
failed=()

# STEP COMMAND...: runs the command as this step, and notes its result and time.
note() {
  local began=$SECONDS verdict=passed
  "${@:2}" || verdict=FAILED
  echo "$verdict $((SECONDS - began))" >"$logs/$1.result"
}

# STEP: prints what a step that ran beside another one has printed.
print_beside() {
  wait "${beside[$1]}" || true
  unset "beside[$1]"
  say "$1"
  cat "$logs/$1.log"
}

for group in "${steps[@]}"; do
  read -ra at_once <<<"${group//+/ }"
  step=${at_once[0]}
  for other in "${at_once[@]:1}"; do
    set -m
    note "$other" "step_$other" >"$logs/$other.log" 2>&1 &
    beside[$other]=$!
    set +m
  done
  say "$step"
  # Not through a pipe: the step starts servers, which this shell has to stop.
  exec 3>&1 4>&2 > >(tee "$logs/$step.log") 2>&1
  printer=$!
  note "$step" "step_$step"
  exec >&3 2>&4 3>&- 4>&-
  wait "$printer" || true
  for other in "${at_once[@]:1}"; do print_beside "$other"; done
  for step in "${at_once[@]}"; do
    read -r verdict seconds <"$logs/$step.result"
    [ "$verdict" = passed ] || failed+=("$step")
    summary+=("$(printf '%-8s %-6s %4d s' "$step" "$verdict" "$seconds")")
    [ "$step $verdict" != "setup FAILED" ] || break 2
  done
done

say "summary"
printf '   %s\n' "${summary[@]}"
[ ! -e "$logs/test.log" ] || tests_summary
for step in "${failed[@]}"; do
  [ "$step" = test ] || { say "end of $step"; end_of "$step"; }
done
[ ${#failed[@]} -eq 0 ] || { say "failed: ${failed[*]}"; exit 1; }
