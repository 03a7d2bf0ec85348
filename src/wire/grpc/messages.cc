#include "wire/grpc/messages.h"

#include <utility>

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include "health.pb.h"
#include "inference.pb.h"

namespace sluice::grpc_wire {
namespace {

// These messages hold a name or two, or a model's signature: a larger one is not meant well.
constexpr std::size_t kMaxSmallMessageBytes = std::size_t{4} << 20;

template <class Message>
Result<Message> parse(std::string_view bytes) {
  if (bytes.size() > kMaxSmallMessageBytes) {
    return fail(Code::kResourceExhausted, fmt::format("{}: {} bytes, the limit is {}", Message().GetTypeName(),
                                                      bytes.size(), kMaxSmallMessageBytes));
  }
  const google::protobuf::LogSilencer quiet;  // what a client sends wrongly is an answer to it, not a line of log
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(Code::kInvalidArgument,
                fmt::format("the request is not a {} ({} bytes do not parse)", message.GetTypeName(), bytes.size()));
  }
  return message;
}

using TensorMessage = inference::ModelMetadataResponse::TensorMetadata;

void fill(TensorMessage& message, const TensorMetadata& tensor) {
  message.set_name(tensor.name);
  message.set_datatype(std::string(datatype_name(tensor.datatype)));
  message.mutable_shape()->Assign(tensor.shape.begin(), tensor.shape.end());
}

Result<TensorMetadata> read(const TensorMessage& message) {
  const auto datatype = parse_datatype(message.datatype());
  if (!datatype) {
    return fail(Code::kInvalidArgument,
                fmt::format("tensor '{}': unknown datatype '{}'", message.name(), message.datatype()));
  }
  return TensorMetadata{.name = message.name(),
                        .datatype = *datatype,
                        .shape = Shape(message.shape().begin(), message.shape().end())};
}

template <class Messages>
Result<std::vector<TensorMetadata>> read_all(const Messages& messages) {
  std::vector<TensorMetadata> out;
  for (const TensorMessage& message : messages) {
    auto tensor = read(message);
    if (!tensor) return fail(std::move(tensor.error()));
    out.push_back(std::move(*tensor));
  }
  return out;
}

}  // namespace

Result<ModelRef> parse_model_ref(std::string_view message) {
  auto parsed = parse<inference::ModelReadyRequest>(message);
  if (!parsed) return fail(std::move(parsed.error()));
  return ModelRef{parsed->name(), parsed->version()};
}

std::string encode_model_ref(const ModelRef& ref) {
  inference::ModelReadyRequest message;
  message.set_name(ref.name);
  message.set_version(ref.version);
  return message.SerializeAsString();
}

std::string encode_bool(bool value) {
  inference::ServerLiveResponse message;
  message.set_live(value);
  return message.SerializeAsString();
}

Result<bool> parse_bool(std::string_view message) {
  auto parsed = parse<inference::ServerLiveResponse>(message);
  if (!parsed) return fail(std::move(parsed.error()));
  return parsed->live();
}

std::string encode_server_metadata(const ServerMetadata& metadata) {
  inference::ServerMetadataResponse message;
  message.set_name(metadata.name);
  message.set_version(metadata.version);
  for (const std::string& extension : metadata.extensions) message.add_extensions(extension);
  return message.SerializeAsString();
}

std::string encode_model_metadata(const ModelMetadata& metadata) {
  inference::ModelMetadataResponse message;
  message.set_name(metadata.name);
  for (const std::string& version : metadata.versions) message.add_versions(version);
  message.set_platform(metadata.platform);
  for (const TensorMetadata& tensor : metadata.inputs) fill(*message.add_inputs(), tensor);
  for (const TensorMetadata& tensor : metadata.outputs) fill(*message.add_outputs(), tensor);
  return message.SerializeAsString();
}

Result<ModelMetadata> parse_model_metadata(std::string_view message) {
  auto parsed = parse<inference::ModelMetadataResponse>(message);
  if (!parsed) return fail(std::move(parsed.error()));
  auto inputs = read_all(parsed->inputs());
  if (!inputs) return fail(std::move(inputs.error()));
  auto outputs = read_all(parsed->outputs());
  if (!outputs) return fail(std::move(outputs.error()));
  return ModelMetadata{.name = parsed->name(),
                       .versions = {parsed->versions().begin(), parsed->versions().end()},
                       .platform = parsed->platform(),
                       .inputs = std::move(*inputs),
                       .outputs = std::move(*outputs)};
}

Result<std::string> parse_health_request(std::string_view message) {
  auto parsed = parse<grpc::health::v1::HealthCheckRequest>(message);
  if (!parsed) return fail(std::move(parsed.error()));
  return parsed->service();
}

std::string encode_health_response(HealthStatus status) {
  grpc::health::v1::HealthCheckResponse message;
  message.set_status(static_cast<grpc::health::v1::HealthCheckResponse::ServingStatus>(status));
  return message.SerializeAsString();
}

}  // namespace sluice::grpc_wire
