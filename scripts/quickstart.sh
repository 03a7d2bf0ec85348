#!/usr/bin/env bash
# From a fresh Debian 12 to answers: installs packages, fetches ONNX Runtime and sample models, builds, serves a
# sample repository, and reads a line of text from a picture with the OCR model over HTTP and over gRPC. Then the
# server runs on until Ctrl-C. Run again it only starts the server.
# Usage: scripts/quickstart.sh [--check] [FLAGS OF sluice serve]
#   --check   on free ports, with a random text; exits 0 if both answers are that text, else 1
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
ready_within_s=120
stop_within_s=40

check=no
if [ "${1:-}" = --check ]; then
  check=yes
  shift
  set -- --http-port 0 --grpc-port 0 --metrics-port 0 "$@"
fi

say() { printf '\n== %s\n' "$*"; }

say "packages, ONNX Runtime and sample models"
scripts/install_deps.sh --build

say "building build/release/sluice"
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
if [ ! -e build/release/build.ninja ]; then
  cmake --preset release -DSLUICE_TESTS=OFF -DSLUICE_BENCHES=OFF >/dev/null
fi
ninja -C build/release sluice

say "serving build/sample_repository"
scripts/make_sample_repository.sh build/sample_repository
work=$(mktemp -d)
: > "$work/stdout"
if [ "$check" = yes ]; then exec 3>"$work/stderr"; else exec 3>&2; fi
build/release/sluice serve --repository build/sample_repository "$@" >"$work/stdout" 2>&3 &
server=$!

cleanup() {
  if kill -0 "$server" 2>/dev/null; then
    kill -TERM "$server" 2>/dev/null || true
    for ((i = 0; i < stop_within_s * 10; i++)); do
      kill -0 "$server" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$server" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

give_up() {
  echo "quickstart: $1" >&2
  [ ! -e "$work/stderr" ] || cat "$work/stderr" >&2
  exit 1
}

address() { sed -n "s/^listening .*\b$1=\([^ ]*\).*/\1/p" "$work/stdout"; }

for ((i = 0; ; i++)); do
  kill -0 "$server" 2>/dev/null || give_up "the server has ended"
  http=$(address http)
  [ -n "$http" ] && curl -fs -o /dev/null "http://$http/v2/health/ready" && break
  [ "$i" -lt $((ready_within_s * 10)) ] || give_up "the server is not ready after $ready_within_s s"
  sleep 0.1
done
grpc=$(address grpc)
echo "ready: http=$http grpc=$grpc metrics=$(address metrics)"

say "reading a line of text from a picture"
text=$(examples/draw_line.py "$work/line.png")
over_http=$(examples/ocr_http.py --url "http://$http" "$work/line.png") || give_up "no answer over HTTP"
over_grpc=$(examples/ocr_grpc.py --address "$grpc" "$work/line.png") || give_up "no answer over gRPC"
printf 'drawn      %s\nover HTTP  %s\nover gRPC  %s\n' "$text" "$over_http" "$over_grpc"

if [ "$check" = yes ]; then
  if [ "$over_http" != "$text" ] || [ "$over_grpc" != "$text" ]; then
    give_up "an answer differs from what was drawn"
  fi
  echo "quickstart: both answers are right"
  exit 0
fi

say "the server runs until Ctrl-C; try: examples/infer.sh http://$http"
wait "$server"
