// The wall clock for those that have no loop at hand (the log). Everything else takes its time from a loop.
#pragma once

#include <cstdint>

namespace sluice::io {

std::int64_t wall_clock_ms();  // since the Unix epoch; may jump

}  // namespace sluice::io
