// The JSON form of a network profile.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/config/network_profile.h"

namespace neuroshard::config {
namespace {

using Json = nlohmann::ordered_json;
constexpr int profile_format = 1;
constexpr int max_depth = 4;

Error bad(std::string message) {
  return make_error(ErrorCode::InvalidArgument, std::move(message));
}

// Parses and refuses doubled keys and deep nesting, which a plain parse accepts silently.
Expected<Json> parse_strict(ByteSpan bytes) {
  std::vector<std::set<std::string>> keys;
  std::string doubled;
  bool deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.empty() &&
        !keys.back().insert(parsed.get_ref<const std::string&>()).second) {
      doubled = parsed.get<std::string>();
    }
    deep = deep || depth > max_depth;
    return !deep;
  };
  Json document = Json::parse(bytes.begin(), bytes.end(), watch, /*allow_exceptions=*/false);
  if (deep) return make_error(ErrorCode::Corrupt, "this is not a network profile: it is nested too deeply");
  if (document.is_discarded() || !document.is_object()) {
    return make_error(ErrorCode::Corrupt, "this is not a network profile: it is not a JSON object");
  }
  if (!doubled.empty()) return bad(fmt::format("profile field '{}' appears twice", doubled));
  return document;
}

// Takes fields out of an object one by one; finish() complains about what nobody asked for.
class Fields {
 public:
  Fields(Json object, const char* part) : object_(std::move(object)), part_(part) {}

  Expected<std::uint64_t> number(const char* key) {
    const auto at = object_.find(key);
    if (at == object_.end()) return missing(key);
    if (!at->is_number_unsigned())
      return bad(fmt::format("profile field '{}' must be a whole number ≥ 0", key));
    const auto value = at->get<std::uint64_t>();
    object_.erase(at);
    return value;
  }

  Expected<std::uint64_t> constant(const ConsensusField& field) {
    if (field.words == nullptr) return number(field.key);
    NS_ASSIGN_OR_RETURN(const std::string word, text(field.key));
    const auto value = value_of_word(field, word);
    if (!value.ok()) return bad(fmt::format("profile field '{}' {}", field.key, value.error().message));
    return *value;
  }

  Expected<std::string> text(const char* key) {
    const auto at = object_.find(key);
    if (at == object_.end()) return missing(key);
    if (!at->is_string()) return bad(fmt::format("profile field '{}' must be a text", key));
    auto value = at->get<std::string>();
    object_.erase(at);
    if (value.size() > max_profile_text) return bad(fmt::format("profile field '{}' is too long", key));
    return value;
  }

  Expected<std::vector<std::string>> texts(const char* key, std::size_t most = max_profile_peers) {
    const auto at = object_.find(key);
    if (at == object_.end()) return missing(key);
    if (!at->is_array() || at->size() > most) {
      return bad(fmt::format("profile field '{}' must be a list of at most {} texts", key, most));
    }
    std::vector<std::string> values;
    for (const Json& entry : *at) {
      if (!entry.is_string()) return bad(fmt::format("profile field '{}' must be a list of texts", key));
      values.push_back(entry.get<std::string>());
    }
    object_.erase(at);
    return values;
  }

  Expected<Fields> object(const char* key) {
    const auto at = object_.find(key);
    if (at == object_.end()) return missing(key);
    if (!at->is_object()) return bad(fmt::format("profile field '{}' must be an object", key));
    Fields inner(std::move(*at), key);
    object_.erase(at);
    return inner;
  }

  bool has(const char* key) const { return object_.contains(key); }

  Expected<void> finish() const {
    if (object_.empty()) return {};
    return bad(
        fmt::format("profile field '{}' in {} is unknown; remove it, or use a newer version of neuroshardd",
                    object_.begin().key(), part_));
  }

 private:
  Error missing(const char* key) const {
    return bad(fmt::format("profile field '{}' is missing in {}", key, part_));
  }

  Json object_;
  const char* part_;
};

Expected<ConsensusPart> parse_consensus(Fields fields) {
  ConsensusPart c;
  NS_ASSIGN_OR_RETURN(c.name, fields.text("name"));
  std::size_t read = 0;
  for (const ConsensusField& field : consensus_fields()) {
    if (read++ >= first_consensus_fields && !fields.has(field.key)) continue;
    NS_ASSIGN_OR_RETURN(c.*field.member, fields.constant(field));
  }
  NS_ASSIGN_OR_RETURN(c.sync, fields.text("sync"));
  NS_ASSIGN_OR_RETURN(c.codec, fields.text("codec"));
  NS_ASSIGN_OR_RETURN(c.publisher_key, fields.text("publisher_key"));
  if (fields.has("founders")) {
    NS_ASSIGN_OR_RETURN(c.founders, fields.texts("founders", max_profile_founders));
    if (c.founders.empty()) return bad("profile field 'founders' must be left out when it names nobody");
  }
  if (fields.has("sizes")) {
    NS_ASSIGN_OR_RETURN(const auto sizes, fields.texts("sizes", max_profile_sizes));
    if (sizes.empty()) return bad("profile field 'sizes' must be left out when it has none");
    for (const std::string& text : sizes) {
      const auto size = parse_model_growth(text);
      if (!size.ok()) return bad("profile field 'sizes' " + size.error().message);
      c.sizes.push_back(*size);
    }
  }
  NS_RETURN_IF_ERROR(fields.finish());
  NS_RETURN_IF_ERROR(validate(c));
  return c;
}

Expected<DirectoryPart> parse_directory(Fields fields) {
  DirectoryPart d;
  NS_ASSIGN_OR_RETURN(d.sequence, fields.number("sequence"));
  NS_ASSIGN_OR_RETURN(d.p2p_port, fields.number("p2p_port"));
  NS_ASSIGN_OR_RETURN(d.tracker_port, fields.number("tracker_port"));
  NS_ASSIGN_OR_RETURN(d.http_port, fields.number("http_port"));
  NS_ASSIGN_OR_RETURN(d.checkpoint_min_interval, fields.number("checkpoint_min_interval"));
  NS_ASSIGN_OR_RETURN(d.bootstrap, fields.texts("bootstrap"));
  NS_ASSIGN_OR_RETURN(d.trackers, fields.texts("trackers"));
  NS_ASSIGN_OR_RETURN(d.manifest_url, fields.text("manifest_url"));
  if (fields.has("genesis")) {
    NS_ASSIGN_OR_RETURN(const std::string hex, fields.text("genesis"));
    const auto hash = hash_from_hex(hex);
    if (!hash.ok() || to_hex(*hash) != hex)
      return bad("profile field 'genesis' must be 64 lower-case hexadecimal characters");
    d.genesis = *hash;
  }
  if (fields.has("signature")) {
    NS_ASSIGN_OR_RETURN(const std::string hex, fields.text("signature"));
    const auto bytes = from_hex(hex);
    if (!bytes.ok() || bytes->size() != std::tuple_size_v<crypto::Signature>) {
      return bad("profile field 'signature' must be 128 hexadecimal characters");
    }
    std::copy(bytes->begin(), bytes->end(), d.signature.emplace().begin());
  }
  NS_RETURN_IF_ERROR(fields.finish());
  NS_RETURN_IF_ERROR(validate(d));
  return d;
}

// The names of the built-in networks belong to them.
Expected<void> check_reserved_name(const ConsensusPart& consensus) {
  const auto builtin = builtin_profile(consensus.name);
  if (!builtin.ok() || network_id(builtin->consensus) == network_id(consensus)) return {};
  return bad(
      fmt::format("profile field 'name' is '{}', the name of a built-in network with other constants; choose "
                  "another",
                  consensus.name));
}

}  // namespace

Expected<NetworkProfile> parse_network_profile(ByteSpan json) {
  if (json.size() > max_profile_bytes) {
    return make_error(ErrorCode::Exhausted, fmt::format("the profile has {} bytes; at most {} are read",
                                                        json.size(), max_profile_bytes));
  }
  NS_ASSIGN_OR_RETURN(Json document, parse_strict(json));
  Fields fields(std::move(document), "the profile");
  NS_ASSIGN_OR_RETURN(const std::uint64_t format, fields.number("format"));
  if (format != profile_format) {
    return make_error(ErrorCode::Unsupported,
                      fmt::format("the profile has format {}; this version of neuroshardd reads format {}",
                                  format, profile_format));
  }
  NS_ASSIGN_OR_RETURN(const std::string id, fields.text("network_id"));
  NS_ASSIGN_OR_RETURN(Fields consensus, fields.object("consensus"));
  NS_ASSIGN_OR_RETURN(Fields directory, fields.object("directory"));
  NS_RETURN_IF_ERROR(fields.finish());
  NetworkProfile profile;
  NS_ASSIGN_OR_RETURN(profile.consensus, parse_consensus(std::move(consensus)));
  NS_ASSIGN_OR_RETURN(profile.directory, parse_directory(std::move(directory)));
  NS_RETURN_IF_ERROR(check_reserved_name(profile.consensus));
  if (const std::string actual = to_hex(network_id(profile.consensus)); actual != id) {
    return bad(
        fmt::format("profile field 'network_id' does not match the constants (they give {}); other constants "
                    "require another "
                    "network: create one with \"neuroshardd network create\"",
                    actual));
  }
  NS_RETURN_IF_ERROR(verify_directory(profile));
  return profile;
}

std::string format_network_profile(const NetworkProfile& profile) {
  Json consensus = {{"name", profile.consensus.name}};
  for (const ConsensusField& field : written_fields(profile.consensus))
    consensus[field.key] = field.words != nullptr ? Json(text_of(field, profile.consensus.*field.member))
                                                  : Json(profile.consensus.*field.member);
  consensus["sync"] = profile.consensus.sync;
  consensus["codec"] = profile.consensus.codec;
  consensus["publisher_key"] = profile.consensus.publisher_key;
  if (!profile.consensus.founders.empty()) consensus["founders"] = profile.consensus.founders;
  for (const ModelGrowth& size : profile.consensus.sizes) consensus["sizes"].push_back(to_text(size));
  const DirectoryPart& d = profile.directory;
  Json directory = {{"sequence", d.sequence},
                    {"p2p_port", d.p2p_port},
                    {"tracker_port", d.tracker_port},
                    {"http_port", d.http_port},
                    {"checkpoint_min_interval", d.checkpoint_min_interval},
                    {"bootstrap", d.bootstrap},
                    {"trackers", d.trackers},
                    {"manifest_url", d.manifest_url}};
  if (d.genesis) directory["genesis"] = to_hex(*d.genesis);
  if (d.signature) directory["signature"] = to_hex(*d.signature);
  const Json document = {{"format", profile_format},
                         {"network_id", to_hex(network_id(profile.consensus))},
                         {"consensus", consensus},
                         {"directory", directory}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace neuroshard::config
