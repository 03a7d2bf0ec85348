#include "tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/checked.h"

namespace sluice {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 62;

std::string too_large(std::span<const std::int64_t> shape) {
  return fmt::format("shape {} has more than 2^62 elements", shape_to_string(shape));
}

}  // namespace

std::string shape_to_string(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

Result<std::int64_t> element_count(std::span<const std::int64_t> shape) {
  if (shape.size() > kMaxRank) {
    return fail(Code::kInvalidArgument, fmt::format("a shape of {} dimensions was given, at most {} are allowed",
                                                    shape.size(), kMaxRank));
  }
  bool empty = false;
  for (const std::int64_t dim : shape) {
    if (dim < 0) {
      return fail(Code::kInvalidArgument,
                  fmt::format("shape {} has the negative dimension {}", shape_to_string(shape), dim));
    }
    empty = empty || dim == 0;
  }
  // A zero anywhere makes the tensor empty, however large its neighbours are.
  if (empty) return 0;
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) {
    const auto product = checked_mul(count, dim);
    if (!product || *product > kMaxElements) return fail(Code::kInvalidArgument, too_large(shape));
    count = *product;
  }
  return count;
}

Result<std::size_t> tensor_byte_size(DataType type, std::span<const std::int64_t> shape) {
  const std::size_t size = element_size(type);
  if (size == 0) {
    return fail(Code::kInvalidArgument,
                fmt::format("elements of datatype {} have no fixed size", datatype_name(type)));
  }
  const auto count = element_count(shape);
  if (!count) return fail(count.error());
  const auto bytes = checked_mul(static_cast<std::size_t>(*count), size);
  if (!bytes) {
    return fail(Code::kInvalidArgument, fmt::format("shape {} of datatype {} has more than 2^64 bytes",
                                                    shape_to_string(shape), datatype_name(type)));
  }
  return *bytes;
}

bool shape_matches(std::span<const std::int64_t> actual, std::span<const std::int64_t> expected) {
  if (actual.size() != expected.size()) return false;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (expected[i] != -1 && expected[i] != actual[i]) return false;
  }
  return true;
}

}  // namespace sluice
