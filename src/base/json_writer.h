// Writes JSON into a string, one value after another; commas and quotes are its business, nesting is
// the caller's. Strings are escaped and, where they are not UTF-8, their bad bytes become U+FFFD.
// Numbers: shortest form that reads back to the same value; NaN and infinities have no JSON and are
// written as null.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& string(std::string_view text);
  JsonWriter& integer(std::int64_t value);
  JsonWriter& unsigned_integer(std::uint64_t value);
  JsonWriter& number(double value);
  JsonWriter& number(float value);
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  JsonWriter& raw(std::string_view json);  // a value that is JSON already

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();  // writes the comma that is due, if any

  std::string& out_;
  bool comma_due_ = false;
};

// Appends `text` in quotes with JSON's escapes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace sluice
