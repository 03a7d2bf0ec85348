// Timers in order of their time, for one loop. Pure: it holds no clock. The loop asks when the next is
// due and calls expire(now); the real loop arms one kernel timer with it, the simulated one moves its
// virtual time to it. Equal times fire in the order in which they were armed.
//
// A Timer is owned by whoever waits; destroying it disarms it. Arming, disarming: O(log n), no
// allocation once the heap has grown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/function.h"
#include "base/time.h"

namespace sluice::io {

class TimerQueue;

class Timer {
 public:
  // `on_expiry` may arm, disarm or destroy any timer, this one included.
  Timer(TimerQueue& queue, Function<void()> on_expiry);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void arm(Time at);  // replaces an earlier time; kNever disarms
  void disarm();
  bool armed() const { return heap_index_ != kNotArmed; }
  Time at() const { return at_; }  // meaningful while armed

 private:
  friend class TimerQueue;
  static constexpr std::size_t kNotArmed = SIZE_MAX;

  TimerQueue& queue_;
  Function<void()> on_expiry_;
  Time at_ = kNever;
  std::uint64_t order_ = 0;
  std::size_t heap_index_ = kNotArmed;
};

class TimerQueue {
 public:
  // Told when the earliest time has changed (the real loop re-arms its kernel timer then).
  explicit TimerQueue(Function<void(Time earliest)> on_earliest_changed = nullptr);
  ~TimerQueue();

  Time earliest() const;  // kNever when empty
  std::size_t size() const { return heap_.size(); }

  // Fires what is due at `now`, at most what was armed when the call began (a timer that re-arms
  // itself for now fires in the next call). Returns how many fired.
  std::size_t expire(Time now);

 private:
  friend class Timer;
  void arm(Timer& timer, Time at);
  void disarm(Timer& timer);
  void sift_up(std::size_t index);
  void sift_down(std::size_t index);
  bool before(const Timer& a, const Timer& b) const;
  void place(std::size_t index, Timer* timer);
  void notify(Time previous_earliest);

  std::vector<Timer*> heap_;
  std::uint64_t next_order_ = 0;
  Function<void(Time)> on_earliest_changed_;
};

}  // namespace sluice::io
