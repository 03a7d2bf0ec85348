#include "io/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "io/descriptor.h"
#include "io/runtime.h"

namespace sluice::io {
namespace {

Code code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EXDEV:  // openat2's answer to a path that leads out
      return Code::kPermissionDenied;
    case ENAMETOOLONG:
      return Code::kInvalidArgument;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
      return Code::kResourceExhausted;
    case EISDIR:
    case ELOOP:
      return Code::kFailedPrecondition;
    default:
      return Code::kInternal;
  }
}

std::unexpected<Error> fail_with(int error, std::string_view action, const std::string& path) {
  return fail(code_of(error), fmt::format("cannot {} '{}': {}", action, path, std::generic_category().message(error)));
}

// Reads to the end; sizes told by stat() are a hint only (files of /proc have none).
Result<std::string> read_all(int descriptor, const std::string& path, std::uint64_t max_bytes) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return fail_with(errno, "read", path);
  constexpr std::uint64_t kFirstStep = 4096;
  const std::uint64_t hint = S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
  // One byte over the limit is asked for, to tell a file that reaches it from one that exceeds it.
  const std::uint64_t most = max_bytes + (max_bytes < UINT64_MAX ? 1 : 0);
  std::string content;
  std::uint64_t length = 0;
  std::uint64_t step = std::max(hint + 1, kFirstStep);
  for (;;) {
    if (std::max(length, hint) > max_bytes) {
      return fail(Code::kResourceExhausted,
                  fmt::format("file '{}' is larger than the limit of {} bytes", path, max_bytes));
    }
    if (length == content.size()) content.resize(std::min(length + step, most));
    const ssize_t moved = ::read(descriptor, content.data() + length, content.size() - length);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return fail_with(errno, "read", path);
    if (moved == 0) break;
    length += static_cast<std::uint64_t>(moved);
    step = length;
  }
  content.resize(length);
  return content;
}

Status write_all(int descriptor, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t moved = ::write(descriptor, content.data(), content.size());
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return fail_with(errno, "write", path);
    content.remove_prefix(static_cast<std::size_t>(moved));
  }
  if (::fsync(descriptor) != 0) return fail_with(errno, "write", path);
  return {};
}

// Opens `name` below `directory`, wherever its links lead, as long as they lead nowhere else.
Result<Descriptor> open_beneath(int directory, const std::string& directory_path, const std::string& name, int flags) {
  const std::string shown = directory_path + "/" + name;
  if (name.find('\0') != std::string::npos) {
    return fail(Code::kInvalidArgument, fmt::format("a path below '{}' has a NUL byte", directory_path));
  }
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  constexpr int kMaxTries = 16;  // EAGAIN: a rename elsewhere came between (openat2(2))
  int error = 0;
  for (int i = 0; i < kMaxTries; ++i) {
    Descriptor opened(static_cast<int>(::syscall(SYS_openat2, directory, name.c_str(), &how, sizeof(how))));
    if (opened) return opened;
    error = errno;
    if (error != EAGAIN && error != EINTR) break;
  }
  if (error == EXDEV) {
    return fail(Code::kPermissionDenied,
                fmt::format("path '{}' leads out of the directory '{}'", name, directory_path));
  }
  if (error == ENOSYS) {
    return fail(Code::kUnimplemented, fmt::format("cannot open '{}': this needs openat2 (Linux 5.6)", shown));
  }
  return fail_with(error, "open", shown);
}

struct DirectoryCloser {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

Result<Directory> Directory::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return fail_with(errno, "open the directory", path);
  return Directory(path, descriptor);
}

Directory::Directory(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

Directory::Directory(Directory&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

Directory& Directory::operator=(Directory&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Directory::~Directory() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<std::vector<DirectoryEntry>> Directory::list(const std::string& below) const {
  auto opened = open_beneath(descriptor_, path_, below, O_RDONLY | O_DIRECTORY);
  if (!opened) return fail(opened.error());
  const std::unique_ptr<DIR, DirectoryCloser> stream(::fdopendir(opened->get()));
  if (!stream) return fail_with(errno, "list", path_ + "/" + below);
  const int directory = opened->release();  // the stream's now
  std::vector<DirectoryEntry> entries;
  for (errno = 0; const dirent* found = ::readdir(stream.get()); errno = 0) {
    const std::string name = found->d_name;
    if (name == "." || name == "..") continue;
    struct stat status {};
    if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;  // gone meanwhile
    if (S_ISLNK(status.st_mode)) {
      // A link that leads out, or nowhere, stays what it is: an entry without content.
      const auto target = open_beneath(descriptor_, path_, below + "/" + name, O_PATH);
      status.st_size = 0;
      if (target && ::fstat(target->get(), &status) != 0) return fail_with(errno, "list", path_ + "/" + below);
    }
    const bool is_regular = S_ISREG(status.st_mode);
    entries.push_back({name, S_ISDIR(status.st_mode), is_regular ? static_cast<std::uint64_t>(status.st_size) : 0});
  }
  if (errno != 0) return fail_with(errno, "list", path_ + "/" + below);
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

Result<std::string> Directory::read(const std::string& name, std::uint64_t max_bytes) const {
  // Non-blocking: the open of a named pipe would wait for its writer.
  const auto opened = open_beneath(descriptor_, path_, name, O_RDONLY | O_NONBLOCK);
  if (!opened) return fail(opened.error());
  struct stat status {};
  if (::fstat(opened->get(), &status) != 0) return fail_with(errno, "read", path_ + "/" + name);
  if (!S_ISREG(status.st_mode)) {
    return fail(Code::kFailedPrecondition, fmt::format("'{}/{}' is not a regular file", path_, name));
  }
  return read_all(opened->get(), path_ + "/" + name, max_bytes);
}

bool Directory::exists(const std::string& name) const {
  return open_beneath(descriptor_, path_, name, O_PATH).has_value();
}

Result<std::uint64_t> Directory::size(const std::string& name) const {
  const auto opened = open_beneath(descriptor_, path_, name, O_PATH);
  if (!opened) return fail(opened.error());
  struct stat status {};
  if (::fstat(opened->get(), &status) != 0) return fail_with(errno, "read", path_ + "/" + name);
  return static_cast<std::uint64_t>(status.st_size);
}

Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_with(errno, "open", path);
  return read_all(file.get(), path, max_bytes);
}

Status write_file(const std::string& path, std::string_view content) {
  const std::string beside = fmt::format("{}.{:016x}.tmp", path, random_seed());
  Descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return fail_with(errno, "create", beside);
  Status written = write_all(file.get(), content, beside);
  if (written && ::rename(beside.c_str(), path.c_str()) != 0) written = fail_with(errno, "replace", path);
  if (!written) ::unlink(beside.c_str());
  return written;
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file) return fail_with(errno, "open", path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return fail_with(errno, "map", path);
  if (!S_ISREG(status.st_mode)) return fail(Code::kFailedPrecondition, fmt::format("'{}' is not a regular file", path));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile(Bytes());
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return fail_with(errno, "map", path);
  return MappedFile(Bytes(static_cast<const std::byte*>(address), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace sluice::io
