// How the requests of a batch become the tensors that the model takes: one tensor an input.
//
//   one item       its tensors, as they are: no copy
//   more items     [rows of item 0 | rows of item 1 | ...], one gather an input into a buffer of the arena
//
// Elements of kBytes carry their own lengths, so that their rows are joined the same way. Pure but for the
// allocation; any thread.
#pragma once

#include <vector>

#include "base/error.h"
#include "engine/batch_model.h"
#include "tensor/buffer.h"
#include "tensor/tensor.h"

namespace sluice::engine {

// One tensor per input of the items, in their order; an optional input that every item leaves out stays absent
// (kInvalid). Items of a batch of more than one are released as soon as they are gathered. kInternal when the items
// do not fit together (the batcher's promise) and kResourceExhausted from the arena, naming input and sizes.
Result<std::vector<Tensor>> assemble_inputs(std::vector<BatchItem> items, Arena& arena);

}  // namespace sluice::engine
