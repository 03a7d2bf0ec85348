#include "tensor/datatype.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(DataType, NamesReadBackToTheSameType) {
  for (int i = 1; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(parse_datatype(datatype_name(type)), type);
    EXPECT_EQ(parse_config_datatype(config_datatype_name(type)), type);
  }
}

TEST(DataType, IsCalledBytesOnTheWireAndStringInAConfig) {
  EXPECT_EQ(datatype_name(DataType::kBytes), "BYTES");
  EXPECT_EQ(config_datatype_name(DataType::kBytes), "TYPE_STRING");
  EXPECT_EQ(static_cast<int>(DataType::kBf16), 14);
}

TEST(DataType, RefusesOtherNames) {
  for (const std::string_view name : {"", "fp32", "FP33", "INVALID", "TYPE_FP32", "STRING"}) {
    EXPECT_EQ(parse_datatype(name), std::nullopt) << name;
  }
  for (const std::string_view name : {"", "FP32", "TYPE_BYTES", "TYPE_INVALID"}) {
    EXPECT_EQ(parse_config_datatype(name), std::nullopt) << name;
  }
}

TEST(DataType, HasTheSizeOfItsElements) {
  EXPECT_EQ(element_size(DataType::kBool), 1U);
  EXPECT_EQ(element_size(DataType::kFp16), 2U);
  EXPECT_EQ(element_size(DataType::kBf16), 2U);
  EXPECT_EQ(element_size(DataType::kFp32), 4U);
  EXPECT_EQ(element_size(DataType::kUint64), 8U);
  EXPECT_EQ(element_size(DataType::kBytes), 0U);
  EXPECT_EQ(element_size(DataType::kInvalid), 0U);
}

TEST(DataType, NamesANumberOutsideTheSetInvalid) {
  EXPECT_EQ(datatype_name(static_cast<DataType>(200)), "INVALID");
  EXPECT_EQ(element_size(static_cast<DataType>(200)), 0U);
}

}  // namespace
}  // namespace sluice
