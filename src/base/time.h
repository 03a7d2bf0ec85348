// Monotonic time, without a clock: `Time` values come from a loop (io::Loop::now) and so from the real
// clock or from the simulator's. Nothing outside src/io reads a clock (tools/tidy).
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice {

using Duration = std::chrono::nanoseconds;

// A tag: it has no now().
struct MonotonicClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicClock>;
  static constexpr bool is_steady = true;
};
using Time = MonotonicClock::time_point;

inline constexpr Time kNever = Time::max();

constexpr std::int64_t to_ns(Duration d) { return d.count(); }
constexpr double to_seconds(Duration d) { return static_cast<double>(d.count()) * 1e-9; }

// time + d, saturating at kNever (a deadline of "a very long time" must not wrap). d >= 0.
constexpr Time saturating_add(Time time, Duration d) { return d >= kNever - time ? kNever : time + d; }

}  // namespace sluice
