#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/loop.h"

namespace sluice::io {
namespace {

using ::testing::HasSubstr;

TEST(EndpointTest, ReadsAndWritesBothFamiliesAndNames) {
  for (const char* text : {"127.0.0.1:8000", "[::1]:8000", "localhost:0", "models.example:65535", "[fe80::1%eth0]:1"}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_TRUE(endpoint.has_value()) << endpoint.error().message;
    EXPECT_EQ(to_string(*endpoint), text);
  }
  EXPECT_EQ(parse_endpoint("[::1]:8000"), (Endpoint{"::1", 8000}));
}

TEST(EndpointTest, NamesWhatIsWrong) {
  const struct {
    const char* text;
    const char* reason;
  } kCases[] = {
      {"", "has no port"},
      {"127.0.0.1", "has no port"},
      {":8000", "has no host"},
      {"::1:8000", "without brackets"},
      {"[::1:8000", "without its ']'"},
      {"[]:8000", "in its brackets"},
      {"[127.0.0.1]:8000", "in its brackets"},
      {"localhost:", "the port ''"},
      {"localhost:65536", "the port '65536'"},
      {"localhost:-1", "the port '-1'"},
      {"localhost:80x", "the port '80x'"},
      {"localhost: 80", "the port ' 80'"},
      {"a b:80", "a host that is none"},
      {"http://a:80", "without brackets"},
  };
  for (const auto& [text, reason] : kCases) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_FALSE(endpoint.has_value()) << text;
    EXPECT_EQ(endpoint.error().code, Code::kInvalidArgument);
    EXPECT_THAT(endpoint.error().message, HasSubstr(reason)) << text;
    EXPECT_THAT(endpoint.error().message, HasSubstr("'" + std::string(text) + "'"));
  }
}

}  // namespace
}  // namespace sluice::io
