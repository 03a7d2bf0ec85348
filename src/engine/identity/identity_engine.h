// The backend "identity": output i is input i, for any number of tensors of any datatype and shape. The whole
// model is its configuration; there is no file. For tests, for measuring what a server costs beside its models,
// and for trying a client.
//
//   input [{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }]      outputs may be left out: OUTPUT0, ...
//   parameters { key: "sluice.inline" value { string_value: "false" } }   run on the compute pool, not on the caller
//   parameters { key: "busy_us" value { string_value: "200" } }           keeps its core busy for so long a batch
//
// Without a copy: the output of a batch of one is the input's own buffer.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace sluice::engine {

// A batch keeps its core busy for at most this long.
inline constexpr std::uint64_t kMaxBusyUs = 10'000'000;

// `context` outlives the engine and its models.
std::unique_ptr<Engine> make_identity_engine(const EngineContext& context);

}  // namespace sluice::engine
