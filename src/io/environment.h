// The process's environment, where a library that is opened later can be told something in no other way.
#pragma once

namespace sluice::io {

// Replaces the variable. For start-up: not while another thread may read the environment.
void set_environment(const char* name, const char* value);

}  // namespace sluice::io
