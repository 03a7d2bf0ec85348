#include "wire/oip/json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "wire/random_infer.h"

namespace sluice::oip {
namespace {

using ::testing::HasSubstr;

class JsonTest : public ::testing::Test {
 protected:
  Result<InferRequest> parse(std::string_view json, std::string_view binary = {}) {
    return parse_infer_request(body(json, binary), arena_, limits_);
  }
  JsonBody body(std::string_view json, std::string_view binary = {}) {
    JsonBody out{.json = json};
    if (!binary.empty()) {
      out.binary = make_tensor(arena_, DataType::kUint8, {static_cast<std::int64_t>(binary.size())},
                               std::string(binary));
    }
    return out;
  }
  // Splits an encoded body as the header says.
  JsonBody body(const EncodedJson& encoded) {
    text_ = joined(encoded.payload);
    const std::size_t length = encoded.json_length.value_or(text_.size());
    return body(std::string_view(text_).substr(0, length), std::string_view(text_).substr(length));
  }
  void expect_refused(std::string_view json, std::string_view text, std::string_view binary = {},
                      Code code = Code::kInvalidArgument) {
    const auto request = parse(json, binary);
    ASSERT_FALSE(request) << json.substr(0, 200);
    EXPECT_EQ(request.error().code, code) << request.error().message;
    EXPECT_THAT(request.error().message, HasSubstr(std::string(text))) << json.substr(0, 200);
  }
  // A request with one input 'x'.
  static std::string one(std::string_view datatype, std::string_view shape, std::string_view data) {
    return fmt::format(R"({{"inputs":[{{"name":"x","datatype":"{}","shape":{},"data":{}}}]}})", datatype, shape, data);
  }
  template <class T>
  std::vector<T> values_of(std::string_view json) {
    const auto request = parse(json);
    EXPECT_TRUE(request) << request.error().message;
    if (!request) return {};
    const Bytes data = request->inputs.at(0).tensor.data;
    std::vector<T> out(data.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), data.data(), data.size());
    return out;
  }

  Arena arena_{Arena::Options{}};
  RequestLimits limits_;
  std::string text_;
};

TEST_F(JsonTest, ReadsARequest) {
  const auto request = parse(R"({"id":"7","parameters":{"priority":1,"timeout":250,"sequence_id":42,"f":1.5,"s":"t"},
    "inputs":[{"name":"x","shape":[2,2],"datatype":"FP32","parameters":{"k":true},"data":[[1,2.5],[-3,4e1]]}],
    "outputs":[{"name":"y","parameters":{"binary_data":true,"classification":3}},{"name":"z"}]})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->id, "7");
  EXPECT_EQ(request->priority, 1U);
  EXPECT_EQ(request->timeout_us, 250U);
  const Parameters expected = {{"sequence_id", std::int64_t{42}}, {"f", 1.5}, {"s", std::string("t")}};
  EXPECT_TRUE(request->parameters == expected);
  ASSERT_EQ(request->inputs.size(), 1U);
  const InputTensor& x = request->inputs[0];
  EXPECT_EQ(x.tensor.shape, (Shape{2, 2}));
  EXPECT_TRUE(x.parameters == (Parameters{{"k", true}}));
  EXPECT_TRUE(check_tensor_data(x.tensor));
  ASSERT_EQ(request->outputs.size(), 2U);
  EXPECT_EQ(request->outputs[0].binary, true);
  EXPECT_EQ(request->outputs[0].classification, 3U);
  EXPECT_TRUE(request->outputs[0].parameters.empty());
  EXPECT_EQ(request->outputs[1].binary, std::nullopt);
}

TEST_F(JsonTest, TakesFieldsInAnyOrderAndLetsUnknownOnesPass) {
  const auto request = parse(R"({"zzz":{"a":[1,{"b":null}]},"inputs":[{"data":[7],"extra":0,"datatype":"INT8",
    "name":"x","shape":[1]}],"id":null,"outputs":null})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(as_text(request->inputs[0].tensor.data), "\x07");
}

TEST_F(JsonTest, TakesFlatAndNestedData) {
  const std::vector<std::int32_t> expected = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const char* data : {"[1,2,3,4,5,6,7,8]", "[[[1,2],[3,4]],[[5,6],[7,8]]]", "[[1,2,3,4],[5,6,7,8]]",
                           "[1,[2,[3]],[],[[4]],5,[6,7],8]", "[[[[[1,2,3,4,5,6,7,8]]]]]"}) {
    EXPECT_EQ(values_of<std::int32_t>(one("INT32", "[2,2,2]", data)), expected) << data;
  }
  EXPECT_EQ(values_of<std::int32_t>(one("INT32", "[]", "5")), std::vector<std::int32_t>{5});
  EXPECT_EQ(values_of<std::int32_t>(one("INT32", "[]", "[5]")), std::vector<std::int32_t>{5});
  EXPECT_EQ(values_of<std::int32_t>(one("INT32", "[0,4]", "[]")), std::vector<std::int32_t>{});
  EXPECT_EQ(values_of<std::int32_t>(one("INT32", "[3,0]", "[[],[],[]]")), std::vector<std::int32_t>{});
}

TEST_F(JsonTest, ReadsEveryDatatypeAtItsLimits) {
  EXPECT_EQ(values_of<std::uint8_t>(one("BOOL", "[4]", "[true,false,1,0]")), (std::vector<std::uint8_t>{1, 0, 1, 0}));
  EXPECT_EQ(values_of<std::int8_t>(one("INT8", "[2]", "[-128,127]")), (std::vector<std::int8_t>{-128, 127}));
  EXPECT_EQ(values_of<std::uint8_t>(one("UINT8", "[2]", "[0,255]")), (std::vector<std::uint8_t>{0, 255}));
  EXPECT_EQ(values_of<std::int16_t>(one("INT16", "[2]", "[-32768,32767]")),
            (std::vector<std::int16_t>{-32768, 32767}));
  EXPECT_EQ(values_of<std::uint16_t>(one("UINT16", "[1]", "[65535]")), (std::vector<std::uint16_t>{65535}));
  EXPECT_EQ(values_of<std::int32_t>(one("INT32", "[2]", "[-2147483648,2147483647]")),
            (std::vector<std::int32_t>{INT32_MIN, INT32_MAX}));
  EXPECT_EQ(values_of<std::uint32_t>(one("UINT32", "[1]", "[4294967295]")), (std::vector<std::uint32_t>{UINT32_MAX}));
  EXPECT_EQ(values_of<std::int64_t>(one("INT64", "[2]", "[-9223372036854775808,9223372036854775807]")),
            (std::vector<std::int64_t>{INT64_MIN, INT64_MAX}));
  EXPECT_EQ(values_of<std::uint64_t>(one("UINT64", "[2]", "[0,18446744073709551615]")),
            (std::vector<std::uint64_t>{0, UINT64_MAX}));
  EXPECT_EQ(values_of<float>(one("FP32", "[4]", "[3.4028235e38,1,-0.0,1e-45]")),
            (std::vector<float>{3.4028235e38F, 1.0F, 0.0F, 1e-45F}));
  EXPECT_EQ(values_of<double>(one("FP64", "[2]", "[1.7976931348623157e308,18446744073709551615]")),
            (std::vector<double>{1.7976931348623157e308, 18446744073709551615.0}));
  const auto request = parse(one("BYTES", "[2]", R"(["a\u00e9\n",""])"));
  ASSERT_TRUE(request);
  EXPECT_EQ(as_text(request->inputs[0].tensor.data), std::string_view("\x04\0\0\0a\xc3\xa9\n\0\0\0\0", 12));
}

TEST_F(JsonTest, NamesTheElementThatDoesNotFit) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"INT8", "128", "[-128, 127]"},        {"INT8", "-129", "[-128, 127]"},
      {"UINT8", "-1", "[0, 255]"},           {"UINT8", "256", "[0, 255]"},
      {"INT16", "32768", "[-32768, 32767]"}, {"UINT16", "65536", "[0, 65535]"},
      {"INT32", "2147483648", "2147483647"}, {"UINT32", "4294967296", "[0, 4294967295]"},
      {"INT64", "9223372036854775808", "9223372036854775807"},
      {"UINT64", "-1", "[0, 18446744073709551615]"},
      {"INT32", "1.5", "integers"},          {"INT32", "\"1\"", "integers"},
      {"INT32", "true", "integers"},         {"INT32", "null", "integers"},
      {"INT32", "{}", "integers"},           {"BOOL", "2", "true or false"},
      {"BOOL", "\"true\"", "true or false"}, {"FP32", "1e39", "finite numbers that fit FP32"},
      {"FP32", "null", "finite"},            {"FP32", "\"NaN\"", "finite"},
      {"FP64", "true", "finite"},            {"BYTES", "1", "strings"},
      {"BYTES", "null", "strings"}};
  for (const auto& [datatype, value, takes] : cases) {
    const std::string good = std::string(datatype) == "BYTES" ? "\"\"" : "0";
    const std::string json = one(datatype, "[2]", fmt::format("[{},{}]", good, value));
    expect_refused(json, "input 'x': element 1 of data is ");
    expect_refused(json, takes);
  }
}

TEST_F(JsonTest, RefusesWhatIsNotJson) {
  for (const char* json : {"", " ", "{", "nonsense", "{\"inputs\":[}", "{\"inputs\":[]} x", "\xff",
                           "{\"inputs\":[NaN]}", "{'inputs':[]}", "{\"inputs\":[],}", "{\"a\":tru,\"inputs\":[]}",
                           "{\"a\":\"\\ud800\"}", "{\"a\":[1 2],\"inputs\":[]}", "{\"a\":1e999}"}) {
    expect_refused(json, "JSON");
  }
  for (const char* json : {"[]", "1", "\"x\"", "null", "true"}) expect_refused(json, "the request must be an object");
}

TEST_F(JsonTest, BoundsDepthWithoutRecursion) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + "1" + std::string(depth, ']'); };
  // The request's object, the list and the input are three levels.
  EXPECT_TRUE(parse(one("INT8", "[1]", nested(97))));
  expect_refused(one("INT8", "[1]", nested(98)), "nested deeper than 100 levels");
  expect_refused(one("INT8", "[1]", nested(1'000'000)), "nested deeper than 100 levels");
  expect_refused("{\"unknown\":" + nested(1'000'000) + "}", "nested deeper than 100 levels");
  expect_refused(std::string(1'000'000, '['), "JSON");
  std::string objects = "1";
  for (int i = 0; i < 200; ++i) objects = "{\"a\":" + objects + "}";
  expect_refused(objects, "nested deeper than 100 levels");
}

TEST_F(JsonTest, RefusesCountsAndShapesThatDoNotHold) {
  expect_refused(one("FP32", "[2,2]", "[1,2,3]"),
                 "input 'x': datatype FP32 and shape [2,2] need 4 elements, 3 were given");
  expect_refused(one("FP32", "[2]", "[1,2,3]"), "need 2 elements, 3 were given");
  expect_refused(one("BYTES", "[2]", "[\"a\"]"), "need 2 elements, 1 were given");
  expect_refused(one("FP32", "[-1]", "[1]"), "shape [-1] has the negative dimension");
  expect_refused(one("FP32", "[4294967296,4294967296,4294967296]", "[1]"), "more than 2^62 elements");
  expect_refused(one("FP32", "[268435456]", "[1]"), "need 268435456 elements, 1 were given");
  expect_refused(one("INT64", "[4611686018427387904]", "[[1],2]"), "need 4611686018427387904 elements, 2 were given");
  expect_refused(one("FP32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[1]"), "more than 16 dimensions");
  expect_refused(one("FP32", "[1.0]", "[1]"), "a dimension must be an integer");
  expect_refused(one("FP32", "[18446744073709551615]", "[1]"), "a dimension must be an integer");
  expect_refused(one("FP32", "1", "[1]"), "shape must be an array");
  expect_refused(one("FP32", "[1]", "1"), "data must be an array, 1 was given");
  expect_refused(one("FP32", "[]", "[]"), "need 1 elements, 0 were given");
  EXPECT_EQ(arena_.usage().blocks, 0U);
}

TEST_F(JsonTest, RefusesFieldsOfWrongTypesMissingOrTwice) {
  expect_refused(R"({})", "the request has no inputs");
  expect_refused(R"({"inputs":{}})", "inputs must be an array, an object was given");
  expect_refused(R"({"inputs":[1]})", "input must be an object, 1 was given");
  expect_refused(R"({"inputs":[{"shape":[1],"datatype":"INT8","data":[1]}]})", "input has no name");
  expect_refused(R"({"inputs":[{"name":"x","datatype":"INT8","data":[1]}]})", "input 'x': shape is missing");
  expect_refused(R"({"inputs":[{"name":"x","shape":[1],"data":[1]}]})", "input 'x': datatype is missing");
  expect_refused(R"({"inputs":[{"name":"x","shape":[1],"datatype":"INT8"}]})", "input 'x': data is missing");
  expect_refused(R"({"inputs":[{"name":"x","shape":[1],"datatype":"INT8","data":null}]})", "data is missing");
  expect_refused(one("int8", "[1]", "[1]"), "input 'x': unknown datatype 'int8'");
  expect_refused(R"({"inputs":[{"name":1,"shape":[1],"datatype":"INT8","data":[1]}]})", "must be a string");
  expect_refused(R"({"id":1,"inputs":[]})", "id must be a string, 1 was given");
  expect_refused(R"({"inputs":[],"inputs":[]})", "field 'inputs' of the request occurs more than once");
  expect_refused(R"({"inputs":[{"name":"x","name":"y"}]})", "field 'name' of input occurs more than once");
  expect_refused(R"({"inputs":[],"outputs":[{}]})", "a requested output has no name");
  expect_refused(R"({"inputs":[],"outputs":1})", "outputs must be an array");
  expect_refused(R"({"inputs":[],"outputs":[{"name":"y"},{"name":"y"}]})", "output 'y' occurs more than once");
  expect_refused(R"({"inputs":[],"parameters":[]})", "parameters must be an object");
  expect_refused(R"({"inputs":[],"parameters":{"a":[1]}})", "parameter 'a' must be a boolean, a number or a string");
  expect_refused(R"({"inputs":[],"parameters":{"a":1,"a":2}})", "parameter 'a' occurs more than once");
  expect_refused(R"({"inputs":[],"parameters":{"priority":-1}})", "'priority' must be an integer");
  expect_refused(R"({"inputs":[],"parameters":{"triton_x":1}})", "reserved");
  expect_refused(R"({"inputs":[],"outputs":[{"name":"y","parameters":{"binary_data":1}}]})", "output 'y': parameter");
  expect_refused(R"({"inputs":[],"outputs":[{"name":"y","parameters":{"classification":4294967296}}]})", "2^32");
  const std::string x = R"({"name":"x","shape":[1],"datatype":"INT8","data":[1]})";
  expect_refused(fmt::format(R"({{"inputs":[{},{}]}})", x, x), "input 'x' occurs more than once");
  for (const char* type : {"FP16", "BF16"}) expect_refused(one(type, "[1]", "[1]"), "only as binary data");
  expect_refused(R"({"inputs":[{"name":"x","shape":[1],"datatype":"INT8","parameters":{"shared_memory_region":"r"}}]})",
                 "shared memory is not supported", {}, Code::kUnimplemented);
}

TEST_F(JsonTest, HoldsEveryLimit) {
  limits_.max_inputs = 0;
  expect_refused(one("INT8", "[1]", "[1]"), "1 inputs, the limit is 0");
  limits_ = {};
  limits_.max_outputs = 1;
  expect_refused(R"({"inputs":[],"outputs":[{"name":"y"},{"name":"z"}]})", "2 outputs, the limit is 1");
  limits_ = {};
  limits_.max_parameters = 1;
  expect_refused(R"({"inputs":[],"parameters":{"a":1,"b":1}})", "more than 1 parameters");
  limits_ = {};
  limits_.max_name_bytes = 3;
  expect_refused(R"({"id":"abcd","inputs":[]})", "id has 4 bytes, the limit is 3");
  limits_ = {};
  limits_.max_tensor_bytes = 7;
  expect_refused(one("FP32", "[2]", "[1,2]"), "8 bytes, the limit is 7", {}, Code::kResourceExhausted);
  expect_refused(one("BYTES", "[1]", "[\"abcd\"]"), "8 bytes, the limit is 7", {}, Code::kResourceExhausted);
  expect_refused(R"({"inputs":[{"name":"x","shape":[8],"datatype":"INT8","parameters":{"binary_data_size":8}}]})",
                 "8 bytes, the limit is 7", "12345678", Code::kResourceExhausted);
  expect_refused(std::string(kMaxJsonBytes + 1, ' '), "the limit is 67108864");
}

std::string binary_input(std::string_view name, std::string_view datatype, std::string_view shape, int size) {
  return fmt::format(R"({{"name":"{}","shape":{},"datatype":"{}","parameters":{{"binary_data_size":{}}}}})", name,
                     shape, datatype, size);
}
std::string inputs(std::string_view items) { return fmt::format(R"({{"inputs":[{}]}})", items); }

TEST_F(JsonTest, TakesBinaryTensorsInOrderAsViews) {
  const std::string json = inputs(binary_input("a", "FP32", "[2]", 8) + "," +
                                  R"({"name":"j","shape":[1],"datatype":"INT8","data":[9]},)" +
                                  binary_input("b", "FP16", "[1,2]", 4) + "," + binary_input("c", "BYTES", "[1]", 6));
  const JsonBody whole = body(json, std::string_view("aaaaaaaabbbb\x02\0\0\0cc", 18));
  const auto request = parse_infer_request(whole, arena_, limits_);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(as_text(request->inputs[0].tensor.data), "aaaaaaaa");
  EXPECT_EQ(request->inputs[0].tensor.data.data(), whole.binary.data.data());
  EXPECT_EQ(as_text(request->inputs[1].tensor.data), "\x09");
  EXPECT_EQ(as_text(request->inputs[2].tensor.data), "bbbb");
  EXPECT_EQ(as_text(request->inputs[3].tensor.data), std::string_view("\x02\0\0\0cc", 6));
  for (const InputTensor& input : request->inputs) EXPECT_TRUE(input.parameters.empty());
}

TEST_F(JsonTest, CopiesABinaryTensorThatIsNotAligned) {
  const std::string json = inputs(binary_input("a", "INT8", "[1]", 1) + "," + binary_input("b", "FP32", "[1]", 4));
  const auto request = parse(json, "abcde");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(as_text(request->inputs[1].tensor.data), "bcde");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(request->inputs[1].tensor.data.data()) % 4, 0U);
}

TEST_F(JsonTest, KeepsTheBodyForAsLongAsItsViews) {
  const std::string json = inputs(binary_input("a", "INT8", "[4]", 4));
  JsonBody whole = body(json, "abcd");
  auto request = parse_infer_request(whole, arena_, limits_);
  ASSERT_TRUE(request);
  whole.binary = {};
  EXPECT_EQ(arena_.usage().blocks, 1U);
  EXPECT_EQ(as_text(request->inputs[0].tensor.data), "abcd");
}

TEST_F(JsonTest, RefusesBinarySizesThatDoNotHold) {
  const std::string eight = binary_input("a", "FP32", "[2]", 8);
  expect_refused(inputs(eight), "input 'a': binary_data_size is 8, the body has 7 bytes left for it", "1234567");
  expect_refused(inputs(eight), "binary_data_size is 8, the body has 0 bytes left");
  expect_refused(inputs(eight), "the body has 9 bytes behind the JSON, its tensors take 8", "123456789");
  expect_refused(inputs(binary_input("a", "FP32", "[2]", 4)), "needs 8 bytes, 4 were given", "1234");
  expect_refused(inputs(binary_input("a", "FP32", "[2]", -8)), "binary_data_size must be an integer", "12345678");
  expect_refused(inputs(binary_input("a", "BYTES", "[1]", 4)), "input 'a'", std::string_view("\x01\0\0\0", 4));
  const std::string both =
      R"({"name":"x","shape":[1],"datatype":"INT8","data":[1],"parameters":{"binary_data_size":1}})";
  expect_refused(inputs(both), "data beside binary_data_size", "a");
  expect_refused(one("INT8", "[1]", "[1]"), "the body has 1 bytes behind the JSON, its tensors take 0", "a");
}

TEST_F(JsonTest, ReadsWithAndWithoutPadding) {
  const std::string json = one("BYTES", "[1]", "[\"" + std::string(100, 'a') + "\"]");
  std::string padded = json + std::string(kJsonPadding, '"');
  for (const std::size_t readable : {std::size_t{0}, kJsonPadding - 1, kJsonPadding}) {
    const JsonBody whole{.json = std::string_view(padded).substr(0, json.size()), .readable_past_json = readable};
    const auto request = parse_infer_request(whole, arena_, limits_);
    ASSERT_TRUE(request) << readable;
    EXPECT_EQ(request->inputs[0].tensor.data.size(), 104U);
  }
}

TEST_F(JsonTest, RoundTripsRandomRequests) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    InferRequest request = random_request(arena_, random);
    request.model_name.clear();  // these two travel in the path
    request.model_version.clear();
    request.timeout_us /= 2;     // reads back as a signed number
    request.binary_output_default = random.chance(0.5);
    for (RequestedOutput& output : request.outputs) {
      if (random.chance(0.5)) output.binary = random.chance(0.5);
    }
    const bool binary = random.chance(0.5);
    const JsonBody whole = body(encode_infer_request(request, binary));
    const auto back = parse_infer_request(whole, arena_, limits_);
    ASSERT_TRUE(back) << back.error().message << whole.json;
    expect_same(*back, request);
  }
}

TEST_F(JsonTest, RoundTripsRandomResponses) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const InferResponse response = random_response(arena_, random);
    InferRequest request;
    request.binary_output_default = random.chance(0.5);
    const JsonBody whole = body(encode_infer_response(response, request));
    const auto back = parse_infer_response(whole, arena_, limits_);
    ASSERT_TRUE(back) << back.error().message << whole.json;
    expect_same(*back, response);
  }
}

TEST_F(JsonTest, RoundTripsFloatsOfAnyMagnitude) {
  Random random(3);
  std::string floats, doubles;
  constexpr std::int64_t kCount = 20000;
  for (std::int64_t i = 0; i < kCount; ++i) {
    float f = 0;
    double d = 0;
    do {
      const auto bits = static_cast<std::uint32_t>(random.next());
      std::memcpy(&f, &bits, sizeof f);
    } while (!std::isfinite(f));
    do {
      const std::uint64_t bits = random.next();
      std::memcpy(&d, &bits, sizeof d);
    } while (!std::isfinite(d));
    append_raw(floats, i == 0 ? -0.0F : f);
    append_raw(doubles, i % 2 == 0 ? std::round(d) : d);
  }
  InferResponse response;
  response.outputs.push_back({"f", make_tensor(arena_, DataType::kFp32, {kCount}, floats), {}});
  response.outputs.push_back({"d", make_tensor(arena_, DataType::kFp64, {kCount}, doubles), {}});
  const auto back = parse_infer_response(body(encode_infer_response(response, {})), arena_, limits_);
  ASSERT_TRUE(back) << back.error().message;
  expect_same(*back, response);
}

TEST_F(JsonTest, WritesNanAsNullWhichTheClientReadsAsNan) {
  std::string data;
  for (const float v : {1.0F, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    append_raw(data, v);
  }
  InferResponse response;
  response.outputs.push_back({"y", make_tensor(arena_, DataType::kFp32, {3}, data), {}});
  const EncodedJson encoded = encode_infer_response(response, {});
  EXPECT_THAT(joined(encoded.payload), HasSubstr(R"("data":[1,null,null])"));
  const auto back = parse_infer_response(body(encoded), arena_, limits_);
  ASSERT_TRUE(back);
  float values[3];
  std::memcpy(values, back->outputs[0].tensor.data.data(), sizeof values);
  EXPECT_EQ(values[0], 1.0F);
  EXPECT_TRUE(std::isnan(values[1]) && std::isnan(values[2]));
}

TEST_F(JsonTest, WritesAResponseAsTheProtocolSays) {
  InferResponse response{.model_name = "m", .model_version = "2", .id = "a\"b", .parameters = {{"d", 2.0}}};
  response.outputs.push_back({"t", make_tensor(arena_, DataType::kBool, {2, 1}, std::string("\x02\0", 2)), {}});
  std::string texts;
  append_bytes_element(texts, "0.5:3:cat");
  append_bytes_element(texts, "\xff");
  response.outputs.push_back({"c", make_tensor(arena_, DataType::kBytes, {2}, texts), {}});
  const EncodedJson encoded = encode_infer_response(response, {});
  EXPECT_FALSE(encoded.json_length);
  EXPECT_EQ(joined(encoded.payload),
            R"({"model_name":"m","model_version":"2","id":"a\"b","parameters":{"d":2.0},"outputs":[)"
            R"({"name":"t","datatype":"BOOL","shape":[2,1],"data":[true,false]},)"
            R"({"name":"c","datatype":"BYTES","shape":[2],"data":["0.5:3:cat",")" "\xEF\xBF\xBD" R"("]}]})");
}

TEST_F(JsonTest, ChoosesBinaryOutputsByTheirOwnParameterFirst) {
  InferResponse response{.model_name = "m"};
  for (const char* name : {"a", "b", "c"}) {
    response.outputs.push_back({name, make_tensor(arena_, DataType::kUint8, {1}, name), {}});
  }
  InferRequest request{.outputs = {{.name = "a", .binary = true}, {.name = "b", .binary = false}, {.name = "c"}}};
  for (const bool by_default : {false, true}) {
    request.binary_output_default = by_default;
    const EncodedJson encoded = encode_infer_response(response, request);
    const std::string text = joined(encoded.payload);
    ASSERT_TRUE(encoded.json_length);
    EXPECT_EQ(text.substr(*encoded.json_length), by_default ? "ac" : "a");
  }
}

TEST_F(JsonTest, SendsLargeBinaryTensorsUncopied) {
  InferResponse response{.model_name = "m"};
  response.outputs.push_back({"y", make_tensor(arena_, DataType::kBf16, {2000}, std::string(4000, 'x')), {}});
  const EncodedJson encoded = encode_infer_response(response, {});
  ASSERT_EQ(encoded.payload.size(), 2U);
  EXPECT_EQ(encoded.json_length, encoded.payload[0].size());
  EXPECT_EQ(encoded.payload[1].bytes.data(), response.outputs[0].tensor.data.data());
}

class RawRequestTest : public JsonTest {
 protected:
  Result<InferRequest> parse_raw(DataType type, Shape shape, std::string_view data) {
    const ModelMetadata model{.name = "m", .inputs = {{.name = "x", .datatype = type, .shape = std::move(shape)}}};
    return parse_raw_request(body("", data).binary, model, arena_);
  }
  void expect_raw_refused(DataType type, Shape shape, std::string_view data, std::string_view text) {
    const auto request = parse_raw(type, std::move(shape), data);
    ASSERT_FALSE(request) << text;
    EXPECT_EQ(request.error().code, Code::kInvalidArgument);
    EXPECT_THAT(request.error().message, HasSubstr(std::string(text)));
  }
};

TEST_F(RawRequestTest, FindsTheVariableDimension) {
  const auto request = parse_raw(DataType::kFp32, {-1, 2}, std::string(24, 'x'));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->model_name, "m");
  EXPECT_EQ(request->inputs[0].tensor.shape, (Shape{3, 2}));
  EXPECT_TRUE(request->binary_output_default);
  EXPECT_TRUE(parse_raw(DataType::kInt8, {3}, "abc"));
  EXPECT_EQ(parse_raw(DataType::kInt8, {-1}, "")->inputs[0].tensor.shape, Shape{0});
}

TEST_F(RawRequestTest, TakesTheBodyAsOneBytesElement) {
  for (const Shape& shape : {Shape{1}, Shape{-1}, Shape{-1, 1}}) {
    const auto request = parse_raw(DataType::kBytes, shape, "abc");
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_EQ(request->inputs[0].tensor.shape, Shape(shape.size(), 1));
    EXPECT_EQ(as_text(request->inputs[0].tensor.data), std::string_view("\x03\0\0\0abc", 7));
  }
  expect_raw_refused(DataType::kBytes, {2}, "abc", "shape [2] has 2");
}

TEST_F(RawRequestTest, RefusesWhatHasNoShape) {
  expect_raw_refused(DataType::kFp32, {-1, -1}, "abcd", "more than one variable dimension");
  expect_raw_refused(DataType::kFp32, {-1, 2}, "abcd", "a multiple of 8 bytes, the body has 4");
  expect_raw_refused(DataType::kFp32, {-1, 0}, "abcd", "a multiple of 0 bytes");
  expect_raw_refused(DataType::kFp32, {2}, "abcd", "needs 8 bytes, 4 were given");
  const ModelMetadata two{.name = "m", .inputs = {{.name = "x"}, {.name = "y"}}};
  EXPECT_FALSE(parse_raw_request({}, two, arena_));
}

TEST_F(JsonTest, WritesMetadataAndErrors) {
  EXPECT_EQ(encode_error("no model 'x\"y'"), R"({"error":"no model 'x\"y'"})");
  EXPECT_EQ(parse_error(encode_error("why")), "why");
  EXPECT_EQ(parse_error("<html>"), "<html>");
  EXPECT_EQ(parse_error("[1]"), "[1]");
  EXPECT_EQ(encode_server_metadata({.name = "sluice", .version = "1", .extensions = {"parameters", "x"}}),
            R"({"name":"sluice","version":"1","extensions":["parameters","x"]})");
  const ModelMetadata model{.name = "m",
                            .versions = {"1", "2"},
                            .platform = "onnxruntime_onnx",
                            .inputs = {{.name = "x", .datatype = DataType::kFp32, .shape = {-1, 3}}},
                            .outputs = {{.name = "y", .datatype = DataType::kBytes, .shape = {}}}};
  const std::string json = encode_model_metadata(model);
  EXPECT_EQ(json,
            R"({"name":"m","versions":["1","2"],"platform":"onnxruntime_onnx","inputs":[{"name":"x","datatype":"FP32",)"
            R"("shape":[-1,3]}],"outputs":[{"name":"y","datatype":"BYTES","shape":[]}]})");
  const auto back = parse_model_metadata(json);
  ASSERT_TRUE(back);
  EXPECT_EQ(encode_model_metadata(*back), json);
  EXPECT_FALSE(parse_model_metadata(R"({"inputs":[{"name":"x","datatype":"FP8","shape":[]}]})"));
  EXPECT_FALSE(parse_model_metadata("[]"));
}

}  // namespace
}  // namespace sluice::oip
