// For the tests of this folder: a directory that is gone at the end.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace sluice::io {

class TestDirectory {
 public:
  TestDirectory() : path_(::testing::TempDir() + "sluice-XXXXXX") { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
  ~TestDirectory() { std::filesystem::remove_all(path_); }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  // Makes the file's directories too.
  void write(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = path(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }

 private:
  std::string path_;
};

}  // namespace sluice::io
