#include "wire/oip/json_document.h"

#include <fmt/format.h>

#include "wire/infer_rules.h"
#include "wire/oip/json.h"

namespace sluice::oip {
namespace {

constexpr std::size_t kMaxQuotedBytes = 32;

Status expected(std::string_view what, std::string_view kind, Element value) {
  return fail(Code::kInvalidArgument, fmt::format("{} must be {}, {} was given", what, kind, describe(value)));
}

Result<ParameterValue> read_parameter_value(std::string_view name, Element value) {
  bool boolean = false;
  std::int64_t integer = 0;
  std::uint64_t large = 0;
  double number = 0;
  std::string_view text;
  if (value.get(boolean) == simdjson::SUCCESS) return boolean;
  if (value.get(text) == simdjson::SUCCESS) return std::string(text);
  if (value.get(integer) == simdjson::SUCCESS) return integer;
  if (value.get(large) == simdjson::SUCCESS) return large;
  if (value.get(number) == simdjson::SUCCESS) return number;
  return fail(Code::kInvalidArgument,
              fmt::format("parameter '{}' must be a boolean, a number or a string, {} was given",
                          name.substr(0, kMaxQuotedBytes), describe(value)));
}

}  // namespace

Status JsonDocument::parse(std::string_view json, std::size_t readable_past_json, std::size_t max_depth) {
  static_assert(kJsonPadding >= simdjson::SIMDJSON_PADDING);
  if (json.empty()) return fail(Code::kInvalidArgument, "the JSON is empty");
  if (json.size() > kMaxJsonBytes) {
    return fail(Code::kInvalidArgument,
                fmt::format("{} bytes of JSON, the limit is {}; tensors can travel as binary data", json.size(),
                            kMaxJsonBytes));
  }
  auto error = parser_.allocate(json.size(), max_depth + 1);
  if (error == simdjson::SUCCESS) {
    error = parser_.parse(json.data(), json.size(), readable_past_json < kJsonPadding).get(root_);
  }
  if (error == simdjson::SUCCESS) return {};
  if (error == simdjson::MEMALLOC) return fail(Code::kResourceExhausted, "no memory to parse the JSON");
  if (error == simdjson::DEPTH_ERROR) {
    return fail(Code::kInvalidArgument, fmt::format("the JSON is nested deeper than {} levels", max_depth));
  }
  return fail(Code::kInvalidArgument, fmt::format("this is not JSON: {}", simdjson::error_message(error)));
}

std::string describe(Element value) {
  switch (value.type()) {
    case simdjson::dom::element_type::ARRAY: return "an array";
    case simdjson::dom::element_type::OBJECT: return "an object";
    case simdjson::dom::element_type::STRING: return "a string";
    case simdjson::dom::element_type::BOOL: return bool(value) ? "true" : "false";
    case simdjson::dom::element_type::NULL_VALUE: return "null";
    case simdjson::dom::element_type::INT64: return fmt::format("{}", std::int64_t(value));
    case simdjson::dom::element_type::UINT64: return fmt::format("{}", std::uint64_t(value));
    case simdjson::dom::element_type::DOUBLE: return fmt::format("{}", double(value));
  }
  return "something else";
}

Error not_an_object(std::string_view what, Element value) {
  return expected(what, "an object", value).error();
}

Error occurs_twice(std::string_view what, std::string_view name) {
  return {Code::kInvalidArgument, fmt::format("field '{}' of {} occurs more than once", name, what)};
}

Status read_text(std::string_view what, const std::optional<Element>& value, const RequestLimits& limits,
                 std::string& out) {
  if (!value) return {};
  std::string_view text;
  if (value->get(text) != simdjson::SUCCESS) return expected(what, "a string", *value);
  if (auto status = infer_rules::check_text(what, text, limits); !status) return status;
  out = text;
  return {};
}

Status read_datatype(const std::optional<Element>& value, DataType& out) {
  if (!value) return fail(Code::kInvalidArgument, "datatype is missing");
  std::string_view text;
  if (value->get(text) != simdjson::SUCCESS) return expected("datatype", "a string", *value);
  const auto type = parse_datatype(text);
  if (!type) {
    return fail(Code::kInvalidArgument, fmt::format("unknown datatype '{}'", text.substr(0, kMaxQuotedBytes)));
  }
  out = *type;
  return {};
}

Status read_shape(const std::optional<Element>& value, Shape& out) {
  if (!value) return fail(Code::kInvalidArgument, "shape is missing");
  simdjson::dom::array dimensions;
  if (value->get(dimensions) != simdjson::SUCCESS) return expected("shape", "an array", *value);
  if (dimensions.size() > kMaxRank) {
    return fail(Code::kInvalidArgument, fmt::format("more than {} dimensions", kMaxRank));
  }
  out.clear();
  out.reserve(dimensions.size());
  for (const Element dimension : dimensions) {
    std::int64_t size = 0;
    if (dimension.get(size) != simdjson::SUCCESS) return expected("a dimension", "an integer", dimension);
    out.push_back(size);
  }
  return {};
}

Status read_parameters(const std::optional<Element>& value, const RequestLimits& limits, Parameters& out) {
  if (!value) return {};
  simdjson::dom::object object;
  if (value->get(object) != simdjson::SUCCESS) return expected("parameters", "an object", *value);
  for (const auto field : object) {
    auto parameter = read_parameter_value(field.key, field.value);
    if (!parameter) return fail(std::move(parameter.error()));
    auto status = infer_rules::add_parameter(out, {std::string(field.key), std::move(*parameter)}, limits);
    if (!status) return status;
  }
  return {};
}

}  // namespace sluice::oip
