#include "serving/rows/split.h"

#include <cstring>
#include <numeric>

#include <fmt/format.h>

namespace sluice::serving {
namespace {

// The offset behind `count` length-prefixed elements that start at `offset`; SIZE_MAX when they do not fit.
std::size_t skip_elements(Bytes data, std::size_t offset, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t length = 0;
    if (data.size() - offset < sizeof(length)) return SIZE_MAX;
    std::memcpy(&length, data.data() + offset, sizeof(length));
    offset += sizeof(length);
    if (data.size() - offset < length) return SIZE_MAX;
    offset += length;
  }
  return offset;
}

std::unexpected<Error> wrong_data(const Tensor& output) {
  return fail(Code::kInternal, fmt::format("the model's output of {} {} has {} bytes, which is not what its shape says",
                                           datatype_name(output.datatype), shape_to_string(output.shape),
                                           output.data.size()));
}

}  // namespace

Result<std::vector<std::size_t>> row_boundaries(const Tensor& output, std::span<const std::int64_t> rows_per_part) {
  const std::int64_t rows = std::accumulate(rows_per_part.begin(), rows_per_part.end(), std::int64_t{0});
  if (output.shape.empty() || output.shape[0] != rows) {
    return fail(Code::kInternal, fmt::format("the model's output has shape {} for a batch of {} rows: expected {} as "
                                             "its first dimension", shape_to_string(output.shape), rows, rows));
  }
  const auto elements = element_count(output.shape);  // checked: no product below can overflow
  if (!elements) return fail(Code::kInternal, elements.error().message);
  const std::size_t element = element_size(output.datatype);
  if (element != 0 && static_cast<std::size_t>(*elements) > output.data.size() / element) return wrong_data(output);

  const std::int64_t elements_per_row = rows == 0 ? 0 : *elements / rows;
  std::vector<std::size_t> boundaries(rows_per_part.size() + 1, 0);
  for (std::size_t i = 0; i < rows_per_part.size(); ++i) {
    const std::int64_t count = rows_per_part[i] * elements_per_row;
    boundaries[i + 1] = element != 0 ? boundaries[i] + element * static_cast<std::size_t>(count)
                                     : skip_elements(output.data, boundaries[i], count);
    if (boundaries[i + 1] > output.data.size()) return wrong_data(output);
  }
  if (boundaries.back() != output.data.size()) return wrong_data(output);
  return boundaries;
}

Tensor rows_of(const Tensor& output, std::int64_t rows, std::size_t begin, std::size_t end) {
  Tensor part{.datatype = output.datatype, .shape = output.shape, .data = output.data.subspan(begin, end - begin),
              .owner = output.owner};
  part.shape[0] = rows;
  return part;
}

}  // namespace sluice::serving
