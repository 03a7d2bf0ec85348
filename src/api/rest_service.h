// The Open Inference Protocol over REST, with Triton's paths.
//
//   GET  /v2 | /v2/health/live | /v2/health/ready | /v2/models/stats
//   GET  /v2/models/{m}[/versions/{v}] [/ready | /config | /stats]
//   POST /v2/models/{m}[/versions/{v}]/infer
//   POST /v2/repository/index
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "api/oip_service.h"

namespace sluice::api {

std::unique_ptr<net::RequestHandler> open_rest(ServerState& state, net::Exchange& exchange);

// A path below /v2/models/: its model, version ("" when it is not named) and last word ("" for metadata).
struct ModelPath {
  std::string_view model, version, verb;
};
// nullopt: not a path of this form. Names are not checked here.
std::optional<ModelPath> parse_model_path(std::string_view path);

}  // namespace sluice::api
