#include "io/clock.h"

#include <chrono>

namespace sluice::io {

std::int64_t wall_clock_ms() {
  using std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace sluice::io
