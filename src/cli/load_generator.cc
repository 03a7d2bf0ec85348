#include "cli/load_generator.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice::cli {

LoadGenerator::LoadGenerator(io::Loop& loop, const LoadOptions& options, Function<void(Done)> send)
    : loop_(loop),
      options_(options),
      send_(std::move(send)),
      random_(options.seed),
      timer_(loop.timers(), [this] { options_.rate > 0 ? send_due() : finish_if_over(); }) {}

void LoadGenerator::start(Function<void()> finished) {
  finished_ = std::move(finished);
  begin_ = next_ = loop_.now();
  measure_from_ = begin_ + options_.warmup;
  end_ = measure_from_ + options_.duration;
  if (options_.rate > 0) return send_due();
  timer_.arm(end_);
  for (int i = 0; i < options_.concurrency; ++i) send_one(loop_.now());
}

double LoadGenerator::progress() const {
  const double time = to_seconds(loop_.now() - begin_) / to_seconds(end_ - begin_);
  const double count = options_.max_requests == 0
                           ? 0
                           : static_cast<double>(measured_sent_) / static_cast<double>(options_.max_requests);
  return std::clamp(std::max(time, count), 0.0, 1.0);
}

bool LoadGenerator::over(Time now) const {
  return now >= end_ || (options_.max_requests > 0 && measured_sent_ >= options_.max_requests);
}

void LoadGenerator::send_due() {
  const Time now = loop_.now();
  while (next_ <= now && !over(next_)) {
    send_one(next_);
    const double gap_s = options_.poisson ? random_.exponential(1.0 / options_.rate) : 1.0 / options_.rate;
    next_ += Duration(std::llround(gap_s * 1e9));
  }
  if (over(next_)) return finish_if_over();
  timer_.arm(next_);
}

void LoadGenerator::send_one(Time intended) {
  const bool measured = intended >= measure_from_;
  if (outstanding_ >= options_.max_outstanding) {
    if (measured) ++result_.dropped;
    return;
  }
  if (measured) ++measured_sent_;
  ++outstanding_;
  send_([this, intended](Status status) { on_answer(intended, status); });
}

void LoadGenerator::on_answer(Time intended, const Status& status) {
  --outstanding_;
  const Time now = loop_.now();
  if (intended >= measure_from_) {
    result_.measured = now - measure_from_;
    if (status) {
      ++result_.completed;
      result_.latency_ns.record(to_ns(now - intended));
    } else {
      ++result_.failed;
      ++result_.errors[std::string(code_name(status.error().code)) + ": " + status.error().message];
    }
  }
  if (options_.rate <= 0 && !over(now)) return send_one(now);
  finish_if_over();
}

void LoadGenerator::finish_if_over() {
  if (outstanding_ > 0 || !finished_) return;
  if (!over(options_.rate > 0 ? next_ : loop_.now())) return;
  timer_.disarm();
  std::exchange(finished_, nullptr)();
}

}  // namespace sluice::cli
