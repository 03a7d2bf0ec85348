#include "stats/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

namespace sluice {
namespace {

std::int64_t leap_day() { return 1'709'211'600'007; }

// What a log with these options writes for one call.
class LogTest : public testing::Test {
 protected:
  LogTest() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~LogTest() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Log log(LogFormat format, LogLevel level = LogLevel::kInfo) const {
    return Log({.level = level, .format = format, .descriptor = ends_[1]}, leap_day);
  }
  std::string written() const {
    std::array<char, 65536> buffer{};
    const ssize_t size = ::read(ends_[0], buffer.data(), buffer.size());
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

 private:
  std::array<int, 2> ends_{};
};

TEST_F(LogTest, WritesOneLineAnEvent) {
  log(LogFormat::kText).info("model ready", {{"model", "ocr"}, {"load_ms", "12"}});
  EXPECT_EQ(written(), "2024-02-29T13:00:00.007Z info model ready model=ocr load_ms=12\n");
}

TEST_F(LogTest, WritesJsonLines) {
  log(LogFormat::kJson).error("failed", {{"path", "/v2/\"x\""}});
  EXPECT_EQ(written(),
            "{\"time\":\"2024-02-29T13:00:00.007Z\",\"level\":\"error\",\"message\":\"failed\","
            "\"path\":\"/v2/\\\"x\\\"\"}\n");
}

TEST_F(LogTest, DoesNotLetAValueWriteALineOrAFieldOfItsOwn) {
  log(LogFormat::kText).warning("refused", {{"name", "x\n2024 error forged"}, {"id", "a admin=true"}, {"none", ""}});
  EXPECT_EQ(written(), "2024-02-29T13:00:00.007Z warning refused name=\"x\\n2024 error forged\" "
                       "id=\"a admin=true\" none=\"\"\n");
}

TEST_F(LogTest, EscapesWhatDrivesATerminalAndWhatIsNotUtf8) {
  log(LogFormat::kText).info("a\x1b[2Jb", {{"v", "\x7f\xc2\x9b\xff"}});
  EXPECT_EQ(written(), "2024-02-29T13:00:00.007Z info \"a\\u001b[2Jb\" v=\"\\u007f\\u009b\xEF\xBF\xBD\"\n");
}

TEST_F(LogTest, CutsAValueThatIsTooLong) {
  log(LogFormat::kText).info("m", {{"v", std::string(100'000, 'x')}});
  const std::string line = written();
  EXPECT_LT(line.size(), 8300U);
  EXPECT_EQ(line.back(), '\n');
}

TEST_F(LogTest, LeavesOutWhatIsBelowItsLevel) {
  const Log quiet = log(LogFormat::kText, LogLevel::kError);
  quiet.warning("not this");
  quiet.error("this");
  EXPECT_EQ(written(), "2024-02-29T13:00:00.007Z error this\n");
  EXPECT_FALSE(log(LogFormat::kText, LogLevel::kOff).enabled(LogLevel::kError));
  EXPECT_FALSE(log(LogFormat::kText, LogLevel::kDebug).enabled(LogLevel::kOff));
}

}  // namespace
}  // namespace sluice
