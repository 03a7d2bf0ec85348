// What Triton's configuration can say and Sluice does not do: fields that change results are refused by name,
// those that only concern speed or devices are reported. One table; the rest is a walk. Private to wire/config.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "wire/config/config_text.h"

namespace sluice::config {

// kUnimplemented for the first refused field in the order of field numbers; else a warning is appended for
// each ignored one.
Status check_supported(const Node& root, std::vector<std::string>& warnings);

}  // namespace sluice::config
