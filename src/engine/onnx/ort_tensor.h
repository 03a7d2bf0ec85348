// Tensors <-> the runtime's values. Fixed-size elements are shared in both directions; strings are copied, since the
// runtime keeps them as objects of its own. Private to engine/onnx.
#pragma once

#include <memory>

#include "base/error.h"
#include "engine/onnx/ort_runtime.h"
#include "tensor/tensor.h"

namespace sluice::engine {

using OrtValuePtr = OrtPtr<OrtValue>;

// kInvalid / UNDEFINED: the other side has no such type.
DataType datatype_of(ONNXTensorElementDataType type);
ONNXTensorElementDataType ort_datatype_of(DataType type);

// A value over the tensor's bytes, which must outlive it. A tensor whose elements are not at their natural alignment
// is copied into `arena` first, and `tensor` then refers to the copy.
Result<OrtValuePtr> make_ort_value(const OrtRuntime& runtime, Arena& arena, Tensor& tensor);

// A tensor over the value's bytes. Its owner keeps the value alive, and `keep_alive` with it: what the value may
// point into (weights that are an output).
Result<Tensor> take_ort_value(std::shared_ptr<const void> keep_alive, const OrtRuntime& runtime, Arena& arena,
                              OrtValuePtr value);

}  // namespace sluice::engine
