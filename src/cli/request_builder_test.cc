#include "cli/request_builder.h"

#include <gtest/gtest.h>

#include <cstring>

namespace sluice::cli {
namespace {

ModelMetadata two_inputs() {
  ModelMetadata model;
  model.name = "m";
  model.inputs = {{"a", DataType::kFp32, {-1, 2}, false}, {"b", DataType::kInt64, {-1, 1}, false}};
  return model;
}

TEST(ShapeOfJson, FollowsTheBrackets) {
  EXPECT_EQ(shape_of_json("5"), (Shape{1}));
  EXPECT_EQ(shape_of_json("[1,2,3]"), (Shape{3}));
  EXPECT_EQ(shape_of_json("[[1,2],[3,4],[5,6]]"), (Shape{3, 2}));
  EXPECT_EQ(shape_of_json("[[[1]]]"), (Shape{1, 1, 1}));
  EXPECT_EQ(shape_of_json("[\"a,[\", \"b\"]"), (Shape{2}));
  EXPECT_EQ(shape_of_json("[]"), (Shape{0}));
}

TEST(BuildRequest, JsonGivesShapeAndValuesAndTheRestIsRandom) {
  Arena arena({});
  const auto request = build_request({.inputs = {"a=[[1,2],[3,4]]"}}, two_inputs(), arena);
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->inputs.size(), 2U);
  EXPECT_EQ(request->inputs[0].tensor.shape, (Shape{2, 2}));
  float last = 0;
  std::memcpy(&last, request->inputs[0].tensor.data.data() + 12, 4);
  EXPECT_EQ(last, 4.0F);
  EXPECT_EQ(request->inputs[1].tensor.shape, (Shape{1, 1}));
}

TEST(BuildRequest, ErrorsNameTheFlag) {
  Arena arena({});
  const auto error = [&](RequestFlags flags) { return build_request(flags, two_inputs(), arena).error().message; };
  EXPECT_NE(error({.inputs = {"c=1"}}).find("no input 'c'"), std::string::npos);
  EXPECT_NE(error({.inputs = {"a"}}).find("NAME=VALUE"), std::string::npos);
  EXPECT_NE(error({.shapes = {"a=1,x"}}).find("'x'"), std::string::npos);
}

TEST(ParseNpy, ReadsAVersionOneFile) {
  Arena arena({});
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
  header.resize(118, ' ');
  std::string file = "\x93NUMPY";
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size());
  file += '\0';
  file += header;
  const float values[2] = {1.5F, -2.0F};
  file.append(reinterpret_cast<const char*>(values), sizeof values);
  const auto tensor = parse_npy(file, arena);
  ASSERT_TRUE(tensor) << tensor.error().message;
  EXPECT_EQ(tensor->datatype, DataType::kFp32);
  EXPECT_EQ(tensor->shape, (Shape{1, 2}));
  EXPECT_EQ(std::memcmp(tensor->data.data(), values, sizeof values), 0);
  EXPECT_FALSE(parse_npy(file.substr(0, file.size() - 1), arena));
}

}  // namespace
}  // namespace sluice::cli
