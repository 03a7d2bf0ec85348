#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/onnx/ort_runtime.h"
#include "io/process.h"

namespace sluice::engine {
namespace {

// Official builds from 1.29 on send usage data to their vendor unless this is set before they are opened. A server
// tells nobody what it serves.
constexpr const char* kNoTelemetry = "ORT_DISABLE_TELEMETRY";

constexpr const char* kLibraryName = "libonnxruntime.so.1";

std::vector<std::string> places(const std::string& given) {
  if (!given.empty()) return {given};
  std::vector<std::string> found;
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    found.push_back((executable.parent_path().parent_path() / "lib" / "sluice" / kLibraryName).string());
  }
#ifdef SLUICE_DEPS_DIR
  found.push_back(fmt::format("{}/onnxruntime/lib/{}", SLUICE_DEPS_DIR, kLibraryName));
#endif
  found.push_back(kLibraryName);
  found.push_back("libonnxruntime.so");
  return found;
}

}  // namespace

Result<const OrtApiBase*> open_ort_library(const std::string& given) {
  io::set_environment(kNoTelemetry, "1");
  std::string tried;
  for (const std::string& place : places(given)) {
    void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* reason = dlerror();
      tried += fmt::format("{}'{}' ({})", tried.empty() ? "" : ", ", place, reason ? reason : "unknown reason");
      continue;
    }
    void* entry = dlsym(library, "OrtGetApiBase");
    if (!entry)
      return fail(Code::kFailedPrecondition, fmt::format("'{}' is no ONNX Runtime: it has no OrtGetApiBase", place));
    return reinterpret_cast<const OrtApiBase* (*)()>(entry)();
  }
  return fail(Code::kUnavailable, fmt::format("ONNX Runtime was not found; tried {}", tried));
}

}  // namespace sluice::engine
