// A tensor is a view of bytes somebody else keeps alive, or that it keeps alive itself through `owner`.
// Row-major, little-endian, unpadded. kBytes elements: u32 little-endian length, then the bytes.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "tensor/buffer.h"
#include "tensor/datatype.h"
#include "tensor/shape.h"

namespace sluice {

struct Tensor {
  DataType datatype = DataType::kInvalid;
  Shape shape;
  Bytes data;
  BufferRef owner;  // keeps `data` alive; may hold more than this tensor (a batch's output)
};

// Checks that `data` is what datatype and shape say: exact size, or for kBytes exactly as many
// well-formed elements. kInvalidArgument names expected and given.
Status check_tensor_data(const Tensor& tensor);

// Bytes that go out on a wire, and what keeps them alive: either text of its own or a buffer's part.
struct Slice {
  Slice() = default;
  explicit Slice(std::string text) : text(std::move(text)) {}
  Slice(Bytes bytes, BufferRef owner) : bytes(bytes), owner(std::move(owner)), external(true) {}

  Bytes view() const { return external ? bytes : as_bytes(text); }
  std::size_t size() const { return view().size(); }

  std::string text;
  Bytes bytes;
  BufferRef owner;
  bool external = false;
};
using Payload = std::vector<Slice>;

std::size_t payload_size(const Payload& payload);

}  // namespace sluice
