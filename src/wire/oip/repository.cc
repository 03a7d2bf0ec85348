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
