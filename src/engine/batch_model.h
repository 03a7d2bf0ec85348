// The first engine seam: a loaded model that runs batches.
//
// Owner: serving holds it by shared_ptr<BatchModel>; a batch in flight keeps it alive. Dropping the last
// reference unloads. Thread: submit() from any thread, never blocks its caller; `done` is called exactly
// once, on any thread (for an inline model: on the caller's, before submit() returns). The engine knows no
// wire and no sockets.
//
// A Batch brings the requests' tensors as they came; how they become one (not at all for one request, one
// gather for several, a copy to a device) is the engine's business. Outputs come back per batch, whole;
// serving hands each request its rows as views of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/function.h"
#include "base/time.h"
#include "tensor/tensor.h"
#include "model/model_config.h"

namespace sluice::engine {

// One request's part: a tensor for each of the model's inputs, in the model's order (an optional input that
// is absent has datatype kInvalid), and how many rows it brings (1 for a model without a batch dimension).
struct BatchItem {
  std::vector<Tensor> inputs;
  std::int64_t rows = 1;
};

struct Batch {
  std::vector<BatchItem> items;   // at least one; shapes beyond the first dimension are equal
  std::int64_t rows = 0;          // sum over items, at most max_batch_size when that is > 0
  std::vector<bool> wanted;       // per model output: whether anybody asked for it; empty = all
};

struct BatchOutput {
  // One per model output in the model's order; first dimension = rows for models with a batch dimension.
  // Outputs that nobody wanted may have datatype kInvalid.
  std::vector<Tensor> outputs;
  Time compute_start;  // inputs assembled
  Time compute_end;
};

using BatchDone = Function<void(Result<BatchOutput>)>;

struct MemoryFigures {
  std::uint64_t weights_bytes = 0;      // resident for the model itself
  std::uint64_t workspace_bytes = 0;    // arenas of the runtime, as far as known
};

class BatchModel {
 public:
  virtual ~BatchModel() = default;
  virtual const ModelSignature& signature() const = 0;
  // Runs on the model's instances; the caller keeps at most instance_count batches in flight.
  virtual void submit(Batch batch, BatchDone done) = 0;
  virtual MemoryFigures memory() const = 0;
  // True: submit() runs the batch on the caller's thread (a model that is declared cheap).
  virtual bool runs_inline() const = 0;
};

}  // namespace sluice::engine
