// What the control groups of this process leave to it. Version 2 and version 1, every level from the
// process's own group to the root: the smallest limit counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::io {

struct CgroupLimits {
  std::optional<double> cores;                    // quota / period
  std::optional<std::uint64_t> memory_bytes;      // limit
  std::optional<std::uint64_t> memory_available;  // the least that a level leaves; the file cache counts as free

  friend bool operator==(const CgroupLimits&, const CgroupLimits&) = default;
};

// `membership` is the text of /proc/self/cgroup, `root` is where the hierarchies are mounted. Files that
// are missing or say "max" set no limit.
CgroupLimits read_cgroup_limits(std::string_view membership, const std::string& root);

// Of this process.
CgroupLimits cgroup_limits();

}  // namespace sluice::io
