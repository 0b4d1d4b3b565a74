#!/usr/bin/env bash
# The audit over HTTP, on a private PostgreSQL with a million instances and twice as many entries.
#
#   bench/history.sh [INSTANCES] [REQUESTS]     default 1000000 instances, 200 requests for each question
set -euo pipefail
exec "$(dirname "$0")/search.sh" "${1:-1000000}" "${2:-200}" history
