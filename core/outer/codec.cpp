#include "core/outer/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/outer/detail/byte_window.h"
#include "core/outer/detail/codec_bodies.h"

namespace neuroshard::outer {
namespace {

// "NSD" and the version of the format.
constexpr std::array<std::uint8_t, 4> magic = {'N', 'S', 'D', 1};
constexpr std::size_t codec_at = 4, reserved_at = 5, k_at = 6, count_at = 8, checksum_at = 16;

struct CodecName {
  Codec codec;
  std::string_view name;
};
constexpr CodecName names[] = {{Codec::Fp32, "fp32"}, {Codec::Fp16, "fp16"}, {Codec::Int8, "int8"},
                               {Codec::Int4, "int4"}, {Codec::TopK, "topk"}, {Codec::SeedTopK, "seed-topk"}};

bool known(Codec codec) {
  return std::any_of(std::begin(names), std::end(names),
                     [&](const CodecName& n) { return n.codec == codec; });
}

bool valid(const CodecOptions& options) {
  return known(options.codec) &&
         (options.codec != Codec::TopK || (options.k >= 1 && options.k <= codec_chunk));
}

// Of everything but the checksum itself.
Expected<std::uint32_t> checksum(const detail::CodecKernels& kernels, ByteSpan head,
                                 const ByteSourcePtr& payload) {
  std::uint32_t sum = kernels.crc32c(0, head.data(), checksum_at);
  detail::ByteWindow body(payload, codec_header_bytes, payload->size() - codec_header_bytes);
  for (std::uint64_t at = 0; at < body.size();) {
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(detail::ByteWindow::most, body.size() - at));
    const std::uint8_t* const part = body.at(at, bytes);
    if (part == nullptr) return *body.error();
    sum = kernels.crc32c(sum, part, bytes);
    at += bytes;
  }
  return sum;
}

// A payload in memory, as its encoder writes it: the header, at 0, comes last.
class PayloadInMemory final : public ByteSink {
 public:
  explicit PayloadInMemory(std::uint64_t most) {
    bytes.reserve(static_cast<std::size_t>(most));
    bytes.resize(codec_header_bytes);
  }
  Expected<void> write_at(std::uint64_t offset, ByteSpan part) override {
    if (offset == bytes.size())
      bytes.insert(bytes.end(), part.begin(), part.end());
    else
      std::copy(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }
  Bytes bytes;
};

Error not_a_payload(std::string_view what) {
  return make_error(ErrorCode::Corrupt, fmt::format("This is not a delta payload: {}.", what));
}

Expected<void> check_codec(const CodecOptions& expected, const CodecOptions& found) {
  const bool same_k = expected.codec != Codec::TopK || found.k == expected.k;
  if (found.codec == expected.codec && same_k) return {};
  return make_error(
      ErrorCode::Corrupt,
      fmt::format("A delta payload of codec {} (k {}) arrived where codec {} (k {}) is required.",
                  to_string(found.codec), found.k, to_string(expected.codec),
                  expected.codec == Codec::TopK ? expected.k : 0));
}

// expected: null: any codec.
detail::OpenedBody open_payload(const detail::CodecKernels& kernels, const CodecOptions* expected,
                                ByteSourcePtr payload, std::uint64_t count) {
  Bytes head(static_cast<std::size_t>(std::min<std::uint64_t>(payload->size(), codec_header_bytes)));
  NS_RETURN_IF_ERROR(payload->read_at(0, head));
  NS_ASSIGN_OR_RETURN(const CodecHeader header, read_codec_header(head));
  if (expected != nullptr) NS_RETURN_IF_ERROR(check_codec(*expected, header.options));
  if (header.count != count)
    return make_error(
        ErrorCode::Corrupt,
        fmt::format("A delta payload holds {} values where {} are expected.", header.count, count));
  if (payload->size() > max_payload_bytes(header.options, count))
    return detail::damaged(header.options.codec, "it is longer than any such payload");
  NS_ASSIGN_OR_RETURN(const std::uint32_t sum, checksum(kernels, head, payload));
  if (load_le<std::uint32_t>(head.data() + checksum_at) != sum)
    return detail::damaged(header.options.codec, "its checksum is wrong");
  const detail::OpenJob job{kernels, header.options, count, std::move(payload)};
  switch (header.options.codec) {
    case Codec::TopK: return detail::open_top_k(job);
    case Codec::SeedTopK: return detail::open_seed_top_k(job);
    default: return detail::open_dense(job);
  }
}

Expected<void> decode_with(const detail::CodecKernels& kernels, const CodecOptions* expected,
                           ByteSpan payload, Span<float> values) {
  NS_ASSIGN_OR_RETURN(const std::unique_ptr<DeltaReader> reader,
                      open_payload(kernels, expected, std::make_shared<BytesView>(payload), values.size()));
  for (std::size_t at = 0; at < values.size(); at += codec_chunk)
    NS_RETURN_IF_ERROR(reader->next(values.subspan(at, std::min(codec_chunk, values.size() - at))));
  return reader->finish();
}

}  // namespace

std::string_view to_string(Codec codec) {
  for (const CodecName& entry : names)
    if (entry.codec == codec) return entry.name;
  return "unknown";
}

Expected<Codec> codec_from_name(std::string_view name) {
  std::string list;
  for (const CodecName& entry : names) {
    if (entry.name == name) return entry.codec;
    list += list.empty() ? "" : ", ";
    list += entry.name;
  }
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("Delta codec \"{}\" not found; available: {}.", name, list));
}

std::uint64_t max_payload_bytes(const CodecOptions& options, std::uint64_t count) {
  if (!valid(options) || count == 0 || count > max_values(options.codec)) return 0;
  switch (options.codec) {
    case Codec::TopK: return codec_header_bytes + detail::max_top_k_body_bytes(options.k, count);
    case Codec::SeedTopK: return codec_header_bytes + detail::max_seed_top_k_body_bytes(count);
    default: return codec_header_bytes + detail::dense_body_bytes(options.codec, count);
  }
}

Expected<std::uint64_t> encode(const CodecOptions& options, const ValueSource& values, ByteSink& payload) {
  return detail::encode_with(detail::best_codec_kernels(), options, values, payload);
}

Expected<Bytes> encode(const CodecOptions& options, Span<const float> values) {
  return detail::encode_with(detail::best_codec_kernels(), options, values);
}

Expected<std::unique_ptr<DeltaReader>> open_delta(const CodecOptions& expected, ByteSourcePtr payload,
                                                  std::uint64_t count) {
  return open_payload(detail::best_codec_kernels(), &expected, std::move(payload), count);
}

bool is_readable(const CodecOptions& expected, const ByteSource& payload, std::uint64_t count) {
  // The reader ends here, before the payload does.
  const ByteSourcePtr borrowed(std::shared_ptr<void>(), &payload);
  const auto reader = open_delta(expected, borrowed, count);
  if (!reader.ok()) return false;
  std::array<float, codec_chunk> values;
  for (std::uint64_t at = 0; at < count; at += codec_chunk) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(codec_chunk, count - at));
    if (!(*reader)->next({values.data(), size}).ok()) return false;
  }
  return (*reader)->finish().ok();
}

Expected<CodecHeader> read_codec_header(ByteSpan payload) {
  if (payload.size() < codec_header_bytes)
    return not_a_payload(
        fmt::format("it has {} bytes, and a header alone has {}", payload.size(), codec_header_bytes));
  if (!std::equal(magic.begin(), magic.end(), payload.begin()))
    return not_a_payload("its magic number or its version is unknown");
  CodecHeader header;
  header.options.codec = static_cast<Codec>(payload[codec_at]);
  header.options.k = load_le<std::uint16_t>(payload.data() + k_at);
  header.count = load_le<std::uint64_t>(payload.data() + count_at);
  if (!known(header.options.codec))
    return not_a_payload(fmt::format("codec {} is unknown", payload[codec_at]));
  const bool k_fits = header.options.codec == Codec::TopK ? valid(header.options) : header.options.k == 0;
  if (!k_fits || payload[reserved_at] != 0)
    return not_a_payload(fmt::format("k {} is invalid for codec {}, or a reserved byte is set",
                                     header.options.k, to_string(header.options.codec)));
  if (header.count == 0 || header.count > max_values(header.options.codec))
    return not_a_payload(fmt::format("{} is not a valid number of values", header.count));
  return header;
}

Expected<void> decode(ByteSpan payload, Span<float> values) {
  return decode_with(detail::best_codec_kernels(), nullptr, payload, values);
}

Expected<void> decode(const CodecOptions& expected, ByteSpan payload, Span<float> values) {
  return decode_with(detail::best_codec_kernels(), &expected, payload, values);
}

std::optional<PayloadPart> payload_part(const CodecOptions& options, std::uint64_t first,
                                        std::uint64_t count) {
  if (!valid(options) || options.codec == Codec::TopK || options.codec == Codec::SeedTopK)
    return std::nullopt;
  return PayloadPart{codec_header_bytes + detail::dense_body_bytes(options.codec, first),
                     detail::dense_body_bytes(options.codec, count)};
}

Expected<void> decode_part(const CodecOptions& options, ByteSpan part, Span<float> values) {
  if (!payload_part(options, 0, values.size()))
    return make_error(
        ErrorCode::Unsupported,
        fmt::format("A part of a payload of codec {} can't be decoded alone.", to_string(options.codec)));
  const auto payload =
      joined({zero_bytes(codec_header_bytes), std::make_shared<BytesView>(part)});  // its header is not read
  NS_ASSIGN_OR_RETURN(const std::unique_ptr<DeltaReader> reader,
                      detail::open_dense({detail::best_codec_kernels(), options, values.size(), payload}));
  for (std::size_t at = 0; at < values.size(); at += codec_chunk)
    NS_RETURN_IF_ERROR(reader->next(values.subspan(at, std::min(codec_chunk, values.size() - at))));
  return {};
}

std::uint32_t crc32c(ByteSpan bytes, std::uint32_t before) {
  return detail::best_codec_kernels().crc32c(before, bytes.data(), bytes.size());
}

namespace detail {

Expected<void> check_encodable(const CodecOptions& options, std::uint64_t count) {
  if (!valid(options))
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("Codec {} with k {} does not exist; k of topk is 1 to {}.",
                                  static_cast<int>(options.codec), options.k, codec_chunk));
  if (const std::uint64_t most = max_values(options.codec); count == 0 || count > most)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("A delta of codec {} has 1 to {} values; this one has {}.",
                                  to_string(options.codec), most, count));
  return {};
}

Expected<std::uint64_t> encode_with(const CodecKernels& kernels, const CodecOptions& options,
                                    const ValueSource& values, ByteSink& payload) {
  NS_RETURN_IF_ERROR(check_encodable(options, values.count));
  std::uint8_t head[checksum_at] = {};
  std::copy(magic.begin(), magic.end(), head);
  head[codec_at] = static_cast<std::uint8_t>(options.codec);
  store_le(head + k_at, options.codec == Codec::TopK ? options.k : std::uint16_t{0});
  store_le<std::uint64_t>(head + count_at, values.count);
  PayloadWriter writer(kernels, head, payload);
  const EncodeJob job{kernels, options, values, writer};
  switch (options.codec) {
    case Codec::TopK: NS_RETURN_IF_ERROR(encode_top_k(job)); break;
    case Codec::SeedTopK: NS_RETURN_IF_ERROR(encode_seed_top_k(job)); break;
    default: NS_RETURN_IF_ERROR(encode_dense(job)); break;
  }
  return writer.finish();
}

Expected<Bytes> encode_with(const CodecKernels& kernels, const CodecOptions& options,
                            Span<const float> values) {
  PayloadInMemory payload(max_payload_bytes(options, values.size()));
  NS_RETURN_IF_ERROR(encode_with(kernels, options, values_of(values), payload));
  return std::move(payload.bytes);
}

Expected<void> decode_with(const CodecKernels& kernels, ByteSpan payload, Span<float> values) {
  return outer::decode_with(kernels, nullptr, payload, values);
}

Error damaged(Codec codec, std::string_view what) {
  return make_error(ErrorCode::Corrupt,
                    fmt::format("A delta payload of codec {} is damaged: {}.", to_string(codec), what));
}

Error unsendable(Codec codec) {
  const char* limit = codec == Codec::SeedTopK ? "65504" : "2^64";
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("A delta can't be sent by codec {}: a value of it is not finite or beyond {}. The "
                  "training that made it has failed; return to the last anchor.",
                  to_string(codec), limit));
}

}  // namespace detail
}  // namespace neuroshard::outer
