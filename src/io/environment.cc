#include "io/environment.h"

#include <cstdlib>

namespace sluice::io {

void set_environment(const char* name, const char* value) { ::setenv(name, value, 1); }

}  // namespace sluice::io
