#include "serving/rows/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor tensor(DataType type, Shape shape, std::string_view data) {
  return Tensor{.datatype = type, .shape = std::move(shape), .data = as_bytes(data)};
}

std::string element(std::string_view text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + std::string(text);
}

TEST(Split, RowsOfFixedSize) {
  const Tensor output = tensor(DataType::kUint16, {4, 2}, "aabbccddeeffgghh");
  const std::int64_t rows[] = {1, 2, 1};
  const auto at = row_boundaries(output, rows);
  ASSERT_TRUE(at);
  EXPECT_THAT(*at, ElementsAre(0, 4, 12, 16));
  const Tensor part = rows_of(output, 2, (*at)[1], (*at)[2]);
  EXPECT_EQ(as_text(part.data), "ccddeeff");
  EXPECT_THAT(part.shape, ElementsAre(2, 2));
  EXPECT_EQ(part.data.data(), output.data.data() + 4);  // a view
}

TEST(Split, RowsOfBytesAreFoundByTheirLengths) {
  const std::string data = element("a") + element("") + element("xyz") + element("bb") + element("q") + element("rs");
  const Tensor output = tensor(DataType::kBytes, {3, 2}, data);
  const std::int64_t rows[] = {1, 2};
  const auto at = row_boundaries(output, rows);
  ASSERT_TRUE(at);
  EXPECT_THAT(*at, ElementsAre(0, 9, data.size()));
  EXPECT_EQ(as_text(rows_of(output, 2, (*at)[1], (*at)[2]).data), data.substr(9));
}

TEST(Split, RowsWithoutElements) {
  const std::int64_t rows[] = {1, 1};
  const auto at = row_boundaries(tensor(DataType::kFp32, {2, 0, 7}, ""), rows);
  ASSERT_TRUE(at);
  EXPECT_THAT(*at, ElementsAre(0, 0, 0));
}

TEST(Split, AnEnginesFaultIsNamed) {
  const std::int64_t rows[] = {1, 1};
  const auto error = [&](const Tensor& output) { return row_boundaries(output, rows).error(); };
  EXPECT_EQ(error(tensor(DataType::kInt8, {3}, "abc")).code, Code::kInternal);
  EXPECT_THAT(error(tensor(DataType::kInt8, {3}, "abc")).message, HasSubstr("shape [3] for a batch of 2 rows"));
  EXPECT_THAT(error(tensor(DataType::kInt8, {}, "a")).message, HasSubstr("shape []"));
  EXPECT_THAT(error(tensor(DataType::kInt8, {2, 2}, "abc")).message, HasSubstr("INT8 [2,2] has 3 bytes"));
  EXPECT_THAT(error(tensor(DataType::kInt8, {2}, "abc")).message, HasSubstr("has 3 bytes"));
  const std::string truncated = element("a") + std::string("\x09\0\0\0b", 5);
  EXPECT_THAT(error(tensor(DataType::kBytes, {2}, truncated)).message, HasSubstr("BYTES [2]"));
  EXPECT_THAT(error(tensor(DataType::kBytes, {2}, element("a"))).message, HasSubstr("BYTES [2] has 5 bytes"));
  EXPECT_EQ(error(tensor(DataType::kInt64, {2, std::int64_t{1} << 60}, "abc")).code, Code::kInternal);
}

}  // namespace
}  // namespace sluice::serving
