// The memory of the process and of the machine: the second half of io/files.h.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "io/cgroup.h"
#include "io/descriptor.h"
#include "io/files.h"

namespace sluice::io {
namespace {

constexpr std::uint64_t kMaxProcBytes = 64 << 10;

// The number after `text`'s first `key` and blanks; 0 when there is none.
std::uint64_t number_after(std::string_view text, std::string_view key) {
  const std::size_t found = text.find(key);
  if (found == text.npos) return 0;
  text.remove_prefix(found + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::uint64_t machine_bytes(std::string_view key) {
  const auto text = read_file("/proc/meminfo", kMaxProcBytes);
  return text ? number_after(*text, key) * 1024 : 0;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

ProcessUsage process_usage() {
  ProcessUsage usage;
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  usage.cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  // "size resident shared ...", in pages.
  if (const auto text = read_file("/proc/self/statm", kMaxProcBytes)) {
    usage.resident_bytes = number_after(*text, " ") * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  return usage;
}

std::uint64_t available_memory_bytes() {
  const std::uint64_t machine = machine_bytes("MemAvailable:");
  return std::min(machine, cgroup_limits().memory_available.value_or(machine));
}

std::uint64_t total_memory_bytes() {
  const std::uint64_t machine = machine_bytes("MemTotal:");
  return std::min(machine, cgroup_limits().memory_bytes.value_or(machine));
}

Result<SharedMapping> map_shared_memory(const std::string& name, std::size_t size) {
  const auto refuse = [&] {
    const int error = errno;
    return fail(Code::kResourceExhausted, fmt::format("cannot map {} bytes of shared memory for '{}': {}", size, name,
                                                      std::generic_category().message(error)));
  };
  Descriptor memory(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(size)) != 0) return refuse();
  void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (address == MAP_FAILED) return refuse();
  return SharedMapping{static_cast<std::byte*>(address), size, memory.release()};
}

void unmap_shared_memory(const SharedMapping& mapping) {
  if (mapping.address != nullptr) ::munmap(mapping.address, mapping.size);
  if (mapping.descriptor >= 0) ::close(mapping.descriptor);
}

}  // namespace sluice::io
