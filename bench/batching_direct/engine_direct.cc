// ONNX Runtime in process, without a server: batches of ROWS rows, one after another, for SECONDS. A batch is one item,
// so that nothing is gathered and what is timed is the runtime's own run. Prints "rows_per_second N".
//   engine_direct MODEL_FILE ROWS SECONDS DIM...          (the dims of one row of the one FP32 input)
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <future>
#include <string>

#include "engine/onnx/onnx_engine.h"
#include "io/runtime.h"

namespace {

using namespace sluice;

Tensor input_of(Arena& arena, Shape shape) {
  Tensor tensor;
  tensor.datatype = DataType::kFp32;
  tensor.shape = std::move(shape);
  tensor.owner = *arena.allocate(*tensor_byte_size(tensor.datatype, tensor.shape));
  std::memset(tensor.owner.data(), 0, tensor.owner.size());
  tensor.data = tensor.owner.bytes();
  return tensor;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: engine_direct MODEL_FILE ROWS SECONDS DIM...\n");
    return 2;
  }
  Arena arena({.name = "bench"});
  io::Runtime runtime({.loops = 1, .compute = {.threads = 1}});
  auto engine = engine::make_onnx_engine({runtime.compute(), arena, runtime.loop()}, {});
  if (!engine) {
    fmt::print(stderr, "engine_direct: {}\n", engine.error().message);
    return 1;
  }
  const std::int64_t rows = std::atoll(argv[2]);
  ModelConfig config;
  config.name = "model";
  config.max_batch_size = static_cast<std::int32_t>(rows);
  auto model = (*engine)->load({argv[1], config});
  if (!model) {
    fmt::print(stderr, "engine_direct: {}\n", model.error().message);
    return 1;
  }
  Shape shape = {rows};
  for (int i = 4; i < argc; ++i) shape.push_back(std::atoll(argv[i]));
  const Tensor input = input_of(arena, shape);
  const auto run = [&] {
    engine::Batch batch;
    batch.rows = rows;
    batch.items.push_back({{input}, rows});
    std::promise<bool> done;
    (*model)->submit(std::move(batch), [&](Result<engine::BatchOutput> output) { done.set_value(output.has_value()); });
    return done.get_future().get();
  };
  const Duration length = std::chrono::seconds(std::atoll(argv[3]));
  for (int i = 0; i < 3; ++i) {
    if (!run()) return 1;
  }
  const Time begin = runtime.loop().now();
  std::int64_t batches = 0;
  Time end = begin;
  for (; end - begin < length; end = runtime.loop().now(), ++batches) {
    if (!run()) return 1;
  }
  fmt::print("rows_per_second {:.2f}\n", static_cast<double>(batches * rows) / to_seconds(end - begin));
  model->reset();
}
