// The server's own parse of a JSON request (150,528 floats: one picture of 3 x 224 x 224) against simdjson alone
// on the same bytes. Both walk the numbers into a float array; the server's also reads the rest of the request,
// checks ranges, counts and names, and takes the array from an arena. Rounds alternate, medians are compared.
//
//   bench_json [--quick]
#include <fmt/format.h>
#include <sched.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "base/random.h"
#include "wire/oip/json.h"

namespace {

constexpr int kFloats = 150'528;

std::string make_body() {
  sluice::Random random(1);
  std::string json = R"({"inputs":[{"name":"x","shape":[1,3,224,224],"datatype":"FP32","data":[)";
  char digits[32];
  for (int i = 0; i < kFloats; ++i) {
    if (i > 0) json += ',';
    json.append(digits, std::to_chars(digits, digits + sizeof digits, static_cast<float>(random.unit())).ptr);
  }
  return json + "]}]}";
}

void pin_to_this_cpu() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(sched_getcpu(), &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) fmt::print("not pinned: {}\n", std::strerror(errno));
}

double ms_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Contender {
  const char* name;
  std::function<void()> parse;
  std::vector<double> ms;
};

[[noreturn]] void stop(std::string_view reason) {
  fmt::print(stderr, "bench_json: {}\n", reason);
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  const int rounds = quick ? 31 : 201;
  pin_to_this_cpu();

  const std::string text = make_body();
  const simdjson::padded_string padded(text);
  sluice::Arena arena{sluice::Arena::Options{}};
  const sluice::RequestLimits limits;
  std::vector<float> floats(kFloats);

  simdjson::dom::parser dom;
  simdjson::ondemand::parser ondemand;
  const auto parse_dom = [&] {
    float* out = floats.data();
    for (const auto input : dom.parse(padded)["inputs"].get_array()) {
      for (const auto value : input["data"].get_array()) *out++ = static_cast<float>(double(value));
    }
  };
  const auto parse_ondemand = [&] {
    float* out = floats.data();
    auto document = ondemand.iterate(padded);
    for (auto input : document["inputs"].get_array()) {
      for (auto value : input["data"].get_array()) *out++ = static_cast<float>(double(value));
    }
  };
  const auto parse_server = [&](std::size_t readable) {
    const sluice::oip::JsonBody body{
        .json = {padded.data(), padded.size()}, .binary = {}, .readable_past_json = readable};
    const auto request = sluice::oip::parse_infer_request(body, arena, limits);
    if (!request) stop(request.error().message);
    const auto data = request->inputs[0].tensor.data;
    if (data.size() != sizeof(float) * kFloats || std::memcmp(data.data(), floats.data(), data.size()) != 0) {
      stop("the server's floats are not simdjson's");
    }
  };

  Contender contenders[] = {{"simdjson, DOM", parse_dom, {}},
                            {"simdjson, on demand", parse_ondemand, {}},
                            {"server, padded body", [&] { parse_server(sluice::oip::kJsonPadding); }, {}},
                            {"server, body to be copied", [&] { parse_server(0); }, {}}};
  constexpr int kWarmUp = 3;
  for (int round = -kWarmUp; round < rounds; ++round) {
    for (Contender& contender : contenders) {
      const double ms = ms_of(contender.parse);
      if (round >= 0) contender.ms.push_back(ms);
    }
  }

  fmt::print("simdjson {} ({}), flags \"{}\", {} floats, {} bytes, median of {}\n",
             SIMDJSON_STRINGIFY(SIMDJSON_VERSION),
             simdjson::get_active_implementation()->name(), SLUICE_BENCH_FLAGS, kFloats, text.size(), rounds);
  for (const Contender& contender : contenders) fmt::print("{:28} {:.3f} ms\n", contender.name, median(contender.ms));
  const double alone = std::min(median(contenders[0].ms), median(contenders[1].ms));
  fmt::print("ratio json_vs_simdjson {:.3f}\n", median(contenders[2].ms) / alone);
  fmt::print("ratio json_vs_simdjson_copied {:.3f}\n", median(contenders[3].ms) / alone);
}
