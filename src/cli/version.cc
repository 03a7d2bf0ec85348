#include "cli/version.h"

namespace sluice::cli {

std::string_view version() { return SLUICE_VERSION; }

}  // namespace sluice::cli
