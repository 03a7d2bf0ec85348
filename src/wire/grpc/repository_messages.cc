#include "wire/grpc/repository_messages.h"

#include <google/protobuf/text_format.h>

#include <fmt/format.h>

#include "inference.pb.h"
#include "wire/config/pbtxt.h"

namespace sluice::grpc_wire {

Result<std::string> encode_model_config(const ModelConfig& config) {
  inference::ModelConfigResponse response;
  if (!google::protobuf::TextFormat::ParseFromString(format_model_config(config), response.mutable_config())) {
    return fail(Code::kInternal, fmt::format("the configuration of model '{}' does not read back", config.name));
  }
  return response.SerializeAsString();
}

Result<bool> parse_index_request(std::string_view message) {
  inference::RepositoryIndexRequest request;
  if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return fail(Code::kInvalidArgument, fmt::format("{} bytes are not a RepositoryIndexRequest", message.size()));
  }
  return request.ready();
}

std::string encode_repository_index(std::span<const oip::IndexEntry> entries) {
  inference::RepositoryIndexResponse response;
  for (const oip::IndexEntry& entry : entries) {
    auto* model = response.add_models();
    model->set_name(entry.name);
    model->set_version(entry.version);
    model->set_state(entry.state);
    model->set_reason(entry.reason);
  }
  return response.SerializeAsString();
}

}  // namespace sluice::grpc_wire
