#include "io/timer_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice::io {

Timer::Timer(TimerQueue& queue, Function<void()> on_expiry) : queue_(queue), on_expiry_(std::move(on_expiry)) {}

Timer::~Timer() {
  if (destroyed_ != nullptr) *destroyed_ = true;
  disarm();
}

void Timer::arm(Time at) {
  if (at == kNever) return disarm();
  queue_.arm(*this, at);
}

void Timer::disarm() {
  if (armed()) queue_.disarm(*this);
}

TimerQueue::TimerQueue(Function<void(Time)> on_earliest_changed)
    : on_earliest_changed_(std::move(on_earliest_changed)) {}

TimerQueue::~TimerQueue() {
  for (Timer* timer : heap_) timer->heap_index_ = Timer::kNotArmed;
}

Time TimerQueue::earliest() const { return heap_.empty() ? kNever : heap_.front()->at_; }

std::size_t TimerQueue::expire(Time now) {
  SLUICE_CHECK(!expiring_, "a timer's callback must not expire its own queue");
  const Time previous = earliest();
  if (previous > now) return 0;
  expiring_ = true;
  earliest_allowed_ = now;
  const std::uint64_t first_new_order = next_order_;
  std::size_t fired = 0;
  // What is armed meanwhile lies at `now` or later and has a later order, so it is behind all that is to fire.
  while (!heap_.empty() && heap_.front()->at_ <= now && heap_.front()->order_ < first_new_order) {
    Timer& timer = *heap_.front();
    remove(timer);
    fire(timer);
    ++fired;
  }
  earliest_allowed_ = Time::min();
  expiring_ = false;
  notify(previous);
  return fired;
}

void TimerQueue::fire(Timer& timer) {
  // The callback may destroy the timer and with it what the callback captures: it runs from here.
  Function<void()> callback = std::move(timer.on_expiry_);
  bool destroyed = false;
  timer.destroyed_ = &destroyed;
  callback();
  if (destroyed) return;
  timer.destroyed_ = nullptr;
  timer.on_expiry_ = std::move(callback);
}

void TimerQueue::arm(Timer& timer, Time at) {
  const Time previous = earliest();
  timer.at_ = std::max(at, earliest_allowed_);
  timer.order_ = next_order_++;
  if (!timer.armed()) {
    heap_.push_back(&timer);
    timer.heap_index_ = heap_.size() - 1;
    sift_up(timer.heap_index_);
  } else {
    sift_up(timer.heap_index_);
    sift_down(timer.heap_index_);
  }
  notify(previous);
}

void TimerQueue::disarm(Timer& timer) {
  const Time previous = earliest();
  remove(timer);
  notify(previous);
}

void TimerQueue::remove(Timer& timer) {
  const std::size_t hole = timer.heap_index_;
  timer.heap_index_ = Timer::kNotArmed;
  Timer* last = heap_.back();
  heap_.pop_back();
  if (last == &timer) return;
  place(hole, last);
  sift_up(hole);
  sift_down(last->heap_index_);
}

void TimerQueue::sift_up(std::size_t index) {
  Timer* timer = heap_[index];
  while (index > 0) {
    const std::size_t parent = (index - 1) / 2;
    if (!before(*timer, *heap_[parent])) break;
    place(index, heap_[parent]);
    index = parent;
  }
  place(index, timer);
}

void TimerQueue::sift_down(std::size_t index) {
  Timer* timer = heap_[index];
  for (;;) {
    std::size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) ++child;
    if (!before(*heap_[child], *timer)) break;
    place(index, heap_[child]);
    index = child;
  }
  place(index, timer);
}

bool TimerQueue::before(const Timer& a, const Timer& b) const {
  return a.at_ != b.at_ ? a.at_ < b.at_ : a.order_ < b.order_;
}

void TimerQueue::place(std::size_t index, Timer* timer) {
  heap_[index] = timer;
  timer->heap_index_ = index;
}

void TimerQueue::notify(Time previous_earliest) {
  if (expiring_ || !on_earliest_changed_) return;
  const Time now_earliest = earliest();
  if (now_earliest != previous_earliest) on_earliest_changed_(now_earliest);
}

}  // namespace sluice::io
