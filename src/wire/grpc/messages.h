// The small messages of inference.GRPCInferenceService and grpc.health.v1, unframed bytes <-> structs.
// Written with protobuf's generated code (proto/*.proto), which stays inside wire/.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "model/infer.h"

namespace sluice::grpc_wire {

struct ModelRef {  // ModelReadyRequest, ModelMetadataRequest, ...: name = 1, version = 2
  std::string name;
  std::string version;
};
Result<ModelRef> parse_model_ref(std::string_view message);
std::string encode_model_ref(const ModelRef& ref);

std::string encode_bool(bool value);  // ServerLive, ServerReady, ModelReady: field 1
Result<bool> parse_bool(std::string_view message);
std::string encode_server_metadata(const ServerMetadata& metadata);
std::string encode_model_metadata(const ModelMetadata& metadata);
Result<ModelMetadata> parse_model_metadata(std::string_view message);

enum class HealthStatus { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };
Result<std::string> parse_health_request(std::string_view message);  // the service's name
std::string encode_health_response(HealthStatus status);

}  // namespace sluice::grpc_wire
