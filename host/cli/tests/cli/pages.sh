# Watches the shell blocks of a page: `pages.rs` has bash read this file first. Each refusal and each failure is a line of $WATCHED:
# the line of the page, what was seen, and the command.

set -o pipefail
unset BASH_ENV
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

# SEEN COMMAND...: the line is that of the page, also when a function of the page runs the command.
note() { echo "${BASH_LINENO[${#BASH_LINENO[@]} - 2]} $*" >>"$WATCHED"; }

curl() {
  local code=0 said=$WATCHED.$BASHPID
  command curl -w '%{stderr}%{http_code}\n' "$@" 2>"$said" || code=$?
  cat "$said" >&2
  case $(tail -1 "$said") in 4?? | 5??) note "$(tail -1 "$said")" curl ;; esac
  return $code
}

wrkflw() {
  local code=0 said=$WATCHED.$BASHPID
  command wrkflw "$@" 2>"$said" || code=$?
  cat "$said" >&2
  [ $code = 0 ] || { note "exit-$code" wrkflw "$*"; touch "$WATCHED.refused"; }
  return $code
}

# What fails for another reason than a refusal that is noted already.
trap 'seen=$?; rm "$WATCHED.refused" 2>/dev/null || echo "$LINENO failed-$seen $BASH_COMMAND" >>"$WATCHED"' ERR
