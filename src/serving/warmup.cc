#include "serving/warmup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <utility>

#include "base/random.h"
#include "io/files.h"
#include "serving/rows/reshape.h"

namespace sluice::serving {
namespace {

constexpr std::uint64_t kRandomSeed = 1;  // the same rows at every start
constexpr std::size_t kLengthPrefix = 4;  // of an element of kBytes: the smallest element is an empty one

Tensor own(DataType datatype, Shape shape, std::string content) {
  auto* kept = new std::string(std::move(content));
  BufferRef owner = wrap_foreign(
      reinterpret_cast<std::byte*>(kept->data()), kept->size(),
      [](void* context) { delete static_cast<std::string*>(context); }, kept);
  return {datatype, std::move(shape), owner.bytes(), owner};
}

Result<std::string> zeros(DataType datatype, const Shape& shape) {
  const auto count = element_count(shape);
  if (!count) return fail(count.error());
  const std::size_t width = datatype == DataType::kBytes ? kLengthPrefix : element_size(datatype);
  if (static_cast<std::uint64_t>(*count) > kMaxWarmupBytes / width) {
    return fail(Code::kInvalidArgument, fmt::format("{} {} has more than {} bytes", datatype_name(datatype),
                                                    shape_to_string(shape), kMaxWarmupBytes));
  }
  return std::string(static_cast<std::size_t>(*count) * width, '\0');
}

template <class T, class Draw>
void fill(std::string& bytes, Draw draw) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = draw();
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

// Over zeros: reals from [0, 1), integers and booleans 0 or 1 (an index must stay one); strings stay empty.
void randomize(DataType datatype, std::string& bytes) {
  Random random(kRandomSeed);
  switch (datatype) {
    case DataType::kFp32:
      return fill<float>(bytes, [&] { return static_cast<float>(random.unit()); });
    case DataType::kFp64:
      return fill<double>(bytes, [&] { return random.unit(); });
    case DataType::kFp16:
      return fill<std::uint16_t>(bytes, [&] { return random.below(0x3c00); });  // below 1.0
    case DataType::kBf16:
      return fill<std::uint16_t>(bytes, [&] { return random.below(0x3f80); });
    case DataType::kBytes:
    case DataType::kInvalid:
      return;
    default:
      break;
  }
  const std::size_t width = element_size(datatype);
  for (std::size_t at = 0; at < bytes.size(); at += width) bytes[at] = static_cast<char>(random.below(2));
}

Shape with_rows(const ModelConfig& config, std::int64_t rows, const Shape& dims) {
  Shape shape;
  if (config.max_batch_size > 0) shape.push_back(rows);
  for (const std::int64_t dimension : dims) shape.push_back(dimension < 0 ? 1 : dimension);
  return shape;
}

Status run(engine::BatchModel& model, std::vector<Tensor> inputs, std::int64_t rows) {
  engine::Batch batch;
  batch.rows = rows;
  batch.items.push_back({std::move(inputs), rows});
  std::promise<Status> ended;
  auto end = ended.get_future();
  model.submit(std::move(batch), [ended = std::move(ended)](Result<engine::BatchOutput> output) mutable {
    ended.set_value(output ? Status{} : fail(std::move(output).error()));
  });
  try {
    return end.get();
  } catch (const std::future_error&) {  // the promise went with a callback that was dropped
    return fail(Code::kInternal, "the model dropped the batch without a result");
  }
}

Result<Tensor> make_input(const ModelConfig& config, const WarmupInput& input, std::int64_t rows,
                          const std::string& directory) {
  Tensor tensor{input.datatype, with_rows(config, rows, input.dims), {}, {}};
  auto content = zeros(tensor.datatype, tensor.shape);
  if (content && input.source == WarmupInput::Source::kRandom) randomize(tensor.datatype, *content);
  if (content && input.source == WarmupInput::Source::kFile) {
    const auto folder = io::Directory::open(directory);
    if (!folder) return fail(folder.error());
    content = folder->read("warmup/" + input.file, kMaxWarmupBytes);
  }
  if (!content) return fail(content.error());
  tensor = own(tensor.datatype, std::move(tensor.shape), *std::move(content));
  if (auto checked = check_tensor_data(tensor); !checked) return fail(checked.error());
  return tensor;
}

Result<std::vector<Tensor>> make_inputs(const ModelConfig& config, const Warmup& warmup, std::int64_t rows,
                                        const std::string& directory) {
  std::vector<Tensor> inputs;
  for (const ModelTensorConfig& wanted : config.inputs) {
    const auto given = warmup.inputs.find(wanted.name);
    if (given == warmup.inputs.end()) {
      if (!wanted.optional) return fail(Code::kInvalidArgument, fmt::format("input '{}' is missing", wanted.name));
      inputs.emplace_back();
      continue;
    }
    auto tensor = make_input(config, given->second, rows, directory);
    if (!tensor) return fail(tensor.error().code, fmt::format("input '{}': {}", wanted.name, tensor.error().message));
    // A client's dims, like those of a request; the engine knows the model's own.
    apply_reshape({wanted.dims, wanted.reshape.value_or(wanted.dims)}, config.max_batch_size > 0, tensor->shape);
    inputs.push_back(*std::move(tensor));
  }
  return inputs;
}

Status run_entry(engine::BatchModel& model, const ModelConfig& config, const Warmup& warmup,
                 const std::string& directory, const std::atomic<bool>& stop) {
  const std::int64_t rows = std::max<std::int64_t>(warmup.batch_size, 1);
  if (warmup.count > kMaxWarmupCount) {
    return fail(Code::kInvalidArgument, fmt::format("count is {}, the limit is {}", warmup.count, kMaxWarmupCount));
  }
  const auto inputs = make_inputs(config, warmup, rows, directory);
  if (!inputs) return fail(inputs.error());
  for (std::uint32_t i = 0; i < std::max<std::uint32_t>(warmup.count, 1); ++i) {
    if (stop) return fail(Code::kUnavailable, "the server stops");
    if (auto ran = run(model, *inputs, rows); !ran) return ran;
  }
  return {};
}

}  // namespace

Status run_configured_warmup(engine::BatchModel& model, const ModelConfig& config, const std::string& directory,
                             const std::atomic<bool>& stop) {
  for (const Warmup& warmup : config.warmup) {
    if (auto ran = run_entry(model, config, warmup, directory, stop); !ran) {
      return fail(ran.error().code, fmt::format("model_warmup '{}': {}", warmup.name, ran.error().message));
    }
  }
  return {};
}

Status run_implied_warmup(engine::BatchModel& model, const ModelConfig& config) {
  std::vector<Tensor> inputs;
  for (const ModelTensorConfig& input : config.inputs) {
    Shape shape = with_rows(config, 1, input.reshape.value_or(input.dims));
    auto content = zeros(input.datatype, shape);
    if (!content) return fail(content.error());
    inputs.push_back(input.optional ? Tensor{} : own(input.datatype, std::move(shape), *std::move(content)));
  }
  return run(model, std::move(inputs), 1);
}

}  // namespace sluice::serving
