// The part of files.h that gives arenas their memory.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/files.h"

namespace sluice::io {
namespace {

std::unexpected<Error> refused(const char* call, const std::string& name, std::size_t size, int error) {
  const Code code = error == ENOMEM || error == EMFILE || error == ENFILE ? Code::kResourceExhausted : Code::kInternal;
  return fail(code, fmt::format("{} B of shared memory '{}': {}: {}", size, name, call, std::strerror(error)));
}

}  // namespace

Result<SharedMapping> map_shared_memory(const std::string& name, std::size_t size) {
  const int descriptor = ::memfd_create(name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0) return refused("memfd_create", name, size, errno);
  if (::ftruncate(descriptor, static_cast<off_t>(size)) != 0) {
    const int error = errno;
    ::close(descriptor);
    return refused("ftruncate", name, size, error);
  }
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    ::close(descriptor);
    return refused("mmap", name, size, error);
  }
  return SharedMapping{.address = static_cast<std::byte*>(address), .size = size, .descriptor = descriptor};
}

void unmap_shared_memory(const SharedMapping& mapping) {
  if (mapping.address) ::munmap(mapping.address, mapping.size);
  if (mapping.descriptor >= 0) ::close(mapping.descriptor);
}

}  // namespace sluice::io
