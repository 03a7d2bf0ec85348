// A blocking client of a replica for the command line: one loop of its own, one call at a time.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "io/runtime.h"
#include "model/infer.h"
#include "net/client.h"

namespace sluice::cli {

class ApiClient {
 public:
  ApiClient(const io::Endpoint& endpoint, net::Protocol protocol, Duration timeout);
  ~ApiClient();

  // kUnavailable when nobody listens there; an HTTP status of 400 and above becomes an error with the
  // server's text.
  Result<net::ClientResponse> call(net::Method method, std::string target, Payload body = {},
                                   std::vector<std::pair<std::string, std::string>> headers = {});
  // One unary gRPC call; the message, unframed.
  Result<std::string> grpc(std::string_view path, Payload framed);

  Result<ModelMetadata> model_metadata(const std::string& model, const std::string& version);
  io::Loop& loop() { return runtime_.loop(); }
  Arena& arena() { return arena_; }

 private:
  Time deadline();

  io::Runtime runtime_;
  Arena arena_;
  Duration timeout_;
  std::unique_ptr<net::HttpClient> client_;  // on the loop
};

// "/v2/models/m" or "/v2/models/m/versions/1"
std::string model_path(const std::string& model, const std::string& version);

}  // namespace sluice::cli
