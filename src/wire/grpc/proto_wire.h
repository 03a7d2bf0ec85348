// Protobuf's wire format (protobuf.dev/programming-guides/encoding), read from a view and written to a string.
// For ModelInferRequest and ModelInferResponse only, where generated code would copy tensors; every other
// message uses generated code. Groups (wire types 3 and 4) are refused.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace sluice::grpc_wire {

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

inline constexpr int kMaxVarintBytes = 10;

// Reads one varint from [at, end) and moves `at` behind it; false when it is cut or longer than 64 bits.
inline bool read_varint(const char*& at, const char* end, std::uint64_t& out) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && at != end; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(*at++);
    if (shift == 63 && byte > 1) return false;
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) {
      out = value;
      return true;
    }
  }
  return false;
}

inline bool is_wire_type(std::uint64_t number) { return number <= 2 || number == 5; }

// One field after another of a message.
//   ProtoReader fields(message);
//   while (fields.next()) switch (fields.field()) ...
//   if (!fields.ok()) ...
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : at_(message.data()), end_(message.data() + message.size()) {}

  // False at the end, and at the first thing that is not protobuf: then ok() is false.
  bool next() {
    if (at_ == end_) return false;
    ok_ = read_field();
    return ok_;
  }
  bool ok() const { return ok_; }

  std::uint32_t field() const { return field_; }
  WireType type() const { return type_; }
  std::uint64_t value() const { return value_; }      // of kVarint, kFixed32, kFixed64
  std::string_view bytes() const { return bytes_; }   // of kBytes

 private:
  bool read_field() {
    std::uint64_t tag = 0;
    if (!read_varint(at_, end_, tag) || tag > UINT32_MAX || tag < 8 || !is_wire_type(tag & 7)) return false;
    field_ = static_cast<std::uint32_t>(tag >> 3);
    type_ = static_cast<WireType>(tag & 7);
    switch (type_) {
      case WireType::kVarint: return read_varint(at_, end_, value_);
      case WireType::kFixed64: return read_fixed(8);
      case WireType::kFixed32: return read_fixed(4);
      case WireType::kBytes: break;
    }
    std::uint64_t length = 0;
    if (!read_varint(at_, end_, length) || length > static_cast<std::uint64_t>(end_ - at_)) return false;
    bytes_ = {at_, static_cast<std::size_t>(length)};
    at_ += length;
    return true;
  }
  bool read_fixed(std::size_t size) {
    if (static_cast<std::size_t>(end_ - at_) < size) return false;
    value_ = 0;
    std::memcpy(&value_, at_, size);
    at_ += size;
    return true;
  }

  const char* at_;
  const char* end_;
  std::uint32_t field_ = 0;
  WireType type_ = WireType::kVarint;
  std::uint64_t value_ = 0;
  std::string_view bytes_;
  bool ok_ = true;
};

inline std::size_t varint_size(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

// Sizes and writers agree: each `put_x` appends exactly `size_of_x` bytes. Field numbers are below 16, so that
// a tag is one byte. Empty strings and zero numbers are left out, as proto3 does.
inline std::size_t size_of_bytes(std::size_t length) { return 1 + varint_size(length) + length; }
inline std::size_t size_of_text(std::string_view text) { return text.empty() ? 0 : size_of_bytes(text.size()); }

inline void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}
inline void put_tag(std::string& out, std::uint32_t field, WireType type) {
  out.push_back(static_cast<char>(field << 3 | static_cast<std::uint32_t>(type)));
}
inline void put_bytes_head(std::string& out, std::uint32_t field, std::size_t length) {
  put_tag(out, field, WireType::kBytes);
  put_varint(out, length);
}
inline void put_text(std::string& out, std::uint32_t field, std::string_view text) {
  if (text.empty()) return;
  put_bytes_head(out, field, text.size());
  out.append(text);
}

}  // namespace sluice::grpc_wire
