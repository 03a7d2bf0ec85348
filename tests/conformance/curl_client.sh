#!/usr/bin/env bash
# curl against SLUICE_HTTP: REST in JSON and binary, HTTP/1.1 and HTTP/2, and a gRPC call by hand.
# shellcheck disable=SC2016  # the expressions in quotes are for the shell of `check`
set -uo pipefail
url=http://$SLUICE_HTTP
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
answer_within_s=10
status=

check() {  # NAME CONDITION: evaluates a condition over $status and the files head and body
  if eval "$2"; then
    echo "ok $1"
    passed=$((passed + 1))
  else
    echo "FAILED $1: not $2; status $status; $(head -c 300 "$work/body" | tr -d '\0')"
    failed=$((failed + 1))
  fi
}

ask() {  # PATH [CURL OPTION...]: leaves head, body and $status
  : >"$work/head" >"$work/body"
  status=$(curl -sS --max-time "$answer_within_s" -D "$work/head" -o "$work/body" -w '%{http_code}' \
    "${@:2}" "$url$1" 2>"$work/error")
  curl_status=$?
}

field() {  # NAME: a field of the answer's head
  tr -d '\r' <"$work/head" | sed -n "s/^$1: //Ip" | tail -n 1
}

json() {  # EXPRESSION over `a`, the answer: what Python prints for it
  /usr/bin/python3 -c "import json, sys; a = json.load(sys.stdin); print($1)" <"$work/body" 2>&1
}

# NAME DATATYPE DATA: a JSON request
tensor() { printf '{"id":"c-1","inputs":[{"name":"INPUT0","datatype":"%s","shape":[1,3],"data":%s}]}' "$1" "$2"; }

health_and_metadata() {
  local path
  for path in /v2/health/live /v2/health/ready /v2/models/fp32/ready /v2/models/fp32/versions/1/ready; do
    ask "$path" "$@"
    check "GET $path $1" '[ "$status" = 200 ]'
  done
  ask /v2 "$@"
  check "server metadata $1" '[ "$status" = 200 ] && [ "$(json "a[\"name\"]")" = sluice ]'
  ask /v2/models/int64 "$@"
  expected="[['INPUT0', 'INT64', [-1, -1]]]"
  check "model metadata $1" '[ "$(json "[list(t.values()) for t in a[\"inputs\"]]")" = "$expected" ]'
  ask /v2/models/int64/config "$@"
  check "model config $1" '[ "$(json "a[\"max_batch_size\"]")" = 64 ]'
  ask /v2/models/int64/stats "$@"
  check "model statistics $1" '[ "$(json "a[\"model_stats\"][0][\"name\"]")" = int64 ]'
}

echo_json() {  # MODEL DATATYPE DATA EXPECTED CURL OPTION...
  ask "/v2/models/$1/infer" --data-binary "$(tensor "$2" "$3")" "${@:5}"
  expected=$4
  check "JSON $1 $5" '[ "$status" = 200 ] && [ "$(field content-type)" = application/json ] &&
    [ "$(json "a[\"id\"], a[\"outputs\"][0][\"shape\"], a[\"outputs\"][0][\"data\"]")" = "c-1 [1, 3] $expected" ]'
}

all_json() {  # CURL OPTION...
  echo_json fp32 FP32 '[1,2.5,-3e2]' '[1, 2.5, -300]' "$@"
  echo_json fp32 FP32 '[[1,2.5,-3e2]]' '[1, 2.5, -300]' "$@"
  echo_json int64 INT64 '[1,-2,9223372036854775807]' '[1, -2, 9223372036854775807]' "$@"
  echo_json bytes BYTES '["one","","\u00e9\n"]' "['one', '', 'é\\n']" "$@"
  echo_json bool BOOL '[true,false,true]' '[True, False, True]' "$@"
  echo_json uint8 UINT8 '[0,7,255]' '[0, 7, 255]' "$@"
}

binary_body() {  # DATATYPE FILE OUTPUT: the JSON part, then the file's bytes; leaves $json_length and request
  local json_part
  json_part=$(printf '{"inputs":[{"name":"INPUT0","datatype":"%s","shape":[1,3],"parameters":{"binary_data_size":%d}}],
    "outputs":[{"name":"OUTPUT0","parameters":{"binary_data":%s}}]}' "$1" "$(stat -c %s "$2")" "$3")
  json_length=${#json_part}
  { printf '%s' "$json_part"; cat "$2"; } >"$work/request"
}

echo_binary() {  # MODEL DATATYPE BYTES (of printf) CURL OPTION...
  printf "$3" >"$work/tensor"
  binary_body "$2" "$work/tensor" true
  ask "/v2/models/$1/infer" -H "Inference-Header-Content-Length: $json_length" \
    -H 'Content-Type: application/octet-stream' --data-binary @"$work/request" "${@:4}"
  check "binary $1 $4" '[ "$status" = 200 ] && [ "$(field content-type)" = application/octet-stream ] &&
    tail -c "+$(($(field inference-header-content-length) + 1))" "$work/body" | cmp -s - "$work/tensor"'
}

all_binary() {  # CURL OPTION...
  echo_binary fp32 FP32 '\0\0\200\077\0\0\040\100\0\0\100\300' "$@"
  echo_binary int64 INT64 '\1\0\0\0\0\0\0\0\376\377\377\377\377\377\377\377\1\0\0\0\0\0\040\0' "$@"
  echo_binary bytes BYTES '\3\0\0\0one\0\0\0\0\4\0\0\0t\0wo' "$@"
  echo_binary bool BOOL '\1\0\1' "$@"
  echo_binary uint8 UINT8 '\0\7\377' "$@"
}

one_direction() {
  printf '\0\7\377' >"$work/tensor"
  binary_body UINT8 "$work/tensor" false
  ask /v2/models/uint8/infer -H "Inference-Header-Content-Length: $json_length" --data-binary @"$work/request"
  check "binary in, JSON out" '[ "$(json "a[\"outputs\"][0][\"data\"]")" = "[0, 7, 255]" ]'
  ask /v2/models/uint8/infer --data-binary '{"parameters":{"binary_data_output":true},
    "inputs":[{"name":"INPUT0","datatype":"UINT8","shape":[1,3],"data":[0,7,255]}]}'
  check "JSON in, binary out" \
    'tail -c "+$(($(field inference-header-content-length) + 1))" "$work/body" | cmp -s - "$work/tensor"'
}

uploads() {
  tensor FP32 '[1,2.5,-3]' >"$work/request"
  ask /v2/models/fp32/infer -H 'Transfer-Encoding: chunked' --data-binary @"$work/request"
  check "a chunked upload" '[ "$(json "a[\"outputs\"][0][\"data\"]")" = "[1, 2.5, -3]" ]'
  ask /v2/models/fp32/infer -H 'Expect: 100-continue' --data-binary @"$work/request"
  check "Expect: 100-continue" '[ "$status" = 200 ] && grep -q "^HTTP/1.1 100" "$work/head"'
  head -c 4000000 /dev/zero | tr '\0' 7 >"$work/tensor"
  printf '{"inputs":[{"name":"INPUT0","datatype":"UINT8","shape":[1,4000000],
    "parameters":{"binary_data_size":4000000}}],"parameters":{"binary_data_output":true}}' >"$work/json"
  local length="Inference-Header-Content-Length: $(stat -c %s "$work/json")"
  cat "$work/json" "$work/tensor" >"$work/request"
  local protocol
  for protocol in --http1.1 --http2-prior-knowledge; do
    ask /v2/models/uint8/infer "$protocol" -H "$length" -T "$work/request" -X POST
    check "4 MB $protocol" '[ "$status" = 200 ] && tail -c 4000000 "$work/body" | cmp -s - "$work/tensor"'
  done
  ask /v2/models/uint8/infer -H "$length" -H 'Transfer-Encoding: chunked' -T - -X POST <"$work/request"
  check "4 MB chunked" '[ "$status" = 200 ] && tail -c 4000000 "$work/body" | cmp -s - "$work/tensor"'
}

heads() {  # CURL OPTION...
  ask /v2/health/ready --head "$@"
  check "HEAD of health $1" '[ "$status" = 200 ] && [ "$curl_status" = 0 ]'
  ask /v2/models/fp32 "$@"
  local length
  length=$(stat -c %s "$work/body")
  ask /v2/models/fp32 --head "$@"
  check "HEAD of metadata $1" \
    '[ "$status" = 200 ] && [ "$curl_status" = 0 ] && [ "$(field content-length)" = "$length" ]'
}

refused() {  # NAME STATUS WORD PATH [CURL OPTION...]
  ask "${@:4}"
  expected=$2 word=$3
  check "$1 ${*: -1}" '[ "$status" = "$expected" ] && json "a[\"error\"]" | grep -qF -- "$word"'
}

errors() {  # CURL OPTION...
  local valid
  valid=$(tensor FP32 '[1,2,3]')
  refused "unknown model" 404 nothing /v2/models/nothing "$@"
  refused "unknown model's readiness" 404 nothing /v2/models/nothing/ready "$@"
  refused "unknown model's inference" 404 nothing /v2/models/nothing/infer --data-binary "$valid" "$@"
  refused "unknown version" 404 7 /v2/models/fp32/versions/7 "$@"
  refused "unknown route" 404 /v2/nothing /v2/nothing "$@"
  refused "wrong method" 405 POST /v2/models/fp32/infer "$@"
  refused "too few values" 400 INPUT0 /v2/models/fp32/infer --data-binary "$(tensor FP32 '[1,2]')" "$@"
  refused "wrong datatype" 400 INT32 /v2/models/fp32/infer --data-binary "$(tensor INT32 '[1,2,3]')" "$@"
  refused "no JSON" 400 "" /v2/models/fp32/infer --data-binary '{"inputs":' "$@"
}

# Answered before the body has come. Over HTTP/2 it ends with RST_STREAM(NO_ERROR) (RFC 9113, 8.1); curl 7.88
# drops the answer when both arrive before its upload, so there Node's client checks it.
early_errors() {
  local valid
  valid=$(tensor FP32 '[1,2,3]')
  refused "a JSON part longer than the body" 400 "" /v2/models/fp32/infer \
    -H 'Inference-Header-Content-Length: 100000' --data-binary "$valid" --http1.1
  refused "an encoding that is not taken" 415 gzip /v2/models/fp32/infer -H 'Content-Encoding: gzip' \
    --data-binary "$valid" --http1.1
}

connections() {
  local used
  used=$(curl -sS --max-time "$answer_within_s" -o /dev/null -o /dev/null -o /dev/null -w '%{num_connects} ' \
    "$url/v2/models/nothing" "$url/v2/models/fp32" "$url/v2/health/live")
  check "keep-alive: three requests, one connection, an error among them" '[ "'"$used"'" = "1 0 0 " ]'
  ask /v2/models/slow/infer --data-binary "$(tensor FP32 '[1,2,3]')" --max-time 0.1
  check "a client that gives up" '[ "$curl_status" = 28 ]'
  ask /v2/models/slow/infer --data-binary "$(tensor FP32 '[1,2,3]')"
  check "the next one is served" '[ "$status" = 200 ]'
  ask /v2/health/live --http2
  check "an upgrade to HTTP/2 that is offered, not needed" '[ "$status" = 200 ]'
  # One connection each: curl 7.88 fails to share one that it opens with prior knowledge, whatever the server.
  curl -sS --max-time "$answer_within_s" --http2-prior-knowledge --parallel --parallel-immediate --parallel-max 32 \
    -o "$work/p#1" -w '%{http_code} %{http_version}\n' "$url/v2/models/fp32?n=[1-32]" >"$work/codes" 2>"$work/error"
  check "32 HTTP/2 connections at once" '[ "$(grep -c "^200 2$" "$work/codes")" = 32 ]'
}

grpc_by_hand() {
  url=http://$SLUICE_GRPC
  printf '\0\0\0\0\0' >"$work/request"
  ask /inference.GRPCInferenceService/ServerReady --http2-prior-knowledge -H 'Content-Type: application/grpc' \
    -H 'TE: trailers' --data-binary @"$work/request"
  printf '\0\0\0\0\2\10\1' >"$work/tensor"
  check "a gRPC call" '[ "$status" = 200 ] && [ "$(field grpc-status)" = 0 ] && cmp -s "$work/body" "$work/tensor"'
  ask /grpc.health.v1.Health/Check --http2-prior-knowledge -H 'Content-Type: application/grpc' -H 'TE: trailers' \
    --data-binary @"$work/request"
  check "gRPC health" '[ "$(field grpc-status)" = 0 ] && cmp -s "$work/body" "$work/tensor"'
}

health_and_metadata --http1.1
health_and_metadata --http2-prior-knowledge
all_json --http1.1
all_json --http2-prior-knowledge
all_binary --http1.1
all_binary --http2-prior-knowledge
one_direction
uploads
heads --http1.1
heads --http2-prior-knowledge
errors --http1.1
errors --http2-prior-knowledge
early_errors
connections
grpc_by_hand
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
