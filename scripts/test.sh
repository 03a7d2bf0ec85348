#!/usr/bin/env bash
# Installs what is missing, builds, runs every test, and prints the counts as its last line:
#   N passed, N failed
# Exits 1 when anything failed, a build included.
# Usage: scripts/test.sh [PART...]      PART: unit asan tsan fuzz mutants conformance e2e bench (default: all)
#   unit         release build; everything ctest knows (unit, property, simulation, tidy)
#   asan, tsan   the unit and property tests under AddressSanitizer + UBSan; the concurrent ones under ThreadSanitizer
#   fuzz         each fuzz target for 20 s
#   mutants      each deliberate fault must be caught
#   conformance  clients that others wrote, against the real binary
#   e2e          the real binary from start to stop
#   bench        every bench with --quick
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1

all_parts=(unit asan tsan fuzz mutants conformance e2e bench)
concurrent_tests=(io_test tensor_test stats_test engine_test serving_test net_test api_test)
jobs=$(nproc)
max_test_seconds=300    # of one test program under a sanitizer
max_script_seconds=900  # of one test script
logs=$root/build/test-logs
passed=0 failed=0
failures=()

# Compiler results are shared between checkouts.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
export LSAN_OPTIONS=suppressions=$root/tests/sanitizers/lsan.supp:print_suppressions=0
export SLUICE=$root/build/release/sluice

fail() {  # NAME [LOG]: counts one failure and shows the end of its log
  failed=$((failed + 1))
  failures+=("$1")
  echo "FAILED: $1${2:+ (log: ${2#"$root"/})}"
  [ -z "${2:-}" ] || tail -n 40 "$2" | sed 's/^/    /'
}

configure() {  # PRESET
  local log=$logs/configure-$1.log
  cmake --preset "$1" >"$log" 2>&1 && return 0
  fail "configuration of $1" "$log"
  return 1
}

build() {  # PRESET [TARGET...]
  local log=$logs/build-$1.log begun=$SECONDS
  configure "$1" || return
  if ninja -j"$jobs" -C "build/$1" "${@:2}" >"$log" 2>&1; then
    echo "   built $1 ($((SECONDS - begun)) s)"
  else
    fail "build of $1" "$log"
    return 1
  fi
}

test_programs() {  # PRESET: the test programs it builds, as paths below its folder
  ninja -C "build/$1" -t targets all | sed -n 's/^\([^:]*_test\): CXX_EXECUTABLE_LINKER.*/\1/p' | sort
}

# A script's own counts are its last line `N passed, N failed`; its exit status must agree with them.
run_script() {  # NAME COMMAND...
  local name=$1 log=$logs/${1//\//-}.log begun=$SECONDS status counts ok bad
  shift
  timeout "$max_script_seconds" "$@" >"$log" 2>&1
  status=$?
  counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
  ok=${counts%% *} bad=${counts#*, } bad=${bad%% *}
  passed=$((passed + ${ok:-0}))
  if [ "$status" = 0 ] && [ -n "$counts" ] && [ "$bad" = 0 ]; then
    echo "   $name: $counts ($((SECONDS - begun)) s)"
  else
    [ "$status" != 124 ] || echo "timed out after $max_script_seconds s" >>"$log"
    fail "$name" "$log"
    failed=$((failed + (${bad:-0} > 1 ? bad - 1 : 0)))
  fi
}

run_gtest() {  # NAME PROGRAM
  local name=$1 program=$2 log=$logs/${1//\//-}.log begun=$SECONDS status ok
  timeout "$max_test_seconds" "$program" --gtest_brief=1 >"$log" 2>&1
  status=$?
  ok=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\?\.$/\1/p' "$log" | tail -n 1)
  passed=$((passed + ${ok:-0}))
  if [ "$status" = 0 ] && [ -n "$ok" ]; then
    echo "   $name: $ok passed ($((SECONDS - begun)) s)"
  else
    fail "$name" "$log"
  fi
}

run_sanitized() {  # PRESET PROGRAM...
  local preset=$1 program
  shift
  [ $# -gt 0 ] || { echo "   nothing to run"; return; }
  build "$preset" "$@" || return
  for program in "$@"; do
    run_gtest "$preset/$(basename "$program")" "build/$preset/$program"
  done
}

part_unit() {
  build release || return
  local log=$logs/ctest.log summary bad total
  (cd build/release && ctest -j"$jobs" --output-on-failure --no-tests=error) >"$log" 2>&1
  local status=$?
  summary=$(grep -E 'tests passed, [0-9]+ tests failed out of [0-9]+' "$log" | tail -n 1)
  bad=$(sed -E 's/.* ([0-9]+) tests failed out of.*/\1/' <<<"$summary")
  total=${summary##* }
  passed=$((passed + ${total:-0} - ${bad:-0}))
  if [ "$status" = 0 ] && [ -n "$summary" ]; then
    echo "   ctest: $total passed"
  else
    fail "ctest" "$log"
    failed=$((failed + (${bad:-0} > 1 ? bad - 1 : 0)))
  fi
}

part_asan() {
  configure asan || return
  local programs
  mapfile -t programs < <(test_programs asan)
  run_sanitized asan "${programs[@]}"
}

part_tsan() {
  configure tsan || return
  local programs
  mapfile -t programs < <(test_programs tsan | grep -E "(^|/)($(IFS='|'; echo "${concurrent_tests[*]}"))$")
  run_sanitized tsan "${programs[@]}"
}

part_script() {  # NAME SCRIPT: a part that is one script, in trees that have it
  if [ -x "$2" ]; then run_script "$1" "$2"; else echo "   no $2"; fi
}
part_fuzz() { part_script fuzz fuzz/run.sh; }
part_mutants() { build release && part_script mutants tests/mutants/run.sh; }
part_conformance() { needs_sluice && part_script conformance tests/conformance/run.sh; }

needs_sluice() {
  [ -x "$SLUICE" ] && [ -n "$built_release" ] && return 0
  build release sluice && built_release=yes
}
built_release=

part_e2e() {
  needs_sluice || return
  local script
  for script in tests/e2e/test_*; do
    if [ -x "$script" ]; then run_script "e2e/$(basename "$script")" "$script"; fi
  done
}

part_bench() {
  build release || return
  local bench
  for bench in bench/*; do
    if [ -f "$bench" ] && [ -x "$bench" ]; then run_bench "$bench"; fi
  done
}

run_bench() {  # A smoke run passes when it ends well and states at least one ratio.
  local name log begun=$SECONDS
  name=bench/$(basename "$1") log=$logs/bench-$(basename "$1").log
  if timeout "$max_script_seconds" "$1" --quick >"$log" 2>&1 && grep -qE '^ratio [a-zA-Z0-9_]+ [0-9.]+$' "$log"; then
    passed=$((passed + 1))
    echo "   $name: passed ($((SECONDS - begun)) s)"
    grep -E '^ratio ' "$log" | sed 's/^/   /'
  else
    fail "$name" "$log"
  fi
}

main() {
  local part begun before_passed before_failed
  for part in "$@"; do
    [[ " ${all_parts[*]} " == *" $part "* ]] || { echo "test.sh: no part '$part'; parts: ${all_parts[*]}" >&2; exit 2; }
  done
  [ $# -gt 0 ] || set -- "${all_parts[@]}"
  mkdir -p "$logs"
  scripts/install_deps.sh --test || fail "install_deps.sh"
  for part in "$@"; do
    begun=$SECONDS before_passed=$passed before_failed=$failed
    echo "== $part"
    "part_$part"
    echo "   $part: $((passed - before_passed)) passed, $((failed - before_failed)) failed, $((SECONDS - begun)) s"
  done
  [ ${#failures[@]} = 0 ] || printf 'failed: %s\n' "${failures[@]}"
  echo "in $SECONDS s"
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}
main "$@"
