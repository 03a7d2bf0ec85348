// Whatever the batches, the loops, the order of completions, cancels, deadlines, failures: each request gets
// exactly one terminal, a good one brings its own rows of the outputs it asked for, and no row is run twice,
// lost or made up.
#include <algorithm>
#include <deque>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "io/sim/sim_world.h"
#include "serving/model_queue.h"
#include "serving/test_model.h"

namespace sluice::serving {
namespace {

using std::chrono::microseconds;

// Each task on any of several executors: completions come in any order.
class ShufflingExecutor final : public io::Executor {
 public:
  ShufflingExecutor(io::SimWorld& world, int count) : world_(world) {
    for (int i = 0; i < count; ++i) {
      executors_.push_back(world.make_executor([&world] { return microseconds(world.random().between(1, 400)); }));
    }
  }
  void submit(Function<void()> task) override {
    executors_[world_.random().below(executors_.size())]->submit(std::move(task));
  }

 private:
  io::SimWorld& world_;
  std::vector<std::unique_ptr<io::Executor>> executors_;
};

struct Sent {
  PreparedRequest copy;  // what was sent
  std::shared_ptr<Outcome> outcome = std::make_shared<Outcome>();
  std::uint64_t ticket = 0;
  bool cancelled = false;
};

class History {
 public:
  explicit History(std::uint64_t seed) : world_(seed), random_(seed * 2 + 1), executor_(world_, 3) {
    loops_ = {&world_.make_loop("a"), &world_.make_loop("b"), &world_.make_loop("c")};
    options_ = random_options();
    auto model = std::make_shared<FunctionModel>(*loops_[0], random_.chance(0.2) ? nullptr : &executor_,
                                                 [this](const engine::Batch& batch) { return run_batch(batch); });
    stats_ = std::make_shared<ModelStats>("m", "1");
    queue_ = std::make_unique<ModelQueue>(options_, model, stats_, *loops_[0]);
  }

  void play() {
    const int count = static_cast<int>(random_.between(20, 200));
    Time when = world_.now();
    for (int i = 0; i < count; ++i) {
      if (random_.chance(0.5)) when += microseconds(random_.between(0, 300));
      io::Loop* home = loops_[random_.below(loops_.size())];
      world_.at(when, [this, home] { home->post([this, home] { send(*home); }); });
    }
    const bool destroy = random_.chance(0.2);
    const Time end = random_.chance(0.5) ? when : when + microseconds(100'000);
    bool drained = false;
    world_.at(end, [&] {
      if (destroy) return queue_.reset();
      queue_->drain([&] { drained = true; });
    });
    world_.run_for(std::chrono::seconds(10));
    check();
    if (destroy) return;
    EXPECT_TRUE(drained);
    EXPECT_EQ(queue_->waiting(), 0u);
    EXPECT_EQ(queue_->in_flight(), 0u);
  }

 private:
  ModelQueue::Options random_options() {
    ModelQueue::Options options{.model_name = "m", .model_version = "1", .output_names = {"x", "y", "z"},
                                .batched = true};
    BatcherOptions& batcher = options.batcher;
    batcher.max_rows = random_.between(1, 16);
    batcher.batching = random_.chance(0.9);
    batcher.max_delay = microseconds(random_.chance(0.5) ? 0 : random_.between(1, 2'000));
    batcher.instances = static_cast<std::uint32_t>(random_.between(1, 3));
    batcher.max_queue_size = static_cast<std::size_t>(random_.between(2, 60));
    batcher.priority_levels = static_cast<std::uint32_t>(random_.between(1, 2));
    for (std::int64_t rows = 2; rows <= batcher.max_rows; rows *= 2) {
      if (random_.chance(0.3)) batcher.preferred_rows.push_back(rows);
    }
    failing_ = random_.chance(0.3) ? 0.1 : 0;
    return options;
  }

  // Rows of fixed size, rows of strings, and rows that may be empty; every byte tells whose it is.
  PreparedRequest make_request(const io::Loop& home) {
    const std::int64_t rows = random_.between(1, std::min<std::int64_t>(options_.batcher.max_rows, 5));
    const std::int64_t width = random_.between(1, 2);
    std::string numbers, strings, bytes;
    for (std::int64_t i = 0; i < rows * 3; ++i) {
      const std::uint64_t value = random_.next();
      numbers.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    for (std::int64_t i = 0; i < rows * 2; ++i) {
      const std::string text = fmt::format("{:x}", random_.next()).substr(0, random_.below(12));
      const auto length = static_cast<std::uint32_t>(text.size());
      strings.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(text);
    }
    for (std::int64_t i = 0; i < rows * (width - 1); ++i) bytes.push_back(static_cast<char>(random_.next()));
    PreparedRequest request = prepared_of({tensor_of(DataType::kUint64, {rows, 3}, numbers),
                                           tensor_of(DataType::kBytes, {rows, 2}, strings),
                                           tensor_of(DataType::kUint8, {rows, width - 1}, bytes)}, home.now());
    request.shape_key = static_cast<std::uint64_t>(width);
    request.id = fmt::format("{}", sent_.size());
    request.priority = static_cast<std::uint32_t>(random_.below(options_.batcher.priority_levels));
    if (random_.chance(0.2)) request.deadline = home.now() + microseconds(random_.between(1, 1'500));
    for (std::uint32_t output = 0; output < 3 && random_.chance(0.7); ++output) {
      request.outputs.push_back((output + static_cast<std::uint32_t>(width)) % 3);
    }
    return request;
  }

  void send(io::Loop& home) {
    if (!queue_) return;
    Sent& sent = sent_.emplace_back();
    sent.copy = make_request(home);
    PreparedRequest request = sent.copy;
    sent.ticket = queue_->submit(std::move(request), home, std::make_unique<OutcomeSink>(sent.outcome, home));
    EXPECT_TRUE(sent.ticket != 0 || sent.outcome->terminal);
    if (sent.ticket == 0 || !random_.chance(0.15)) return;
    world_.at(world_.now() + microseconds(random_.between(0, 1'000)), [this, &home, &sent] {
      home.post([this, &sent] {
        if (!queue_ || sent.outcome->terminal) return;
        sent.cancelled = true;
        queue_->cancel(sent.ticket);
      });
    });
  }

  Result<engine::BatchOutput> run_batch(const engine::Batch& batch) {
    std::int64_t rows = 0;
    for (const auto& item : batch.items) rows += item.rows;
    EXPECT_EQ(rows, batch.rows);
    EXPECT_LE(rows, options_.batcher.max_rows);
    EXPECT_TRUE(options_.batcher.batching || batch.items.size() == 1);
    rows_run_ += rows;
    if (random_.chance(failing_)) return fail(Code::kInternal, "failed as planned");
    Result<engine::BatchOutput> out = identity_of(batch);
    for (std::size_t i = 0; i < batch.wanted.size(); ++i) {
      if (!batch.wanted[i]) out->outputs[i] = Tensor{};
    }
    return out;
  }

  void check_answer(const Sent& sent) const {
    const InferResponse& response = sent.outcome->responses.at(0);
    EXPECT_EQ(response.id, sent.copy.id);
    std::vector<std::uint32_t> asked = sent.copy.outputs;
    if (asked.empty()) asked = {0, 1, 2};
    ASSERT_EQ(response.outputs.size(), asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const Tensor& expected = sent.copy.item.inputs[asked[i]];
      const OutputTensor& output = response.outputs[i];
      EXPECT_EQ(output.name, options_.output_names[asked[i]]);
      EXPECT_EQ(output.tensor.shape, expected.shape);
      EXPECT_EQ(as_text(output.tensor.data), as_text(expected.data));
    }
  }

  void check() const {
    std::int64_t rows_answered = 0;
    for (const Sent& sent : sent_) {
      const Outcome& outcome = *sent.outcome;
      ASSERT_TRUE(outcome.terminal.has_value()) << "no terminal for request " << sent.copy.id;
      if (outcome.code() == Code::kOk || outcome.code() == Code::kInternal) rows_answered += sent.copy.item.rows;
      EXPECT_TRUE(outcome.code() != Code::kCancelled || sent.cancelled);
      EXPECT_TRUE(outcome.code() != Code::kDeadlineExceeded || outcome.ended >= sent.copy.deadline);
      EXPECT_EQ(outcome.responses.size(), outcome.code() == Code::kOk ? 1u : 0u);
      if (outcome.code() == Code::kOk) check_answer(sent);
    }
    EXPECT_EQ(rows_run_, rows_answered);
    EXPECT_EQ(stats_->snapshot().pending, 0);
  }

  io::SimWorld world_;
  Random random_;
  ShufflingExecutor executor_;
  std::vector<io::Loop*> loops_;
  ModelQueue::Options options_;
  double failing_ = 0;
  std::shared_ptr<ModelStats> stats_;
  std::unique_ptr<ModelQueue> queue_;
  std::deque<Sent> sent_;
  std::int64_t rows_run_ = 0;
};

TEST(BatchingProperty, AnswersGoToTheirOwnRequests) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    History(seed).play();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice::serving
