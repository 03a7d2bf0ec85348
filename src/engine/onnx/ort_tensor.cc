#include "engine/onnx/ort_tensor.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

namespace sluice::engine {
namespace {

constexpr std::array<std::pair<DataType, ONNXTensorElementDataType>, 14> kDataTypes = {{
    {DataType::kBool, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL},
    {DataType::kUint8, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8},
    {DataType::kUint16, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16},
    {DataType::kUint32, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32},
    {DataType::kUint64, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64},
    {DataType::kInt8, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8},
    {DataType::kInt16, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16},
    {DataType::kInt32, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32},
    {DataType::kInt64, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64},
    {DataType::kFp16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16},
    {DataType::kFp32, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT},
    {DataType::kFp64, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE},
    {DataType::kBytes, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING},
    {DataType::kBf16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16},
}};

using Length = std::uint32_t;  // before each element of kBytes, little-endian

Result<OrtValuePtr> make_strings(const OrtRuntime& runtime, const Tensor& tensor) {
  const OrtApi& api = runtime.api();
  OrtAllocator* heap = nullptr;  // owned by the runtime
  if (auto got = runtime.check(api.GetAllocatorWithDefaultOptions(&heap), "allocator"); !got) return fail(got.error());
  OrtValue* raw = nullptr;
  auto made = runtime.check(api.CreateTensorAsOrtValue(heap, tensor.shape.data(), tensor.shape.size(),
                                                       ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &raw),
                            "tensor of strings");
  if (!made) return fail(made.error());
  OrtValuePtr value(raw, api.ReleaseValue);
  const auto count = element_count(tensor.shape);
  if (!count) return fail(count.error());
  Bytes rest = tensor.data;
  for (std::int64_t i = 0; i < *count; ++i) {
    Length length = 0;
    if (rest.size() < sizeof length) return fail(Code::kInvalidArgument, "BYTES tensor ends inside a length");
    std::memcpy(&length, rest.data(), sizeof length);
    rest = rest.subspan(sizeof length);
    if (rest.size() < length) return fail(Code::kInvalidArgument, "BYTES tensor ends inside an element");
    char* to = nullptr;
    auto sized = runtime.check(api.GetResizedStringTensorElementBuffer(raw, static_cast<std::size_t>(i), length, &to),
                               "element of a tensor of strings");
    if (!sized) return fail(sized.error());
    if (length > 0) std::memcpy(to, rest.data(), length);
    rest = rest.subspan(length);
  }
  return value;
}

Status align(Arena& arena, Tensor& tensor) {
  if (reinterpret_cast<std::uintptr_t>(tensor.data.data()) % element_size(tensor.datatype) == 0) return {};
  auto buffer = arena.allocate(tensor.data.size());
  if (!buffer) return fail(buffer.error());
  std::memcpy(buffer->data(), tensor.data.data(), tensor.data.size());
  tensor.data = buffer->bytes();
  tensor.owner = *std::move(buffer);
  return {};
}

Result<BufferRef> encode_strings(const OrtRuntime& runtime, Arena& arena, const OrtValue* value, std::size_t count) {
  const OrtApi& api = runtime.api();
  std::size_t length = 0;
  auto measured = runtime.check(api.GetStringTensorDataLength(value, &length), "output of strings");
  if (!measured) return fail(measured.error());
  std::vector<char> text(length);
  std::vector<std::size_t> offsets(count);
  auto read =
      runtime.check(api.GetStringTensorContent(value, text.data(), length, offsets.data(), count), "output of strings");
  if (!read) return fail(read.error());
  auto buffer = arena.allocate(length + count * sizeof(Length));
  if (!buffer) return buffer;
  std::byte* to = buffer->data();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = (i + 1 < count ? offsets[i + 1] : length) - offsets[i];
    if (size > UINT32_MAX) return fail(Code::kInternal, fmt::format("output string {} has {} bytes", i, size));
    const auto prefix = static_cast<Length>(size);
    std::memcpy(to, &prefix, sizeof prefix);
    if (size > 0) std::memcpy(to + sizeof prefix, text.data() + offsets[i], size);
    to += sizeof prefix + size;
  }
  return buffer;
}

struct Held {
  std::shared_ptr<const void> keep_alive;  // goes last
  OrtValuePtr value;
};

}  // namespace

DataType datatype_of(ONNXTensorElementDataType type) {
  for (const auto& [ours, theirs] : kDataTypes) {
    if (theirs == type) return ours;
  }
  return DataType::kInvalid;
}

ONNXTensorElementDataType ort_datatype_of(DataType type) {
  for (const auto& [ours, theirs] : kDataTypes) {
    if (ours == type) return theirs;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

Result<OrtValuePtr> make_ort_value(const OrtRuntime& runtime, Arena& arena, Tensor& tensor) {
  if (tensor.datatype == DataType::kBytes) return make_strings(runtime, tensor);
  if (auto aligned = align(arena, tensor); !aligned) return fail(aligned.error());
  static constexpr std::byte kNothing{};  // an empty tensor has an address all the same
  // Run() only reads its inputs; the C interface has no const for it.
  auto* data = const_cast<std::byte*>(tensor.data.empty() ? &kNothing : tensor.data.data());
  OrtValue* raw = nullptr;
  auto made = runtime.check(
      runtime.api().CreateTensorWithDataAsOrtValue(runtime.memory_info(), data, tensor.data.size(), tensor.shape.data(),
                                                   tensor.shape.size(), ort_datatype_of(tensor.datatype), &raw),
      "input tensor", Code::kInvalidArgument);
  if (!made) return fail(made.error());
  return OrtValuePtr(raw, runtime.api().ReleaseValue);
}

Result<Tensor> take_ort_value(std::shared_ptr<const void> keep_alive, const OrtRuntime& runtime, Arena& arena,
                              OrtValuePtr value) {
  const OrtApi& api = runtime.api();
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  if (auto got = runtime.check(api.GetTensorTypeAndShape(value.get(), &raw), "output's shape"); !got) {
    return fail(got.error());
  }
  const OrtPtr<OrtTensorTypeAndShapeInfo> info(raw, api.ReleaseTensorTypeAndShapeInfo);
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::size_t rank = 0;
  Tensor tensor;
  if (auto got = runtime.check(api.GetTensorElementType(raw, &type), "output's type"); !got) return fail(got.error());
  if (auto got = runtime.check(api.GetDimensionsCount(raw, &rank), "output's rank"); !got) return fail(got.error());
  tensor.shape.resize(rank);
  if (auto got = runtime.check(api.GetDimensions(raw, tensor.shape.data(), rank), "output's shape"); !got) {
    return fail(got.error());
  }
  tensor.datatype = datatype_of(type);
  const auto count = element_count(tensor.shape);
  if (!count) return fail(Code::kInternal, count.error().message);

  if (tensor.datatype == DataType::kBytes) {
    auto encoded = encode_strings(runtime, arena, value.get(), static_cast<std::size_t>(*count));
    if (!encoded) return fail(encoded.error());
    tensor.data = encoded->bytes();
    tensor.owner = *std::move(encoded);
    return tensor;
  }
  const auto size = tensor_byte_size(tensor.datatype, tensor.shape);
  if (!size) return fail(Code::kInternal, size.error().message);
  void* data = nullptr;
  if (auto got = runtime.check(api.GetTensorMutableData(value.get(), &data), "output's data"); !got) {
    return fail(got.error());
  }
  auto* held = new Held{std::move(keep_alive), std::move(value)};
  tensor.owner = wrap_foreign(
      static_cast<std::byte*>(data), *size, [](void* context) { delete static_cast<Held*>(context); }, held);
  tensor.data = tensor.owner.bytes();
  return tensor;
}

}  // namespace sluice::engine
