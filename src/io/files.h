// Files, read whole or listed, confined to a directory where a name comes from outside. Blocking: for
// start-up, loaders and the command line, never on a loop.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace sluice::io {

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  std::uint64_t size = 0;

  friend bool operator==(const DirectoryEntry&, const DirectoryEntry&) = default;
};

// A directory that is open; paths given to it are resolved below it (openat2 with RESOLVE_BENEATH):
// "..", absolute paths and links that lead out are kPermissionDenied. kNotFound names the path.
class Directory {
 public:
  static Result<Directory> open(const std::string& path);
  Directory(Directory&& other) noexcept;
  Directory& operator=(Directory&& other) noexcept;
  ~Directory();

  const std::string& path() const { return path_; }
  // Sorted by name; "." and ".." left out; links are followed when they stay inside.
  Result<std::vector<DirectoryEntry>> list(const std::string& below = ".") const;
  Result<std::string> read(const std::string& name, std::uint64_t max_bytes) const;
  bool exists(const std::string& name) const;
  Result<std::uint64_t> size(const std::string& name) const;

 private:
  Directory(std::string path, int descriptor);
  std::string path_;
  int descriptor_ = -1;
};

// Whole file; kResourceExhausted names the limit when it is larger.
Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes);
// Written beside and renamed over, so that a reader sees the old or the new file, never a part.
Status write_file(const std::string& path, std::string_view content);
bool is_directory(const std::string& path);

// A file mapped read-only for its owner's lifetime (a model's bytes shared by its sessions).
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  Bytes bytes() const { return bytes_; }

 private:
  explicit MappedFile(Bytes bytes) : bytes_(bytes) {}
  Bytes bytes_;
};

// Figures of the running process for metrics and benches.
struct ProcessUsage {
  double cpu_seconds = 0;           // user and system
  std::uint64_t resident_bytes = 0; // RSS
};
ProcessUsage process_usage();

// Free memory of the machine or the cgroup, whichever is smaller.
std::uint64_t available_memory_bytes();
std::uint64_t total_memory_bytes();

// Shared memory for arenas: memfd_create + mmap. Returns the mapping; the descriptor is for sharing.
struct SharedMapping {
  std::byte* address = nullptr;
  std::size_t size = 0;
  int descriptor = -1;
};
Result<SharedMapping> map_shared_memory(const std::string& name, std::size_t size);
void unmap_shared_memory(const SharedMapping& mapping);

}  // namespace sluice::io
