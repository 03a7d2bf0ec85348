// The backend "onnxruntime": general graphs (*.onnx) on ONNX Runtime's CPU provider.
//
// The library is opened at run time, so that Sluice builds and starts without it. Searched in this order, the first
// one that is there is taken:
//   1. OnnxOptions::library, when it is given (no other place is tried then)
//   2. ../lib/sluice/libonnxruntime.so.1 beside the executable: an installed Sluice
//   3. the build's dependency folder
//   4. libonnxruntime.so.1, libonnxruntime.so: the system's
//
//   submit -> slice of the compute pool, instance_count wide -> assemble -> OrtRun -> outputs in the arena's memory
//
// One environment a process. Threads: a run of a model whose instances cover the compute pool's threads stays on its
// own thread; otherwise it spreads over one pool that all models share, which does not spin. Inputs are read where
// they lie; outputs are handed out where the runtime put them. Memory of runs comes from one bounded arena; weights
// are the session's, one session a model version whatever its instance_count, and go back at unload.
//
// The runtime's telemetry is off, always.
//
// Errors: a request that the model refuses (rank, dimension) is kInvalidArgument; a model file that cannot be loaded
// is kInvalidArgument naming the file; a workspace that is full is kResourceExhausted; what fails inside the graph
// is kInternal. All carry the runtime's own words.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "stats/log.h"

namespace sluice::engine {

struct OnnxOptions {
  std::string library;                                     // path of libonnxruntime.so; "" = the places above
  int threads = 0;                                         // that one run may spread over; 0 = the compute pool's
  std::size_t max_workspace_bytes = std::size_t{8} << 30;  // of all runs together, outputs in flight included
  std::size_t max_idle_bytes = std::size_t{512} << 20;     // of it, kept for the next runs
  const Log* log = nullptr;                                // the runtime's own lines, at debug level; may be null
};

// At most one in a process at a time. `context` (and the log) outlive the engine, its models and their outputs.
// kUnavailable: no library was found, naming the places; kFailedPrecondition: one that is too old.
Result<std::unique_ptr<Engine>> make_onnx_engine(const EngineContext& context, const OnnxOptions& options);

}  // namespace sluice::engine
