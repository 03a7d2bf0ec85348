// The version of this binary, from CMake's project().
#pragma once

#include <string_view>

namespace sluice::cli {

std::string_view version();

}  // namespace sluice::cli
