#include "wire/grpc/statistics.h"

#include "inference.pb.h"

namespace sluice::grpc_wire {
namespace {

void set(inference::StatisticDuration* to, const DurationStat& from) {
  to->set_count(from.count);
  to->set_ns(from.ns);
}

void set_model(inference::ModelStatistics* to, const ModelStatsSnapshot& from) {
  to->set_name(from.name);
  to->set_version(from.version);
  to->set_last_inference(from.last_inference_ms);
  to->set_inference_count(from.inference_count);
  to->set_execution_count(from.execution_count);
  inference::InferStatistics* stats = to->mutable_inference_stats();
  set(stats->mutable_success(), from.success);
  set(stats->mutable_fail(), from.fail);
  set(stats->mutable_queue(), from.queue);
  set(stats->mutable_compute_input(), from.compute_input);
  set(stats->mutable_compute_infer(), from.compute_infer);
  set(stats->mutable_compute_output(), from.compute_output);
  for (const auto& [size, batch] : from.batches) {
    inference::InferBatchStatistics* each = to->add_batch_stats();
    each->set_batch_size(size);
    set(each->mutable_compute_input(), batch.compute_input);
    set(each->mutable_compute_infer(), batch.compute_infer);
    set(each->mutable_compute_output(), batch.compute_output);
  }
  if (from.memory_bytes > 0) {
    inference::MemoryUsage* memory = to->add_memory_usage();
    memory->set_type("CPU");
    memory->set_byte_size(from.memory_bytes);
  }
}

}  // namespace

std::string encode_model_statistics(std::span<const ModelStatsSnapshot> models) {
  inference::ModelStatisticsResponse response;
  for (const auto& model : models) set_model(response.add_model_stats(), model);
  return response.SerializeAsString();
}

}  // namespace sluice::grpc_wire
