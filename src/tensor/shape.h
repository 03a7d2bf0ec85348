// Shapes. On requests every dimension is >= 0; in a model's signature -1 means "any".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/datatype.h"

namespace sluice {

using Shape = std::vector<std::int64_t>;

inline constexpr std::size_t kMaxRank = 16;

std::string shape_to_string(std::span<const std::int64_t> shape);  // "[1,3,-1]"

// Product of the dimensions; kInvalidArgument for a negative one, for more than kMaxRank dimensions and
// for a product above 2^62, naming the shape. The empty shape has one element.
Result<std::int64_t> element_count(std::span<const std::int64_t> shape);

// element_count * element_size, checked; not for kBytes.
Result<std::size_t> tensor_byte_size(DataType type, std::span<const std::int64_t> shape);

// True when each dimension of `actual` equals the expected one or that is -1, ranks being equal.
bool shape_matches(std::span<const std::int64_t> actual, std::span<const std::int64_t> expected);

}  // namespace sluice
