// Triton's repository index over REST: [{"name","version","state","reason"}, ...].
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::oip {

struct IndexEntry {
  std::string name;
  std::string version;  // "" when no version could be found
  std::string state;    // READY, LOADING, UNLOADING, UNAVAILABLE
  std::string reason;
  friend bool operator==(const IndexEntry&, const IndexEntry&) = default;
};

// The request's body: nothing, or an object; true when it asks for {"ready": true}, the models that are ready only.
Result<bool> parse_index_request(std::string_view json);
std::string encode_repository_index(std::span<const IndexEntry> entries);
Result<std::vector<IndexEntry>> parse_repository_index(std::string_view json);

}  // namespace sluice::oip
