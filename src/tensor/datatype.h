// The element types of a tensor, with the names of the Open Inference Protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

// Values are those of Triton's model_config.proto DataType (STRING is called BYTES on the wire).
enum class DataType : std::uint8_t {
  kInvalid = 0, kBool = 1, kUint8 = 2, kUint16 = 3, kUint32 = 4, kUint64 = 5, kInt8 = 6, kInt16 = 7,
  kInt32 = 8, kInt64 = 9, kFp16 = 10, kFp32 = 11, kFp64 = 12, kBytes = 13, kBf16 = 14,
};
inline constexpr int kDataTypeCount = 15;

std::string_view datatype_name(DataType type);                    // "FP32"; "INVALID"
std::optional<DataType> parse_datatype(std::string_view name);    // "FP32"; exact case
std::optional<DataType> parse_config_datatype(std::string_view name);  // "TYPE_FP32", "TYPE_STRING"
std::string_view config_datatype_name(DataType type);

// Bytes of one element; 0 for kBytes (variable: u32 little-endian length, then the bytes) and kInvalid.
std::size_t element_size(DataType type);

}  // namespace sluice
