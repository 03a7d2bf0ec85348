#include "wire/oip/statistics.h"

#include <simdjson.h>

#include <fmt/format.h>

#include "base/json_writer.h"

namespace sluice::oip {
namespace {

void write_duration(JsonWriter& json, std::string_view key, const DurationStat& stat) {
  json.key(key).begin_object();
  json.key("count").unsigned_integer(stat.count);
  json.key("ns").unsigned_integer(stat.ns);
  json.end_object();
}

void write_model(JsonWriter& json, const ModelStatsSnapshot& model) {
  json.begin_object();
  json.key("name").string(model.name).key("version").string(model.version);
  json.key("last_inference").unsigned_integer(model.last_inference_ms);
  json.key("inference_count").unsigned_integer(model.inference_count);
  json.key("execution_count").unsigned_integer(model.execution_count);
  json.key("inference_stats").begin_object();
  write_duration(json, "success", model.success);
  write_duration(json, "fail", model.fail);
  write_duration(json, "queue", model.queue);
  write_duration(json, "compute_input", model.compute_input);
  write_duration(json, "compute_infer", model.compute_infer);
  write_duration(json, "compute_output", model.compute_output);
  write_duration(json, "cache_hit", {});
  write_duration(json, "cache_miss", {});
  json.end_object();
  json.key("response_stats").begin_object().end_object();
  json.key("batch_stats").begin_array();
  for (const auto& [size, batch] : model.batches) {
    json.begin_object().key("batch_size").unsigned_integer(size);
    write_duration(json, "compute_input", batch.compute_input);
    write_duration(json, "compute_infer", batch.compute_infer);
    write_duration(json, "compute_output", batch.compute_output);
    json.end_object();
  }
  json.end_array();
  json.key("memory_usage").begin_array();
  if (model.memory_bytes > 0) {
    json.begin_object().key("type").string("CPU").key("id").integer(0);
    json.key("byte_size").unsigned_integer(model.memory_bytes).end_object();
  }
  json.end_array();
  json.end_object();
}

DurationStat read_duration(simdjson::dom::element parent, std::string_view key) {
  DurationStat stat;
  std::uint64_t value = 0;
  simdjson::dom::element element;
  if (parent[key].get(element) != simdjson::SUCCESS) return stat;
  if (element["count"].get(value) == simdjson::SUCCESS) stat.count = value;
  if (element["ns"].get(value) == simdjson::SUCCESS) stat.ns = value;
  return stat;
}

ModelStatsSnapshot read_model(simdjson::dom::element element) {
  ModelStatsSnapshot model;
  std::string_view text;
  if (element["name"].get(text) == simdjson::SUCCESS) model.name = text;
  if (element["version"].get(text) == simdjson::SUCCESS) model.version = text;
  std::uint64_t value = 0;
  if (element["last_inference"].get(value) == simdjson::SUCCESS) model.last_inference_ms = value;
  if (element["inference_count"].get(value) == simdjson::SUCCESS) model.inference_count = value;
  if (element["execution_count"].get(value) == simdjson::SUCCESS) model.execution_count = value;
  simdjson::dom::element stats;
  if (element["inference_stats"].get(stats) == simdjson::SUCCESS) {
    model.success = read_duration(stats, "success");
    model.fail = read_duration(stats, "fail");
    model.queue = read_duration(stats, "queue");
    model.compute_input = read_duration(stats, "compute_input");
    model.compute_infer = read_duration(stats, "compute_infer");
    model.compute_output = read_duration(stats, "compute_output");
  }
  simdjson::dom::array batches;
  if (element["batch_stats"].get(batches) != simdjson::SUCCESS) return model;
  for (const simdjson::dom::element each : batches) {
    if (each["batch_size"].get(value) != simdjson::SUCCESS) continue;
    BatchStat& batch = model.batches[value];
    batch.batch_size = value;
    batch.compute_input = read_duration(each, "compute_input");
    batch.compute_infer = read_duration(each, "compute_infer");
    batch.compute_output = read_duration(each, "compute_output");
  }
  return model;
}

}  // namespace

std::string encode_statistics(std::span<const ModelStatsSnapshot> models) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("model_stats").begin_array();
  for (const auto& model : models) write_model(json, model);
  json.end_array().end_object();
  return out;
}

Result<std::vector<ModelStatsSnapshot>> parse_statistics(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  const simdjson::padded_string padded(text);
  if (const auto error = parser.parse(padded).get(document); error != simdjson::SUCCESS) {
    return fail(Code::kInvalidArgument, fmt::format("statistics are not JSON: {}", simdjson::error_message(error)));
  }
  simdjson::dom::array array;
  if (document["model_stats"].get(array) != simdjson::SUCCESS) {
    return fail(Code::kInvalidArgument, "statistics lack 'model_stats'");
  }
  std::vector<ModelStatsSnapshot> models;
  for (const simdjson::dom::element each : array) models.push_back(read_model(each));
  return models;
}

}  // namespace sluice::oip
