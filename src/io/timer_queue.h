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

  // Replaces an earlier time; kNever disarms. Within a callback the past counts as the time of its expire().
  void arm(Time at);
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
  bool* destroyed_ = nullptr;  // set while the callback runs: says that the timer did not survive it
};

class TimerQueue {
 public:
  // Told when the earliest time has changed (the real loop re-arms its kernel timer then); once, at its
  // end, for all that an expire() changed.
  explicit TimerQueue(Function<void(Time earliest)> on_earliest_changed = nullptr);
  ~TimerQueue();  // disarms what is left
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  Time earliest() const;  // kNever when empty
  std::size_t size() const { return heap_.size(); }

  // Fires what is due at `now`, at most what was armed when the call began (a timer that re-arms
  // itself for now fires in the next call). Returns how many fired.
  std::size_t expire(Time now);

 private:
  friend class Timer;
  void arm(Timer& timer, Time at);
  void disarm(Timer& timer);
  void remove(Timer& timer);
  void fire(Timer& timer);
  void sift_up(std::size_t index);
  void sift_down(std::size_t index);
  bool before(const Timer& a, const Timer& b) const;
  void place(std::size_t index, Timer* timer);
  void notify(Time previous_earliest);

  std::vector<Timer*> heap_;
  std::uint64_t next_order_ = 0;
  bool expiring_ = false;
  Time earliest_allowed_ = Time::min();  // while expiring: what is armed comes after all that is due
  Function<void(Time)> on_earliest_changed_;
};

}  // namespace sluice::io
