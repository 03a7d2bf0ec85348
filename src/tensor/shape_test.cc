#include "tensor/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(Shape, IsWrittenAsInJson) {
  EXPECT_EQ(shape_to_string(Shape{1, 3, -1}), "[1,3,-1]");
  EXPECT_EQ(shape_to_string(Shape{}), "[]");
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(element_count(Shape{2, 3, 4}), 24);
  EXPECT_EQ(element_count(Shape{}), 1);
  EXPECT_EQ(element_count(Shape{7, 0}), 0);
}

TEST(Shape, RefusesANegativeDimensionByName) {
  const auto count = element_count(Shape{2, -1});
  ASSERT_FALSE(count);
  EXPECT_EQ(count.error().code, Code::kInvalidArgument);
  EXPECT_THAT(count.error().message, HasSubstr("[2,-1]"));
  EXPECT_FALSE(element_count(Shape{0, -3}));
  EXPECT_FALSE(element_count(Shape{INT64_MIN}));
}

TEST(Shape, RefusesProductsAboveTheLimit) {
  EXPECT_EQ(element_count(Shape{std::int64_t{1} << 31, std::int64_t{1} << 31}), std::int64_t{1} << 62);
  EXPECT_FALSE(element_count(Shape{std::int64_t{1} << 31, std::int64_t{1} << 31, 2}));
  EXPECT_FALSE(element_count(Shape{INT64_MAX, INT64_MAX}));
  EXPECT_FALSE(element_count(Shape{(std::int64_t{1} << 62) + 1}));
}

TEST(Shape, OfNoElementsMayHaveHugeNeighboursOfTheZero) {
  EXPECT_EQ(element_count(Shape{INT64_MAX, INT64_MAX, 0}), 0);
}

TEST(Shape, RefusesMoreThanTheLargestRank) {
  EXPECT_EQ(element_count(Shape(kMaxRank, 1)), 1);
  const auto count = element_count(Shape(kMaxRank + 1, 1));
  ASSERT_FALSE(count);
  EXPECT_THAT(count.error().message, HasSubstr("17 dimensions"));
  EXPECT_THAT(count.error().message, HasSubstr("at most 16"));
}

TEST(Shape, HasAByteSizeByDatatype) {
  EXPECT_EQ(tensor_byte_size(DataType::kFp32, Shape{2, 3}), 24U);
  EXPECT_EQ(tensor_byte_size(DataType::kUint8, Shape{0}), 0U);
  EXPECT_FALSE(tensor_byte_size(DataType::kBytes, Shape{2}));
  EXPECT_FALSE(tensor_byte_size(DataType::kInvalid, Shape{2}));
  EXPECT_FALSE(tensor_byte_size(DataType::kFp64, Shape{std::int64_t{1} << 62}));
}

TEST(Shape, MatchesWhereTheExpectedDimensionIsEqualOrAny) {
  EXPECT_TRUE(shape_matches(Shape{4, 3}, Shape{-1, 3}));
  EXPECT_FALSE(shape_matches(Shape{4, 2}, Shape{-1, 3}));
  EXPECT_FALSE(shape_matches(Shape{4}, Shape{-1, 3}));
  EXPECT_TRUE(shape_matches(Shape{}, Shape{}));
}

}  // namespace
}  // namespace sluice
