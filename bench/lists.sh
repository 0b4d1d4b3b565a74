#!/usr/bin/env bash
# Lists of tasks and instances over HTTP, on a private PostgreSQL with a million open tasks and as many that ended.
#
#   bench/lists.sh [OPEN] [REQUESTS] [SET]     default 1000000 open tasks, 200 requests for each list
#                                              (SET restricted: only participants see an instance)
set -euo pipefail
exec "$(dirname "$0")/search.sh" "${1:-1000000}" "${2:-200}" "${3:-lists}"
