#include "wire/grpc/infer_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "wire/grpc/proto_wire.h"
#include "wire/grpc/typed_contents.h"
#include "wire/infer_rules.h"

namespace sluice::grpc_wire {
namespace {

using infer_rules::in_tensor;

Status malformed(std::string_view what) {
  return fail(Code::kInvalidArgument, fmt::format("{} is not a protobuf message", what));
}

Status wrong_type(const ProtoReader& at, std::string_view what) {
  return fail(Code::kInvalidArgument,
              fmt::format("{}: field {} has wire type {}", what, at.field(), static_cast<int>(at.type())));
}

Status read_text(const ProtoReader& at, std::string_view what, const RequestLimits& limits, std::string& out) {
  if (at.type() != WireType::kBytes) return wrong_type(at, what);
  if (auto status = infer_rules::check_text(what, at.bytes(), limits); !status) return status;
  out = at.bytes();
  return {};
}

// InferParameter: the last of its fields counts.
Status read_parameter_value(std::string_view message, ParameterValue& out) {
  static constexpr std::string_view kWhat = "InferParameter";
  ProtoReader fields(message);
  while (fields.next()) {
    static constexpr WireType kTypes[] = {WireType::kVarint, WireType::kVarint, WireType::kBytes,
                                          WireType::kFixed64, WireType::kVarint};
    if (fields.field() > std::size(kTypes)) continue;
    if (fields.type() != kTypes[fields.field() - 1]) return wrong_type(fields, kWhat);
    switch (fields.field()) {
      case 1: out = fields.value() != 0; break;
      case 2: out = static_cast<std::int64_t>(fields.value()); break;
      case 3:
        if (!infer_rules::is_utf8(fields.bytes())) return fail(Code::kInvalidArgument, "a parameter is not UTF-8");
        out = std::string(fields.bytes());
        break;
      case 4: out = std::bit_cast<double>(fields.value()); break;
      case 5: out = fields.value(); break;
    }
  }
  return fields.ok() ? Status{} : malformed(kWhat);
}

// One entry of map<string, InferParameter>.
Status read_parameter(const ProtoReader& at, const RequestLimits& limits, Parameters& out) {
  static constexpr std::string_view kWhat = "an entry of parameters";
  if (at.type() != WireType::kBytes) return wrong_type(at, kWhat);
  Parameter parameter;
  bool has_value = false;
  ProtoReader fields(at.bytes());
  while (fields.next()) {
    if (fields.field() > 2) continue;
    if (fields.type() != WireType::kBytes) return wrong_type(fields, kWhat);
    if (fields.field() == 1) {
      parameter.name = fields.bytes();
      continue;
    }
    std::string_view value = fields.bytes();
    if (auto status = read_parameter_value(value, parameter.value); !status) return status;
    has_value = has_value || !value.empty();
  }
  if (!fields.ok()) return malformed(kWhat);
  if (auto status = infer_rules::check_name("a parameter's name", parameter.name, limits); !status) return status;
  if (!has_value) {
    return fail(Code::kInvalidArgument, fmt::format("parameter '{}' has no value", parameter.name));
  }
  return infer_rules::add_parameter(out, std::move(parameter), limits);
}

Status read_dimensions(const ProtoReader& at, Shape& shape) {
  const auto too_many = [] { return fail(Code::kInvalidArgument, fmt::format("more than {} dimensions", kMaxRank)); };
  if (at.type() == WireType::kVarint) {
    if (shape.size() == kMaxRank) return too_many();
    shape.push_back(static_cast<std::int64_t>(at.value()));
    return {};
  }
  if (at.type() != WireType::kBytes) return wrong_type(at, "shape");
  const char* byte = at.bytes().data();
  const char* end = byte + at.bytes().size();
  const auto count = static_cast<std::size_t>(std::count_if(byte, end, [](char c) { return c >= 0; }));
  if (shape.size() + count > kMaxRank) return too_many();
  shape.reserve(shape.size() + count);
  while (byte != end) {
    std::uint64_t dimension = 0;
    if (!read_varint(byte, end, dimension)) return malformed("shape");
    shape.push_back(static_cast<std::int64_t>(dimension));
  }
  return {};
}

Status read_datatype(const ProtoReader& at, DataType& out) {
  if (at.type() != WireType::kBytes) return wrong_type(at, "datatype");
  const auto type = parse_datatype(at.bytes());
  if (!type) {
    constexpr std::size_t kMaxQuotedBytes = 32;
    return fail(Code::kInvalidArgument, fmt::format("unknown datatype '{}'", at.bytes().substr(0, kMaxQuotedBytes)));
  }
  out = *type;
  return {};
}

// Of a tensor whose data has not been looked at yet.
struct Head {
  std::string_view message;
  bool has_contents = false;
};

// InferInputTensor and InferOutputTensor have the same fields.
template <class T>
Status read_tensor_fields(std::string_view kind, const RequestLimits& limits, T& out, Head& head) {
  ProtoReader fields(head.message);
  while (fields.next()) {
    Status status;
    switch (fields.field()) {
      case 1: status = read_text(fields, "a tensor's name", limits, out.name); break;
      case 2: status = read_datatype(fields, out.tensor.datatype); break;
      case 3: status = read_dimensions(fields, out.tensor.shape); break;
      case 4: status = read_parameter(fields, limits, out.parameters); break;
      case 5:
        if (fields.type() != WireType::kBytes) return wrong_type(fields, "contents");
        head.has_contents = head.has_contents || !fields.bytes().empty();
        break;
      default: break;
    }
    if (!status) return fail(in_tensor(kind, out.name, std::move(status.error())));
  }
  if (!fields.ok()) return malformed(kind);
  if (out.name.empty()) return fail(Code::kInvalidArgument, fmt::format("{} has no name", kind));
  if (out.tensor.datatype == DataType::kInvalid) {
    return fail(in_tensor(kind, out.name, {Code::kInvalidArgument, "datatype is missing"}));
  }
  return {};
}

template <class T>
struct Tensors {
  std::string_view kind;       // "input"
  std::string_view raw_field;  // "raw_input_contents"
  std::size_t limit;
  std::vector<T>& items;
  std::vector<Head> heads;  // one an item

  Status read(const ProtoReader& at, const RequestLimits& limits) {
    if (at.type() != WireType::kBytes) return wrong_type(at, kind);
    if (items.size() == limit) return fail(Code::kInvalidArgument, fmt::format("more than {} {}s", limit, kind));
    Head& head = heads.emplace_back(Head{at.bytes()});
    return read_tensor_fields(kind, limits, items.emplace_back(), head);
  }

  Status attach(std::vector<BufferRef> raw, Arena& arena, const RequestLimits& limits) {
    if (!raw.empty() && raw.size() != items.size()) {
      return fail(Code::kInvalidArgument, fmt::format("{} has {} entries, the message has {} {}s", raw_field,
                                                      raw.size(), items.size(), kind));
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      Tensor& tensor = items[i].tensor;
      Status status;
      if (raw.empty()) {
        status = read_typed_contents(heads[i].message, arena, limits.max_tensor_bytes, tensor);
      } else if (heads[i].has_contents) {
        status = fail(Code::kInvalidArgument, fmt::format("contents beside {}; only one may be given", raw_field));
      } else {
        tensor.data = std::as_const(raw[i]).bytes();
        tensor.owner = std::move(raw[i]);
        status = check_tensor_data(tensor);
      }
      if (!status) return fail(in_tensor(kind, items[i].name, std::move(status.error())));
    }
    return {};
  }
};

Status read_requested_output(const ProtoReader& at, const RequestLimits& limits, InferRequest& request) {
  static constexpr std::string_view kWhat = "a requested output";
  if (at.type() != WireType::kBytes) return wrong_type(at, kWhat);
  if (request.outputs.size() == limits.max_outputs) {
    return fail(Code::kInvalidArgument, fmt::format("more than {} outputs", limits.max_outputs));
  }
  RequestedOutput& output = request.outputs.emplace_back();
  ProtoReader fields(at.bytes());
  while (fields.next()) {
    Status status;
    if (fields.field() == 1) status = read_text(fields, "an output's name", limits, output.name);
    if (fields.field() == 2) status = read_parameter(fields, limits, output.parameters);
    if (!status) return status;
  }
  if (!fields.ok()) return malformed(kWhat);
  return output.name.empty() ? fail(Code::kInvalidArgument, "a requested output has no name") : Status{};
}

// Fields 1 to 4 are the same in both messages; false: another field.
template <class Message>
Result<bool> read_common(const ProtoReader& at, const RequestLimits& limits, Message& message) {
  Status status;
  switch (at.field()) {
    case 1: status = read_text(at, "model_name", limits, message.model_name); break;
    case 2: status = read_text(at, "model_version", limits, message.model_version); break;
    case 3: status = read_text(at, "id", limits, message.id); break;
    case 4: status = read_parameter(at, limits, message.parameters); break;
    default: return false;
  }
  if (!status) return fail(std::move(status.error()));
  return true;
}

}  // namespace

Result<InferRequest> read_request(std::string_view metadata, std::vector<BufferRef> raw, Arena& arena,
                                  const RequestLimits& limits) {
  InferRequest request;
  Tensors<InputTensor> inputs{"input", "raw_input_contents", limits.max_inputs, request.inputs, {}};
  ProtoReader fields(metadata);
  while (fields.next()) {
    auto common = read_common(fields, limits, request);
    if (!common) return fail(std::move(common.error()));
    Status status;
    if (fields.field() == 5) status = inputs.read(fields, limits);
    if (fields.field() == 6) status = read_requested_output(fields, limits, request);
    if (!status) return fail(std::move(status.error()));
  }
  if (!fields.ok()) return fail(malformed("ModelInferRequest").error());
  if (auto status = infer_rules::finish(request); !status) return fail(std::move(status.error()));
  if (auto status = inputs.attach(std::move(raw), arena, limits); !status) return fail(std::move(status.error()));
  return request;
}

Result<InferResponse> read_response(std::string_view metadata, std::vector<BufferRef> raw, Arena& arena,
                                    const RequestLimits& limits) {
  InferResponse response;
  Tensors<OutputTensor> outputs{"output", "raw_output_contents", limits.max_outputs, response.outputs, {}};
  ProtoReader fields(metadata);
  while (fields.next()) {
    auto common = read_common(fields, limits, response);
    if (!common) return fail(std::move(common.error()));
    if (fields.field() != 5) continue;
    if (auto status = outputs.read(fields, limits); !status) return fail(std::move(status.error()));
  }
  if (!fields.ok()) return fail(malformed("ModelInferResponse").error());
  if (auto status = infer_rules::finish(response); !status) return fail(std::move(status.error()));
  if (auto status = outputs.attach(std::move(raw), arena, limits); !status) return fail(std::move(status.error()));
  return response;
}

}  // namespace sluice::grpc_wire
