#include "core/dht/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/crypto/hash.h"

namespace neuroshard::dht {
namespace {

constexpr std::string_view magic = "NSDR";
constexpr std::uint16_t version = 1;
constexpr std::size_t head_bytes = 60;
constexpr std::size_t least_bytes = head_bytes + sizeof(crypto::Signature);
constexpr auto longest_life = std::chrono::hours(24);
constexpr std::string_view nodes = "/nodes/";

bool is_hash(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool canonical = text.size() == 1 || (!text.empty() && text.front() != '0');
  return canonical && failed == std::errc() && end == text.data() + text.size();
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

bool is_expert(std::string_view text) {
  const std::size_t slash = text.find('/');
  return slash != std::string_view::npos && is_number(text.substr(0, slash)) &&
         is_number(text.substr(slash + 1));
}

struct Family {
  std::string_view prefix;
  bool (*fits)(std::string_view rest);
};
constexpr Family families[] = {{nodes, is_hash},           {"/layers/", is_number}, {"/experts/", is_expert},
                               {"/checkpoints/", is_hash}, {"/shards/", is_number}, {"/values/", is_name}};

Expected<void> check_publisher(std::string_view path, const crypto::PublicKey& publisher) {
  if (path.substr(0, nodes.size()) != nodes) return {};
  if (path.substr(nodes.size()) == to_hex(crypto::node_id(publisher))) return {};
  return make_error(ErrorCode::Denied, "only the node itself may publish its own record");
}

Bytes signed_part(const Record& record) {
  Bytes bytes(magic.begin(), magic.end());
  append_le(bytes, version);
  append_le(bytes, static_cast<std::uint16_t>(least_bytes + record.path.size() + record.payload.size()));
  bytes.insert(bytes.end(), record.publisher.begin(), record.publisher.end());
  append_le(bytes, record.sequence);
  append_le(bytes, to_unix_ms(record.expires));
  append_le(bytes, static_cast<std::uint16_t>(record.path.size()));
  append_le(bytes, static_cast<std::uint16_t>(record.payload.size()));
  bytes.insert(bytes.end(), record.path.begin(), record.path.end());
  bytes.insert(bytes.end(), record.payload.begin(), record.payload.end());
  return bytes;
}

}  // namespace

net::NodeId key_of(const Hash256& network_id, std::string_view path) {
  Bytes bytes;
  const ByteSpan mark = as_bytes("neuroshard/dht/v1");
  bytes.insert(bytes.end(), mark.begin(), mark.end());
  bytes.insert(bytes.end(), network_id.begin(), network_id.end());
  bytes.insert(bytes.end(), path.begin(), path.end());
  return crypto::sha256(bytes);
}

Expected<void> check_path(std::string_view path) {
  for (const Family& family : families) {
    if (path.substr(0, family.prefix.size()) != family.prefix) continue;
    if (path.size() <= max_path_bytes && family.fits(path.substr(family.prefix.size()))) return {};
    break;
  }
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("\"{}\" is not a path of the table; paths are /nodes/ID, /layers/L, "
                                "/experts/L/E, /checkpoints/ID, /shards/I and /values/NAME",
                                path.substr(0, max_path_bytes)));
}

Expected<Record> make_record(const crypto::KeyPair& publisher, const Hash256& network_id, std::string path,
                             Bytes payload, std::uint64_t sequence, WallTime expires) {
  NS_RETURN_IF_ERROR(check_path(path));
  NS_RETURN_IF_ERROR(check_publisher(path, publisher.public_key()));
  if (payload.size() > max_payload_bytes) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("a record holds at most {} bytes, this one has {}", max_payload_bytes, payload.size()));
  }
  Record record{std::move(path), publisher.public_key(), sequence, expires, std::move(payload), {}};
  record.signature = publisher.sign(crypto::Purpose::DhtRecord, network_id, signed_part(record));
  return record;
}

Bytes encode_record(const Record& record) {
  Bytes bytes = signed_part(record);
  bytes.insert(bytes.end(), record.signature.begin(), record.signature.end());
  return bytes;
}

Expected<Record> decode_record(ByteSpan bytes, std::size_t& used) {
  if (bytes.size() < least_bytes || as_text(bytes.first(magic.size())) != magic) {
    return make_error(ErrorCode::Corrupt, "this is not a record of the table");
  }
  if (load_le<std::uint16_t>(bytes.data() + 4) > version) {
    return make_error(ErrorCode::Unsupported, "the record has a newer version; update this program");
  }
  const std::size_t whole = load_le<std::uint16_t>(bytes.data() + 6);
  const std::size_t path = load_le<std::uint16_t>(bytes.data() + 56);
  const std::size_t payload = load_le<std::uint16_t>(bytes.data() + 58);
  if (load_le<std::uint16_t>(bytes.data() + 4) != version || whole > max_record_bytes ||
      whole > bytes.size() || path > max_path_bytes || payload > max_payload_bytes ||
      whole != least_bytes + path + payload) {
    return make_error(ErrorCode::Corrupt, "the record's lengths do not fit together");
  }
  Record record;
  std::copy_n(bytes.data() + 8, record.publisher.size(), record.publisher.begin());
  record.sequence = load_le<std::uint64_t>(bytes.data() + 40);
  record.expires = WallTime(std::chrono::milliseconds(load_le<std::int64_t>(bytes.data() + 48)));
  record.path = std::string(as_text(bytes.subspan(head_bytes, path)));
  const ByteSpan body = bytes.subspan(head_bytes + path, payload);
  record.payload.assign(body.begin(), body.end());
  std::copy_n(bytes.data() + whole - record.signature.size(), record.signature.size(),
              record.signature.begin());
  used = whole;
  return record;
}

Expected<void> check_signed(const Record& record, const Hash256& network_id) {
  if (const auto path = check_path(record.path); !path.ok())
    return make_error(ErrorCode::Denied, path.error().message);
  NS_RETURN_IF_ERROR(check_publisher(record.path, record.publisher));
  if (!crypto::verify(record.publisher, crypto::Purpose::DhtRecord, network_id, signed_part(record),
                      record.signature)) {
    return make_error(ErrorCode::Denied, "the record is not signed by its publisher");
  }
  return {};
}

Expected<void> check_record(const Record& record, const Hash256& network_id, WallTime now) {
  if (now >= record.expires) return make_error(ErrorCode::Denied, "the record has expired");
  if (record.expires > now + longest_life)
    return make_error(ErrorCode::Denied, "the record claims to live for more than a day");
  return check_signed(record, network_id);
}

}  // namespace neuroshard::dht
