// Real loops and a real pool; meant for ThreadSanitizer. Every request ends once, with its own rows.
#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include "base/random.h"
#include "io/runtime.h"
#include "serving/model_queue.h"
#include "serving/test_model.h"

namespace sluice::serving {
namespace {

using std::chrono::microseconds;

constexpr int kOutstanding = 16;     // a client
constexpr int kRequests = 1500;      // a client

// Keeps kOutstanding requests in the queue from one loop, and now and then cancels one.
class Client {
 public:
  Client(ModelQueue& queue, io::Loop& loop, int number)
      : queue_(queue), loop_(loop), random_(static_cast<std::uint64_t>(number) + 1), next_value_(number * 1'000'000) {}

  void start() {
    loop_.post([this] {
      for (int i = 0; i < kOutstanding; ++i) send();
    });
  }
  void wait() { finished_.get_future().wait(); }

  int answered = 0, others = 0;

 private:
  void send() {
    ++sent_;
    const std::int32_t value = next_value_++;
    std::vector<std::int32_t> rows(1 + random_.below(3), value);
    auto outcome = std::make_shared<Outcome>();
    PreparedRequest request = prepared_of({int32_rows(rows)}, loop_.now());
    if (random_.chance(0.1)) request.deadline = loop_.now() + microseconds(random_.between(1, 300));
    auto sink = std::make_unique<OutcomeSink>(outcome, loop_, [this, outcome, rows] { ended(*outcome, rows); });
    const std::uint64_t ticket = queue_.submit(std::move(request), loop_, std::move(sink));
    if (ticket != 0 && random_.chance(0.05)) loop_.post([this, ticket] { queue_.cancel(ticket); });
  }

  void ended(const Outcome& outcome, const std::vector<std::int32_t>& rows) {
    if (outcome.code() == Code::kOk) {
      EXPECT_EQ(int32_values(outcome.output()), rows);
      ++answered;
    } else {
      EXPECT_TRUE(outcome.code() == Code::kDeadlineExceeded || outcome.code() == Code::kCancelled);
      ++others;
    }
    if (answered + others == kRequests) return finished_.set_value();
    // Not from inside the sink: an inline model would nest one submit() in the other.
    if (sent_ < kRequests) loop_.post([this] { if (sent_ < kRequests) send(); });
  }

  ModelQueue& queue_;
  io::Loop& loop_;
  Random random_;
  std::int32_t next_value_;
  int sent_ = 0;
  std::promise<void> finished_;
};

ModelQueue::Options stress_options(Duration delay) {
  ModelQueue::Options options{.model_name = "m", .model_version = "1", .output_names = {"out"}, .batched = true};
  options.batcher = {.max_rows = 8, .batching = true, .max_delay = delay, .instances = 2};
  return options;
}

void stress(bool inline_model, Duration delay) {
  io::Runtime runtime({.loops = 3, .compute = {.threads = 2}});
  const std::unique_ptr<io::Executor> slice = runtime.compute().slice("model", 2);
  auto model = std::make_shared<FunctionModel>(runtime.loop(0), inline_model ? nullptr : slice.get());
  auto stats = std::make_shared<ModelStats>("m", "1");
  ModelQueue queue(stress_options(delay), model, stats, runtime.loop(0));
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<Client>(queue, runtime.loop(static_cast<std::size_t>(i)), i));
  }
  for (auto& client : clients) client->start();
  for (auto& client : clients) client->wait();
  std::promise<void> drained;
  queue.drain([&] { drained.set_value(); });
  drained.get_future().wait();
  for (io::Loop* loop : runtime.loops()) io::run_on(*loop, [] {});  // what the clients posted last
  // What the clients have posted still refers to them.
  for (std::size_t i = 0; i < clients.size(); ++i) io::run_on(runtime.loop(i), [] {});
  EXPECT_EQ(queue.waiting(), 0u);
  EXPECT_EQ(queue.in_flight(), 0u);
  for (auto& client : clients) {
    EXPECT_GT(client->answered, kRequests / 2);
    EXPECT_EQ(client->answered + client->others, kRequests);
  }
  // What the clients have posted to themselves runs before they go.
  for (io::Loop* loop : runtime.loops()) io::run_on(*loop, [] {});
}

TEST(ModelQueueStress, AModelOnThePool) { stress(false, Duration{0}); }
TEST(ModelQueueStress, AModelOnThePoolWithADelay) { stress(false, microseconds(200)); }
TEST(ModelQueueStress, AnInlineModel) { stress(true, Duration{0}); }
TEST(ModelQueueStress, AnInlineModelWithADelay) { stress(true, microseconds(200)); }

TEST(ModelQueueStress, DestroyedWhileRequestsRun) {
  io::Runtime runtime({.loops = 3, .compute = {.threads = 2}});
  const std::unique_ptr<io::Executor> slice = runtime.compute().slice("model", 2);
  for (int round = 0; round < 50; ++round) {
    constexpr int kCount = 60;
    std::atomic<int> ended{0};
    std::promise<void> all_ended;
    auto model = std::make_shared<FunctionModel>(runtime.loop(0), slice.get());
    auto queue = std::make_unique<ModelQueue>(stress_options(microseconds(round % 2 ? 0 : 300)), model,
                                              std::make_shared<ModelStats>("m", "1"), runtime.loop(0));
    for (int i = 0; i < kCount; ++i) {
      io::Loop& home = runtime.loop(static_cast<std::size_t>(i) % 3);
      io::run_on(home, [&] {
        PreparedRequest request = prepared_of({int32_rows({i})}, home.now());
        request.deadline = home.now() + microseconds(500);
        queue->submit(std::move(request), home,
                      std::make_unique<OutcomeSink>(std::make_shared<Outcome>(), home, [&] {
                        if (ended.fetch_add(1) + 1 == kCount) all_ended.set_value();
                      }));
      });
    }
    queue.reset();
    all_ended.get_future().wait();
  }
  // Nothing of a queue that is gone is left on its loops when they end.
  for (io::Loop* loop : runtime.loops()) io::run_on(*loop, [] {});
}

}  // namespace
}  // namespace sluice::serving
