#include "engine/reshape.h"

#include <fmt/format.h>

namespace sluice::engine {

Result<Shape> reshape(const Shape& shape, std::size_t lead, const Shape& from, const Shape& to) {
  const auto refuse = [&] {
    return fail(Code::kInvalidArgument, fmt::format("shape {} cannot be reshaped from {} to {}", shape_to_string(shape),
                                                    shape_to_string(from), shape_to_string(to)));
  };
  if (shape.size() != lead + from.size()) return refuse();
  Shape result(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(lead));
  std::size_t next = 0;
  for (std::int64_t dimension : to) {
    if (dimension == -1) {
      while (next < from.size() && from[next] != -1) ++next;
      if (next == from.size()) return refuse();
      dimension = shape[lead + next++];
    }
    result.push_back(dimension);
  }
  const auto before = element_count(shape);
  const auto after = element_count(result);
  if (!before || !after || *before != *after) return refuse();
  return result;
}

}  // namespace sluice::engine
