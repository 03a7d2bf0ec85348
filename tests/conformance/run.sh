#!/usr/bin/env bash
# Unmodified clients that others wrote, against the real binary: gRPC C++, gRPC Python, gRPC Node, curl, Node's http2.
# Each client prints a line `ok NAME` or `FAILED NAME: why` a case, and `N passed, N failed` last; so does this script.
# They find the server by SLUICE_HTTP and SLUICE_GRPC (address:port).
# Usage: tests/conformance/run.sh     The binary is $SLUICE, by default build/release/sluice.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
sluice=${SLUICE:-$root/build/release/sluice}
build=${SLUICE_BUILD:-$root/build/release}  # of the gRPC C++ client

start_within_s=30
ready_within_s=60
client_within_s=120
stop_within_s=40

work=$(mktemp -d)
server=
passed=0 failed=0

finish() {
  [ -z "$server" ] || kill -KILL "$server" 2>/dev/null
  rm -rf "$work"
}
trap finish EXIT

fail() {  # WHAT: one failure of this script's own
  echo "FAILED $1"
  failed=$((failed + 1))
}

give_up() {  # WHY
  fail "$1"
  [ ! -s "$work/server.log" ] || tail -n 20 "$work/server.log"
  echo "$passed passed, $failed failed"
  exit 1
}

add_model() {  # NAME DATA_TYPE [MORE]: an identity model, batched
  mkdir -p "$work/models/$1/1"
  cat >"$work/models/$1/config.pbtxt" <<EOF
name: "$1"
backend: "identity"
max_batch_size: 64
input { name: "INPUT0" data_type: $2 dims: -1 }
output { name: "OUTPUT0" data_type: $2 dims: -1 }
dynamic_batching { }
${3:-}
EOF
}

write_repository() {
  add_model fp32 TYPE_FP32
  add_model int64 TYPE_INT64
  add_model bytes TYPE_STRING
  add_model bool TYPE_BOOL
  add_model uint8 TYPE_UINT8
  # For deadlines and cancelled calls: 0.4 s a batch, beside the loops.
  add_model slow TYPE_FP32 'parameters { key: "busy_us" value { string_value: "400000" } }
parameters { key: "sluice.inline" value { string_value: "false" } }'
}

start_server() {
  local line pattern='^listening http=([^ ]+) grpc=([^ ]+) metrics=([^ ]+)$'
  mkfifo "$work/stdout"
  "$sluice" serve --repository "$work/models" --http-port 0 --grpc-port 0 --metrics-port 0 \
    >"$work/stdout" 2>"$work/server.log" &
  server=$!
  exec 3<"$work/stdout"
  read -r -t "$start_within_s" -u 3 line || give_up "$sluice ended, or printed no line within $start_within_s s"
  [[ $line =~ $pattern ]] || give_up "not the line of the ports: '$line'"
  export SLUICE_HTTP=${BASH_REMATCH[1]} SLUICE_GRPC=${BASH_REMATCH[2]}
  curl -sf --max-time 2 --retry "$ready_within_s" --retry-delay 1 --retry-max-time "$ready_within_s" \
    --retry-all-errors "http://$SLUICE_HTTP/v2/health/ready" || give_up "not ready within $ready_within_s s"
}

stop_server() {
  local status
  kill -TERM "$server"
  timeout "$stop_within_s" tail --pid="$server" -f /dev/null || kill -KILL "$server"
  wait "$server"
  status=$?
  server=
  [ "$status" = 0 ] || fail "the server's end: status $status, expected 0; $(tail -n 5 "$work/server.log")"
}

install_node_packages() {
  # npm writes this file last.
  [ "$here/node_modules/.package-lock.json" -nt "$here/package-lock.json" ] && return
  (cd "$here" && npm ci --ignore-scripts --no-audit --no-fund --silent) && touch "$here/node_modules/.package-lock.json"
}

build_cpp_client() {
  cmake --build "$build" --target grpc_cpp_client >"$work/build.log" 2>&1 && return
  tail -n 20 "$work/build.log"
  return 1
}

run_client() {  # NAME COMMAND...
  local name=$1 log=$work/$1.log status counts good bad
  shift
  echo "== $name"
  timeout "$client_within_s" "$@" >"$log" 2>&1
  status=$?
  cat "$log"
  counts=$(tail -n 1 "$log" | grep -E '^[0-9]+ passed, [0-9]+ failed$')
  good=${counts%% *} bad=${counts#*, } bad=${bad%% *}
  passed=$((passed + ${good:-0})) failed=$((failed + ${bad:-0}))
  if [ "${bad:-0}" = 0 ] && { [ "$status" != 0 ] || [ "${good:-0}" = 0 ]; }; then
    fail "$name: status $status, counts '$counts'"
  fi
}

main() {
  local cpp=yes node=yes
  build_cpp_client || cpp=
  install_node_packages || node=
  write_repository
  start_server
  if [ -n "$cpp" ]; then
    run_client grpc_cpp "$build/tests/conformance/grpc_cpp_client"
  else
    fail "build of grpc_cpp_client"
  fi
  run_client grpc_python /usr/bin/python3 "$here/grpc_python_client.py"
  if [ -n "$node" ]; then run_client grpc_node node "$here/grpc_node_client.mjs"; else fail "npm ci"; fi
  run_client curl "$here/curl_client.sh"
  run_client http2_node node "$here/http2_node_client.mjs"
  stop_server
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}
main
