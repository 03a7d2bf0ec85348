#include "wire/oip/json_tensor.h"

#include <cstring>

namespace sluice::oip {
namespace {

bool is_aligned(Bytes bytes, DataType type) {
  const std::size_t size = element_size(type);  // 0 for BYTES, whose elements are read byte by byte
  return size < 2 || reinterpret_cast<std::uintptr_t>(bytes.data()) % size == 0;
}

}  // namespace

Status BinaryPart::take(std::size_t bytes, Arena& arena, Tensor& tensor) {
  const std::size_t left = part_.data.size() - taken_;
  if (bytes > left) {
    return fail(Code::kInvalidArgument,
                fmt::format("binary_data_size is {}, the body has {} bytes left for it", bytes, left));
  }
  tensor.data = part_.data.subspan(taken_, bytes);
  tensor.owner = part_.owner;
  // Refused before a copy is made of it.
  if (auto status = check_tensor_data(tensor); !status) return status;
  taken_ += bytes;
  if (is_aligned(tensor.data, tensor.datatype)) return {};
  auto copy = arena.allocate(bytes);
  if (!copy) return fail(std::move(copy.error()));
  std::memcpy(copy->data(), tensor.data.data(), bytes);
  tensor.owner = std::move(*copy);
  tensor.data = std::as_const(tensor.owner).bytes();
  return {};
}

Status BinaryPart::finish() const {
  if (taken_ == part_.data.size()) return {};
  return fail(Code::kInvalidArgument,
              fmt::format("the body has {} bytes behind the JSON, its tensors take {}", part_.data.size(), taken_));
}

Result<std::optional<std::size_t>> take_binary_size(Parameters& parameters) {
  for (auto it = parameters.begin(); it != parameters.end(); ++it) {
    if (it->name != "binary_data_size") continue;
    const auto* size = std::get_if<std::int64_t>(&it->value);
    if (size == nullptr || *size < 0) {
      return fail(Code::kInvalidArgument, "binary_data_size must be an integer that is not negative");
    }
    const auto bytes = static_cast<std::size_t>(*size);
    parameters.erase(it);
    return std::optional(bytes);
  }
  return std::optional<std::size_t>();
}

Status read_tensor_data(const std::optional<Element>& data, Parameters& parameters, const TensorContext& context,
                        Tensor& tensor) {
  const auto binary_size = take_binary_size(parameters);
  if (!binary_size) return fail(binary_size.error());
  if (!*binary_size) {
    if (data) return read_json_data(*data, context.data_rules, context.arena, tensor);
    // Shared memory would leave data out; it has its own refusal (infer_rules).
    if (find_parameter(parameters, "shared_memory_region") != nullptr) return {};
    return fail(Code::kInvalidArgument, "data is missing, and so is binary_data_size");
  }
  if (data) return fail(Code::kInvalidArgument, "data beside binary_data_size; only one may be given");
  if (**binary_size > context.limits.max_tensor_bytes) {
    return fail(Code::kResourceExhausted, fmt::format("its data has {} bytes, the limit is {}", **binary_size,
                                                      context.limits.max_tensor_bytes));
  }
  return context.binary.take(**binary_size, context.arena, tensor);
}

}  // namespace sluice::oip
