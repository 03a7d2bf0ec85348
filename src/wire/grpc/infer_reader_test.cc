#include "wire/grpc/infer_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "inference.pb.h"
#include "wire/grpc/framing.h"
#include "wire/random_infer.h"

namespace sluice::grpc_wire {
namespace {

using ::testing::HasSubstr;
using Request = inference::ModelInferRequest;

std::string framed(std::string_view message) {
  const auto prefix = message_prefix(static_cast<std::uint32_t>(message.size()));
  return std::string(prefix.data(), prefix.size()).append(message);
}
std::string framed(const google::protobuf::MessageLite& message) { return framed(message.SerializeAsString()); }

// Generated code writes a map in an order of its own.
void sort_parameters(InferRequest& request) {
  const auto sort = [](Parameters& parameters) {
    std::sort(parameters.begin(), parameters.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  };
  sort(request.parameters);
  for (InputTensor& input : request.inputs) sort(input.parameters);
  for (RequestedOutput& output : request.outputs) sort(output.parameters);
}

class InferReaderTest : public ::testing::Test {
 protected:
  Result<InferRequest> read(std::string_view bytes, std::size_t piece = SIZE_MAX) {
    InferReader reader(InferMessage::kRequest, arena_, limits_);
    for (std::size_t at = 0; at < bytes.size();) {
      const std::string_view chunk = bytes.substr(at, piece);
      if (auto status = reader.feed(as_bytes(chunk)); !status) return fail(status.error());
      at += chunk.size();
    }
    if (!reader.complete()) return fail(Code::kDataLoss, "incomplete");
    return reader.take_request();
  }
  Result<InferRequest> read(const Request& message) { return read(framed(message)); }

  void expect_refused(const Request& message, Code code, std::string_view text) {
    expect_refused(framed(message), code, text);
  }
  void expect_refused(std::string_view bytes, Code code, std::string_view text) {
    const auto request = read(bytes);
    ASSERT_FALSE(request) << text;
    EXPECT_EQ(request.error().code, code) << request.error().message;
    EXPECT_THAT(request.error().message, HasSubstr(std::string(text)));
  }

  Arena arena_{Arena::Options{}};
  InferReaderLimits limits_;
};

// One FP32 input 'x' of shape [2].
Request simple_request() {
  Request message;
  message.set_model_name("m");
  auto* input = message.add_inputs();
  input->set_name("x");
  input->set_datatype("FP32");
  input->add_shape(2);
  message.add_raw_input_contents(std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  return message;
}

TEST_F(InferReaderTest, ReadsWhatGeneratedCodeWrites) {
  Request message = simple_request();
  message.set_model_version("2");
  message.set_id("id-7");
  (*message.mutable_parameters())["priority"].set_uint64_param(2);
  (*message.mutable_parameters())["timeout"].set_int64_param(1500);
  (*message.mutable_parameters())["sequence_id"].set_string_param("s1");
  (*message.mutable_inputs(0)->mutable_parameters())["scale"].set_double_param(0.5);
  auto* output = message.add_outputs();
  output->set_name("y");
  (*output->mutable_parameters())["classification"].set_int64_param(3);

  const auto request = read(message);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->model_name, "m");
  EXPECT_EQ(request->model_version, "2");
  EXPECT_EQ(request->id, "id-7");
  EXPECT_EQ(request->priority, 2U);
  EXPECT_EQ(request->timeout_us, 1500U);
  ASSERT_EQ(request->parameters.size(), 1U);
  EXPECT_EQ(request->parameters[0].name, "sequence_id");
  EXPECT_EQ(std::get<std::string>(request->parameters[0].value), "s1");
  ASSERT_EQ(request->inputs.size(), 1U);
  EXPECT_EQ(request->inputs[0].tensor.shape, Shape{2});
  EXPECT_EQ(std::get<double>(request->inputs[0].parameters.at(0).value), 0.5);
  EXPECT_EQ(as_text(request->inputs[0].tensor.data), message.raw_input_contents(0));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(request->inputs[0].tensor.data.data()) % kTensorAlignment, 0U);
  ASSERT_EQ(request->outputs.size(), 1U);
  EXPECT_EQ(request->outputs[0].classification, 3U);
  EXPECT_TRUE(request->outputs[0].parameters.empty());
}

TEST_F(InferReaderTest, RoundTripsRandomRequestsInAnyPieces) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const InferRequest request = random_request(arena_, random);
    const std::string bytes = joined(encode_infer_request(request));
    const auto back = read(bytes, 1 + random.below(random.chance(0.5) ? 16 : 4096));
    ASSERT_TRUE(back) << back.error().message;
    expect_same(*back, request);
  }
}

TEST_F(InferReaderTest, PlacesTensorsThatTheCallerReadsItself) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const InferRequest request = random_request(arena_, random);
    const std::string bytes = joined(encode_infer_request(request));
    InferReader reader(InferMessage::kRequest, arena_, limits_);
    for (std::size_t at = 0; at < bytes.size();) {
      const std::string_view chunk = std::string_view(bytes).substr(at, 1 + random.below(64));
      const MutableBytes tail = reader.tensor_tail();
      if (tail.empty()) {
        ASSERT_TRUE(reader.feed(as_bytes(chunk)));
        at += chunk.size();
        continue;
      }
      const std::size_t n = std::min(tail.size(), chunk.size());
      std::memcpy(tail.data(), chunk.data(), n);
      ASSERT_TRUE(reader.placed(n));
      at += n;
    }
    ASSERT_TRUE(reader.complete());
    const auto back = reader.take_request();
    ASSERT_TRUE(back) << back.error().message;
    expect_same(*back, request);
  }
}

TEST_F(InferReaderTest, EncodesRequestsThatGeneratedCodeReads) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const InferRequest request = random_request(arena_, random);
    const std::string bytes = joined(encode_infer_request(request));
    Request message;
    ASSERT_TRUE(message.ParseFromString(bytes.substr(kPrefixBytes)));
    EXPECT_EQ(framed("").size() + message.ByteSizeLong(), bytes.size());
    EXPECT_EQ(message.model_name(), request.model_name);
    EXPECT_EQ(message.raw_input_contents_size(), static_cast<int>(request.inputs.size()));
    auto back = read(message);
    ASSERT_TRUE(back) << back.error().message;
    sort_parameters(*back);
    InferRequest sorted = request;
    sort_parameters(sorted);
    expect_same(*back, sorted);
  }
}

TEST_F(InferReaderTest, RoundTripsResponsesAndGeneratedCodeReadsThem) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const InferResponse response = random_response(arena_, random);
    const std::string bytes = joined(encode_infer_response(response));
    inference::ModelInferResponse message;
    ASSERT_TRUE(message.ParseFromString(bytes.substr(kPrefixBytes)));
    ASSERT_EQ(message.outputs_size(), static_cast<int>(response.outputs.size()));
    ASSERT_EQ(message.raw_output_contents_size(), message.outputs_size());
    EXPECT_EQ(message.parameters_size(), static_cast<int>(response.parameters.size()));
    for (std::size_t i = 0; i < response.outputs.size(); ++i) {
      EXPECT_EQ(message.outputs(static_cast<int>(i)).name(), response.outputs[i].name);
      EXPECT_EQ(message.raw_output_contents(static_cast<int>(i)), as_text(response.outputs[i].tensor.data));
    }
    InferReader reader(InferMessage::kResponse, arena_, limits_);
    ASSERT_TRUE(reader.feed(as_bytes(bytes)));
    ASSERT_TRUE(reader.complete());
    const auto back = reader.take_response();
    ASSERT_TRUE(back) << back.error().message;
    expect_same(*back, response);
  }
}

TEST_F(InferReaderTest, SendsLargeTensorsUncopiedAndSmallOnesInline) {
  InferResponse response{.model_name = "m"};
  const std::string large(kInlineTensorBytes + 1, 'x');
  const auto bytes_of = [](const std::string& text) { return static_cast<std::int64_t>(text.size()); };
  response.outputs.push_back({"small", make_tensor(arena_, DataType::kUint8, {3}, "abc"), {}});
  response.outputs.push_back({"large", make_tensor(arena_, DataType::kUint8, {bytes_of(large)}, large), {}});
  response.outputs.push_back({"last", make_tensor(arena_, DataType::kUint8, {2}, "de"), {}});
  const Payload payload = encode_infer_response(response);
  ASSERT_EQ(payload.size(), 3U);
  EXPECT_FALSE(payload[0].external);
  EXPECT_EQ(payload[1].bytes.data(), response.outputs[1].tensor.data.data());
  EXPECT_FALSE(payload[2].external);
}

TEST_F(InferReaderTest, AgreesWithItselfAtEverySplitPoint) {
  const std::string valid = framed(simple_request());
  std::vector<std::string> messages = {valid, valid + "x"};
  for (std::size_t i = 0; i < valid.size(); ++i) {  // and with each byte damaged
    messages.push_back(valid);
    messages.back()[i] = static_cast<char>(messages.back()[i] ^ 0x85);
  }
  for (const std::string& bytes : messages) {
    const auto whole = read(bytes);
    for (std::size_t split = 1; split < bytes.size(); ++split) {
      InferReader reader(InferMessage::kRequest, arena_, limits_);
      auto status = reader.feed(as_bytes(bytes.substr(0, split)));
      if (status) status = reader.feed(as_bytes(bytes.substr(split)));
      Result<InferRequest> request = fail(Code::kDataLoss, "incomplete");
      if (!status) {
        request = fail(status.error());
      } else if (reader.complete()) {
        request = reader.take_request();
      }
      ASSERT_EQ(request.has_value(), whole.has_value()) << split;
      if (whole) {
        expect_same(*request, *whole);
      } else {
        EXPECT_EQ(request.error().code, whole.error().code) << split << whole.error().message;
      }
    }
  }
}

TEST_F(InferReaderTest, IsCompleteOnlyWithTheLastByte) {
  const std::string bytes = framed(simple_request());
  InferReader reader(InferMessage::kRequest, arena_, limits_);
  for (const char& byte : bytes) {
    EXPECT_FALSE(reader.complete());
    ASSERT_TRUE(reader.feed(as_bytes(std::string_view(&byte, 1))));
  }
  EXPECT_TRUE(reader.complete());
}

TEST_F(InferReaderTest, RefusesWhatIsNotOneMessage) {
  const std::string valid = framed(simple_request());
  expect_refused(valid + "x", Code::kInvalidArgument, "1 bytes after its end");
  expect_refused("\x01" + valid.substr(1), Code::kUnimplemented, "compressed");
  expect_refused("\x02" + valid.substr(1), Code::kInvalidArgument, "flag is 2");
  expect_refused(framed("\x08"), Code::kInvalidArgument, "cut");
  expect_refused(framed("\x3a"), Code::kInvalidArgument, "cut");
  expect_refused(framed("\x0a\x05xy"), Code::kInvalidArgument, "a field of 5 bytes, 2 are left");
  expect_refused(framed("\x3a\x05xy"), Code::kInvalidArgument, "a field of 5 bytes, 2 are left");
  expect_refused(framed("\x3d\x01\x02"), Code::kInvalidArgument, "raw contents have wire type 5");
  expect_refused(framed("\x0b\x0c"), Code::kInvalidArgument, "wire type 3");
  expect_refused(framed(std::string_view("\x02\x01z", 3)), Code::kInvalidArgument, "field number 0");
  expect_refused(framed("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), Code::kInvalidArgument, "64 bits");
  expect_refused(framed("\x08\x01"), Code::kInvalidArgument, "model_name: field 1 has wire type 0");
}

TEST_F(InferReaderTest, IsDeadAfterAnError) {
  InferReader reader(InferMessage::kRequest, arena_, limits_);
  ASSERT_FALSE(reader.feed(as_bytes("\x02")));
  EXPECT_EQ(reader.feed(as_bytes("x")).error().code, Code::kFailedPrecondition);
  EXPECT_FALSE(reader.complete());
}

TEST_F(InferReaderTest, KnowsUnknownFieldsAndLetsThemPass) {
  const std::string extra = "\x78\x05" "\x7d" "abcd" "\x79" "abcdefgh" "\x7a\x02hi";
  const auto request = read(framed(simple_request().SerializeAsString() + extra));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->inputs.size(), 1U);
}

TEST_F(InferReaderTest, TakesFieldsInAnyOrder) {
  const std::string message = simple_request().SerializeAsString();
  Request raw;
  raw.add_raw_input_contents(simple_request().raw_input_contents(0));
  Request rest = simple_request();
  rest.clear_raw_input_contents();
  const auto request = read(framed(raw.SerializeAsString() + rest.SerializeAsString()));
  ASSERT_TRUE(request) << request.error().message;
  expect_same(*request, *read(framed(message)));
}

TEST_F(InferReaderTest, RefusesShapesThatDoNotHold) {
  const auto with_shape = [](std::initializer_list<std::int64_t> shape) {
    Request message = simple_request();
    message.mutable_inputs(0)->mutable_shape()->Assign(shape.begin(), shape.end());
    return message;
  };
  expect_refused(with_shape({-2}), Code::kInvalidArgument, "input 'x': shape [-2]");
  expect_refused(with_shape({3}), Code::kInvalidArgument, "needs 12 bytes, 8 were given");
  expect_refused(with_shape({}), Code::kInvalidArgument, "needs 4 bytes, 8 were given");
  expect_refused(with_shape({0, 5}), Code::kInvalidArgument, "needs 0 bytes, 8 were given");
  const std::int64_t big = std::int64_t{1} << 40;
  expect_refused(with_shape({big, big}), Code::kInvalidArgument, "more than 2^62 elements");
  expect_refused(with_shape({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}), Code::kInvalidArgument,
                 "more than 16 dimensions");
}

TEST_F(InferReaderTest, RefusesRawContentsThatDoNotMatchTheInputs) {
  Request message = simple_request();
  message.add_raw_input_contents("x");
  expect_refused(message, Code::kInvalidArgument, "raw_input_contents has 2 entries, the message has 1 inputs");
  message = simple_request();
  message.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  expect_refused(message, Code::kInvalidArgument, "input 'x': contents beside raw_input_contents");
  message = simple_request();
  message.clear_raw_input_contents();
  expect_refused(message, Code::kInvalidArgument, "need 2 elements, 0 were given");
}

TEST_F(InferReaderTest, RefusesNamesTwiceMissingOrTooLong) {
  Request message = simple_request();
  *message.add_inputs() = message.inputs(0);
  message.add_raw_input_contents(message.raw_input_contents(0));
  expect_refused(message, Code::kInvalidArgument, "input 'x' occurs more than once");
  message = simple_request();
  message.add_outputs()->set_name("y");
  message.add_outputs()->set_name("y");
  expect_refused(message, Code::kInvalidArgument, "output 'y' occurs more than once");
  message = simple_request();
  message.mutable_inputs(0)->set_name("");
  expect_refused(message, Code::kInvalidArgument, "input has no name");
  message.mutable_inputs(0)->set_name(std::string(513, 'n'));
  expect_refused(message, Code::kInvalidArgument, "513 bytes, the limit is 512");
  message = simple_request();
  message.mutable_inputs(0)->set_datatype("fp32");
  expect_refused(message, Code::kInvalidArgument, "input 'x': unknown datatype 'fp32'");
  message.mutable_inputs(0)->clear_datatype();
  expect_refused(message, Code::kInvalidArgument, "input 'x': datatype is missing");
}

TEST_F(InferReaderTest, RefusesReservedParametersOfAWrongKind) {
  Request message = simple_request();
  (*message.mutable_parameters())["priority"].set_int64_param(-1);
  expect_refused(message, Code::kInvalidArgument, "'priority' must be an integer");
  message = simple_request();
  (*message.mutable_parameters())["binary_data_output"].set_string_param("yes");
  expect_refused(message, Code::kInvalidArgument, "'binary_data_output' must be true or false");
  message = simple_request();
  (*message.mutable_parameters())["triton_anything"].set_bool_param(true);
  expect_refused(message, Code::kInvalidArgument, "reserved");
  message = simple_request();
  (*message.mutable_parameters())["none"];
  expect_refused(message, Code::kInvalidArgument, "parameter 'none' has no value");
  message = simple_request();
  (*message.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param("r");
  expect_refused(message, Code::kUnimplemented, "input 'x': shared memory");
  message = simple_request();
  (*message.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
  EXPECT_TRUE(read(message));
}

TEST_F(InferReaderTest, HoldsEveryLimit) {
  limits_.max_message_bytes = 10;
  expect_refused(simple_request(), Code::kResourceExhausted, "the limit is 10");
  limits_ = {};
  limits_.max_metadata_bytes = 12;
  expect_refused(simple_request(), Code::kResourceExhausted, "the limit is 12");
  expect_refused(framed("\x78\x01\x78\x01\x78\x01\x78\x01\x78\x01\x78\x01\x78\x01"), Code::kResourceExhausted,
                 "the limit is 12");
  limits_ = {};
  limits_.request.max_tensor_bytes = 7;
  expect_refused(simple_request(), Code::kResourceExhausted, "8 bytes, the limit is 7");
  Request typed = simple_request();
  typed.clear_raw_input_contents();
  typed.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  typed.mutable_inputs(0)->mutable_contents()->add_fp32_contents(2);
  expect_refused(typed, Code::kResourceExhausted, "8 bytes, the limit is 7");
  limits_ = {};
  limits_.request.max_inputs = 1;
  Request message = simple_request();
  message.add_raw_input_contents("");
  expect_refused(message, Code::kInvalidArgument, "more than 1 raw contents");
  message = simple_request();
  message.add_inputs();
  expect_refused(message, Code::kInvalidArgument, "more than 1 inputs");
  limits_ = {};
  limits_.request.max_outputs = 0;
  message = simple_request();
  message.add_outputs()->set_name("y");
  expect_refused(message, Code::kInvalidArgument, "more than 0 outputs");
  limits_ = {};
  limits_.request.max_parameters = 1;
  (*message.mutable_parameters())["a"].set_bool_param(true);
  (*message.mutable_parameters())["b"].set_bool_param(true);
  expect_refused(message, Code::kInvalidArgument, "more than 1 parameters");
}

TEST_F(InferReaderTest, GivesEveryBufferBackAfterAnError) {
  Request message = simple_request();
  message.mutable_inputs(0)->set_datatype("INT8");
  expect_refused(message, Code::kInvalidArgument, "needs 2 bytes, 8 were given");
  EXPECT_EQ(arena_.usage().blocks, 0U);
}

}  // namespace
}  // namespace sluice::grpc_wire
