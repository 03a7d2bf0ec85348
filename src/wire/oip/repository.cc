#include "wire/oip/repository.h"

#include <simdjson.h>

#include <fmt/format.h>

#include "base/json_writer.h"

namespace sluice::oip {
namespace {

std::string text_of(simdjson::dom::element object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

}  // namespace

Result<bool> parse_index_request(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return false;
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const simdjson::padded_string padded(text);
  if (const auto error = parser.parse(padded).get(object); error != simdjson::SUCCESS) {
    return fail(Code::kInvalidArgument,
                fmt::format("an index request is an object: {}", simdjson::error_message(error)));
  }
  simdjson::dom::element ready;
  if (object["ready"].get(ready) != simdjson::SUCCESS) return false;
  bool value = false;
  if (ready.get(value) != simdjson::SUCCESS) return fail(Code::kInvalidArgument, "'ready' is true or false");
  return value;
}

std::string encode_repository_index(std::span<const IndexEntry> entries) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const IndexEntry& entry : entries) {
    json.begin_object().key("name").string(entry.name);
    if (!entry.version.empty()) json.key("version").string(entry.version);
    json.key("state").string(entry.state).key("reason").string(entry.reason).end_object();
  }
  json.end_array();
  return out;
}

Result<std::vector<IndexEntry>> parse_repository_index(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::array array;
  const simdjson::padded_string padded(text);
  if (const auto error = parser.parse(padded).get(array); error != simdjson::SUCCESS) {
    return fail(Code::kInvalidArgument,
                fmt::format("a repository index is an array of objects: {}", simdjson::error_message(error)));
  }
  std::vector<IndexEntry> entries;
  for (const simdjson::dom::element each : array) {
    entries.push_back(
        {text_of(each, "name"), text_of(each, "version"), text_of(each, "state"), text_of(each, "reason")});
  }
  return entries;
}

}  // namespace sluice::oip
