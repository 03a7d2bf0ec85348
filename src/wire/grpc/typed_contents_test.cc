#include "wire/grpc/typed_contents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "inference.pb.h"
#include "wire/random_infer.h"

namespace sluice::grpc_wire {
namespace {

using ::testing::HasSubstr;
using Contents = inference::InferTensorContents;
using Input = inference::ModelInferRequest::InferInputTensor;

class TypedContentsTest : public ::testing::Test {
 protected:
  Status read(DataType type, Shape shape, const Contents& contents) {
    Input input;
    *input.mutable_contents() = contents;
    return read_message(type, std::move(shape), input.SerializeAsString());
  }
  Status read_message(DataType type, Shape shape, std::string_view message) {
    tensor_ = Tensor{.datatype = type, .shape = std::move(shape)};
    return read_typed_contents(message, arena_, max_bytes_, tensor_);
  }
  void expect_refused(const Status& status, std::string_view text) {
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_THAT(status.error().message, HasSubstr(std::string(text)));
  }
  template <class T>
  std::vector<T> values() const {
    std::vector<T> out(tensor_.data.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), tensor_.data.data(), tensor_.data.size());
    return out;
  }

  Arena arena_{Arena::Options{}};
  std::size_t max_bytes_ = 1 << 20;
  Tensor tensor_;
};

template <class T>
struct Limits {
  static constexpr T kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
};

TEST_F(TypedContentsTest, ReadsSmallIntegersFromTheWideFields) {
  Contents contents;
  for (const int v : {-128, 127, 0}) contents.add_int_contents(v);
  ASSERT_TRUE(read(DataType::kInt8, {3}, contents));
  EXPECT_EQ(values<std::int8_t>(), (std::vector<std::int8_t>{-128, 127, 0}));
  ASSERT_TRUE(read(DataType::kInt16, {3}, contents));
  EXPECT_EQ(values<std::int16_t>(), (std::vector<std::int16_t>{-128, 127, 0}));
  ASSERT_TRUE(read(DataType::kInt32, {3, 1}, contents));
  EXPECT_EQ(values<std::int32_t>(), (std::vector<std::int32_t>{-128, 127, 0}));
  Contents more;
  for (const unsigned v : {0U, 255U}) more.add_uint_contents(v);
  ASSERT_TRUE(read(DataType::kUint8, {2}, more));
  EXPECT_EQ(values<std::uint8_t>(), (std::vector<std::uint8_t>{0, 255}));
  ASSERT_TRUE(read(DataType::kUint16, {2}, more));
  EXPECT_EQ(values<std::uint16_t>(), (std::vector<std::uint16_t>{0, 255}));
  ASSERT_TRUE(read(DataType::kUint32, {2}, more));
  EXPECT_EQ(values<std::uint32_t>(), (std::vector<std::uint32_t>{0, 255}));
}

TEST_F(TypedContentsTest, ReadsTheOtherDatatypes) {
  Contents contents;
  contents.add_bool_contents(true);
  contents.add_bool_contents(false);
  ASSERT_TRUE(read(DataType::kBool, {2}, contents));
  EXPECT_EQ(values<std::uint8_t>(), (std::vector<std::uint8_t>{1, 0}));
  contents.Clear();
  contents.add_int64_contents(Limits<std::int64_t>::kLow);
  ASSERT_TRUE(read(DataType::kInt64, {}, contents));
  EXPECT_EQ(values<std::int64_t>(), (std::vector<std::int64_t>{Limits<std::int64_t>::kLow}));
  contents.Clear();
  contents.add_uint64_contents(Limits<std::uint64_t>::kHigh);
  ASSERT_TRUE(read(DataType::kUint64, {1}, contents));
  EXPECT_EQ(values<std::uint64_t>(), (std::vector<std::uint64_t>{Limits<std::uint64_t>::kHigh}));
  contents.Clear();
  for (const float v : {1.5F, -0.0F}) contents.add_fp32_contents(v);
  ASSERT_TRUE(read(DataType::kFp32, {2}, contents));
  EXPECT_EQ(values<float>(), (std::vector<float>{1.5F, -0.0F}));
  contents.Clear();
  contents.add_fp64_contents(1e300);
  ASSERT_TRUE(read(DataType::kFp64, {1}, contents));
  EXPECT_EQ(values<double>(), (std::vector<double>{1e300}));
  contents.Clear();
  contents.add_bytes_contents("abc");
  contents.add_bytes_contents("");
  ASSERT_TRUE(read(DataType::kBytes, {2}, contents));
  EXPECT_EQ(as_text(tensor_.data), std::string_view("\x03\0\0\0abc\0\0\0\0", 11));
  EXPECT_TRUE(check_tensor_data(tensor_));
}

TEST_F(TypedContentsTest, ReadsElementsThatAreNotPackedAndContentsInParts) {
  // contents { int_contents: 7 } contents { int_contents: [1, 2] } contents { int_contents: -1 }
  const std::string message =
      "\x2a\x02\x10\x07" "\x2a\x04\x12\x02\x01\x02" "\x2a\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  ASSERT_TRUE(read_message(DataType::kInt8, {4}, message));
  EXPECT_EQ(values<std::int8_t>(), (std::vector<std::int8_t>{7, 1, 2, -1}));
  // contents { fp32_contents: 1.0 } unpacked
  ASSERT_TRUE(read_message(DataType::kFp32, {1}, std::string_view("\x2a\x05\x35\0\0\x80\x3f", 7)));
  EXPECT_EQ(values<float>(), (std::vector<float>{1.0F}));
}

TEST_F(TypedContentsTest, AnEmptyTensorNeedsNoContents) {
  ASSERT_TRUE(read_message(DataType::kFp32, {0, 3}, ""));
  EXPECT_TRUE(tensor_.data.empty());
  ASSERT_TRUE(read_message(DataType::kBytes, {0}, ""));
}

TEST_F(TypedContentsTest, NamesTheValueThatDoesNotFit) {
  Contents contents;
  contents.add_int_contents(128);
  expect_refused(read(DataType::kInt8, {1}, contents), "128 is outside INT8's range [-128, 127]");
  contents.set_int_contents(0, -32769);
  expect_refused(read(DataType::kInt16, {1}, contents), "-32769 is outside INT16's range [-32768, 32767]");
  contents.Clear();
  contents.add_uint_contents(256);
  expect_refused(read(DataType::kUint8, {1}, contents), "256 is outside UINT8's range [0, 255]");
  contents.set_uint_contents(0, 65536);
  expect_refused(read(DataType::kUint16, {1}, contents), "65536 is outside UINT16's range [0, 65535]");
}

TEST_F(TypedContentsTest, NamesTheFieldOfAnotherDatatype) {
  Contents contents;
  contents.add_int64_contents(1);
  expect_refused(read(DataType::kFp32, {1}, contents),
                 "datatype FP32 takes its elements from fp32_contents, but int64_contents is filled");
  contents.add_fp32_contents(1);
  expect_refused(read(DataType::kFp32, {1}, contents), "int64_contents is filled");
  for (const DataType type : {DataType::kFp16, DataType::kBf16}) {
    expect_refused(read(type, {1}, contents), "has no typed contents");
    expect_refused(read_message(type, {1}, ""), "need 1 elements, 0 were given");
  }
}

TEST_F(TypedContentsTest, RefusesAnotherCountBeforeItAllocates) {
  Contents contents;
  contents.add_fp32_contents(1);
  expect_refused(read(DataType::kFp32, {2, 2}, contents), "shape [2,2] need 4 elements, 1 were given");
  expect_refused(read(DataType::kFp32, {std::int64_t{1} << 61}, contents), "1 were given");
  expect_refused(read(DataType::kFp32, {-1}, contents), "negative");
  EXPECT_EQ(arena_.usage().blocks, 0U);
}

TEST_F(TypedContentsTest, RefusesWhatIsMalformed) {
  for (const std::string_view message :
       {std::string_view("\x2a\x03\x32\x01z", 5),              // packed floats of one byte
        std::string_view("\x2a\x04\x32\x05zz", 6),             // cut
        std::string_view("\x2a\x02\x30\x01", 4)}) {            // a varint where a float belongs
    expect_refused(read_message(DataType::kFp32, {1}, message), "contents is");
  }
  // A packed varint without an end, and one that is too long.
  expect_refused(read_message(DataType::kInt32, {1}, std::string_view("\x2a\x03\x12\x01\x80", 5)), "protobuf");
  const std::string long_varint = std::string("\x2a\x0d\x12\x0b") + std::string(10, '\x80') + '\0';
  expect_refused(read_message(DataType::kInt32, {1}, long_varint), "protobuf");
}

TEST_F(TypedContentsTest, HoldsTheLimit) {
  max_bytes_ = 7;
  Contents contents;
  contents.add_fp64_contents(1);
  const auto status = read(DataType::kFp64, {1}, contents);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kResourceExhausted);
}

}  // namespace
}  // namespace sluice::grpc_wire
