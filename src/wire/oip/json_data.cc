#include "wire/oip/json_data.h"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/checked.h"

namespace sluice::oip {
namespace {

constexpr std::size_t kBytesLength = sizeof(std::uint32_t);  // before each BYTES element

struct Level {
  simdjson::dom::array::iterator at, end;
};

// Calls `on_value` for each value that is no array, in row-major order, until it returns false. The value at
// which it did is returned. The levels that are open are kept in a vector, whose size the parser's cap bounds.
template <class OnValue>
std::optional<Element> walk(Element data, OnValue on_value) {
  std::vector<Level> open;
  const auto descend = [&open](Element value) {
    const simdjson::dom::array array = value;
    open.push_back({array.begin(), array.end()});
  };
  if (!data.is_array()) return on_value(data) ? std::nullopt : std::optional(data);
  descend(data);
  while (!open.empty()) {
    Level level = open.back();  // a copy, so that the compiler can keep it in registers
    for (; level.at != level.end && !(*level.at).is_array(); ++level.at) {
      if (!on_value(*level.at)) return *level.at;
    }
    if (!(level.at != level.end)) {
      open.pop_back();
      continue;
    }
    const Element nested = *level.at;
    ++level.at;
    open.back() = level;
    descend(nested);
  }
  return std::nullopt;
}

std::int64_t count_values(Element data) {
  std::int64_t count = 0;
  walk(data, [&](Element) {
    ++count;
    return true;
  });
  return count;
}

Status another_count(const Tensor& tensor, std::int64_t expected, std::int64_t given) {
  return fail(Code::kInvalidArgument,
              fmt::format("datatype {} and shape {} need {} elements, {} were given", datatype_name(tensor.datatype),
                          shape_to_string(tensor.shape), expected, given));
}

// Moves the value into `out`; false when it is of another type or does not fit.
template <std::floating_point T>
bool convert(Element value, bool null_is_nan, T& out) {
  double number = 0;
  if (value.get(number) != simdjson::SUCCESS) {
    out = std::numeric_limits<T>::quiet_NaN();
    return null_is_nan && value.is_null();
  }
  out = static_cast<T>(number);
  return std::isfinite(out);
}

template <std::integral T>
bool convert(Element value, bool, T& out) {
  using Wide = std::conditional_t<std::signed_integral<T>, std::int64_t, std::uint64_t>;
  Wide wide = 0;
  if (value.get(wide) != simdjson::SUCCESS || !std::in_range<T>(wide)) return false;
  out = static_cast<T>(wide);
  return true;
}

template <>
bool convert<bool>(Element value, bool, bool& out) {
  std::uint64_t number = 0;
  if (value.get(out) == simdjson::SUCCESS) return true;
  if (value.get(number) != simdjson::SUCCESS || number > 1) return false;
  out = number == 1;
  return true;
}

template <class T>
std::string range_of(DataType type) {
  if constexpr (std::same_as<T, bool>) return "true or false";
  if constexpr (std::floating_point<T>) return fmt::format("finite numbers that fit {}", datatype_name(type));
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    return fmt::format("integers in [{}, {}]", std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  }
}

Status wrong_value(std::int64_t index, Element value, std::string_view takes) {
  return fail(Code::kInvalidArgument,
              fmt::format("element {} of data is {}; the datatype takes {}", index, describe(value), takes));
}

template <class T>
Status read_numbers(Element data, bool null_is_nan, std::int64_t count, Tensor& tensor) {
  T* out = reinterpret_cast<T*>(tensor.owner.data());
  std::int64_t index = 0;
  const auto bad = walk(data, [&](Element value) {
    T converted;
    if (!convert(value, null_is_nan, converted)) return false;
    if (index < count) out[index] = converted;
    ++index;
    return true;
  });
  if (bad) return wrong_value(index, *bad, range_of<T>(tensor.datatype));
  return index == count ? Status{} : another_count(tensor, count, index);
}

Status allocate(std::size_t size, const JsonDataRules& rules, Arena& arena, Tensor& tensor) {
  if (size > rules.max_bytes) {
    return fail(Code::kResourceExhausted, fmt::format("its data has {} bytes, the limit is {}", size, rules.max_bytes));
  }
  auto buffer = arena.allocate(size);
  if (!buffer) return fail(std::move(buffer.error()));
  tensor.owner = std::move(*buffer);
  tensor.data = std::as_const(tensor.owner).bytes();
  return {};
}

Status read_texts(Element data, const JsonDataRules& rules, std::int64_t count, Arena& arena, Tensor& tensor) {
  std::int64_t found = 0;
  std::size_t size = 0;
  std::string_view text;
  const auto bad = walk(data, [&](Element value) {
    if (value.get(text) != simdjson::SUCCESS) return false;
    ++found;
    size += kBytesLength + text.size();
    return true;
  });
  if (bad) return wrong_value(found, *bad, "strings");
  if (found != count) return another_count(tensor, count, found);
  if (auto status = allocate(size, rules, arena, tensor); !status) return status;
  std::byte* out = tensor.owner.data();
  walk(data, [&](Element value) {
    if (value.get(text) != simdjson::SUCCESS) return false;
    const auto length = static_cast<std::uint32_t>(text.size());
    std::memcpy(out, &length, kBytesLength);
    if (length > 0) std::memcpy(out + kBytesLength, text.data(), length);
    out += kBytesLength + length;
    return true;
  });
  return {};
}

Status read_numbers_of(Element data, const JsonDataRules& rules, std::int64_t count, Tensor& tensor) {
  const bool nan = rules.null_is_nan;
  switch (tensor.datatype) {
    case DataType::kBool: return read_numbers<bool>(data, nan, count, tensor);
    case DataType::kUint8: return read_numbers<std::uint8_t>(data, nan, count, tensor);
    case DataType::kUint16: return read_numbers<std::uint16_t>(data, nan, count, tensor);
    case DataType::kUint32: return read_numbers<std::uint32_t>(data, nan, count, tensor);
    case DataType::kUint64: return read_numbers<std::uint64_t>(data, nan, count, tensor);
    case DataType::kInt8: return read_numbers<std::int8_t>(data, nan, count, tensor);
    case DataType::kInt16: return read_numbers<std::int16_t>(data, nan, count, tensor);
    case DataType::kInt32: return read_numbers<std::int32_t>(data, nan, count, tensor);
    case DataType::kInt64: return read_numbers<std::int64_t>(data, nan, count, tensor);
    case DataType::kFp32: return read_numbers<float>(data, nan, count, tensor);
    case DataType::kFp64: return read_numbers<double>(data, nan, count, tensor);
    default:
      return fail(Code::kInvalidArgument,
                  fmt::format("datatype {} travels only as binary data", datatype_name(tensor.datatype)));
  }
}

}  // namespace

Status read_json_data(Element data, const JsonDataRules& rules, Arena& arena, Tensor& tensor) {
  const auto count = element_count(tensor.shape);
  if (!count) return fail(count.error());
  if (!data.is_array() && !tensor.shape.empty()) {
    return fail(Code::kInvalidArgument, fmt::format("data must be an array, {} was given", describe(data)));
  }
  if (static_cast<std::uint64_t>(*count) > rules.json_bytes) return another_count(tensor, *count, count_values(data));
  if (tensor.datatype == DataType::kBytes) return read_texts(data, rules, *count, arena, tensor);
  const auto size = checked_mul(static_cast<std::size_t>(*count), element_size(tensor.datatype));
  if (!size) return another_count(tensor, *count, count_values(data));
  if (auto status = allocate(*size, rules, arena, tensor); !status) return status;
  return read_numbers_of(data, rules, *count, tensor);
}

}  // namespace sluice::oip
