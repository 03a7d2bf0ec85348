// Small text rules that both protocols share. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http.h"

namespace sluice::net {

Method parse_method(std::string_view name);

// 1*DIGIT that fits; anything else is nullopt.
std::optional<std::uint64_t> parse_content_length(std::string_view text);

bool equals_ignoring_case(std::string_view a, std::string_view lower_case_b);
void append_lower_case(std::string& out, std::string_view text);

// A field value must not carry a line of its own: control characters become spaces, in place.
void make_field_value(std::string& value);

// Whether a response of this status has a body by definition (RFC 9110, 6.4.1).
bool status_has_body(int status);
std::string_view reason_phrase(int status);

}  // namespace sluice::net
