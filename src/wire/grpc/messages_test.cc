#include "wire/grpc/messages.h"

#include <gtest/gtest.h>

#include "health.pb.h"
#include "inference.pb.h"

namespace sluice::grpc_wire {
namespace {

TEST(ModelRefMessage, IsNameAndVersionOfEveryRequestThatNamesAModel) {
  inference::ModelMetadataRequest request;
  request.set_name("ocr");
  request.set_version("3");
  const auto ref = parse_model_ref(request.SerializeAsString());
  ASSERT_TRUE(ref);
  EXPECT_EQ(ref->name, "ocr");
  EXPECT_EQ(ref->version, "3");
  inference::ModelMetadataRequest back;
  ASSERT_TRUE(back.ParseFromString(encode_model_ref(*ref)));
  EXPECT_EQ(back.name(), "ocr");
  EXPECT_EQ(back.version(), "3");
}

TEST(ModelRefMessage, RefusesBytesThatAreNotProtobuf) {
  for (const std::string_view bytes : {std::string_view("\x0a\x05xy", 4), std::string_view("\xff\xff", 2),
                                      std::string_view("\x0a\x01\xff", 3)}) {
    const auto ref = parse_model_ref(bytes);
    ASSERT_FALSE(ref);
    EXPECT_EQ(ref.error().code, Code::kInvalidArgument);
    EXPECT_NE(ref.error().message.find("ModelReadyRequest"), std::string::npos) << ref.error().message;
  }
}

TEST(ModelRefMessage, RefusesWhatIsTooLarge) {
  const auto ref = parse_model_ref(std::string((4 << 20) + 1, '\0'));
  ASSERT_FALSE(ref);
  EXPECT_EQ(ref.error().code, Code::kResourceExhausted);
  EXPECT_NE(ref.error().message.find("4194304"), std::string::npos) << ref.error().message;
}

TEST(BoolMessage, IsFieldOne) {
  for (const bool value : {false, true}) {
    inference::ModelReadyResponse ready;
    ASSERT_TRUE(ready.ParseFromString(encode_bool(value)));
    EXPECT_EQ(ready.ready(), value);
    EXPECT_EQ(parse_bool(encode_bool(value)), value);
  }
  EXPECT_FALSE(parse_bool("\x08").has_value());
}

TEST(MetadataMessages, CarryTheServerAndTheModel) {
  inference::ServerMetadataResponse server;
  ASSERT_TRUE(server.ParseFromString(
      encode_server_metadata({.name = "sluice", .version = "0.1.0", .extensions = {"parameters", "statistics"}})));
  EXPECT_EQ(server.name(), "sluice");
  EXPECT_EQ(server.version(), "0.1.0");
  ASSERT_EQ(server.extensions_size(), 2);
  EXPECT_EQ(server.extensions(1), "statistics");

  const ModelMetadata model{.name = "m",
                            .versions = {"1", "2"},
                            .platform = "onnxruntime_onnx",
                            .inputs = {{.name = "x", .datatype = DataType::kFp32, .shape = {-1, 3}}},
                            .outputs = {{.name = "y", .datatype = DataType::kBytes, .shape = {-1}}}};
  const auto back = parse_model_metadata(encode_model_metadata(model));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->name, "m");
  EXPECT_EQ(back->versions, model.versions);
  EXPECT_EQ(back->platform, model.platform);
  ASSERT_EQ(back->inputs.size(), 1U);
  EXPECT_EQ(back->inputs[0].name, "x");
  EXPECT_EQ(back->inputs[0].datatype, DataType::kFp32);
  EXPECT_EQ(back->inputs[0].shape, (Shape{-1, 3}));
  ASSERT_EQ(back->outputs.size(), 1U);
  EXPECT_EQ(back->outputs[0].datatype, DataType::kBytes);
}

TEST(MetadataMessages, NameADatatypeThatIsUnknown) {
  inference::ModelMetadataResponse message;
  message.add_outputs()->set_datatype("FP8");
  const auto back = parse_model_metadata(message.SerializeAsString());
  ASSERT_FALSE(back);
  EXPECT_NE(back.error().message.find("FP8"), std::string::npos);
}

TEST(HealthMessages, AreThoseOfGrpcHealth) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service("inference.GRPCInferenceService");
  EXPECT_EQ(parse_health_request(request.SerializeAsString()), "inference.GRPCInferenceService");
  EXPECT_EQ(parse_health_request(""), "");
  EXPECT_FALSE(parse_health_request("\x0a").has_value());
  for (const auto status :
       {HealthStatus::kUnknown, HealthStatus::kServing, HealthStatus::kNotServing, HealthStatus::kServiceUnknown}) {
    grpc::health::v1::HealthCheckResponse response;
    ASSERT_TRUE(response.ParseFromString(encode_health_response(status)));
    EXPECT_EQ(static_cast<int>(response.status()), static_cast<int>(status));
  }
}

}  // namespace
}  // namespace sluice::grpc_wire
