#include "serving/model_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "io/runtime.h"
#include "serving/test_model.h"

namespace sluice::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A backend whose models are told by their path how to behave: "good", "broken" (cannot be loaded), "cold" (cannot
// run a row). Models run on their caller's thread unless an executor is set.
class FakeEngine final : public engine::Engine {
 public:
  explicit FakeEngine(const io::Loop& clock) : clock_(clock) {}
  std::string_view backend_name() const override { return "fake"; }
  std::string version() const override { return "1"; }

  Result<ModelSignature> inspect(const engine::LoadRequest&) override {
    return ModelSignature{.inputs = {{"in", DataType::kInt32, {-1}, false}},
                          .outputs = {{"out", DataType::kInt32, {-1}, false}}};
  }

  Result<std::shared_ptr<engine::BatchModel>> load(const engine::LoadRequest& request) override {
    if (on_load) on_load();
    if (request.model_path == "broken") return fail(Code::kInvalidArgument, "the file 'broken' is no model");
    const bool cold = request.model_path == "cold";
    auto model = std::make_shared<FunctionModel>(
        clock_, executor, [this, cold](const engine::Batch& batch) -> Result<engine::BatchOutput> {
          ++runs;
          rows += batch.rows;
          if (cold) return fail(Code::kInternal, "too cold to run");
          return identity_of(batch);
        });
    model->signature_ = inspect(request).value();
    return model;
  }

  Function<void()> on_load;
  io::Executor* executor = nullptr;
  std::atomic<int> runs{0};
  std::atomic<std::int64_t> rows{0};

 private:
  const io::Loop& clock_;
};

// Keeps tasks until they are told to run.
class HeldExecutor final : public io::Executor {
 public:
  void submit(Function<void()> task) override {
    const std::lock_guard lock(mutex_);
    if (open_) return task();
    held_.push_back(std::move(task));
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    while (!held_.empty()) {
      auto task = std::move(held_.front());
      held_.erase(held_.begin());
      task();
    }
  }

 private:
  std::recursive_mutex mutex_;  // a task may submit the next one
  bool open_ = false;
  std::vector<Function<void()>> held_;
};

class Registry : public ::testing::Test {
 protected:
  Registry() {
    auto fake = std::make_unique<FakeEngine>(loop_);
    engine_ = fake.get();
    engines_.add(std::move(fake));
  }

  static ModelEntry entry(const std::string& name, std::vector<ModelVersionEntry> versions) {
    ModelConfig config;
    config.name = name;
    config.backend = "fake";
    return {.name = name, .directory = "/nowhere", .config = config, .versions = std::move(versions), .error = {}};
  }

  void load(std::vector<ModelEntry> models) {
    std::promise<bool> done;
    registry_->load_all({std::move(models)}, [&] { done.set_value(loop_.on_loop_thread()); });
    EXPECT_TRUE(done.get_future().get());
  }

  std::shared_ptr<Outcome> ask(ServedModel& model, std::int32_t value, std::promise<void>* ended = nullptr) {
    auto outcome = std::make_shared<Outcome>();
    io::run_on(loop_, [&] {
      InferRequest request;
      request.model_name = model.config().name;
      request.inputs.push_back({"in", tensor_of(DataType::kInt32, {1, 1}, int32_text(value)), {}});
      request.inputs[0].tensor.shape = {1};
      auto prepared = model.prepare(std::move(request), loop_.now(), loop_.now());
      ASSERT_TRUE(prepared) << prepared.error().message;
      model.queue().submit(*std::move(prepared), loop_, std::make_unique<OutcomeSink>(outcome, loop_, [ended] {
        if (ended) ended->set_value();
      }));
    });
    return outcome;
  }
  static std::string int32_text(std::int32_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

  io::Runtime runtime_{{.loops = 1, .compute = {.threads = 1, .loader_threads = 2}}};
  io::Loop& loop_ = runtime_.loop();
  Log log_{{.level = LogLevel::kOff}, [] { return std::int64_t{0}; }};
  EngineSet engines_;
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<ModelRegistry> registry_ = std::make_unique<ModelRegistry>(engines_, runtime_.compute(), loop_, log_);
};

TEST_F(Registry, IsNotReadyBeforeItKnowsWhatToLoad) {
  EXPECT_FALSE(registry_->ready(false));
  EXPECT_FALSE(registry_->ready(true));
}

TEST_F(Registry, AnEmptyRepositoryIsLoadedAtOnce) {
  load({});
  EXPECT_TRUE(registry_->ready(true));
  EXPECT_TRUE(registry_->index().empty());
}

TEST_F(Registry, OneBadModelNeverStopsTheOthers) {
  ModelEntry unreadable = entry("unreadable", {});
  unreadable.error = Error{Code::kInvalidArgument, "config.pbtxt: line 3"};
  load({entry("a", {{"1", "good"}}), entry("b", {{"1", "broken"}}), unreadable, entry("z", {{"1", "good"}})});
  EXPECT_TRUE(registry_->find("a", ""));
  EXPECT_TRUE(registry_->find("z", "1"));
  EXPECT_TRUE(registry_->ready(false));
  EXPECT_FALSE(registry_->ready(true));
  const auto index = registry_->index();
  ASSERT_EQ(index.size(), 4U);
  EXPECT_EQ(index[0].state, ModelState::kReady);
  EXPECT_EQ(index[1].state, ModelState::kUnavailable);
  EXPECT_THAT(index[1].reason, HasSubstr("'broken' is no model"));
  EXPECT_THAT(index[2].reason, HasSubstr("config.pbtxt: line 3"));
  const auto bad = registry_->find("b", "");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kUnavailable);
  EXPECT_THAT(bad.error().message, HasSubstr("'b' version 1 is UNAVAILABLE (the file 'broken' is no model)"));
  EXPECT_EQ(registry_->ready_models().size(), 2U);
}

TEST_F(Registry, TheHighestVersionThatIsReadyAnswers) {
  load({entry("m", {{"2", "good"}, {"9", "good"}, {"10", "good"}, {"11", "broken"}})});
  EXPECT_EQ(registry_->find("m", "").value()->version(), "10");
  EXPECT_EQ(registry_->find("m", "9").value()->version(), "9");
  EXPECT_THAT(registry_->ready_versions("m").value(), ElementsAre("2", "9", "10"));
  EXPECT_EQ(registry_->find("m", "11").error().code, Code::kUnavailable);
  EXPECT_EQ(registry_->find("m", "3").error().code, Code::kNotFound);
  EXPECT_EQ(registry_->find("other", "").error().code, Code::kNotFound);
  EXPECT_EQ(registry_->ready_versions("other").error().code, Code::kNotFound);
}

TEST_F(Registry, AModelThatLoadsIsNotReady) {
  std::promise<void> entered, leave;
  engine_->on_load = [&] {
    entered.set_value();
    leave.get_future().wait();
  };
  std::promise<void> done;
  registry_->load_all({{entry("m", {{"1", "good"}})}}, [&] { done.set_value(); });
  entered.get_future().wait();
  EXPECT_FALSE(registry_->ready(false));
  const auto early = registry_->find("m", "");
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::kUnavailable);
  EXPECT_THAT(early.error().message, HasSubstr("LOADING"));
  leave.set_value();
  done.get_future().wait();
  EXPECT_TRUE(registry_->find("m", ""));
}

TEST_F(Registry, AnImpliedWarmupRunsARowAndItsFailureIsNotFatal) {
  load({entry("good", {{"1", "good"}}), entry("cold", {{"1", "cold"}})});
  EXPECT_EQ(engine_->runs, 2);
  EXPECT_EQ(engine_->rows, 2);
  EXPECT_TRUE(registry_->ready(true));
}

TEST_F(Registry, AConfiguredWarmupRunsAsOftenAsItSaysAndItsFailureIsFatal) {
  ModelEntry good = entry("good", {{"1", "good"}}), cold = entry("cold", {{"1", "cold"}});
  Warmup warmup{.name = "three rows", .batch_size = 3, .count = 2, .inputs = {}};
  warmup.inputs["in"] = {.datatype = DataType::kInt32, .dims = {}, .source = WarmupInput::Source::kRandom, .file = ""};
  good.config->warmup = cold.config->warmup = {warmup};
  good.config->max_batch_size = cold.config->max_batch_size = 4;
  good.config->max_batch_size_given = cold.config->max_batch_size_given = true;
  load({good});
  EXPECT_EQ(engine_->runs, 2);
  EXPECT_EQ(engine_->rows, 6);
  load({cold});
  EXPECT_THAT(registry_->find("cold", "").error().message, HasSubstr("model_warmup 'three rows': too cold to run"));

  ModelEntry bare = entry("bare", {{"1", "good"}});
  warmup.inputs.clear();
  bare.config->warmup = {warmup};
  load({bare});
  EXPECT_THAT(registry_->find("bare", "").error().message, HasSubstr("input 'in' is missing"));
  warmup.count = 5000;
  bare.config->warmup = {warmup};
  load({bare});
  EXPECT_THAT(registry_->find("bare", "").error().message, HasSubstr("count is 5000, the limit is 1000"));
}

TEST_F(Registry, DrainAnswersWhatRunsRefusesWhatComesAndThenUnloads) {
  HeldExecutor executor;
  engine_->executor = &executor;
  ModelEntry quiet = entry("m", {{"1", "good"}});
  std::promise<void> loaded;
  registry_->load_all({{quiet}}, [&] { loaded.set_value(); });
  executor.open();  // the warm-up
  loaded.get_future().wait();
  HeldExecutor slow;
  auto held = std::make_shared<FunctionModel>(loop_, &slow);
  held->signature_ = engine_->inspect({}).value();
  ModelConfig config = registry_->find("m", "").value()->config();
  config.name = "held";
  registry_->publish(std::make_shared<ServedModel>(config, "1", held, loop_));
  std::weak_ptr<ServedModel> watch = registry_->find("held", "").value();

  std::promise<void> answered, drained;
  std::atomic<bool> is_drained = false;
  const auto outcome = ask(*watch.lock(), 7, &answered);
  registry_->drain([&] {
    is_drained = true;
    drained.set_value();
  });
  io::run_on(loop_, [] {});  // whatever drain() posted has run
  EXPECT_FALSE(is_drained);
  const auto refused = registry_->find("held", "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("UNLOADING"));

  slow.open();
  answered.get_future().wait();
  drained.get_future().wait();
  EXPECT_TRUE(outcome->ok());
  EXPECT_EQ(registry_->index()[0].state, ModelState::kUnavailable);
  registry_.reset();  // waits for the unloading
  EXPECT_TRUE(watch.expired());
}

TEST_F(Registry, NothingBecomesReadyAfterADrain) {
  std::promise<void> entered, leave, drained;
  std::atomic<bool> told = false;
  engine_->on_load = [&] {
    entered.set_value();
    leave.get_future().wait();
  };
  registry_->load_all({{entry("m", {{"1", "good"}})}}, [&] { told = true; });
  entered.get_future().wait();
  registry_->drain([&] { drained.set_value(); });
  drained.get_future().wait();
  leave.set_value();
  const auto message = [&] { return registry_->find("m", "").error().message; };
  while (message().find("is LOADING") != std::string::npos) std::this_thread::yield();
  EXPECT_THAT(message(), HasSubstr("the server stops"));
  registry_.reset();  // the loader is done with it
  io::run_on(loop_, [] {});
  EXPECT_FALSE(told);  // whoever waited for the models may be gone
}

TEST_F(Registry, ReadersSeeWholeSnapshotsWhileVersionsChange) {
  load({entry("m", {{"1", "good"}})});
  std::atomic<bool> stop = false;
  std::atomic<int> unknown = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!stop) unknown += !registry_->find("m", "");
    });
  }
  const auto model = registry_->find("m", "").value();
  for (int version = 2; version < 200; ++version) {
    auto next = std::make_shared<FunctionModel>(loop_, nullptr);
    next->signature_ = engine_->inspect({}).value();
    registry_->publish(std::make_shared<ServedModel>(model->config(), std::to_string(version), next, loop_));
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(unknown, 0);
  EXPECT_EQ(registry_->find("m", "").value()->version(), "199");
}

}  // namespace
}  // namespace sluice::serving
