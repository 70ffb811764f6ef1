#include "core/data/manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/data/detail/json_fields.h"

namespace neuroshard::data {
namespace {

using detail::Fields;
using nlohmann::json;

constexpr const char* what = "manifest.json";
constexpr std::size_t max_signature_bytes = 4096;
constexpr const char* known_fields[] = {
    "format_version", "network_id", "tokenizer_sha256", "created_ms", "updated_ms", "shards", "totals"};

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

// A relative URL stays below the manifest's own folder; an absolute one is http or https.
bool is_safe_url(std::string_view url) {
  if (url.empty()) return false;
  for (const char c : url) {
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f || c == '\\' ||
        c == '"') {
      return false;
    }
  }
  if (url.starts_with("http://") || url.starts_with("https://")) return url.find("://") + 3 < url.size();
  if (url.front() == '/' || url.find(':') != std::string_view::npos) return false;
  if (url.find('?') != std::string_view::npos || url.find('#') != std::string_view::npos) return false;
  for (std::size_t at = 0; at <= url.size();) {
    const std::size_t slash = std::min(url.find('/', at), url.size());
    const std::string_view part = url.substr(at, slash - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = slash + 1;
  }
  return true;
}

Expected<ShardEntry> parse_shard(const json& value, std::size_t position) {
  const std::string where = fmt::format("{}: shard at position {}", what, position);
  if (!value.is_object()) return make_error(ErrorCode::Corrupt, where + " is not an object");
  const Fields fields(value, where);
  ShardEntry shard;
  NS_ASSIGN_OR_RETURN(const std::uint64_t id, fields.number("id", 0xffffffffu));
  shard.id = static_cast<ShardId>(id);
  NS_ASSIGN_OR_RETURN(shard.url, fields.text("url", max_url_length));
  if (!is_safe_url(shard.url)) {
    return fields.wrong("url", "is neither a name below the manifest's folder nor an http(s) address");
  }
  NS_ASSIGN_OR_RETURN(shard.size, fields.number("size", max_shard_bytes));
  NS_ASSIGN_OR_RETURN(shard.sha256, fields.hash("sha256"));
  NS_ASSIGN_OR_RETURN(shard.tokens, fields.number("tokens", max_shard_tokens));
  if (shard.tokens == 0) return fields.wrong("tokens", "is 0");
  if (shard.size < shard.tokens * 4) return fields.wrong("size", "is too small for its tokens");
  NS_ASSIGN_OR_RETURN(shard.source, fields.text("source", max_source_name));
  if (shard.source.empty() || !printable(shard.source))
    return fields.wrong("source", "is not a printable name");
  NS_ASSIGN_OR_RETURN(const std::string split, fields.text("split", 16));
  if (split == to_string(Split::Train)) {
    shard.split = Split::Train;
  } else if (split == to_string(Split::HeldOut)) {
    shard.split = Split::HeldOut;
  } else {
    return fields.wrong("split", "is neither \"train\" nor \"held-out\"");
  }
  return shard;
}

Expected<void> check_totals(const json& document, const Manifest& manifest) {
  NS_ASSIGN_OR_RETURN(const json* totals, Fields(document, what).object("totals"));
  const Fields fields(*totals, std::string(what) + ": totals");
  const auto check = [&](const char* name, std::uint64_t sum) -> Expected<void> {
    NS_ASSIGN_OR_RETURN(const std::uint64_t stated, fields.number(name));
    if (stated != sum)
      return fields.wrong(name, fmt::format("is {}, but the shards add up to {}", stated, sum));
    return {};
  };
  NS_RETURN_IF_ERROR(check("shards", manifest.shards.size()));
  NS_RETURN_IF_ERROR(check("tokens", manifest.total_tokens()));
  return check("bytes", manifest.total_bytes());
}

std::string unknown_fields(const json& document) {
  json extra = json::object();
  for (const auto& [name, value] : document.items()) {
    if (std::find(std::begin(known_fields), std::end(known_fields), name) == std::end(known_fields)) {
      extra[name] = value;
    }
  }
  return extra.empty() ? std::string() : extra.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Expected<void> parse_shards(const json& list, Manifest* manifest) {
  manifest->shards.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    NS_ASSIGN_OR_RETURN(ShardEntry shard, parse_shard(list[i], i));
    manifest->shards.push_back(std::move(shard));
  }
  std::sort(manifest->shards.begin(), manifest->shards.end(),
            [](const ShardEntry& a, const ShardEntry& b) { return a.id < b.id; });
  for (std::size_t i = 1; i < manifest->shards.size(); ++i) {
    if (manifest->shards[i].id == manifest->shards[i - 1].id) {
      return make_error(ErrorCode::Corrupt,
                        fmt::format("{}: shard {} is listed twice", what, manifest->shards[i].id));
    }
  }
  return {};
}

}  // namespace

std::string shard_label(ShardId id) {
  return is_own_shard(id) ? fmt::format("{} of the own text", id - first_own_shard) : fmt::format("{}", id);
}

std::string_view to_string(Split split) {
  return split == Split::Train ? "train" : "held-out";
}

std::uint64_t Manifest::total_tokens() const {
  std::uint64_t sum = 0;
  for (const ShardEntry& shard : shards) sum += shard.tokens;
  return sum;
}

std::uint64_t Manifest::total_bytes() const {
  std::uint64_t sum = 0;
  for (const ShardEntry& shard : shards) sum += shard.size;
  return sum;
}

const ShardEntry* Manifest::find(ShardId id) const {
  const auto at = std::lower_bound(shards.begin(), shards.end(), id,
                                   [](const ShardEntry& shard, ShardId wanted) { return shard.id < wanted; });
  return at != shards.end() && at->id == id ? &*at : nullptr;
}

std::vector<ShardEntry> Manifest::of(Split split) const {
  std::vector<ShardEntry> result;
  for (const ShardEntry& shard : shards) {
    if (shard.split == split) result.push_back(shard);
  }
  return result;
}

Expected<Manifest> parse_manifest(ByteSpan bytes) {
  NS_ASSIGN_OR_RETURN(const json document, detail::parse_object(bytes, max_manifest_bytes, what));
  const Fields fields(document, what);
  Manifest manifest;
  NS_ASSIGN_OR_RETURN(const std::uint64_t version, fields.number("format_version", 0xffffffffu));
  if (version != 1) {
    return make_error(
        ErrorCode::Unsupported,
        fmt::format("{} has format version {}; this program reads version 1. Update the program.", what,
                    version));
  }
  NS_ASSIGN_OR_RETURN(manifest.network_id, fields.hex("network_id", 32));
  if (!manifest.network_id.empty() && manifest.network_id.size() != 32) {
    return fields.wrong("network_id", "is neither empty nor 64 hexadecimal characters");
  }
  NS_ASSIGN_OR_RETURN(manifest.tokenizer_hash, fields.hash("tokenizer_sha256"));
  NS_ASSIGN_OR_RETURN(manifest.created_ms, fields.time_ms("created_ms"));
  NS_ASSIGN_OR_RETURN(manifest.updated_ms, fields.time_ms("updated_ms"));
  NS_ASSIGN_OR_RETURN(const json* list, fields.array("shards", max_manifest_shards));
  NS_RETURN_IF_ERROR(parse_shards(*list, &manifest));
  NS_RETURN_IF_ERROR(check_totals(document, manifest));
  manifest.extra = unknown_fields(document);
  return manifest;
}

Bytes encode_manifest(const Manifest& manifest) {
  json document = json::object();
  if (!manifest.extra.empty()) {
    const json extra = json::parse(manifest.extra, nullptr, false);
    if (extra.is_object()) document = extra;
  }
  json shards = json::array();
  for (const ShardEntry& shard : manifest.shards) {
    shards.push_back({{"id", shard.id},
                      {"url", shard.url},
                      {"size", shard.size},
                      {"sha256", to_hex(shard.sha256)},
                      {"tokens", shard.tokens},
                      {"source", shard.source},
                      {"split", to_string(shard.split)}});
  }
  document["format_version"] = manifest.format_version;
  document["network_id"] = to_hex(manifest.network_id);
  document["tokenizer_sha256"] = to_hex(manifest.tokenizer_hash);
  document["created_ms"] = manifest.created_ms;
  document["updated_ms"] = manifest.updated_ms;
  document["totals"] = {{"shards", manifest.shards.size()},
                        {"tokens", manifest.total_tokens()},
                        {"bytes", manifest.total_bytes()}};
  document["shards"] = std::move(shards);
  return detail::to_document(document);
}

Expected<ManifestSignature> parse_manifest_signature(ByteSpan bytes) {
  NS_ASSIGN_OR_RETURN(const json document,
                      detail::parse_object(bytes, max_signature_bytes, manifest_signature_file_name));
  const Fields fields(document, manifest_signature_file_name);
  ManifestSignature result;
  NS_ASSIGN_OR_RETURN(const Bytes key, fields.hex("public_key", 32));
  NS_ASSIGN_OR_RETURN(const Bytes signature, fields.hex("ed25519", 64));
  if (key.size() != result.key.size()) return fields.wrong("public_key", "does not have 64 characters");
  if (signature.size() != result.signature.size())
    return fields.wrong("ed25519", "does not have 128 characters");
  std::copy(key.begin(), key.end(), result.key.begin());
  std::copy(signature.begin(), signature.end(), result.signature.begin());
  return result;
}

Bytes encode_manifest_signature(const ManifestSignature& signature) {
  return detail::to_document(
      {{"public_key", to_hex(signature.key)}, {"ed25519", to_hex(signature.signature)}});
}

ManifestSignature sign_manifest(const crypto::KeyPair& publisher, const Manifest& manifest,
                                ByteSpan manifest_bytes) {
  return {publisher.public_key(),
          publisher.sign(crypto::Purpose::Manifest, manifest.network_id, manifest_bytes)};
}

Expected<Manifest> open_manifest(ByteSpan manifest_bytes, ByteSpan signature_bytes,
                                 const ManifestTrust& trust) {
  NS_ASSIGN_OR_RETURN(const ManifestSignature signature, parse_manifest_signature(signature_bytes));
  if (trust.publisher && *trust.publisher != signature.key) {
    return make_error(
        ErrorCode::Denied,
        fmt::format("the manifest is signed by the key {}, but the publisher of this data is {}",
                    to_hex(signature.key), to_hex(*trust.publisher)));
  }
  // Only the id is used before the signature is known to be good.
  NS_ASSIGN_OR_RETURN(Manifest manifest, parse_manifest(manifest_bytes));
  if (!crypto::verify(signature.key, crypto::Purpose::Manifest, manifest.network_id, manifest_bytes,
                      signature.signature)) {
    return make_error(ErrorCode::Denied,
                      "the manifest's signature is wrong: it was changed after signing, or is damaged");
  }
  if (trust.network_id && *trust.network_id != manifest.network_id) {
    return make_error(ErrorCode::Denied,
                      fmt::format("the manifest belongs to the network \"{}\", not to \"{}\"",
                                  to_hex(manifest.network_id), to_hex(*trust.network_id)));
  }
  return manifest;
}

}  // namespace neuroshard::data
