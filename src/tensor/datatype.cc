#include "tensor/datatype.h"

#include <array>

namespace sluice {
namespace {

struct TypeFacts {
  std::string_view name;
  std::string_view config_name;
  std::size_t size;
};

constexpr std::array<TypeFacts, kDataTypeCount> kTypes = {{
    {"INVALID", "TYPE_INVALID", 0}, {"BOOL", "TYPE_BOOL", 1},     {"UINT8", "TYPE_UINT8", 1},
    {"UINT16", "TYPE_UINT16", 2},   {"UINT32", "TYPE_UINT32", 4}, {"UINT64", "TYPE_UINT64", 8},
    {"INT8", "TYPE_INT8", 1},       {"INT16", "TYPE_INT16", 2},   {"INT32", "TYPE_INT32", 4},
    {"INT64", "TYPE_INT64", 8},     {"FP16", "TYPE_FP16", 2},     {"FP32", "TYPE_FP32", 4},
    {"FP64", "TYPE_FP64", 8},       {"BYTES", "TYPE_STRING", 0},  {"BF16", "TYPE_BF16", 2},
}};

const TypeFacts& facts(DataType type) {
  const auto index = static_cast<std::size_t>(type);
  return kTypes[index < kTypes.size() ? index : 0];
}

// kInvalid has a name and is not one that may be asked for.
std::optional<DataType> find_type(std::string_view TypeFacts::*field, std::string_view name) {
  for (std::size_t i = 1; i < kTypes.size(); ++i) {
    if (kTypes[i].*field == name) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view datatype_name(DataType type) { return facts(type).name; }

std::optional<DataType> parse_datatype(std::string_view name) { return find_type(&TypeFacts::name, name); }

std::optional<DataType> parse_config_datatype(std::string_view name) {
  return find_type(&TypeFacts::config_name, name);
}

std::string_view config_datatype_name(DataType type) { return facts(type).config_name; }

std::size_t element_size(DataType type) { return facts(type).size; }

}  // namespace sluice
