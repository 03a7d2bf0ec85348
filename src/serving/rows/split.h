// Splits a batch's output into the requests' rows: views of the same bytes, no copy. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

namespace sluice::serving {

// Byte offsets at which each part begins, and the end after the last: parts + 1 numbers. Part i is rows_per_part[i]
// rows of the first dimension. kInternal when the tensor is not what its shape says or has another number of rows
// (an engine's fault): names both.
Result<std::vector<std::size_t>> row_boundaries(const Tensor& output, std::span<const std::int64_t> rows_per_part);

// `rows` rows at bytes [begin, end) of `output`, which it keeps alive.
Tensor rows_of(const Tensor& output, std::int64_t rows, std::size_t begin, std::size_t end);

}  // namespace sluice::serving
