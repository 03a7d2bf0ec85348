#include "engine/onnx/onnx_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "base/random.h"
#include "engine/onnx/tiny_models.h"
#include "io/files.h"
#include "io/sim/sim_world.h"

namespace sluice::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const std::string kModels = SLUICE_DEPS_DIR "/models/";
const std::string kOcr = kModels + "ch_PP-OCRv4_rec_infer.onnx";  // x [b,3,48,w] -> [b,t,6625]
const std::string kSilero = kModels + "silero_vad_half.onnx";     // input [b,s], state [2,b,128] -> ...

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHeapIsPlain = false;  // the sanitizer's heap keeps what is freed
#else
constexpr bool kHeapIsPlain = true;
#endif

// Everything an engine needs, in the order in which it must go.
struct World {
  explicit World(OnnxOptions options = {}) {
    auto made = make_onnx_engine({pool, arena, clock}, options);
    if (!made) throw std::runtime_error(made.error().message);
    engine = *std::move(made);
  }

  io::SimWorld sim{1};
  io::Loop& clock = sim.make_loop("clock");
  Arena arena{Arena::Options{}};
  io::ComputePool pool{{.threads = 2, .loader_threads = 1}};
  std::unique_ptr<Engine> engine;
};

Tensor floats(Arena& arena, Shape shape, std::span<const float> values) {
  BufferRef buffer = arena.allocate(values.size_bytes()).value();
  std::memcpy(buffer.data(), values.data(), values.size_bytes());
  return {DataType::kFp32, std::move(shape), buffer.bytes(), buffer};
}

std::vector<float> noise(Random& random, std::size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.unit() - 0.5);
  return values;
}

std::span<const float> as_floats(const Tensor& tensor) {
  return {reinterpret_cast<const float*>(tensor.data.data()), tensor.data.size() / sizeof(float)};
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

Result<BatchOutput> run(BatchModel& model, Batch batch) {
  std::promise<Result<BatchOutput>> promise;
  auto future = promise.get_future();
  model.submit(std::move(batch), [&](Result<BatchOutput> output) { promise.set_value(std::move(output)); });
  return future.get();
}

Batch one(std::vector<Tensor> inputs, std::int64_t rows = 1) {
  Batch batch{.items = {}, .rows = rows, .wanted = {}};
  batch.items.push_back({std::move(inputs), rows});
  return batch;
}

class Onnx : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { world_ = new World; }
  static void TearDownTestSuite() { delete std::exchange(world_, nullptr); }

  static LoadRequest request_for(const std::string& path, std::int32_t max_batch_size = 0) {
    ModelConfig config;
    config.name = "model";
    config.backend = "onnxruntime";
    config.max_batch_size = max_batch_size;
    return {path, config};
  }
  static std::shared_ptr<BatchModel> load(const LoadRequest& request) {
    auto model = engine().load(request);
    if (!model) throw std::runtime_error(model.error().message);
    return *std::move(model);
  }
  // A file of the test's own, gone with it.
  std::string write(const std::string& name, std::string_view content) {
    const std::string path = ::testing::TempDir() + "/sluice_onnx_" + name;
    std::ofstream(path, std::ios::binary) << content;
    files_.push_back(path);
    return path;
  }
  void TearDown() override {
    for (const std::string& path : files_) std::filesystem::remove(path);
  }

  static Arena& arena() { return world_->arena; }
  static Engine& engine() { return *world_->engine; }

  inline static World* world_ = nullptr;
  std::vector<std::string> files_;
};

TEST_F(Onnx, SignaturesOfRealModels) {
  const auto ocr = engine().inspect(request_for(kOcr));
  ASSERT_TRUE(ocr) << ocr.error().message;
  ASSERT_EQ(ocr->inputs.size(), 1U);
  EXPECT_EQ(ocr->inputs[0].name, "x");
  EXPECT_EQ(ocr->inputs[0].datatype, DataType::kFp32);
  EXPECT_EQ(ocr->inputs[0].shape, (Shape{-1, 3, 48, -1}));
  ASSERT_EQ(ocr->outputs.size(), 1U);
  EXPECT_EQ(ocr->outputs[0].shape, (Shape{-1, -1, 6625}));

  const auto silero = engine().inspect(request_for(kSilero));
  ASSERT_TRUE(silero) << silero.error().message;
  ASSERT_EQ(silero->inputs.size(), 2U);
  EXPECT_EQ(silero->inputs[1].name, "state");
  EXPECT_EQ(silero->inputs[1].shape, (Shape{2, -1, 128}));
  EXPECT_EQ(silero->outputs.size(), 2U);
}

TEST_F(Onnx, RowsOfABatchEqualBatchesOfOne) {
  constexpr double kTolerance = 1e-4;  // of probabilities; kernels may sum in another order
  constexpr std::int64_t kRows = 4, kWidth = 96;
  const auto model = load(request_for(kOcr, 8));
  Random random(3);
  Batch together{.items = {}, .rows = kRows, .wanted = {}};
  std::vector<BatchOutput> alone;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto picture = noise(random, 3 * 48 * kWidth);
    together.items.push_back({{floats(arena(), {1, 3, 48, kWidth}, picture)}, 1});
    auto output = run(*model, one({floats(arena(), {1, 3, 48, kWidth}, picture)}));
    ASSERT_TRUE(output) << output.error().message;
    alone.push_back(*std::move(output));
  }
  const auto output = run(*model, std::move(together));
  ASSERT_TRUE(output) << output.error().message;
  ASSERT_EQ(output->outputs[0].shape, (Shape{kRows, kWidth / 8, 6625}));
  const auto all = as_floats(output->outputs[0]);
  double largest = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    const auto single = as_floats(alone[row].outputs[0]);
    largest = std::max(largest, largest_difference(single, all.subspan(row * single.size(), single.size())));
  }
  std::printf("largest difference between a batch of %d and batches of one: %.3g\n", static_cast<int>(kRows), largest);
  RecordProperty("largest_difference", std::to_string(largest));
  EXPECT_LE(largest, kTolerance);
}

TEST_F(Onnx, ConcurrentRunsShareASession) {
  constexpr int kRuns = 24;
  auto request = request_for(kSilero);
  request.config.instance_count = 2;
  auto model = load(request);
  Random random(5);
  const std::vector<float> state(2 * 1 * 128, 0.0F);
  std::vector<std::vector<float>> sounds;
  std::vector<std::future<Result<BatchOutput>>> answers;
  const auto inputs = [&](int i) {
    return std::vector<Tensor>{floats(arena(), {1, 512}, sounds[i]), floats(arena(), {2, 1, 128}, state)};
  };
  for (int i = 0; i < kRuns; ++i) sounds.push_back(noise(random, 512));
  for (int i = 0; i < kRuns; ++i) {
    auto promise = std::make_shared<std::promise<Result<BatchOutput>>>();
    answers.push_back(promise->get_future());
    model->submit(one(inputs(i)), [promise](Result<BatchOutput> output) { promise->set_value(std::move(output)); });
  }
  for (int i = 0; i < kRuns; ++i) {
    const auto concurrent = answers[i].get();
    ASSERT_TRUE(concurrent) << concurrent.error().message;
    const auto alone = run(*model, one(inputs(i)));
    ASSERT_TRUE(alone) << alone.error().message;
    for (std::size_t output = 0; output < 2; ++output) {
      EXPECT_EQ(largest_difference(as_floats(concurrent->outputs[output]), as_floats(alone->outputs[output])), 0);
    }
  }
  EXPECT_GT(model->memory().workspace_bytes, 0U);
}

// The runtime's telemetry would show as a thread of its own.
TEST_F(Onnx, TheRuntimeMakesNoThreadButThroughIo) {
  const auto model = load(request_for(kSilero));
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    names.push_back(name.substr(0, name.find('-')));
  }
  std::ifstream self("/proc/self/comm");
  std::string own;
  std::getline(self, own);
  // Of the runtime's two threads one is the caller's.
  EXPECT_THAT(names, UnorderedElementsAre(own, "compute", "compute", "loader", "onnxruntime"));
}

TEST_F(Onnx, FilesThatAreNoModelsAreCleanErrors) {
  std::ifstream real(kSilero, std::ios::binary);
  std::string half(std::filesystem::file_size(kSilero) / 2, '\0');
  real.read(half.data(), static_cast<std::streamsize>(half.size()));
  for (const std::string& path :
       {write("empty.onnx", ""), write("garbage.onnx", "this is no protobuf at all"), write("truncated.onnx", half)}) {
    for (const Error& error : {engine().inspect(request_for(path)).error(), engine().load(request_for(path)).error()}) {
      EXPECT_EQ(error.code, Code::kInvalidArgument) << error.message;
      EXPECT_THAT(error.message, HasSubstr(path));
    }
  }
  const auto missing = engine().load(request_for(kModels + "no_such_file.onnx"));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("no_such_file"));
}

TEST_F(Onnx, WrongRanksAndSizesAreTheRequestsFault) {
  const auto model = load(request_for(kOcr));
  const std::vector<float> values(3 * 48 * 32, 0.0F);
  const auto rank = run(*model, one({floats(arena(), {3, 48, 32}, values)}));
  ASSERT_FALSE(rank);
  EXPECT_EQ(rank.error().code, Code::kInvalidArgument) << rank.error().message;
  const auto size = run(*model, one({floats(arena(), {1, 3, 32, 48}, values)}));
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code, Code::kInvalidArgument) << size.error().message;
  EXPECT_FALSE(run(*model, one({})));
}

TEST_F(Onnx, ReloadsDoNotGrowTheProcess) {
  if (!kHeapIsPlain) GTEST_SKIP() << "the sanitizer's heap keeps what is freed";
  constexpr std::uint64_t kBound = 12 << 20;  // less than one model (15 MiB): nothing is kept per load
  const std::vector<float> values(3 * 48 * 64, 0.5F);
  const auto cycle = [&] {
    const auto model = load(request_for(kOcr));
    ASSERT_TRUE(run(*model, one({floats(arena(), {1, 3, 48, 64}, values)})));
  };
  for (int i = 0; i < 3; ++i) cycle();
  const std::uint64_t before = io::process_usage().resident_bytes;
  for (int i = 0; i < 20; ++i) cycle();
  const std::uint64_t after = io::process_usage().resident_bytes;
  std::printf("resident before 20 reloads %.1f MiB, after %.1f MiB\n", before / 1048576.0, after / 1048576.0);
  EXPECT_LE(after, before + kBound);
}

TEST_F(Onnx, MemoryFiguresAreMeasured) {
  const auto model = load(request_for(kOcr));
  const std::uint64_t file = std::filesystem::file_size(kOcr);
  EXPECT_GE(model->memory().weights_bytes, file);
  EXPECT_LE(model->memory().weights_bytes, file * 4);
  EXPECT_EQ(model->memory().workspace_bytes, 0U);
  const std::vector<float> values(3 * 48 * 64, 0.5F);
  ASSERT_TRUE(run(*model, one({floats(arena(), {1, 3, 48, 64}, values)})));
  EXPECT_GE(model->memory().workspace_bytes, 64U / 8 * 6625 * sizeof(float));
}

TEST_F(Onnx, OnlyWantedOutputsAreMade) {
  const auto model = load(request_for(kSilero));
  Batch batch = one({floats(arena(), {1, 512}, std::vector<float>(512, 0.1F)),
                     floats(arena(), {2, 1, 128}, std::vector<float>(256, 0.0F))});
  batch.wanted = {false, true};
  const auto output = run(*model, std::move(batch));
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->outputs[0].datatype, DataType::kInvalid);
  EXPECT_EQ(output->outputs[1].shape, (Shape{2, 1, 128}));
}

TEST_F(Onnx, AnInlineModelAnswersBeforeSubmitReturns) {
  auto request = request_for(kSilero);
  request.config.run_inline = true;
  const auto model = load(request);
  EXPECT_TRUE(model->runs_inline());
  std::thread::id where;
  model->submit(one({floats(arena(), {1, 512}, std::vector<float>(512, 0.1F)),
                     floats(arena(), {2, 1, 128}, std::vector<float>(256, 0.0F))}),
                [&](const Result<BatchOutput>& output) {
                  EXPECT_TRUE(output);
                  where = std::this_thread::get_id();
                });
  EXPECT_EQ(where, std::this_thread::get_id());
}

std::string echo_model(int element_type, const Shape& shape) {
  return tiny::model({.nodes = {tiny::node("Identity", {"in"}, "out")},
                      .inputs = {tiny::value_info("in", element_type, shape)},
                      .outputs = {tiny::value_info("out", element_type, shape)}});
}

TEST_F(Onnx, StringsTravelBothWays) {
  const auto model = load(request_for(write("strings.onnx", echo_model(tiny::kString, {-1})), 4));
  EXPECT_EQ(model->signature().inputs[0].datatype, DataType::kBytes);
  std::string wire;
  for (const std::string& text : {std::string("zero\0inside", 11), std::string(), std::string(300, 'x')}) {
    const auto length = static_cast<std::uint32_t>(text.size());
    wire.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
  }
  const auto output = run(*model, one({Tensor{DataType::kBytes, {3}, as_bytes(wire), {}}}, 3));
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->outputs[0].datatype, DataType::kBytes);
  EXPECT_EQ(output->outputs[0].shape, (Shape{3}));
  EXPECT_TRUE(as_text(output->outputs[0].data) == wire);
  const auto cut = run(*model, one({Tensor{DataType::kBytes, {4}, as_bytes(wire), {}}}, 4));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Code::kInvalidArgument);
}

TEST_F(Onnx, ElementsThatAreNotAlignedAreReadAllTheSame) {
  const auto model = load(request_for(write("floats.onnx", echo_model(tiny::kFloat, {-1, 2}))));
  const std::vector<float> values = {1, 2, 3, 4};
  std::string shifted(1, '\0');
  shifted.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const auto output = run(*model, one({Tensor{DataType::kFp32, {2, 2}, as_bytes(shifted).subspan(1), {}}}));
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(largest_difference(as_floats(output->outputs[0]), values), 0);
}

TEST_F(Onnx, EmptyTensorsRun) {
  const auto model = load(request_for(write("empty_tensor.onnx", echo_model(tiny::kFloat, {-1, 2}))));
  const auto output = run(*model, one({Tensor{DataType::kFp32, {0, 2}, {}, {}}}));
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->outputs[0].shape, (Shape{0, 2}));
}

TEST_F(Onnx, OutputsWithoutTheRowsAreRefused) {
  const auto model = load(request_for(write("rows.onnx", echo_model(tiny::kFloat, {-1, 2})), 8));
  const auto output = run(*model, one({floats(arena(), {2, 2}, std::vector<float>{1, 2, 3, 4})}, 3));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, Code::kInternal);
  EXPECT_THAT(output.error().message, HasSubstr("[2,2] for a batch of 3 rows"));
}

TEST_F(Onnx, AnOutputOutlivesItsModel) {
  auto model = load(request_for(kSilero));
  auto output = run(*model, one({floats(arena(), {1, 512}, std::vector<float>(512, 0.1F)),
                                 floats(arena(), {2, 1, 128}, std::vector<float>(256, 0.0F))}));
  ASSERT_TRUE(output) << output.error().message;
  const std::vector<float> before(as_floats(output->outputs[1]).begin(), as_floats(output->outputs[1]).end());
  model.reset();
  EXPECT_EQ(largest_difference(as_floats(output->outputs[1]), before), 0);
}

TEST(OnnxLimits, ARunBeyondTheWorkspaceIsRefusedAndTheNextOneRuns) {
  World world({.max_workspace_bytes = 4 << 20});
  ModelConfig config;
  config.name = "ocr";
  auto model = world.engine->load({kOcr, config});
  ASSERT_TRUE(model) << model.error().message;
  const auto picture = [&](std::int64_t rows, std::int64_t width) {
    return one({floats(world.arena, {rows, 3, 48, width}, std::vector<float>(rows * 3 * 48 * width, 0.5F))});
  };
  const auto large = run(**model, picture(4, 320));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::kResourceExhausted) << large.error().message;
  const auto small = run(**model, picture(1, 32));
  EXPECT_TRUE(small) << small.error().message;
}

TEST(OnnxLibrary, AWrongPathIsNamed) {
  io::SimWorld sim{1};
  Arena arena{Arena::Options{}};
  io::ComputePool pool{{.threads = 1, .loader_threads = 1}};
  const auto engine = make_onnx_engine({pool, arena, sim.make_loop("clock")}, {.library = "/no/such/library.so"});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, Code::kUnavailable);
  EXPECT_THAT(engine.error().message, HasSubstr("/no/such/library.so"));
}

}  // namespace
}  // namespace sluice::engine
