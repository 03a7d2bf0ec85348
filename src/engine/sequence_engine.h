// The second engine seam: an engine that owns its scheduler, for work that takes many steps and streams its
// results (language models: continuous batching over a paged KV cache). Serving admits, times out and cancels;
// in which step a sequence takes part is decided inside.
//
// Thread: any; never blocks. Exactly one terminal per accepted submit(), also after cancel().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "engine/batch_model.h"

namespace sluice::engine {

using SequenceId = std::uint64_t;

struct SequenceRequest {
  std::vector<std::int32_t> prompt;   // token ids
  std::uint32_t max_tokens = 16;
  double temperature = 1.0;           // 0 = greedy
  double top_p = 1.0;
  std::uint32_t top_k = 0;            // 0 = off
  std::uint64_t seed = 0;
  std::vector<std::int32_t> stop_tokens;
  std::string fairness_key;           // tenant or adapter; "" = shared
  std::uint64_t priority = 0;         // 0 = default, 1 = highest
  Time deadline = kNever;
};

struct SequenceUsage {
  std::uint32_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
};

class SequenceSink {
 public:
  virtual ~SequenceSink() = default;
  virtual void on_token(std::int32_t token, float logprob) = 0;
  virtual void on_terminal(Status status, const SequenceUsage& usage) = 0;
};

class SequenceEngine {
 public:
  virtual ~SequenceEngine() = default;
  // kResourceExhausted: the queue is full; kInvalidArgument: it could never fit (names size and limit).
  // On an error the sink is destroyed uncalled.
  virtual Result<SequenceId> submit(SequenceRequest request, std::unique_ptr<SequenceSink> sink) = 0;
  virtual void cancel(SequenceId id) = 0;
  virtual MemoryFigures memory() const = 0;
};

}  // namespace sluice::engine
