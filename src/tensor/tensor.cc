#include "tensor/tensor.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace sluice {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are read in place as little-endian");

// Walks the elements of a kBytes tensor: u32 length, then as many bytes, `expected` times and no more.
Status check_bytes_elements(const Tensor& tensor, std::int64_t expected) {
  constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);
  const std::byte* at = tensor.data.data();
  std::size_t left = tensor.data.size();
  std::int64_t found = 0;
  while (left > 0 && found < expected) {
    std::uint32_t length = 0;
    if (left < kLengthBytes) {
      return fail(Code::kInvalidArgument,
                  fmt::format("element {} of a BYTES tensor of shape {} has {} bytes for its length, {} are needed",
                              found, shape_to_string(tensor.shape), left, kLengthBytes));
    }
    std::memcpy(&length, at, kLengthBytes);
    left -= kLengthBytes;
    if (length > left) {
      return fail(Code::kInvalidArgument,
                  fmt::format("element {} of a BYTES tensor of shape {} says {} bytes, {} are left", found,
                              shape_to_string(tensor.shape), length, left));
    }
    at += kLengthBytes + length;
    left -= length;
    ++found;
  }
  if (found == expected && left == 0) return {};
  if (found == expected) {
    return fail(Code::kInvalidArgument,
                fmt::format("a BYTES tensor of shape {} has {} bytes after its {} elements",
                            shape_to_string(tensor.shape), left, expected));
  }
  return fail(Code::kInvalidArgument, fmt::format("a BYTES tensor of shape {} needs {} elements, {} were given",
                                                  shape_to_string(tensor.shape), expected, found));
}

}  // namespace

Status check_tensor_data(const Tensor& tensor) {
  if (tensor.datatype == DataType::kInvalid) return fail(Code::kInvalidArgument, "a tensor without a datatype");
  if (tensor.datatype == DataType::kBytes) {
    const auto count = element_count(tensor.shape);
    if (!count) return fail(count.error());
    return check_bytes_elements(tensor, *count);
  }
  const auto expected = tensor_byte_size(tensor.datatype, tensor.shape);
  if (!expected) return fail(expected.error());
  if (tensor.data.size() == *expected) return {};
  return fail(Code::kInvalidArgument,
              fmt::format("a tensor of datatype {} and shape {} needs {} bytes, {} were given",
                          datatype_name(tensor.datatype), shape_to_string(tensor.shape), *expected,
                          tensor.data.size()));
}

std::size_t payload_size(const Payload& payload) {
  std::size_t size = 0;
  for (const Slice& slice : payload) size += slice.size();
  return size;
}

}  // namespace sluice
