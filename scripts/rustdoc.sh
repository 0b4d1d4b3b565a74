#!/usr/bin/env bash
# Called by cargo as rustdoc, to run the examples of a crate. First builds the documentation of that crate, with warnings as
# errors. Both use what is compiled for the tests; `cargo doc` would check all dependencies again.
set -euo pipefail

words=("$@")
unset RUSTDOC
case " $* " in
  *' --test '*) ;;
  *) exec rustdoc "${words[@]}" ;;
esac

kept=()
while [ $# -gt 0 ]; do
  case $1 in
    --test | --no-run) ;;
    --test-run-directory | --test-args | --test-runtool | --test-runtool-arg) shift ;;
    *) kept+=("$1") ;;
  esac
  shift
done
# Private items are documented, too, so that links to them work.
rustdoc "${kept[@]}" --document-private-items --out-dir "${DOC_DIR:?is set by scripts/test.sh}" \
  -D warnings -A rustdoc::private_intra_doc_links
exec rustdoc "${words[@]}"
