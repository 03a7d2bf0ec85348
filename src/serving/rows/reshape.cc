#include "serving/rows/reshape.h"

#include <utility>

namespace sluice::serving {

void apply_reshape(const Reshape& reshape, bool batched, Shape& shape) {
  const std::size_t batch_dims = batched ? 1 : 0;
  if (!reshape.needed() || shape.size() != reshape.from.size() + batch_dims) return;
  Shape out(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(batch_dims));
  std::size_t next = 0;  // in `from`
  for (std::int64_t dim : reshape.to) {
    if (dim < 0) {
      while (next < reshape.from.size() && reshape.from[next] >= 0) ++next;
      dim = next < reshape.from.size() ? shape[batch_dims + next++] : 1;
    }
    out.push_back(dim);
  }
  shape = std::move(out);
}

}  // namespace sluice::serving
