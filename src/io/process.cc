#include "io/process.h"

#include <chrono>
#include <cstdlib>

namespace sluice::io {

std::int64_t wall_clock_ms() {
  using std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void set_environment(const char* name, const char* value) { ::setenv(name, value, 1); }

}  // namespace sluice::io
