#!/usr/bin/env bash
# Makes plugins buildable, and prints the rustup toolchain that builds them:
#
#   cargo "+$(scripts/wasm-target.sh)" build --target wasm32-unknown-unknown
#
# The first of these that has the target's standard library:
#   1. the active toolchain;
#   2. `wasm-guest`, made here by an earlier run;
#   3. the active toolchain after `rustup target add`;
#   4. `wasm-guest`, made now from Debian's Rust packages: for machines that
#      reach Debian's mirror but not Rust's release server. Takes two minutes.
#
# With `--check`, only 1 and 2, and nothing is installed.
#
# Safe to run from a build script of cargo and by several processes at once.
# It stands alone: copy it into any project that builds plugins.
set -euo pipefail

target=wasm32-unknown-unknown
guest=wasm-guest
target_add_seconds_max=120
cache=${XDG_CACHE_HOME:-$HOME/.cache}
home=$cache/$guest

say() { echo "wasm-target: $*" >&2; }
fail() { say "$*"; exit 1; }

# Variables that cargo sets for a build script describe the outer build, not this one. RUSTUP_TOOLCHAIN stays: it is the toolchain
# that the caller chose.
for name in $(compgen -e); do
  case $name in
    CARGO_HOME) ;;
    CARGO | CARGO_* | RUSTC | RUSTC_* | RUSTDOC | RUSTDOCFLAGS | RUSTFLAGS | MAKEFLAGS | MFLAGS | LD_LIBRARY_PATH | TARGET | HOST | OUT_DIR)
      unset "$name" ;;
  esac
done

libdir() { rustc ${1:+"+$1"} --print target-libdir --target "$target" 2>/dev/null; }
has_std() { compgen -G "$(libdir "$@")/libstd-*.rlib" >/dev/null; }

print_active() {
  local active
  active=$(rustup show active-toolchain 2>/dev/null) || fail "rustup has no active toolchain here: run 'rustup default stable'"
  echo "${active%% *}"
}

print_if_ready() {
  if has_std; then print_active; exit 0; fi
  if has_std "$guest"; then echo "$guest"; exit 0; fi
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "run this as root: $*"; fi
}

# Unpacks Debian's rustc and the sources of its standard library into the folder $1.
unpack_debian() {
  local version minor llvm
  as_root apt-get update -qq >&2
  version=$(apt-cache policy rustc-web | sed -n 's/ *Candidate: //p')
  case $version in '' | '(none)') fail "Debian has no rustc-web here: run 'rustup target add $target' where Rust's release server is reachable" ;; esac
  minor=$(cut -d. -f1,2 <<<"$version")
  llvm=$(apt-cache depends "libstd-rust-web-$minor" | grep -om1 'libllvm[0-9]*' || true)
  [ -z "$llvm" ] || as_root apt-get install -y -qq --no-install-recommends "$llvm" >&2
  mkdir -p "$1/debs"
  # apt uses a separate user for downloads, who must be able to write here.
  (cd "$1/debs" && apt-get download -qq -o APT::Sandbox::User=root "rustc-web=$version" "libstd-rust-web-dev=$version" \
    "rust-web-src=$version" "libstd-rust-web-$minor=$version" >&2)
  for deb in "$1"/debs/*.deb; do dpkg -x "$deb" "$1/root"; done
}

# Makes a sysroot of the unpacked files: rustc expects its driver and its wasm linker in it.
lay_sysroot() {
  local sysroot=$1/root/usr host lld
  host=$(rustc -vV | sed -n 's/^host: //p')
  cp -a "$sysroot"/lib/*-linux-gnu/librustc_driver-*.so "$sysroot/lib/"
  lld=$(rustc --print sysroot)/lib/rustlib/$host/bin/rust-lld
  [ -x "$lld" ] || lld=$(command -v lld) || fail "no linker for wasm: install the package lld"
  mkdir -p "$sysroot/lib/rustlib/$host/bin"
  ln -sf "$lld" "$sysroot/lib/rustlib/$host/bin/rust-lld"
}

# Builds the standard library once, with bitcode kept so that plugins can use LTO.
build_std() {
  local lib=$1/root/usr/lib/rustlib/$target/lib
  cargo init -q --vcs none --lib --name std_probe "$1/std_probe" >&2
  # Debian's rustc searches its driver only in the system's folders.
  (cd "$1/std_probe" && RUSTC_BOOTSTRAP=1 RUSTC=$1/root/usr/bin/rustc LD_LIBRARY_PATH=$1/root/usr/lib \
    RUSTFLAGS=-Cembed-bitcode=yes CARGO_TARGET_DIR=$1/target cargo build -q --release --target "$target" -Zbuild-std=std,panic_abort >&2)
  mkdir -p "$lib"
  cp "$1/target/$target/release/deps/"*.rlib "$lib/"
  rm -f "$lib"/libstd_probe*
}

# The toolchain is built elsewhere and renamed, so that it is never visible half-built.
make_guest_toolchain() {
  local work=$1
  command -v apt-get >/dev/null || fail "install the Rust target $target ('rustup target add $target') and run again"
  say "rustup cannot fetch $target here; making it from Debian's Rust packages (about two minutes)"
  unpack_debian "$work"
  lay_sysroot "$work"
  build_std "$work"
  rm -rf "$work"/root/usr/src/rustc-*/{src,compiler,vendor} "$work/root/usr/share" "$home"
  mv "$work/root/usr" "$home"
  rustup toolchain link "$guest" "$home" >&2
  has_std "$guest" || fail "the standard library was built, but rustc does not find it in $home"
}

command -v rustup >/dev/null || fail "rustup is missing: install it from https://rustup.rs"
print_if_ready
[ "${1:-}" != --check ] || fail "no toolchain has the target $target yet"
rustc --version >/dev/null 2>&1 || fail "the active Rust toolchain does not run: 'rustup toolchain install' installs it"

mkdir -p "$cache"
if command -v flock >/dev/null; then
  exec 9>"$cache/.$guest.lock"
  flock 9
  print_if_ready # the process that held the lock may have done it
fi

if timeout "$target_add_seconds_max" rustup target add "$target" >/dev/null 2>&1 9>&- && has_std; then
  print_active
  exit
fi

# In the folder of the final place, so that the move at the end is a rename.
work=$(mktemp -d "$cache/.$guest.XXXXXX")
trap 'rm -rf "$work"' EXIT
make_guest_toolchain "$work" 9>&-
echo "$guest"
