#include "model/infer.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(ModelName, IsWhatMayStandInAPath) {
  for (const std::string_view name : {"a", "ocr_rec", "Model-1.2", "...", "0", "_"}) EXPECT_TRUE(is_model_name(name));
  for (const std::string_view name : {"", ".", "..", "a/b", "a b", "a\n", "\xc3\xa9", "a%2f", "a\\b", "a:b"}) {
    EXPECT_FALSE(is_model_name(name)) << name;
  }
  EXPECT_FALSE(is_model_name(std::string_view("a\0b", 3)));
  EXPECT_TRUE(is_model_name(std::string(256, 'a')));
  EXPECT_FALSE(is_model_name(std::string(257, 'a')));
}

TEST(ModelVersion, IsDigits) {
  for (const std::string_view version : {"1", "0", "20240101"}) EXPECT_TRUE(is_model_version(version));
  for (const std::string_view version : {"", "-1", "+1", "1.0", "v1", " 1", "1 ", "\xd9\xa1"}) {
    EXPECT_FALSE(is_model_version(version)) << version;
  }
  EXPECT_FALSE(is_model_version(std::string(257, '1')));
}

TEST(Parameters, AreFoundByName) {
  const Parameters parameters = {{"a", std::int64_t{1}}, {"b", true}};
  ASSERT_NE(find_parameter(parameters, "b"), nullptr);
  EXPECT_EQ(*find_parameter(parameters, "b"), ParameterValue(true));
  EXPECT_EQ(find_parameter(parameters, "B"), nullptr);
  EXPECT_EQ(find_parameter({}, "a"), nullptr);
}

}  // namespace
}  // namespace sluice
