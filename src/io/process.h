// What belongs to the process as a whole: the wall clock for those that have no loop at hand (the log), and its
// environment, where a library that is opened later can be told something in no other way.
#pragma once

#include <cstdint>

namespace sluice::io {

std::int64_t wall_clock_ms();  // since the Unix epoch; may jump

// Replaces the variable. For start-up: not while another thread may read the environment.
void set_environment(const char* name, const char* value);

}  // namespace sluice::io
