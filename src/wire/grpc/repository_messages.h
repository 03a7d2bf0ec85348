// What a replica holds, over gRPC: ModelConfigResponse and RepositoryIndexResponse, unframed.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/model_config.h"
#include "wire/oip/repository.h"

namespace sluice::grpc_wire {

// kInternal when the configuration's own text form does not read back (a bug, shown to the caller).
Result<std::string> encode_model_config(const ModelConfig& config);

// RepositoryIndexRequest.ready: only models that are ready are asked for.
Result<bool> parse_index_request(std::string_view message);
std::string encode_repository_index(std::span<const oip::IndexEntry> entries);

}  // namespace sluice::grpc_wire
