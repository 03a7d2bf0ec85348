#include "api/oip_service.h"

#include "api/grpc_service.h"
#include "api/rest_service.h"

namespace sluice::api {
namespace {

class OipService final : public net::Service {
 public:
  explicit OipService(ServerState& state) : state_(state) {}

  std::unique_ptr<net::RequestHandler> open(net::Exchange& exchange) override {
    const auto& head = exchange.head();
    const bool grpc = head.protocol == net::Protocol::kHttp2 &&
                      head.headers.get("content-type").value_or("").starts_with("application/grpc");
    return grpc ? open_grpc(state_, exchange) : open_rest(state_, exchange);
  }

 private:
  ServerState& state_;
};

}  // namespace

std::unique_ptr<net::Service> make_oip_service(ServerState& state) { return std::make_unique<OipService>(state); }

}  // namespace sluice::api
