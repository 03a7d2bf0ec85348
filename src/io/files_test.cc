#include "io/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/test_directory.h"

namespace sluice::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DirectoryTest, ListsByNameWithSizesAndFollowsLinksThatStayInside) {
  TestDirectory outside, directory;
  outside.write("secret", "secret");
  directory.write("model/config.pbtxt", "name: 'm'");
  directory.write("model/1/model.onnx", "12345");
  directory.write("model/0", "");
  std::filesystem::create_symlink("1", directory.path("model/latest"));
  std::filesystem::create_symlink("../model/1/model.onnx", directory.path("model/linked.onnx"));
  std::filesystem::create_symlink(outside.path(), directory.path("model/out"));
  std::filesystem::create_symlink("nowhere", directory.path("model/broken"));
  const auto opened = Directory::open(directory.path());
  ASSERT_TRUE(opened.has_value());
  const auto entries = opened->list("model");
  ASSERT_TRUE(entries.has_value()) << entries.error().message;
  EXPECT_THAT(*entries, ElementsAre(DirectoryEntry{"0", false, 0}, DirectoryEntry{"1", true, 0},
                                    DirectoryEntry{"broken", false, 0}, DirectoryEntry{"config.pbtxt", false, 9},
                                    DirectoryEntry{"latest", true, 0}, DirectoryEntry{"linked.onnx", false, 5},
                                    DirectoryEntry{"out", false, 0}));
  EXPECT_THAT(*opened->list(), ElementsAre(DirectoryEntry{"model", true, 0}));
  EXPECT_EQ(opened->list("model/none").error().code, Code::kNotFound);
  EXPECT_EQ(opened->list("model/0").error().code, Code::kNotFound);
}

TEST(DirectoryTest, ReadsBelowItselfOnly) {
  TestDirectory parent;
  parent.write("outside", "secret");
  parent.write("inside/file", "content");
  parent.write("inside/deep/file", "deep");
  std::filesystem::create_symlink("../outside", parent.path("inside/link"));
  std::filesystem::create_symlink(parent.path("inside/file"), parent.path("inside/absolute"));
  std::filesystem::create_symlink("..", parent.path("inside/up"));
  std::filesystem::create_symlink("deep/../file", parent.path("inside/stays"));
  const auto directory = Directory::open(parent.path("inside"));
  ASSERT_TRUE(directory.has_value());
  for (const char* name : {"../outside", "deep/../../outside", "/etc/passwd", "link", "absolute", "up/outside", ".."}) {
    const auto content = directory->read(name, 100);
    ASSERT_FALSE(content.has_value()) << name;
    EXPECT_EQ(content.error().code, Code::kPermissionDenied) << name;
    EXPECT_THAT(content.error().message, HasSubstr(name));
    EXPECT_FALSE(directory->exists(name)) << name;
    EXPECT_FALSE(directory->size(name).has_value()) << name;
    EXPECT_FALSE(directory->list(name).has_value()) << name;
  }
  for (const char* name : {"file", "deep/../file", "./file", "stays"}) EXPECT_EQ(directory->read(name, 100), "content");
  EXPECT_EQ(directory->size("deep/file"), 4u);
  EXPECT_TRUE(directory->exists("deep"));
  EXPECT_FALSE(directory->exists("none"));
}

TEST(DirectoryTest, RefusesWhatIsNoRegularFile) {
  TestDirectory parent;
  parent.write("directory/file", "");
  ASSERT_EQ(::mkfifo(parent.path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("loop", parent.path("loop"));
  const auto directory = Directory::open(parent.path());
  EXPECT_EQ(directory->read("directory", 100).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(directory->read("pipe", 100).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(directory->read("loop", 100).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(directory->read("directory/file/below", 100).error().code, Code::kNotFound);
  EXPECT_EQ(directory->read("none", 100).error().code, Code::kNotFound);
  EXPECT_THAT(directory->read("none", 100).error().message, HasSubstr(parent.path("none")));
  EXPECT_EQ(directory->read(std::string("directory/file\0x", 16), 100).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Directory::open(parent.path("none")).error().code, Code::kNotFound);
}

TEST(DirectoryTest, StaysOpenWhenMovedAndWhenItsPathIsRenamed) {
  TestDirectory parent;
  parent.write("a/file", "x");
  auto directory = Directory::open(parent.path("a"));
  ASSERT_TRUE(directory.has_value());
  std::filesystem::rename(parent.path("a"), parent.path("b"));
  Directory moved = std::move(*directory);
  EXPECT_EQ(moved.read("file", 1), "x");
  auto other = Directory::open(parent.path());
  moved = std::move(*other);
  EXPECT_EQ(moved.read("b/file", 1), "x");
}

TEST(FilesTest, ALimitIsReachedButNotExceeded) {
  TestDirectory directory;
  const std::string content(10000, 'x');
  directory.write("file", content);
  EXPECT_EQ(read_file(directory.path("file"), 10000), content);
  EXPECT_EQ(read_file(directory.path("file"), UINT64_MAX), content);
  const auto too_large = read_file(directory.path("file"), 9999);
  ASSERT_FALSE(too_large.has_value());
  EXPECT_EQ(too_large.error().code, Code::kResourceExhausted);
  EXPECT_THAT(too_large.error().message, HasSubstr("limit of 9999 bytes"));
  // A file that tells no size.
  EXPECT_FALSE(read_file("/proc/self/status", 100).has_value());
  EXPECT_THAT(*read_file("/proc/self/status", 1 << 20), HasSubstr("VmRSS"));
}

TEST(FilesTest, WritingReplacesAndLeavesNothingBeside) {
  TestDirectory directory;
  const std::string path = directory.path("file");
  ASSERT_TRUE(write_file(path, "old").has_value());
  const int reader = ::open(path.c_str(), O_RDONLY);
  const std::string content(300000, 'n');
  ASSERT_TRUE(write_file(path, content).has_value());
  EXPECT_EQ(read_file(path, 1 << 20), content);
  std::string seen(3, '\0');  // who has the old file open keeps it whole
  EXPECT_EQ(::read(reader, seen.data(), 3), 3);
  EXPECT_EQ(seen, "old");
  ::close(reader);

  std::filesystem::create_directory(directory.path("taken"));
  EXPECT_FALSE(write_file(directory.path("taken"), "x").has_value());
  EXPECT_EQ(write_file(directory.path("none/file"), "x").error().code, Code::kNotFound);
  EXPECT_EQ(Directory::open(directory.path())->list()->size(), 2u);
  EXPECT_TRUE(is_directory(directory.path("taken")));
  EXPECT_FALSE(is_directory(path));
}

TEST(MappedFileTest, ShowsTheFileAndMayBeEmpty) {
  TestDirectory directory;
  directory.write("file", "mapped");
  directory.write("empty", "");
  auto file = MappedFile::open(directory.path("file"));
  ASSERT_TRUE(file.has_value());
  MappedFile moved = std::move(*file);
  EXPECT_EQ(as_text(moved.bytes()), "mapped");
  EXPECT_TRUE(file->bytes().empty());
  const auto empty = MappedFile::open(directory.path("empty"));
  ASSERT_TRUE(empty.has_value());
  EXPECT_TRUE(empty->bytes().empty());
  EXPECT_EQ(MappedFile::open(directory.path("none")).error().code, Code::kNotFound);
  EXPECT_EQ(MappedFile::open(directory.path()).error().code, Code::kFailedPrecondition);
}

TEST(MemoryTest, FiguresOfTheProcessFollowIt) {
  const ProcessUsage before = process_usage();
  EXPECT_GT(before.resident_bytes, 100'000u);
  constexpr std::size_t kBytes = 32 << 20;
  auto mapping = map_shared_memory("test", kBytes);
  ASSERT_TRUE(mapping.has_value()) << mapping.error().message;
  std::fill_n(mapping->address, kBytes, std::byte{1});
  const ProcessUsage after = process_usage();
  EXPECT_GE(after.resident_bytes, before.resident_bytes + kBytes / 2);
  EXPECT_GE(after.cpu_seconds, before.cpu_seconds);
  unmap_shared_memory(*mapping);
  EXPECT_GT(available_memory_bytes(), 0u);
  EXPECT_LE(available_memory_bytes(), total_memory_bytes());
}

TEST(MemoryTest, TheDescriptorSharesTheMapping) {
  auto mapping = map_shared_memory("shared", 4096);
  ASSERT_TRUE(mapping.has_value());
  mapping->address[4095] = std::byte{42};
  void* const second = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, mapping->descriptor, 0);
  ASSERT_NE(second, MAP_FAILED);
  EXPECT_EQ(static_cast<const std::byte*>(second)[4095], std::byte{42});
  ::munmap(second, 4096);
  unmap_shared_memory(*mapping);
  const auto nothing = map_shared_memory("nothing", 0);
  ASSERT_FALSE(nothing.has_value());
  EXPECT_EQ(nothing.error().code, Code::kResourceExhausted);
}

}  // namespace
}  // namespace sluice::io
