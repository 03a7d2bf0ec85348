#include "engine/onnx/ort_session.h"

#include <fmt/format.h>
#include <malloc.h>
#include <onnxruntime_session_options_config_keys.h>

#include <filesystem>

#include "engine/onnx/ort_tensor.h"
#include "io/files.h"

namespace sluice::engine {
namespace {

// A protobuf message ends there, and so a model without external data.
constexpr std::size_t kMaxModelBytes = std::size_t{2} << 30;

Result<OrtPtr<OrtSessionOptions>> session_options(const OrtRuntime& runtime, const std::string& path, SessionUse use) {
  const OrtApi& api = runtime.api();
  OrtSessionOptions* raw = nullptr;
  if (auto made = runtime.check(api.CreateSessionOptions(&raw), "session options"); !made) return fail(made.error());
  OrtPtr<OrtSessionOptions> options(raw, api.ReleaseSessionOptions);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const bool inspect = use == SessionUse::kInspect;
  std::vector<OrtStatus*> steps = {
      api.SetSessionGraphOptimizationLevel(raw, inspect ? ORT_DISABLE_ALL : ORT_ENABLE_ALL),
      api.AddSessionConfigEntry(raw, kOrtSessionOptionsConfigUseEnvAllocators, "1"),
      // Weights do not go into the runs' arena, whose blocks are pooled: an unload gives them back.
      api.AddSessionConfigEntry(raw, kOrtSessionOptionsUseDeviceAllocatorForInitializers, "1"),
      api.AddSessionConfigEntry(raw, kOrtSessionOptionsModelExternalInitializersFileFolderPath,
                                folder.empty() ? "." : folder.c_str()),
      api.AddSessionConfigEntry(raw, kOrtSessionOptionsConfigDisablePrepacking, inspect ? "1" : "0"),
  };
  if (use == SessionUse::kSharedThreads) {
    steps.push_back(api.DisablePerSessionThreads(raw));
  } else {
    // One thread, which is the caller's: the runtime makes none.
    steps.push_back(api.SetIntraOpNumThreads(raw, 1));
    steps.push_back(api.SetInterOpNumThreads(raw, 1));
  }
  Status result;
  for (OrtStatus* step : steps) {
    if (auto done = runtime.check(step, "session options"); !done && result) result = done;
  }
  if (!result) return fail(result.error());
  return options;
}

Result<TensorMetadata> describe(const OrtRuntime& runtime, const OrtTypeInfo* type, std::string name) {
  const OrtApi& api = runtime.api();
  const OrtTensorTypeAndShapeInfo* info = nullptr;  // part of `type`
  if (auto got = runtime.check(api.CastTypeInfoToTensorInfo(type, &info), name); !got) return fail(got.error());
  if (!info) return fail(Code::kInvalidArgument, fmt::format("'{}' is no tensor (a sequence, map or optional)", name));
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::size_t rank = 0;
  if (auto got = runtime.check(api.GetTensorElementType(info, &element), name); !got) return fail(got.error());
  if (auto got = runtime.check(api.GetDimensionsCount(info, &rank), name); !got) return fail(got.error());
  TensorMetadata tensor{.name = std::move(name), .datatype = datatype_of(element), .shape = Shape(rank)};
  if (auto got = runtime.check(api.GetDimensions(info, tensor.shape.data(), rank), tensor.name); !got) {
    return fail(got.error());
  }
  if (tensor.datatype == DataType::kInvalid) {
    return fail(Code::kInvalidArgument, fmt::format("'{}' has ONNX element type {}, which the protocol does not have",
                                                    tensor.name, static_cast<int>(element)));
  }
  for (std::int64_t& dimension : tensor.shape) {
    if (dimension < 0) dimension = -1;  // symbolic
  }
  return tensor;
}

// The runtime's three functions for its inputs, or for its outputs.
struct Side {
  OrtStatus* (*count)(const OrtSession*, std::size_t*);
  OrtStatus* (*name)(const OrtSession*, std::size_t, OrtAllocator*, char**);
  OrtStatus* (*type)(const OrtSession*, std::size_t, OrtTypeInfo**);
};

Result<std::vector<TensorMetadata>> describe_side(const OrtRuntime& runtime, const OrtSession* session,
                                                  const Side& side) {
  const OrtApi& api = runtime.api();
  OrtAllocator* heap = nullptr;  // owned by the runtime
  if (auto got = runtime.check(api.GetAllocatorWithDefaultOptions(&heap), "allocator"); !got) return fail(got.error());
  std::size_t count = 0;
  if (auto got = runtime.check(side.count(session, &count), "signature"); !got) return fail(got.error());
  std::vector<TensorMetadata> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    char* text = nullptr;
    if (auto got = runtime.check(side.name(session, i, heap, &text), "signature"); !got) return fail(got.error());
    std::string name(text);
    heap->Free(heap, text);
    OrtTypeInfo* raw = nullptr;
    if (auto got = runtime.check(side.type(session, i, &raw), name); !got) return fail(got.error());
    const OrtPtr<OrtTypeInfo> type(raw, api.ReleaseTypeInfo);
    auto tensor = describe(runtime, raw, std::move(name));
    if (!tensor) return fail(tensor.error());
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

}  // namespace

Session::Session(std::shared_ptr<OrtRuntime> runtime, OrtSession* session)
    : runtime_(std::move(runtime)), session_(session, runtime_->api().ReleaseSession) {}

Session::~Session() {
  session_.reset();
  malloc_trim(0);  // the weights lay in small pieces too; without it most of them stay with the process
}

Result<std::shared_ptr<Session>> Session::open(std::shared_ptr<OrtRuntime> runtime, const std::string& path,
                                               SessionUse use) {
  auto file = io::MappedFile::open(path);
  if (!file) return fail(file.error());
  const Bytes bytes = file->bytes();
  if (bytes.empty() || bytes.size() > kMaxModelBytes) {
    return fail(Code::kInvalidArgument,
                fmt::format("model file '{}' has {} bytes; expected 1 to {}", path, bytes.size(), kMaxModelBytes));
  }
  auto options = session_options(*runtime, path, use);
  if (!options) return fail(options.error());
  OrtSession* raw = nullptr;
  auto opened = runtime->check(
      runtime->api().CreateSessionFromArray(runtime->env(), bytes.data(), bytes.size(), options->get(), &raw),
      fmt::format("model file '{}' cannot be loaded", path), Code::kInvalidArgument, Code::kInvalidArgument);
  if (!opened) return fail(opened.error());
  std::shared_ptr<Session> session(new Session(std::move(runtime), raw));
  session->file_bytes_ = bytes.size();
  if (auto read = session->read_signature(path); !read) return fail(read.error());
  return session;
}

Status Session::read_signature(const std::string& path) {
  const OrtApi& api = runtime_->api();
  auto inputs =
      describe_side(*runtime_, get(), {api.SessionGetInputCount, api.SessionGetInputName, api.SessionGetInputTypeInfo});
  auto outputs = describe_side(*runtime_, get(),
                               {api.SessionGetOutputCount, api.SessionGetOutputName, api.SessionGetOutputTypeInfo});
  for (const auto* side : {&inputs, &outputs}) {
    if (!*side) return fail(side->error().code, fmt::format("model file '{}': {}", path, side->error().message));
  }
  signature_ = {*std::move(inputs), *std::move(outputs)};
  return {};
}

}  // namespace sluice::engine
