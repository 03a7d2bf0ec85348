#include "wire/grpc/typed_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>

#include "wire/grpc/proto_wire.h"

namespace sluice::grpc_wire {
namespace {

constexpr std::uint32_t kContentsField = 5;
constexpr std::size_t kBytesLength = sizeof(std::uint32_t);  // before each BYTES element

// The fields of InferTensorContents, by number.
constexpr std::array<std::string_view, 9> kFieldNames = {
    "",             "bool_contents",   "int_contents",  "int64_contents", "uint_contents",
    "uint64_contents", "fp32_contents", "fp64_contents", "bytes_contents"};

struct Source {
  std::uint32_t field = 0;  // 0: none
  WireType type = WireType::kVarint;
};

Source source_of(DataType type) {
  switch (type) {
    case DataType::kBool: return {1, WireType::kVarint};
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32: return {2, WireType::kVarint};
    case DataType::kInt64: return {3, WireType::kVarint};
    case DataType::kUint8:
    case DataType::kUint16:
    case DataType::kUint32: return {4, WireType::kVarint};
    case DataType::kUint64: return {5, WireType::kVarint};
    case DataType::kFp32: return {6, WireType::kFixed32};
    case DataType::kFp64: return {7, WireType::kFixed64};
    case DataType::kBytes: return {8, WireType::kBytes};
    default: return {};
  }
}

Status malformed() { return fail(Code::kInvalidArgument, "contents is not a protobuf message"); }

// Calls `on_field` for each field of each `contents` (protobuf merges them when there are several).
template <class OnField>
Status walk_contents(std::string_view message, OnField on_field) {
  ProtoReader fields(message);
  while (fields.next()) {
    if (fields.field() != kContentsField || fields.type() != WireType::kBytes) continue;
    ProtoReader contents(fields.bytes());
    while (contents.next()) {
      if (auto status = on_field(contents); !status) return status;
    }
    if (!contents.ok()) return malformed();
  }
  return fields.ok() ? Status{} : malformed();
}

struct Found {
  std::int64_t elements = 0;
  std::size_t text_bytes = 0;  // of BYTES elements, without their lengths
};

// Elements that one occurrence of the field holds: packed, or one alone.
Status count_in(const ProtoReader& at, WireType type, Found& found) {
  if (type == WireType::kBytes && at.type() == type) {
    ++found.elements;
    found.text_bytes += at.bytes().size();
    return {};
  }
  if (at.type() == type) {
    ++found.elements;
    return {};
  }
  if (at.type() != WireType::kBytes || type == WireType::kBytes) return malformed();
  const std::string_view packed = at.bytes();
  if (type == WireType::kVarint) {
    // One byte of each varint, its last, is below 0x80.
    found.elements += std::count_if(packed.begin(), packed.end(), [](char c) { return c >= 0; });
    return packed.empty() || packed.back() >= 0 ? Status{} : malformed();
  }
  const std::size_t size = type == WireType::kFixed32 ? 4 : 8;
  found.elements += static_cast<std::int64_t>(packed.size() / size);
  return packed.size() % size == 0 ? Status{} : malformed();
}

Result<Found> count_elements(std::string_view message, DataType datatype) {
  const Source source = source_of(datatype);
  Found found;
  auto status = walk_contents(message, [&](const ProtoReader& at) -> Status {
    if (at.field() == source.field) return count_in(at, source.type, found);
    const bool empty = at.type() == WireType::kBytes && at.bytes().empty() && at.field() != 8;
    if (at.field() >= kFieldNames.size() || empty) return {};
    if (source.field == 0) {
      return fail(Code::kInvalidArgument,
                  fmt::format("datatype {} has no typed contents, only raw ones", datatype_name(datatype)));
    }
    return fail(Code::kInvalidArgument,
                fmt::format("datatype {} takes its elements from {}, but {} is filled", datatype_name(datatype),
                            kFieldNames[source.field], kFieldNames[at.field()]));
  });
  if (!status) return fail(std::move(status.error()));
  return found;
}

// Wide: as which the field is declared (int32 for INT8), so that a varint is cut as protobuf cuts it.
template <class T, class Wide>
class Narrow {
 public:
  Narrow(std::byte* out, DataType type) : out_(reinterpret_cast<T*>(out)), type_(type) {}

  Status add(std::uint64_t value) {
    const Wide wide = std::same_as<Wide, bool> ? static_cast<Wide>(value != 0) : static_cast<Wide>(value);
    const T narrow = static_cast<T>(wide);
    if (static_cast<Wide>(narrow) != wide) {
      return fail(Code::kInvalidArgument,
                  fmt::format("{} is outside {}'s range [{}, {}]", wide, datatype_name(type_),
                              std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    }
    *out_++ = narrow;
    return {};
  }

 private:
  T* out_;
  DataType type_;
};

template <class T, class Wide>
Status write_varints(std::string_view message, const Tensor& tensor, std::byte* out) {
  Narrow<T, Wide> narrow(out, tensor.datatype);
  const std::uint32_t field = source_of(tensor.datatype).field;
  return walk_contents(message, [&](const ProtoReader& at) -> Status {
    if (at.field() != field) return {};
    if (at.type() == WireType::kVarint) return narrow.add(at.value());
    const char* byte = at.bytes().data();
    const char* end = byte + at.bytes().size();
    while (byte != end) {
      std::uint64_t value = 0;
      if (!read_varint(byte, end, value)) return malformed();
      if (auto status = narrow.add(value); !status) return status;
    }
    return {};
  });
}

// The field's bytes are the tensor's.
Status write_fixed(std::string_view message, const Tensor& tensor, std::byte* out) {
  const std::uint32_t field = source_of(tensor.datatype).field;
  const std::size_t size = element_size(tensor.datatype);
  return walk_contents(message, [&](const ProtoReader& at) -> Status {
    if (at.field() != field) return {};
    if (at.type() == WireType::kBytes) {
      if (at.bytes().empty()) return {};
      std::memcpy(out, at.bytes().data(), at.bytes().size());
      out += at.bytes().size();
    } else {
      const std::uint64_t value = at.value();
      std::memcpy(out, &value, size);
      out += size;
    }
    return {};
  });
}

Status write_texts(std::string_view message, std::byte* out) {
  return walk_contents(message, [&](const ProtoReader& at) -> Status {
    if (at.field() != source_of(DataType::kBytes).field) return {};
    const auto length = static_cast<std::uint32_t>(at.bytes().size());
    std::memcpy(out, &length, kBytesLength);
    if (length > 0) std::memcpy(out + kBytesLength, at.bytes().data(), length);
    out += kBytesLength + length;
    return {};
  });
}

Status write_elements(std::string_view message, const Tensor& tensor, std::byte* out) {
  switch (tensor.datatype) {
    case DataType::kBool: return write_varints<std::uint8_t, bool>(message, tensor, out);
    case DataType::kInt8: return write_varints<std::int8_t, std::int32_t>(message, tensor, out);
    case DataType::kInt16: return write_varints<std::int16_t, std::int32_t>(message, tensor, out);
    case DataType::kInt32: return write_varints<std::int32_t, std::int32_t>(message, tensor, out);
    case DataType::kInt64: return write_varints<std::int64_t, std::int64_t>(message, tensor, out);
    case DataType::kUint8: return write_varints<std::uint8_t, std::uint32_t>(message, tensor, out);
    case DataType::kUint16: return write_varints<std::uint16_t, std::uint32_t>(message, tensor, out);
    case DataType::kUint32: return write_varints<std::uint32_t, std::uint32_t>(message, tensor, out);
    case DataType::kUint64: return write_varints<std::uint64_t, std::uint64_t>(message, tensor, out);
    case DataType::kBytes: return write_texts(message, out);
    default: return write_fixed(message, tensor, out);
  }
}

}  // namespace

Status read_typed_contents(std::string_view message, Arena& arena, std::size_t max_bytes, Tensor& tensor) {
  const auto expected = element_count(tensor.shape);
  if (!expected) return fail(expected.error());
  const auto found = count_elements(message, tensor.datatype);
  if (!found) return fail(found.error());
  if (found->elements != *expected) {
    return fail(Code::kInvalidArgument,
                fmt::format("datatype {} and shape {} need {} elements, {} were given", datatype_name(tensor.datatype),
                            shape_to_string(tensor.shape), *expected, found->elements));
  }
  // Neither product can wrap: each element was seen, and takes a byte of the message.
  const auto elements = static_cast<std::size_t>(found->elements);
  const std::size_t size = tensor.datatype == DataType::kBytes ? found->text_bytes + elements * kBytesLength
                                                               : elements * element_size(tensor.datatype);
  if (size > max_bytes) {
    return fail(Code::kResourceExhausted, fmt::format("its data has {} bytes, the limit is {}", size, max_bytes));
  }
  auto buffer = arena.allocate(size);
  if (!buffer) return fail(std::move(buffer.error()));
  if (auto status = write_elements(message, tensor, buffer->data()); !status) return status;
  tensor.data = buffer->bytes();
  tensor.owner = std::move(*buffer);
  return {};
}

}  // namespace sluice::grpc_wire
