// The log: one line an event on standard error, `time level message key=value ...`, or JSON lines.
// Values from outside are always escaped (quotes, control characters), so that a client cannot write
// a line of its own. Any thread; a line is one write(2).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat : std::uint8_t { kText, kJson };

using LogFields = std::initializer_list<std::pair<std::string_view, std::string>>;

class Log {
 public:
  struct Options {
    LogLevel level = LogLevel::kInfo;
    LogFormat format = LogFormat::kText;
    int descriptor = 2;
  };
  // `wall_ms` gives the time of a line (io::Loop::wall_ms, or the simulator's).
  Log(const Options& options, std::int64_t (*wall_ms)());

  bool enabled(LogLevel level) const { return level >= options_.level && level != LogLevel::kOff; }
  void write(LogLevel level, std::string_view message, LogFields fields = {}) const;
  void info(std::string_view message, LogFields fields = {}) const { write(LogLevel::kInfo, message, fields); }
  void warning(std::string_view message, LogFields fields = {}) const { write(LogLevel::kWarning, message, fields); }
  void error(std::string_view message, LogFields fields = {}) const { write(LogLevel::kError, message, fields); }

 private:
  Options options_;
  std::int64_t (*wall_ms_)();
};

}  // namespace sluice
