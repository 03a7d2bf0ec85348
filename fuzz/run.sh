#!/usr/bin/env bash
# Runs every fuzz target (clang, libFuzzer, AddressSanitizer, UndefinedBehaviorSanitizer) for some seconds each,
# from fuzz/corpus, and prints its executions and the edges it reached, then "N passed, N failed". New inputs are
# kept in build/fuzz/found, what crashes in build/fuzz/crashes.
# Usage: fuzz/run.sh [SECONDS [TARGET...]]      (default: 20, all); exits with 1 when one of them crashes
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-20}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for source in fuzz/fuzz_*.cc; do targets+=("$(basename "$source" .cc)"); done
fi

[ -f build/fuzz/build.ninja ] || cmake --preset fuzz >/dev/null || exit 1
cmake --build build/fuzz --target "${targets[@]}" >build/fuzz/build.log 2>&1 ||
  { tail -n 40 build/fuzz/build.log; exit 1; }

passed=0 failed=0
for target in "${targets[@]}"; do
  found=build/fuzz/found/$target
  log=build/fuzz/$target.log
  mkdir -p "$found" build/fuzz/crashes
  build/fuzz/fuzz/"$target" "$found" "fuzz/corpus/${target#fuzz_}" -max_total_time="$seconds" -max_len=8192 \
    -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="build/fuzz/crashes/$target-" >"$log" 2>&1
  status=$?
  executions=$(awk '/^stat::number_of_executed_units:/ {print $2}' "$log")
  edges=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d ' ' -f 2)
  if [ $status -eq 0 ]; then
    printf '%s: %s executions, %s edges\n' "$target" "${executions:-0}" "${edges:-0}"
    passed=$((passed + 1))
  else
    printf '%s: FAILED after %s executions, %s edges\n' "$target" "${executions:-?}" "${edges:-?}"
    tail -n 40 "$log"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
