#!/usr/bin/env bash
# Makes a release archive, target/dist/wrkflw-VERSION-TARGET.tar.gz: the program, which pgo.sh builds, its man pages, completions
# for shells, licences, and a bill of materials (CycloneDX).
#
#   dist.sh        the archive
#   dist.sh try    also unpacks it in a bare Debian root, without Rust, and approves a document there; as root
#
# The root is made by debootstrap, of the release of Debian that runs here, and removed afterwards.
set -euo pipefail

cyclonedx_version=0.5.9
bundle_licenses_version=5.0.0

cd "$(dirname "$0")/.."
say() { echo "dist: $*" >&2; }
fail() { say "$*"; exit 1; }

tools=$PWD/.tools
dist=$PWD/target/dist
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
target=$(rustc -vV | sed -n 's/^host: //p')
name=wrkflw-$version-$target

ensure_tools() {
  [ -x "$tools/bin/cargo-cyclonedx" ] && [ -x "$tools/bin/cargo-bundle-licenses" ] && return
  say "building the tools for licences and the bill of materials"
  cargo install --quiet --locked --debug --root "$tools" --target-dir target/tools \
    --config profile.dev.debug=0 --config profile.dev.incremental=false \
    "cargo-cyclonedx@$cyclonedx_version" "cargo-bundle-licenses@$bundle_licenses_version" >&2
  rm -rf target/tools
}

# Runs in a copy of the sources: the tool writes into the folder of each crate of the workspace, and cargo would then build all again.
describe() {
  local into=$1 source=$dist/source
  rm -rf "$source" && mkdir -p "$source"
  git ls-files -z | tar --null -T - -cf - | tar -C "$source" -xf -
  (
    cd "$source"
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) PATH=$tools/bin:$PATH cargo cyclonedx -qq --manifest-path host/cli/Cargo.toml --format json \
      --spec-version 1.5 --target "$target" --no-build-deps --override-filename wrkflw.cdx
    # The names of our crates contain this folder, which is not published.
    sed "s#file://$source/#file:///#g" host/cli/wrkflw.cdx.json >"$into/wrkflw.cdx.json"
    cd host/cli
    RUST_LOG=error PATH=$tools/bin:$PATH cargo bundle-licenses --format yaml --output "$into/THIRD-PARTY-LICENSES.yaml"
  )
  rm -rf "$source"
}

pack() {
  local root=$dist/$name
  rm -rf "$root" && mkdir -p "$root"/bin "$root"/share/man/man1 "$root"/share/completions
  cp "$program" "$root/bin/"
  strip "$root/bin/wrkflw"
  "$root/bin/wrkflw" -q man --out "$root/share/man/man1"
  local shell
  for shell in bash zsh fish; do "$root/bin/wrkflw" completions "$shell" >"$root/share/completions/wrkflw.$shell"; done
  cp LICENSE CHANGELOG.md README.md "$root/"
  cp host/console/assets/htmx/LICENSE "$root/LICENSE.htmx"
  describe "$root"
  # Names, order, owners and times do not depend on when and where the archive is made.
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -C "$dist" -cf - "$name" |
    gzip -n >"$dist/$name.tar.gz"
  (cd "$dist" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
}

# A machine with Debian's PostgreSQL and nothing to build with.
try() {
  [ "$(id -u)" = 0 ] || fail "run 'try' as root: it makes a Debian root"
  command -v debootstrap >/dev/null || fail "install debootstrap and run again"
  local root=$dist/root codename
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  trap 'umount "$dist/root/proc" "$dist/root/dev/shm" 2>/dev/null; rm -rf --one-file-system "$dist/root"' EXIT
  rm -rf --one-file-system "$root"
  say "making a bare root of Debian $codename with PostgreSQL"
  debootstrap --variant=minbase --include=postgresql,ca-certificates "$codename" "$root" >"$dist/debootstrap.log" 2>&1 ||
    fail "debootstrap failed: $dist/debootstrap.log"
  mkdir -p "$root/dev/shm"
  mount -t proc proc "$root/proc"
  mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
  tar -C "$root/opt" -xzf "$dist/$name.tar.gz"
  cat >"$root/opt/approve.sh" <<'INSIDE'
set -eu
export PATH=/opt/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
! command -v cargo && ! command -v rustc && ! command -v cc
cd /root
wrkflw --version
wrkflw dev --ephemeral --port 0 2>/root/dev.log &
dev=$!
trap 'kill "$dev"; wait "$dev" || true' EXIT
until grep -q '^ready after' /root/dev.log; do
  kill -0 "$dev" 2>/dev/null || { cat /root/dev.log >&2; exit 1; }
  read -r -t 0.2 <> <(:) || true
done
wrkflw demo
INSIDE
  mv "$root/opt/$name"/* "$root/opt/"
  chroot "$root" /bin/bash /opt/approve.sh
}

ensure_tools
program=$(scripts/pgo.sh)
pack
say "$dist/$name.tar.gz ($(du -h "$dist/$name.tar.gz" | cut -f1))"
case ${1:-} in
  '') ;;
  try) try ;;
  *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
