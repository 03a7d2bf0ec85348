#include "serving/model_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/sim/sim_world.h"
#include "serving/test_model.h"

namespace sluice::serving {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A loop whose clock moves by itself: each look costs a microsecond.
class TickingLoop final : public io::Loop {
 public:
  explicit TickingLoop(io::Loop& loop) : loop_(loop) {}
  Time now() const override { return loop_.now() + microseconds(++looks_); }
  std::int64_t wall_ms() const override { return loop_.wall_ms(); }
  void post(Function<void()> task) override { loop_.post(std::move(task)); }
  bool on_loop_thread() const override { return loop_.on_loop_thread(); }
  void defer(Function<void()> task) override { loop_.defer(std::move(task)); }
  io::TimerQueue& timers() override { return loop_.timers(); }
  Result<std::unique_ptr<io::Listener>> listen(const io::Endpoint& at, const io::ListenOptions& options,
                                               AcceptHandler on_accept) override {
    return loop_.listen(at, options, std::move(on_accept));
  }
  void connect(const io::Endpoint& to, Time deadline, ConnectHandler done) override {
    loop_.connect(to, deadline, std::move(done));
  }

 private:
  io::Loop& loop_;
  mutable std::int64_t looks_ = 0;
};

class ModelQueueTest : public ::testing::Test {
 protected:
  // A queue of int32 rows in front of `body`, on the executor or, with `inline_model`, on the home loop.
  void make(BatcherOptions batcher, bool inline_model = false, FunctionModel::Body body = identity_of,
            std::vector<std::string> outputs = {"out"}) {
    executor_ = world_.make_executor([this] { return cost_; });
    ModelQueue::Options options{.model_name = "m", .model_version = "3", .batcher = std::move(batcher),
                                .output_names = std::move(outputs), .batched = true};
    stats_ = std::make_shared<ModelStats>("m", "3");
    auto model = std::make_shared<FunctionModel>(timers_, inline_model ? nullptr : executor_.get(),
                                                 [this, body = std::move(body)](const engine::Batch& batch) mutable {
                                                   batches_.push_back(batch.rows);
                                                   return body(batch);
                                                 });
    queue_ = std::make_unique<ModelQueue>(std::move(options), model, stats_, timers_);
  }
  static BatcherOptions batching(std::int64_t max_rows, Duration delay = Duration{0}) {
    BatcherOptions options;
    options.max_rows = max_rows;
    options.batching = true;
    options.max_delay = delay;
    return options;
  }
  std::shared_ptr<Outcome> submit(io::Loop& home, const std::vector<std::int32_t>& rows, PreparedRequest like = {}) {
    auto outcome = std::make_shared<Outcome>();
    PreparedRequest request = prepared_of({int32_rows(rows)}, home.now());
    request.deadline = like.deadline;
    request.outputs = std::move(like.outputs);
    request.id = std::move(like.id);
    ticket_ = queue_->submit(std::move(request), home, std::make_unique<OutcomeSink>(outcome, home));
    return outcome;
  }
  void run() { world_.run_for(std::chrono::seconds(1)); }

  io::SimWorld world_{1};
  io::Loop& timers_ = world_.make_loop("timers");
  io::Loop& a_ = world_.make_loop("a");
  io::Loop& b_ = world_.make_loop("b");
  Duration cost_ = microseconds(100);
  std::unique_ptr<io::Executor> executor_;
  std::shared_ptr<ModelStats> stats_;
  std::unique_ptr<ModelQueue> queue_;
  std::uint64_t ticket_ = 0;          // of the last submit()
  std::vector<std::int64_t> batches_;  // rows of each batch that ran
};

TEST_F(ModelQueueTest, AnInlineModelAnswersDuringSubmitWithoutACopy) {
  const std::byte* seen = nullptr;
  make(batching(8), true, [&](const engine::Batch& batch) {
    seen = batch.items[0].inputs[0].data.data();
    return identity_of(batch);
  });
  const auto outcome = submit(a_, {1, 2, 3}, {.id = "42"});
  EXPECT_EQ(ticket_, 0u);
  ASSERT_TRUE(outcome->ok());
  const InferResponse& response = outcome->responses[0];
  EXPECT_EQ(response.model_name, "m");
  EXPECT_EQ(response.model_version, "3");
  EXPECT_EQ(response.id, "42");
  EXPECT_EQ(response.outputs[0].name, "out");
  EXPECT_THAT(int32_values(outcome->output()), ElementsAre(1, 2, 3));
  EXPECT_EQ(outcome->output().data.data(), seen);
  EXPECT_EQ(queue_->in_flight(), 0u);
}

TEST_F(ModelQueueTest, ABatchAcrossLoopsGivesEachRequestItsRowsAtHome) {
  make(batching(8));
  const auto first = submit(a_, {1});  // occupies the instance
  const auto second = submit(a_, {2, 3});
  const auto third = submit(b_, {4});
  const auto fourth = submit(a_, {5, 6});
  EXPECT_EQ(queue_->waiting(), 3u);
  EXPECT_EQ(queue_->in_flight(), 1u);
  run();
  EXPECT_THAT(batches_, ElementsAre(1, 5));
  EXPECT_THAT(int32_values(first->output()), ElementsAre(1));
  EXPECT_THAT(int32_values(second->output()), ElementsAre(2, 3));
  EXPECT_THAT(int32_values(third->output()), ElementsAre(4));
  EXPECT_THAT(int32_values(fourth->output()), ElementsAre(5, 6));
  EXPECT_EQ(second->output().owner.data(), third->output().owner.data());  // views of one buffer
  EXPECT_THAT(fourth->output().shape, ElementsAre(2));
}

TEST_F(ModelQueueTest, InstantsAreInOrder) {
  make(batching(8));
  submit(a_, {1});
  const auto outcome = submit(a_, {2});
  run();
  const RequestTimes& times = outcome->times;
  EXPECT_LE(times.received, times.queued);
  EXPECT_LT(times.queued, times.taken);
  EXPECT_LE(times.taken, times.compute_start);
  EXPECT_LE(times.compute_start, times.compute_end);
  EXPECT_LE(times.compute_end, outcome->ended);
}

TEST_F(ModelQueueTest, OutputsComeInTheOrderAskedForAndUnwantedOnesAreNotNeeded) {
  std::vector<bool> wanted;
  make(batching(8), true,
       [&](const engine::Batch& batch) -> Result<engine::BatchOutput> {
         wanted = batch.wanted;
         engine::BatchOutput out;
         out.outputs = {int32_rows({7}), Tensor{}, int32_rows({9})};
         return out;
       },
       {"x", "y", "z"});
  const auto outcome = submit(a_, {1}, {.outputs = {2, 0}});
  EXPECT_THAT(wanted, ElementsAre(true, false, true));
  ASSERT_TRUE(outcome->ok());
  EXPECT_EQ(outcome->responses[0].outputs[0].name, "z");
  EXPECT_THAT(int32_values(outcome->output(0)), ElementsAre(9));
  EXPECT_EQ(outcome->responses[0].outputs[1].name, "x");
  // One that is asked for and does not come.
  const auto missing = submit(a_, {1}, {.outputs = {1}});
  EXPECT_EQ(missing->code(), Code::kInternal);
  EXPECT_THAT(missing->terminal->error().message, HasSubstr("output 'y'"));
}

TEST_F(ModelQueueTest, AModelsErrorEndsEveryRequestOfItsBatchOnly) {
  make(batching(8), false, [](const engine::Batch& batch) -> Result<engine::BatchOutput> {
    if (batch.rows == 3) return fail(Code::kResourceExhausted, "out of memory");
    return identity_of(batch);
  });
  const auto good = submit(a_, {1});
  const auto bad = submit(a_, {2});
  const auto bad_too = submit(b_, {3, 4});
  run();
  EXPECT_TRUE(good->ok());
  for (const auto& outcome : {bad, bad_too}) {
    EXPECT_EQ(outcome->code(), Code::kResourceExhausted);
    EXPECT_EQ(outcome->terminal->error().message, "out of memory");
    EXPECT_TRUE(outcome->responses.empty());
  }
  EXPECT_EQ(stats_->snapshot().failures[static_cast<std::size_t>(FailureReason::kBackend)], 2u);
  EXPECT_EQ(stats_->snapshot().execution_count, 1u);
}

TEST_F(ModelQueueTest, AnOutputWithTheWrongRowsIsAnInternalError) {
  make(batching(8), true, [](const engine::Batch&) -> Result<engine::BatchOutput> {
    engine::BatchOutput out;
    out.outputs = {int32_rows({1, 2, 3})};
    return out;
  });
  const auto outcome = submit(a_, {1});
  EXPECT_EQ(outcome->code(), Code::kInternal);
  EXPECT_THAT(outcome->terminal->error().message, HasSubstr("output 'out': the model gave shape [3] for a batch of 1"));
}

TEST_F(ModelQueueTest, AModelThatLosesABatchFailsIt) {
  struct Loser : FunctionModel {
    using FunctionModel::FunctionModel;
    void submit(engine::Batch, engine::BatchDone) override {}
  };
  auto model = std::make_shared<Loser>(timers_, nullptr);
  queue_ = std::make_unique<ModelQueue>(ModelQueue::Options{.batcher = batching(8), .output_names = {"out"}}, model,
                                        std::make_shared<ModelStats>("m", "1"), timers_);
  EXPECT_EQ(submit(a_, {1})->code(), Code::kInternal);
  EXPECT_EQ(submit(a_, {1})->code(), Code::kInternal);  // the instance is free again
}

TEST_F(ModelQueueTest, AFullQueueRefusesAtOnce) {
  BatcherOptions options = batching(1);
  options.max_queue_size = 1;
  make(options);
  submit(a_, {1});
  const auto waiting = submit(a_, {2});
  const auto refused = submit(a_, {3});
  EXPECT_EQ(ticket_, 0u);
  EXPECT_EQ(refused->code(), Code::kResourceExhausted);
  EXPECT_THAT(refused->terminal->error().message, HasSubstr("max_queue_size 1"));
  EXPECT_EQ(stats_->snapshot().failures[static_cast<std::size_t>(FailureReason::kRejected)], 1u);
  EXPECT_EQ(stats_->snapshot().pending, 1);
  run();
  EXPECT_TRUE(waiting->ok());
  EXPECT_EQ(stats_->snapshot().pending, 0);
}

TEST_F(ModelQueueTest, ADeadlineEndsARequestThatWaitsWhenItPasses) {
  cost_ = microseconds(10'000);
  make(batching(8));
  const auto running = submit(a_, {1}, {.deadline = world_.now() + microseconds(500)});
  const Time deadline = world_.now() + microseconds(700);
  const auto late = submit(b_, {2}, {.deadline = deadline});
  const auto patient = submit(b_, {3});
  run();
  EXPECT_TRUE(running->ok());  // it had left the queue by then
  EXPECT_EQ(late->code(), Code::kDeadlineExceeded);
  EXPECT_GE(late->ended, deadline);
  EXPECT_LT(late->ended, deadline + microseconds(50));
  EXPECT_TRUE(patient->ok());
  EXPECT_THAT(batches_, ElementsAre(1, 1));
}

TEST_F(ModelQueueTest, ABatchWaitsForItsDelay) {
  make(batching(8, microseconds(300)));
  const Time start = world_.now();
  const auto first = submit(a_, {1});
  const auto second = submit(b_, {2});
  run();
  EXPECT_THAT(batches_, ElementsAre(2));
  EXPECT_EQ(first->times.taken, start + microseconds(300));
  EXPECT_TRUE(second->ok());
  EXPECT_EQ(stats_->snapshot().close_reasons[static_cast<std::size_t>(CloseReason::kDelay)], 1u);
}

TEST_F(ModelQueueTest, AnEarlierDeadlineMovesTheTimer) {
  cost_ = microseconds(50'000);
  make(batching(1));
  submit(a_, {1});
  const Time start = world_.now();
  const auto late = submit(a_, {2}, {.deadline = start + microseconds(9'000)});
  const auto early = submit(a_, {3}, {.deadline = start + microseconds(2'000)});
  run();
  EXPECT_EQ(early->code(), Code::kDeadlineExceeded);
  EXPECT_LT(early->ended, start + microseconds(2'100));
  EXPECT_EQ(late->code(), Code::kDeadlineExceeded);
  EXPECT_LT(late->ended, start + microseconds(9'100));
}

TEST_F(ModelQueueTest, ACancelledRequestThatWaitsNeverRuns) {
  make(batching(8));
  const auto running = submit(a_, {1});
  const std::uint64_t running_ticket = ticket_;
  const auto waiting = submit(a_, {2});
  queue_->cancel(ticket_);
  EXPECT_EQ(waiting->code(), Code::kCancelled);
  queue_->cancel(ticket_);         // twice
  queue_->cancel(running_ticket);  // runs already: it finishes
  queue_->cancel(12345);
  const auto other = submit(a_, {3});  // in the slot of the cancelled one
  run();
  EXPECT_THAT(batches_, ElementsAre(1, 1));
  EXPECT_TRUE(running->ok());
  EXPECT_TRUE(other->ok());
  EXPECT_EQ(stats_->snapshot().failures[static_cast<std::size_t>(FailureReason::kCanceled)], 1u);
}

TEST_F(ModelQueueTest, DrainFinishesWhatIsThereAndRefusesTheRest) {
  make(batching(8, microseconds(5'000)));
  const auto waiting = submit(a_, {1});
  bool drained = false, waiting_ended_first = false;
  queue_->drain([&] {
    EXPECT_TRUE(timers_.on_loop_thread());
    waiting_ended_first = waiting->ok();
    drained = true;
  });
  EXPECT_FALSE(drained);
  EXPECT_EQ(submit(a_, {2})->code(), Code::kUnavailable);
  run();
  EXPECT_TRUE(drained);
  EXPECT_TRUE(waiting_ended_first);
  EXPECT_EQ(stats_->snapshot().close_reasons[static_cast<std::size_t>(CloseReason::kDrain)], 1u);
  bool again = false;
  queue_->drain([&] { again = true; });
  run();
  EXPECT_TRUE(again);
}

TEST_F(ModelQueueTest, DestroyedWithWorkInFlightEveryRequestStillEndsOnce) {
  make(batching(1, microseconds(100)));
  const auto running = submit(a_, {1});
  const auto waiting = submit(b_, {2}, {.deadline = world_.now() + microseconds(50)});
  queue_.reset();
  run();
  EXPECT_TRUE(running->ok());
  EXPECT_EQ(waiting->code(), Code::kUnavailable);
  EXPECT_THAT(batches_, ElementsAre(1));
}

TEST_F(ModelQueueTest, AnInlineModelRunsOnTheHomeLoopOfItsBatch) {
  make(batching(8, microseconds(100)), true, [this](const engine::Batch& batch) {
    EXPECT_TRUE(a_.on_loop_thread());
    EXPECT_FALSE(timers_.on_loop_thread());
    return identity_of(batch);
  });
  std::shared_ptr<Outcome> first, second;
  a_.post([&] { first = submit(a_, {1}); });
  world_.at(world_.now() + microseconds(20), [&] { b_.post([&] { second = submit(b_, {2}); }); });
  run();
  EXPECT_THAT(batches_, ElementsAre(2));
  EXPECT_THAT(int32_values(first->output()), ElementsAre(1));
  EXPECT_THAT(int32_values(second->output()), ElementsAre(2));
}

TEST_F(ModelQueueTest, ManyBatchesOfAnInlineModelDoNotDeepenTheStack) {
  constexpr int kCount = 50'000;
  std::vector<std::shared_ptr<Outcome>> outcomes;
  BatcherOptions options = batching(1);
  options.max_queue_size = kCount;
  make(options, true, [&](const engine::Batch& batch) {
    if (outcomes.empty()) {
      // While the only instance runs: each of these waits.
      for (int i = 0; i < kCount; ++i) outcomes.push_back(submit(a_, {i}));
    }
    return identity_of(batch);
  });
  submit(a_, {-1});
  ASSERT_EQ(outcomes.size(), static_cast<std::size_t>(kCount));
  std::int32_t expected = 0;
  for (const auto& outcome : outcomes) ASSERT_THAT(int32_values(outcome->output()), ElementsAre(expected++));
}

TEST_F(ModelQueueTest, ARequestThatEndsInANestedSubmitHasNoTicket) {
  make(batching(2, microseconds(1'000)), true);
  const auto second = std::make_shared<Outcome>(), third = std::make_shared<Outcome>();
  const auto send = [&](std::uint64_t shape_key, const std::shared_ptr<Outcome>& outcome, Function<void()> on_end) {
    PreparedRequest request = prepared_of({int32_rows({1})}, a_.now());
    request.shape_key = shape_key;
    return queue_->submit(std::move(request), a_,
                          std::make_unique<OutcomeSink>(outcome, a_, std::move(on_end)));
  };
  // The second has another shape, so that the first runs within its submit(); the first one's end submits the
  // third, which completes the second's batch.
  std::uint64_t third_ticket = 1;
  const auto first_ticket = send(1, std::make_shared<Outcome>(), [&] { third_ticket = send(2, third, nullptr); });
  EXPECT_NE(first_ticket, 0u);
  EXPECT_EQ(send(2, second, nullptr), 0u);
  EXPECT_EQ(third_ticket, 0u);
  EXPECT_TRUE(second->ok());
  EXPECT_TRUE(third->ok());
  queue_->cancel(first_ticket);  // long over
}

TEST_F(ModelQueueTest, ADeadlineThatPassesWhileAnInlineBatchEndsIsNotForgotten) {
  TickingLoop clock(timers_);
  std::shared_ptr<Outcome> late, patient;
  auto model = std::make_shared<FunctionModel>(clock, nullptr, [&](const engine::Batch& batch) {
    if (!late) {
      // While the only instance runs; the first one's deadline has passed when it ends.
      late = std::make_shared<Outcome>();
      late = submit(a_, {2}, {.deadline = clock.now() + microseconds(2)});
      patient = submit(a_, {3}, {.deadline = clock.now() + microseconds(900)});
    }
    return identity_of(batch);
  });
  ModelQueue::Options options{.batcher = batching(1), .output_names = {"out"}};
  queue_ = std::make_unique<ModelQueue>(options, model, std::make_shared<ModelStats>("m", "1"), clock);
  EXPECT_TRUE(submit(a_, {1})->ok());
  EXPECT_EQ(late->code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(patient->ok());
  EXPECT_EQ(queue_->in_flight(), 0u);
  queue_.reset();  // before its clock
}

TEST_F(ModelQueueTest, RequestsWithEqualKeysAndOtherShapesDoNotShareABatch) {
  make(batching(8));
  submit(a_, {0});
  const auto first = submit(a_, {1, 2});
  auto stranger = std::make_shared<Outcome>();
  PreparedRequest request = prepared_of({tensor_of(DataType::kInt32, {1, 3}, std::string(12, 'x'))}, a_.now());
  queue_->submit(std::move(request), a_, std::make_unique<OutcomeSink>(stranger, a_));
  const auto second = submit(b_, {3});
  run();
  EXPECT_THAT(batches_, ElementsAre(1, 3));
  EXPECT_THAT(int32_values(first->output()), ElementsAre(1, 2));
  EXPECT_THAT(int32_values(second->output()), ElementsAre(3));
  EXPECT_EQ(stranger->code(), Code::kUnavailable);
}

TEST_F(ModelQueueTest, StatisticsOfBatches) {
  make(batching(8));
  submit(a_, {1});
  submit(a_, {2, 3});
  submit(a_, {4});
  run();
  const ModelStatsSnapshot stats = stats_->snapshot();
  EXPECT_EQ(stats.inference_count, 4u);
  EXPECT_EQ(stats.execution_count, 2u);
  EXPECT_EQ(stats.batches.at(3).compute_infer.count, 1u);
}

}  // namespace
}  // namespace sluice::serving
