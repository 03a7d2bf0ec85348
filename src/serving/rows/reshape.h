// Triton's `reshape`: the protocol shows a tensor with other dimensions than the model has. Pure.
#pragma once

#include "tensor/shape.h"

namespace sluice::serving {

// Dimensions without the batch dimension, -1 = any. Equal: nothing to do.
struct Reshape {
  Shape from, to;
  bool needed() const { return from != to; }
};

// `shape` (with the batch dimension when `batched`) with `to` in place of `from`; variable dimensions of `to` take
// those of `from` in their order. A shape that does not have `from`'s rank stays as it is.
void apply_reshape(const Reshape& reshape, bool batched, Shape& shape);

}  // namespace sluice::serving
