// The batcher alone, through thousands of random events a seed, beside a plain reference: whatever it takes,
// expires or refuses must be what the reference says, and it may never sleep longer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/random.h"
#include "reference_batcher.h"
#include "serving/batcher.h"

namespace sluice::sim {
namespace {

using serving::BatcherDecisions;
using serving::BatcherOptions;
using serving::QueuedRequest;
using serving::RequestId;

constexpr std::uint64_t kSeeds = 1000;
constexpr int kSteps = 1500;

BatcherOptions draw_options(Random& random) {
  BatcherOptions options;
  options.batching = !random.chance(0.1);
  options.max_rows = std::vector<std::int64_t>{1, 2, 4, 8, 32}[random.below(5)];
  for (std::int64_t rows = 2; rows <= options.max_rows * 2; rows *= 2) {
    if (random.chance(0.25)) options.preferred_rows.push_back(rows);
  }
  if (random.chance(0.6)) options.max_delay = std::chrono::microseconds(random.between(1, 2000));
  options.max_queue_size = random.chance(0.5) ? random.below(20) + 1 : 4096;
  options.instances = static_cast<std::uint32_t>(random.between(1, 4));
  options.priority_levels = random.chance(0.4) ? static_cast<std::uint32_t>(random.between(2, 4)) : 1;
  return options;
}

class BatcherSim {
 public:
  explicit BatcherSim(std::uint64_t seed)
      : random_(seed), options_(draw_options(random_)), batcher_(options_), reference_(options_) {
    for (std::uint32_t i = 0; i < options_.instances; ++i) free_.insert(i);
    load_ = random_.unit();
    shapes_ = random_.below(3) + 1;
  }

  void run() {
    for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) {
      advance();
      one_event();
    }
    finish();
  }
  std::uint64_t batches() const { return batches_; }

 private:
  // Time moves; the shell's timer is on time, or a little late.
  void advance() {
    const Time target = now_ + Duration(random_.chance(0.3) ? 0 : static_cast<std::int64_t>(
                                                                      random_.exponential(load_ * 300'000 + 1'000)));
    while (next_event_ <= target) {
      now_ = std::max(now_, next_event_);
      if (random_.chance(0.1)) now_ += Duration(random_.between(0, 50'000));
      on_time();
      if (testing::Test::HasFailure()) return;
    }
    now_ = std::max(now_, target);
  }

  void one_event() {
    const double draw = random_.unit();
    if (draw < 0.5) return enqueue();
    if (draw < 0.6) return cancel();
    if (draw < 0.9) return instance_free();
    if (draw < 0.94) return lose_instance();
    if (draw < 0.98) return instance_back();
    if (draw < 0.9995) return on_time();
    begin("drain");
    batcher_.drain(now_, decisions_);
    reference_.drain();
    compare();
  }

  void enqueue() {
    QueuedRequest request;
    request.id = ++last_id_;
    request.rows = random_.chance(0.6) ? 1 : random_.between(1, options_.max_rows);
    if (random_.chance(0.01)) request.rows = random_.chance(0.5) ? 0 : options_.max_rows + 1;
    request.shape_key = random_.below(shapes_);
    request.priority = static_cast<std::uint32_t>(random_.below(options_.priority_levels));
    if (random_.chance(0.3)) request.deadline = now_ + Duration(random_.between(-10, 3'000'000));
    begin("enqueue");
    const std::set<Code> refusals = reference_.refusals(request, now_, expected_);
    const Status status = batcher_.enqueue(request, now_, decisions_);
    if (refusals.empty()) {
      EXPECT_TRUE(status.has_value()) << status.error().message;
      reference_.enqueue(request, now_);
    } else {
      EXPECT_TRUE(!status.has_value() && refusals.contains(status.error().code));
    }
    compare();
  }

  void cancel() {
    const RequestId id = last_id_ < 8 ? last_id_ : last_id_ - random_.below(8);
    begin("cancel");
    const bool expected = reference_.cancel(id, now_, expected_);
    EXPECT_EQ(batcher_.cancel(id, now_, decisions_), expected);
    compare();
  }

  void instance_free() {
    if (busy_.empty()) return;
    const std::uint32_t instance = pick(busy_);
    busy_.erase(instance);
    free_.insert(instance);
    begin("instance free");
    batcher_.on_instance_free(instance, now_, decisions_);
    reference_.instance_free();
    compare();
  }

  void lose_instance() {
    const auto instance = static_cast<std::uint32_t>(random_.below(options_.instances));
    if (gone_.contains(instance)) return;
    if (free_.erase(instance) > 0) reference_.instance_lost_while_free();
    busy_.erase(instance);
    gone_.insert(instance);
    begin("instance lost");
    batcher_.set_instance_available(instance, false, now_, decisions_);
    compare();
  }

  void instance_back() {
    if (gone_.empty()) return;
    const std::uint32_t instance = pick(gone_);
    gone_.erase(instance);
    free_.insert(instance);
    begin("instance back");
    batcher_.set_instance_available(instance, true, now_, decisions_);
    reference_.instance_free();
    compare();
  }

  void on_time() {
    begin("on_time");
    batcher_.on_time(now_, decisions_);
    compare();
  }

  // Everything that waits comes out in the end.
  void finish() {
    while (!testing::Test::HasFailure() && !(batcher_.idle() && gone_.empty())) {
      if (next_event_ != kNever) now_ = std::max(now_, next_event_);
      on_time();
      instance_back();
      instance_free();
    }
  }

  void begin(const char* event) {
    event_ = event;
    decisions_.clear();
    expected_ = {};
  }

  void compare() {
    reference_.settle(now_, expected_);
    SCOPED_TRACE(fmt::format("{} at {} ns", event_, now_.time_since_epoch().count()));
    std::vector<ReferenceBatcher::Taken> batches;
    for (const auto& batch : decisions_.batches) {
      const auto requests = decisions_.requests_of(batch);
      batches.push_back({{requests.begin(), requests.end()}, batch.rows, batch.reason});
      EXPECT_EQ(free_.erase(batch.instance), 1U) << "instance " << batch.instance << " was not free";
      busy_.insert(batch.instance);
    }
    batches_ += batches.size();
    EXPECT_TRUE(batches == expected_.batches) << describe(batches) << " instead of " << describe(expected_.batches);
    EXPECT_EQ(std::set(decisions_.expired.begin(), decisions_.expired.end()), expected_.expired);
    EXPECT_LE(decisions_.next_event, expected_.latest_next_event) << "it would sleep too long";
    EXPECT_GT(decisions_.next_event, now_) << "it would not sleep at all";
    EXPECT_EQ(batcher_.waiting(), reference_.waiting());
    EXPECT_EQ(batcher_.waiting_rows(), reference_.waiting_rows());
    EXPECT_EQ(batcher_.busy_instances(), busy_.size());
    next_event_ = decisions_.next_event;
  }

  static std::string describe(const std::vector<ReferenceBatcher::Taken>& batches) {
    std::string text;
    for (const auto& batch : batches) {
      text += fmt::format("[{} requests from {}, {} rows, {}]", batch.requests.size(), batch.requests.front(),
                          batch.rows, kCloseReasonNames[static_cast<std::size_t>(batch.reason)]);
    }
    return text.empty() ? "nothing" : text;
  }

  std::uint32_t pick(const std::set<std::uint32_t>& from) {
    return *std::next(from.begin(), static_cast<std::ptrdiff_t>(random_.below(from.size())));
  }

  Random random_;
  BatcherOptions options_;
  serving::Batcher batcher_;
  ReferenceBatcher reference_;
  double load_ = 0;
  std::uint64_t shapes_ = 1;
  Time now_{std::chrono::seconds(1)};
  Time next_event_ = kNever;
  RequestId last_id_ = 0;
  std::set<std::uint32_t> free_, busy_, gone_;
  std::uint64_t batches_ = 0;
  const char* event_ = "";
  BatcherDecisions decisions_;
  ReferenceBatcher::Outcome expected_;
};

TEST(BatcherSim, DecidesAsTheReferenceForEverySeed) {
  std::uint64_t batches = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    BatcherSim sim(seed);
    sim.run();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    batches += sim.batches();
  }
  EXPECT_GT(batches, kSeeds * kSteps / 20) << "the events hardly reach the batcher";
}

}  // namespace
}  // namespace sluice::sim
