// InferTensorContents -> the raw bytes of a tensor: the slow way for data to arrive, for clients that fill
// typed fields and not raw_input_contents.
#pragma once

#include <string_view>

#include "base/error.h"
#include "tensor/tensor.h"

namespace sluice::grpc_wire {

// `message` is an InferInputTensor or InferOutputTensor, whose `contents` (if any) become tensor.data in a
// buffer of the arena. tensor.datatype and shape are set. kInvalidArgument: elements in a field of another
// datatype, a count that differs from the shape, a value out of range, FP16 or BF16, which have no field.
// The count is checked, and held against max_bytes, before anything is allocated.
Status read_typed_contents(std::string_view message, Arena& arena, std::size_t max_bytes, Tensor& tensor);

}  // namespace sluice::grpc_wire
