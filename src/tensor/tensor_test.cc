#include "tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

using testing::HasSubstr;
using namespace std::string_literals;

Tensor tensor_of(DataType type, Shape shape, std::string_view data) {
  return Tensor{.datatype = type, .shape = std::move(shape), .data = as_bytes(data)};
}

std::string refusal(const Tensor& tensor) {
  const Status status = check_tensor_data(tensor);
  if (status) return "accepted";
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  return status.error().message;
}

TEST(Tensor, OfAFixedSizeTypeHasExactlyItsBytes) {
  EXPECT_TRUE(check_tensor_data(tensor_of(DataType::kFp32, {2}, "12345678")));
  EXPECT_TRUE(check_tensor_data(tensor_of(DataType::kFp32, {0}, "")));
  EXPECT_THAT(refusal(tensor_of(DataType::kFp32, {2}, "1234567")),
              HasSubstr("FP32 and shape [2] needs 8 bytes, 7 were given"));
  EXPECT_THAT(refusal(tensor_of(DataType::kFp32, {2}, "123456789")), HasSubstr("9 were given"));
  EXPECT_THAT(refusal(tensor_of(DataType::kInt8, {-1}, "1")), HasSubstr("negative"));
  EXPECT_THAT(refusal(tensor_of(DataType::kInvalid, {1}, "1")), HasSubstr("without a datatype"));
}

TEST(Tensor, OfBytesHasExactlyItsElements) {
  EXPECT_TRUE(check_tensor_data(tensor_of(DataType::kBytes, {2}, "\x01\0\0\0a\0\0\0\0"s)));
  EXPECT_TRUE(check_tensor_data(tensor_of(DataType::kBytes, {0}, "")));
  EXPECT_THAT(refusal(tensor_of(DataType::kBytes, {2}, "\x01\0\0\0a"s)), HasSubstr("needs 2 elements, 1 were given"));
  EXPECT_THAT(refusal(tensor_of(DataType::kBytes, {1}, "\x01\0\0\0ab"s)), HasSubstr("1 bytes after its 1 elements"));
  EXPECT_THAT(refusal(tensor_of(DataType::kBytes, {1}, "\x02\0\0\0a"s)), HasSubstr("says 2 bytes, 1 are left"));
  EXPECT_THAT(refusal(tensor_of(DataType::kBytes, {1}, "\xff\xff\xff\xff"s)), HasSubstr("says 4294967295 bytes"));
  EXPECT_THAT(refusal(tensor_of(DataType::kBytes, {1}, "\x01\0\0"s)), HasSubstr("3 bytes for its length"));
  EXPECT_THAT(refusal(tensor_of(DataType::kBytes, {1LL << 62, 1LL << 62}, "")), HasSubstr("2^62"));
}

TEST(Payload, AddsUpTextAndBuffers) {
  const std::string outside = "outside";
  Payload payload;
  payload.emplace_back("head"s);
  payload.emplace_back(as_bytes(outside), BufferRef());
  EXPECT_EQ(payload_size(payload), 11U);
  // A slice's own text survives the vector's growth.
  for (int i = 0; i < 100; ++i) payload.emplace_back("x"s);
  EXPECT_EQ(as_text(payload[0].view()), "head");
  EXPECT_EQ(payload_size(payload), 111U);
}

}  // namespace
}  // namespace sluice
