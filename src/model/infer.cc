#include "model/infer.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr std::size_t kMaxModelNameBytes = 256;

// Not std::isalnum: a name means the same whatever the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_name_character(char c) { return is_digit(c) || is_letter(c) || c == '.' || c == '_' || c == '-'; }

bool has_allowed_length(std::string_view text) { return !text.empty() && text.size() <= kMaxModelNameBytes; }

}  // namespace

const ParameterValue* find_parameter(const Parameters& parameters, std::string_view name) {
  const auto found = std::ranges::find(parameters, name, &Parameter::name);
  return found == parameters.end() ? nullptr : &found->value;
}

bool is_model_name(std::string_view text) {
  return has_allowed_length(text) && std::ranges::all_of(text, is_name_character) && text != "." && text != "..";
}

bool is_model_version(std::string_view text) { return has_allowed_length(text) && std::ranges::all_of(text, is_digit); }

}  // namespace sluice
