// Triton's `reshape`: a tensor that the model knows in another shape than the protocol's clients do.
// Pure; rows (the batch dimension) are not part of it.
#pragma once

#include "base/error.h"
#include "tensor/shape.h"

namespace sluice::engine {

// `shape` follows the pattern `from` behind its first `lead` dimensions; the result follows `to`. Variable
// dimensions (-1) of `to` take the values of those of `from`, in order. kInvalidArgument when the ranks or the
// element counts differ, naming all three shapes.
Result<Shape> reshape(const Shape& shape, std::size_t lead, const Shape& from, const Shape& to);

}  // namespace sluice::engine
