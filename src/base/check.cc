#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace sluice {

void check_failed(const char* expression, std::string_view reason, const char* file, int line) {
  std::fprintf(stderr, "sluice: check failed: %s (%.*s) at %s:%d\n", expression,
               static_cast<int>(reason.size()), reason.data(), file, line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace sluice
