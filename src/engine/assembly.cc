#include "engine/assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace sluice::engine {
namespace {

bool join(const Tensor& first, const Tensor& next) {
  if (first.datatype != next.datatype || first.shape.size() != next.shape.size()) return false;
  if (first.datatype == DataType::kInvalid) return true;
  return !first.shape.empty() && std::equal(first.shape.begin() + 1, first.shape.end(), next.shape.begin() + 1);
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {}", datatype_name(tensor.datatype), shape_to_string(tensor.shape));
}

struct Extent {
  std::int64_t rows = 0;
  std::size_t bytes = 0;
};

Result<Extent> measure(const std::vector<BatchItem>& items, std::size_t input) {
  const Tensor& first = items.front().inputs[input];
  Extent extent;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (input >= items[i].inputs.size() || !join(first, items[i].inputs[input])) {
      return fail(Code::kInternal,
                  fmt::format("input {} of request {} in the batch is {}, which cannot be joined with {} of the first",
                              input, i, input < items[i].inputs.size() ? describe(items[i].inputs[input]) : "missing",
                              describe(first)));
    }
    const Tensor& tensor = items[i].inputs[input];
    if (tensor.datatype == DataType::kInvalid) continue;
    const auto rows = checked_add(extent.rows, tensor.shape[0]);
    const auto bytes = checked_add(extent.bytes, tensor.data.size());
    if (!rows || !bytes) return fail(Code::kInternal, fmt::format("input {} of the batch overflows 64 bits", input));
    extent = {*rows, *bytes};
  }
  return extent;
}

Result<Tensor> gather(std::vector<BatchItem>& items, std::size_t input, Arena& arena) {
  auto extent = measure(items, input);
  if (!extent) return fail(extent.error());
  Tensor joined = std::move(items.front().inputs[input]);
  if (joined.datatype == DataType::kInvalid) return joined;

  auto buffer = arena.allocate(extent->bytes);
  if (!buffer) return fail(buffer.error());
  std::byte* to = buffer->data();
  const auto append = [&to](Bytes bytes) {
    if (bytes.empty()) return;  // an empty tensor may have no address
    std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  };
  append(joined.data);
  for (std::size_t i = 1; i < items.size(); ++i) {
    append(items[i].inputs[input].data);
    items[i].inputs[input] = {};
  }
  joined.shape[0] = extent->rows;
  joined.data = buffer->bytes();
  joined.owner = *std::move(buffer);
  return joined;
}

}  // namespace

Result<std::vector<Tensor>> assemble_inputs(std::vector<BatchItem> items, Arena& arena) {
  if (items.empty()) return fail(Code::kInternal, "a batch without a request");
  if (items.size() == 1) return std::move(items.front().inputs);
  std::vector<Tensor> inputs;
  const std::size_t count = items.front().inputs.size();
  inputs.reserve(count);
  for (std::size_t input = 0; input < count; ++input) {
    auto joined = gather(items, input, arena);
    if (!joined) return fail(joined.error());
    inputs.push_back(*std::move(joined));
  }
  return inputs;
}

}  // namespace sluice::engine
