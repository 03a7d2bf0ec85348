#include "wire/grpc/infer_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "wire/grpc/framing.h"
#include "wire/grpc/infer_message.h"
#include "wire/grpc/proto_wire.h"

namespace sluice::grpc_wire {
namespace {

// Metadata of an ordinary request fits, so that collecting it costs one allocation.
constexpr std::size_t kUsualMetadataBytes = 512;

}  // namespace

struct InferReader::State {
  enum class Phase : std::uint8_t { kPrefix, kTag, kValue, kLength, kMetadata, kTensor, kDead };

  State(InferMessage kind, Arena& arena, const InferReaderLimits& limits) : kind(kind), arena(arena), limits(limits) {}

  InferMessage kind;
  Arena& arena;
  InferReaderLimits limits;

  Phase phase = Phase::kPrefix;
  bool started = false;              // the prefix has been read
  std::size_t message_left = 0;      // of the message, after the prefix
  std::array<char, kMaxVarintBytes> head{};  // the prefix, or the varint that is being read
  std::size_t head_size = 0;
  std::uint64_t varint = 0;
  bool tensor_field = false;         // the length to come is a tensor's
  std::size_t metadata_left = 0;     // of the field that is being collected
  std::string metadata;
  std::vector<BufferRef> tensors;
  std::size_t tensor_filled = 0;     // of the last one

  bool complete() const { return started && message_left == 0 && phase == Phase::kTag; }

  Status feed(Bytes chunk);
  Status step(std::string_view& chunk);
  Status read_prefix(std::string_view& chunk);
  Status read_number(std::string_view& chunk);  // a tag, a length or a value
  // True when the varint is whole: then it is in `varint` and its bytes are the first `head_size` of `head`.
  Result<bool> collect_varint(std::string_view& chunk);
  Status on_tag();
  Status on_length();
  Status begin_metadata(std::uint64_t bytes);
  Status begin_tensor(std::uint64_t bytes);
  Status check_metadata_limit(std::uint64_t more) const;
  Status keep_head();
  void copy_metadata(std::string_view& chunk);
  void copy_tensor(std::string_view& chunk);
  void advance_tensor(std::size_t bytes);

  std::uint32_t raw_field() const { return kind == InferMessage::kRequest ? kRawInputField : kRawOutputField; }
  std::string_view name() const {
    return kind == InferMessage::kRequest ? "ModelInferRequest" : "ModelInferResponse";
  }
  std::size_t max_tensors() const {
    return kind == InferMessage::kRequest ? limits.request.max_inputs : limits.request.max_outputs;
  }
  Status malformed(std::string_view reason) const {
    return fail(Code::kInvalidArgument, fmt::format("the message is not a {}: {}", name(), reason));
  }
};

Status InferReader::State::feed(Bytes bytes) {
  if (phase == Phase::kDead) return fail(Code::kFailedPrecondition, "the message has been refused already");
  std::string_view chunk = as_text(bytes);
  while (!chunk.empty()) {
    if (auto status = step(chunk); !status) {
      phase = Phase::kDead;
      return status;
    }
  }
  return {};
}

Status InferReader::State::step(std::string_view& chunk) {
  switch (phase) {
    case Phase::kPrefix: return read_prefix(chunk);
    case Phase::kMetadata: copy_metadata(chunk); return {};
    case Phase::kTensor: copy_tensor(chunk); return {};
    default: return read_number(chunk);
  }
}

Status InferReader::State::read_prefix(std::string_view& chunk) {
  const std::size_t take = std::min(chunk.size(), kPrefixBytes - head_size);
  std::memcpy(head.data() + head_size, chunk.data(), take);
  head_size += take;
  chunk.remove_prefix(take);
  if (head[0] == 1) return fail(Code::kUnimplemented, "a compressed message; only identity is supported");
  if (head[0] != 0) return malformed(fmt::format("its frame's flag is {}", static_cast<unsigned char>(head[0])));
  if (head_size < kPrefixBytes) return {};
  std::size_t length = 0;
  for (std::size_t i = 1; i < kPrefixBytes; ++i) length = length << 8 | static_cast<unsigned char>(head[i]);
  if (length > limits.max_message_bytes) {
    return fail(Code::kResourceExhausted,
                fmt::format("the message has {} bytes, the limit is {}", length, limits.max_message_bytes));
  }
  metadata.reserve(std::min(length, kUsualMetadataBytes));
  message_left = length;
  head_size = 0;
  started = true;
  phase = Phase::kTag;
  return {};
}

Status InferReader::State::read_number(std::string_view& chunk) {
  if (message_left == 0) return malformed(fmt::format("{} bytes after its end", chunk.size()));
  auto whole = collect_varint(chunk);
  if (!whole) return fail(std::move(whole.error()));
  if (!*whole) return message_left == 0 ? malformed("it is cut") : Status{};
  switch (phase) {
    case Phase::kTag: return on_tag();
    case Phase::kLength: return on_length();
    default: phase = Phase::kTag; return keep_head();
  }
}

Result<bool> InferReader::State::collect_varint(std::string_view& chunk) {
  if (head_size == 0) varint = 0;
  while (!chunk.empty() && message_left > 0) {
    const auto byte = static_cast<std::uint8_t>(chunk.front());
    if (head_size == kMaxVarintBytes - 1 && byte > 1) return fail(malformed("a number of more than 64 bits").error());
    varint |= std::uint64_t{byte & 0x7FU} << (7 * head_size);
    head[head_size++] = chunk.front();
    chunk.remove_prefix(1);
    --message_left;
    if (byte < 0x80) return true;
  }
  return false;
}

Status InferReader::State::on_tag() {
  const std::uint64_t field = varint >> 3;
  if (varint > UINT32_MAX || field == 0) return malformed(fmt::format("field number {}", field));
  if (!is_wire_type(varint & 7)) return malformed(fmt::format("field {} has wire type {}", field, varint & 7));
  const auto type = static_cast<WireType>(varint & 7);
  tensor_field = field == raw_field();
  if (tensor_field) {
    head_size = 0;
    if (type != WireType::kBytes) return malformed(fmt::format("raw contents have wire type {}", varint & 7));
    phase = Phase::kLength;
    return message_left == 0 ? malformed("it is cut") : Status{};
  }
  if (auto status = keep_head(); !status) return status;
  switch (type) {
    case WireType::kVarint: phase = Phase::kValue; break;
    case WireType::kBytes: phase = Phase::kLength; break;
    case WireType::kFixed32: return begin_metadata(4);
    case WireType::kFixed64: return begin_metadata(8);
  }
  return message_left == 0 ? malformed("it is cut") : Status{};
}

Status InferReader::State::on_length() {
  if (varint > message_left) {
    return malformed(fmt::format("a field of {} bytes, {} are left", varint, message_left));
  }
  if (tensor_field) return begin_tensor(varint);
  if (auto status = keep_head(); !status) return status;
  return begin_metadata(varint);
}

Status InferReader::State::begin_metadata(std::uint64_t bytes) {
  if (bytes > message_left) return malformed(fmt::format("a field of {} bytes, {} are left", bytes, message_left));
  if (auto status = check_metadata_limit(bytes); !status) return status;
  metadata_left = bytes;
  phase = bytes == 0 ? Phase::kTag : Phase::kMetadata;
  return {};
}

Status InferReader::State::begin_tensor(std::uint64_t bytes) {
  head_size = 0;
  if (tensors.size() == max_tensors()) {
    return fail(Code::kInvalidArgument, fmt::format("more than {} raw contents", max_tensors()));
  }
  if (bytes > limits.request.max_tensor_bytes) {
    return fail(Code::kResourceExhausted, fmt::format("a tensor of {} bytes, the limit is {}", bytes,
                                                      limits.request.max_tensor_bytes));
  }
  auto buffer = arena.allocate(bytes);
  if (!buffer) return fail(std::move(buffer.error()));
  tensors.push_back(std::move(*buffer));
  tensor_filled = 0;
  phase = bytes == 0 ? Phase::kTag : Phase::kTensor;
  return {};
}

Status InferReader::State::check_metadata_limit(std::uint64_t more) const {
  if (more <= limits.max_metadata_bytes && metadata.size() <= limits.max_metadata_bytes - more) return {};
  return fail(Code::kResourceExhausted,
              fmt::format("all but the raw contents has at least {} bytes, the limit is {}", metadata.size() + more,
                          limits.max_metadata_bytes));
}

Status InferReader::State::keep_head() {
  if (auto status = check_metadata_limit(head_size); !status) return status;
  metadata.append(head.data(), head_size);
  head_size = 0;
  return {};
}

void InferReader::State::copy_metadata(std::string_view& chunk) {
  const std::size_t take = std::min(chunk.size(), metadata_left);
  metadata.append(chunk.substr(0, take));
  chunk.remove_prefix(take);
  message_left -= take;
  metadata_left -= take;
  if (metadata_left == 0) phase = Phase::kTag;
}

void InferReader::State::copy_tensor(std::string_view& chunk) {
  const std::size_t take = std::min(chunk.size(), tensors.back().size() - tensor_filled);
  std::memcpy(tensors.back().data() + tensor_filled, chunk.data(), take);
  chunk.remove_prefix(take);
  advance_tensor(take);
}

void InferReader::State::advance_tensor(std::size_t bytes) {
  message_left -= bytes;
  tensor_filled += bytes;
  if (tensor_filled == tensors.back().size()) phase = Phase::kTag;
}

InferReader::InferReader(InferMessage kind, Arena& arena, const InferReaderLimits& limits)
    : state_(std::make_unique<State>(kind, arena, limits)) {}
InferReader::~InferReader() = default;
InferReader::InferReader(InferReader&&) noexcept = default;

Status InferReader::feed(Bytes chunk) { return state_->feed(chunk); }

MutableBytes InferReader::tensor_tail() {
  if (state_->phase != State::Phase::kTensor) return {};
  return state_->tensors.back().mutable_bytes().subspan(state_->tensor_filled);
}

Status InferReader::placed(std::size_t bytes) {
  SLUICE_CHECK(bytes <= tensor_tail().size(), "more was placed than a tensor had room for");
  state_->advance_tensor(bytes);
  return {};
}

bool InferReader::complete() const { return state_->complete(); }

Result<InferRequest> InferReader::take_request() {
  SLUICE_CHECK(complete() && state_->kind == InferMessage::kRequest, "a request was taken before it had arrived");
  return read_request(state_->metadata, std::exchange(state_->tensors, {}), state_->arena, state_->limits.request);
}

Result<InferResponse> InferReader::take_response() {
  SLUICE_CHECK(complete() && state_->kind == InferMessage::kResponse, "a response was taken before it had arrived");
  return read_response(state_->metadata, std::exchange(state_->tensors, {}), state_->arena, state_->limits.request);
}

}  // namespace sluice::grpc_wire
