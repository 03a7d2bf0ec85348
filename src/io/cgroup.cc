#include "io/cgroup.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "io/files.h"

namespace sluice::io {
namespace {

constexpr std::uint64_t kMaxFileBytes = 64 << 10;
// Version 1 writes "no limit" as the largest multiple of a page.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

template <class T>
void lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

std::string_view next_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\n"), text.size());
  const std::size_t end = std::min(text.find_first_of(" \t\n", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

std::optional<std::uint64_t> number(std::string_view word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;  // "max" and "-1" too
  return value;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  const auto text = read_file(path, kMaxFileBytes);
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  return number(next_word(rest));
}

// The value beside `key` in a file of "key value" lines.
std::uint64_t value_of(const std::string& path, std::string_view key) {
  const auto text = read_file(path, kMaxFileBytes);
  if (!text) return 0;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view word = next_word(rest);
    const std::string_view value = next_word(rest);
    if (word == key) return number(value).value_or(0);
  }
  return 0;
}

void lower_cores(CgroupLimits& limits, std::optional<std::uint64_t> quota, std::optional<std::uint64_t> period) {
  if (quota && period && *quota > 0 && *period > 0) {
    lower(limits.cores, static_cast<double>(*quota) / static_cast<double>(*period));
  }
}

void lower_memory(CgroupLimits& limits, std::optional<std::uint64_t> limit, std::uint64_t used, std::uint64_t cache) {
  if (!limit || *limit >= kNoLimit) return;
  lower(limits.memory_bytes, *limit);
  const std::uint64_t held = used - std::min(used, cache);
  lower(limits.memory_available, *limit - std::min(*limit, held));
}

void read_level_v2(const std::string& group, CgroupLimits& limits) {
  if (const auto text = read_file(group + "/cpu.max", kMaxFileBytes)) {
    std::string_view rest = *text;
    const auto quota = number(next_word(rest));
    lower_cores(limits, quota, number(next_word(rest)));
  }
  lower_memory(limits, number_in(group + "/memory.max"), number_in(group + "/memory.current").value_or(0),
               value_of(group + "/memory.stat", "inactive_file"));
}

void read_level_v1_cpu(const std::string& group, CgroupLimits& limits) {
  lower_cores(limits, number_in(group + "/cpu.cfs_quota_us"), number_in(group + "/cpu.cfs_period_us"));
}

void read_level_v1_memory(const std::string& group, CgroupLimits& limits) {
  lower_memory(limits, number_in(group + "/memory.limit_in_bytes"),
               number_in(group + "/memory.usage_in_bytes").value_or(0),
               value_of(group + "/memory.stat", "total_inactive_file"));
}

// From the process's group up to the root. Within a container the path may name a group of the machine's
// that is not to be seen there; then only the root has files, and it is the container's.
void read_levels(const std::string& mount, std::string path, void (*read_level)(const std::string&, CgroupLimits&),
                 CgroupLimits& limits) {
  while (path.ends_with('/')) path.pop_back();
  while (!path.empty()) {
    read_level(mount + path, limits);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  read_level(mount, limits);
}

bool lists(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == wanted) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

CgroupLimits read_cgroup_limits(std::string_view membership, const std::string& root) {
  CgroupLimits limits;
  while (!membership.empty()) {  // "hierarchy:controllers:path"
    const std::size_t line_end = std::min(membership.find('\n'), membership.size());
    const std::string_view line = membership.substr(0, line_end);
    membership.remove_prefix(std::min(line_end + 1, membership.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty()) read_levels(root, path, read_level_v2, limits);
    if (lists(controllers, "cpu")) read_levels(root + "/cpu", path, read_level_v1_cpu, limits);
    if (lists(controllers, "memory")) read_levels(root + "/memory", path, read_level_v1_memory, limits);
  }
  return limits;
}

CgroupLimits cgroup_limits() {
  const auto membership = read_file("/proc/self/cgroup", kMaxFileBytes);
  return membership ? read_cgroup_limits(*membership, "/sys/fs/cgroup") : CgroupLimits{};
}

}  // namespace sluice::io
