// A check states what must hold if the program is right; when it does not, the process ends with the
// reason and the place. Input from outside never reaches a check: it is refused with an Error first.
#pragma once

#include <string_view>

namespace sluice {

[[noreturn]] void check_failed(const char* expression, std::string_view reason, const char* file, int line);

}  // namespace sluice

#define SLUICE_CHECK(expression, reason) \
  (static_cast<bool>(expression) ? void(0) : ::sluice::check_failed(#expression, (reason), __FILE__, __LINE__))
