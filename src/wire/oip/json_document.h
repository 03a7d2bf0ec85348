// One parsed JSON document and the ways its values become fields of a struct. Private to wire/oip.
#pragma once

#include <simdjson.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/infer.h"

namespace sluice::oip {

using Element = simdjson::dom::element;

// Owns what its elements point into; stays where it is.
class JsonDocument {
 public:
  JsonDocument() = default;
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // Once. `json` need not outlive the call. kInvalidArgument: not JSON, too deep, too long.
  Status parse(std::string_view json, std::size_t readable_past_json, std::size_t max_depth);
  Element root() const { return root_; }

 private:
  simdjson::dom::parser parser_;
  Element root_;
};

// "a string", "the number 3", ...: for errors.
std::string describe(Element value);

template <std::size_t N>
using Fields = std::array<std::optional<Element>, N>;

// The fields of an object by name, in the order of `names`. One that is null is as good as absent; one that
// occurs twice is refused; others are let pass. `what` names the object in errors.
template <std::size_t N>
Result<Fields<N>> pick(std::string_view what, Element object, const std::string_view (&names)[N]);

Status read_text(std::string_view what, const std::optional<Element>& value, const RequestLimits& limits,
                 std::string& out);  // absent: left as it is
Status read_datatype(const std::optional<Element>& value, DataType& out);
Status read_shape(const std::optional<Element>& value, Shape& out);
Status read_parameters(const std::optional<Element>& value, const RequestLimits& limits, Parameters& out);

// --- implementation ---

Error not_an_object(std::string_view what, Element value);
Error occurs_twice(std::string_view what, std::string_view name);

template <std::size_t N>
Result<Fields<N>> pick(std::string_view what, Element value, const std::string_view (&names)[N]) {
  simdjson::dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return fail(not_an_object(what, value));
  Fields<N> fields;
  std::array<bool, N> seen{};
  for (const auto field : object) {
    for (std::size_t i = 0; i < N; ++i) {
      if (field.key != names[i]) continue;
      if (seen[i]) return fail(occurs_twice(what, names[i]));
      seen[i] = true;
      if (!field.value.is_null()) fields[i] = field.value;
      break;
    }
  }
  return fields;
}

}  // namespace sluice::oip
