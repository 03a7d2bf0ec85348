#include "engine/reshape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::engine {
namespace {

TEST(Reshape, RowsStayAndTheRestFollowsThePattern) {
  EXPECT_EQ(reshape({4, 1}, 1, {1}, {}).value(), (Shape{4}));
  EXPECT_EQ(reshape({4, 6}, 1, {6}, {2, 3}).value(), (Shape{4, 2, 3}));
  EXPECT_EQ(reshape({2, 3}, 0, {2, 3}, {6}).value(), (Shape{6}));
}

TEST(Reshape, VariableDimensionsAreTakenInOrder) {
  EXPECT_EQ(reshape({4, 7, 5, 9}, 1, {-1, 5, -1}, {1, -1, 5, -1}).value(), (Shape{4, 1, 7, 5, 9}));
}

TEST(Reshape, WhatDoesNotFitIsRefused) {
  const auto rank = reshape({4, 6, 1}, 1, {6}, {2, 3});
  ASSERT_FALSE(rank);
  EXPECT_EQ(rank.error().code, Code::kInvalidArgument);
  EXPECT_THAT(rank.error().message, ::testing::HasSubstr("[4,6,1]"));
  EXPECT_FALSE(reshape({4, 7}, 1, {6}, {2, 3}));
  EXPECT_FALSE(reshape({4, 6}, 1, {6}, {-1}));
}

}  // namespace
}  // namespace sluice::engine
