#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace sluice {
namespace {

TEST(JsonWriter, PutsCommasBetweenValuesOfAnyNesting) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("a").integer(-1).key("b").begin_array().boolean(true).null().string("x").end_array();
  json.key("c").begin_object().end_object().end_object();
  EXPECT_EQ(out, R"({"a":-1,"b":[true,null,"x"],"c":{}})");
}

TEST(JsonWriter, EscapesControlCharactersAndReplacesWhatIsNotUtf8) {
  std::string out;
  append_json_string(out, std::string_view("\"\\\n\x01\xff\xc3\xa9\xed\xa0\x80", 10));
  EXPECT_EQ(out, "\"\\\"\\\\\\n\\u0001\xEF\xBF\xBD\xc3\xa9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonWriter, WritesNumbersThatReadBackAndNullForThoseWithoutJson) {
  std::string out;
  JsonWriter json(out);
  json.begin_array().number(0.1F).number(0.1).unsigned_integer(UINT64_MAX);
  json.number(std::numeric_limits<double>::quiet_NaN()).number(std::numeric_limits<float>::infinity()).end_array();
  EXPECT_EQ(out, "[0.1,0.1,18446744073709551615,null,null]");
}

}  // namespace
}  // namespace sluice
