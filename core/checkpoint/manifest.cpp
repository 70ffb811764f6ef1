#include "core/checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/checkpoint/detail/json_reader.h"
#include "core/compute/module.h"
#include "core/crypto/hash.h"

namespace neuroshard::checkpoint {
namespace {

using detail::JsonReader;
using nlohmann::json;

constexpr std::size_t max_depth = 6;  // file > manifest > files > entry, and room to append
constexpr std::size_t step_digits = 10;
constexpr std::size_t hash_digits = 8;

std::string dump(const json& value, int indent = -1) {
  // Replace: text that is not UTF-8 must not throw; it then reads back differently and is refused.
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

json encode_architecture(const compute::ModelShape& shape) {
  return {{"layers", shape.layers},         {"hidden", shape.hidden},
          {"head_dim", shape.head_dim},     {"heads", shape.heads},
          {"kv_heads", shape.kv_heads},     {"ffn", shape.ffn},
          {"experts", shape.experts},       {"experts_per_token", shape.experts_per_token},
          {"vocab", shape.vocab},           {"sequence", shape.sequence},
          {"rope_theta", shape.rope_theta}, {"rms_epsilon", shape.rms_epsilon}};
}

Expected<compute::ModelShape> parse_architecture(const json& value) {
  compute::ModelShape shape;
  JsonReader reader(value);
  reader.read_unsigned("layers", shape.layers);
  reader.read_unsigned("hidden", shape.hidden);
  reader.read_unsigned("head_dim", shape.head_dim);
  reader.read_unsigned("heads", shape.heads);
  reader.read_unsigned("kv_heads", shape.kv_heads);
  reader.read_unsigned("ffn", shape.ffn);
  reader.read_unsigned("experts", shape.experts);
  reader.read_unsigned("experts_per_token", shape.experts_per_token);
  reader.read_unsigned("vocab", shape.vocab);
  reader.read_unsigned("sequence", shape.sequence);
  reader.read_float("rope_theta", shape.rope_theta);
  reader.read_float("rms_epsilon", shape.rms_epsilon);
  if (!reader.ok()) return reader.error();
  const auto valid = compute::validate(shape);
  if (!valid.ok())
    return make_error(ErrorCode::Corrupt, "the manifest has an invalid model: " + valid.error().message);
  return shape;
}

void set_if_finite(json& object, const char* key, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) object[key] = *value;
}

std::string encode_rng(const Rng::State& state) {
  Bytes bytes;
  for (const std::uint64_t word : state) append_le(bytes, word);
  return to_hex(bytes);
}

// The bytes that the signature covers.
json encode_body(const Manifest& m) {
  json slots = json::array();
  for (const compute::SlotId slot : m.slots) slots.push_back(compute::to_string(slot));
  json files = json::array();
  for (const FileRecord& file : m.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", to_hex(file.sha256)}});
  }
  json losses = json::object();
  set_if_finite(losses, "train", m.losses.training);
  set_if_finite(losses, "held_out", m.losses.held_out);
  return {{"sequence", m.sequence},
          {"parent", m.parent},
          {"origin", m.origin},
          {"wallet", m.wallet},
          {"instance", to_hex(m.instance)},
          {"network_id", to_hex(m.network_id)},
          {"architecture", encode_architecture(m.architecture)},
          {"architecture_version", m.architecture_version},
          {"slots", std::move(slots)},
          {"step", m.step},
          {"round", m.round},
          {"inner_step", m.inner_step},
          {"tokens_seen", m.tokens_seen},
          {"micro_batch", m.micro_batch},
          {"rng", encode_rng(m.rng)},
          {"loader_position", m.loader_position},
          {"trainer_state", m.trainer_state},
          {"losses", std::move(losses)},
          {"saved_at_ms", m.saved_at.time_since_epoch().count()},
          {"written_today", {{"day", m.written_today.day}, {"bytes", m.written_today.bytes}}},
          {"files", std::move(files)}};
}

Bytes encode_file(const json& body, const Manifest& manifest) {
  const json file = {{"format", manifest_format},
                     {"manifest", body},
                     {"node_key", to_hex(manifest.node_key)},
                     {"signature", to_hex(manifest.signature)}};
  const std::string text = dump(file, 2) + "\n";
  return Bytes(text.begin(), text.end());
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= max_short_text && name[0] != '.' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") == std::string::npos;
}

Expected<void> parse_slots(const json& list, Manifest& manifest) {
  if (!list.is_array()) return make_error(ErrorCode::Corrupt, "the manifest is damaged: slots is not a list");
  std::set<std::string> names;
  for (const json& item : list) {
    if (!item.is_string())
      return make_error(ErrorCode::Corrupt, "the manifest is damaged: a slot is not a text");
    auto slot = compute::parse_slot(item.get_ref<const std::string&>());
    if (!slot.ok()) return std::move(slot).error();
    const bool inside =
        slot->layer < manifest.architecture.layers && slot->expert < manifest.architecture.experts;
    if (!inside) {
      return make_error(ErrorCode::Corrupt, fmt::format("the manifest is damaged: its model has no slot {}",
                                                        compute::to_string(*slot)));
    }
    // Repeated slots of a part would pass for a whole model.
    if (!names.insert(compute::to_string(*slot)).second) {
      return make_error(ErrorCode::Corrupt, fmt::format("the manifest is damaged: it lists the slot {} twice",
                                                        compute::to_string(*slot)));
    }
    manifest.slots.push_back(*slot);
  }
  return {};
}

Expected<void> parse_files(const json& list, Manifest& manifest) {
  if (!list.is_array() || list.size() > max_files) {
    return make_error(ErrorCode::Corrupt, "the manifest is damaged: files is not a short list");
  }
  for (const json& item : list) {
    FileRecord file;
    JsonReader reader(item);
    reader.read_text("name", file.name, max_short_text);
    reader.read_unsigned("bytes", file.bytes, std::uint64_t{1} << 60);
    reader.read_hex("sha256", file.sha256);
    if (reader.ok() && (!is_plain_name(file.name) || manifest.file(file.name) != nullptr)) {
      reader.fail("a file name is invalid or appears twice");
    }
    if (!reader.ok()) return reader.error();
    manifest.files.push_back(std::move(file));
  }
  return {};
}

Expected<void> parse_scalars(const json& body, Manifest& m) {
  JsonReader reader(body);
  reader.read_unsigned("sequence", m.sequence, std::uint64_t{1} << 62);
  reader.read_text("parent", m.parent, max_short_text);
  reader.read_text("origin", m.origin, max_short_text);
  reader.read_text("wallet", m.wallet, max_short_text);
  reader.read_hex("instance", m.instance);
  reader.read_hex("network_id", m.network_id);
  reader.read_unsigned("architecture_version", m.architecture_version);
  reader.read_unsigned("step", m.step, std::uint64_t{1} << 62);
  reader.read_unsigned("round", m.round, std::uint64_t{1} << 62);
  reader.read_unsigned("inner_step", m.inner_step, std::uint64_t{1} << 62);
  reader.read_unsigned("tokens_seen", m.tokens_seen);
  reader.read_unsigned("micro_batch", m.micro_batch);
  reader.read_text("loader_position", m.loader_position, max_state_bytes);
  reader.read_text("trainer_state", m.trainer_state, max_state_bytes);
  std::array<std::uint8_t, 32> rng{};
  reader.read_hex("rng", rng);
  for (std::size_t i = 0; i < m.rng.size(); ++i) m.rng[i] = load_le<std::uint64_t>(rng.data() + 8 * i);
  std::int64_t saved_at = 0;
  reader.read_signed("saved_at_ms", saved_at);
  m.saved_at = WallTime(std::chrono::milliseconds(saved_at));
  if (const json* losses = reader.required("losses")) {
    JsonReader inner(*losses);
    inner.read_optional_double("train", m.losses.training);
    inner.read_optional_double("held_out", m.losses.held_out);
    if (!inner.ok()) return inner.error();
  }
  if (const json* today = reader.required("written_today")) {
    JsonReader inner(*today);
    inner.read_signed("day", m.written_today.day);
    inner.read_unsigned("bytes", m.written_today.bytes);
    if (!inner.ok()) return inner.error();
  }
  if (!reader.ok()) return reader.error();
  return {};
}

Expected<json> parse_json(ByteSpan bytes) {
  if (bytes.size() > max_manifest_bytes) {
    return make_error(ErrorCode::Exhausted, fmt::format("the manifest has {} bytes; at most {} are allowed",
                                                        bytes.size(), max_manifest_bytes));
  }
  if (!detail::nesting_within(as_text(bytes), max_depth)) {
    return make_error(ErrorCode::Corrupt, "the manifest is damaged: it nests too deeply");
  }
  json root = json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (root.is_discarded())
    return make_error(ErrorCode::Corrupt, "the manifest is damaged: it is not valid JSON");
  return root;
}

}  // namespace

std::uint64_t Manifest::file_bytes() const {
  std::uint64_t total = 0;
  for (const FileRecord& record : files) total += record.bytes;
  return total;
}

const FileRecord* Manifest::file(const std::string& name) const {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const FileRecord& f) { return f.name == name; });
  return found == files.end() ? nullptr : &*found;
}

Bytes sign_and_encode(Manifest& manifest, const crypto::KeyPair& node_key) {
  manifest.node_key = node_key.public_key();
  manifest.instance = crypto::node_id(manifest.node_key);
  const json body = encode_body(manifest);
  const std::string text = dump(body);
  manifest.signature = node_key.sign(crypto::Purpose::Checkpoint, manifest.network_id, as_bytes(text));
  return encode_file(body, manifest);
}

Expected<Manifest> parse_manifest(ByteSpan bytes) {
  NS_ASSIGN_OR_RETURN(const json root, parse_json(bytes));
  Manifest manifest;
  std::uint32_t format = 0;
  JsonReader reader(root);
  reader.read_unsigned("format", format);
  if (reader.ok() && format > manifest_format) {
    return make_error(ErrorCode::Unsupported,
                      fmt::format("this checkpoint was written by a newer version of this program "
                                  "(format {}, this version reads {}); install the newer version",
                                  format, manifest_format));
  }
  reader.read_hex("node_key", manifest.node_key);
  reader.read_hex("signature", manifest.signature);
  const json* body = reader.required("manifest");
  if (body == nullptr || !body->is_object()) reader.fail("its main part is missing");
  if (!reader.ok()) return reader.error();

  NS_RETURN_IF_ERROR(parse_scalars(*body, manifest));
  JsonReader parts(*body);
  const json* architecture = parts.required("architecture");
  const json* slots = parts.required("slots");
  const json* files = parts.required("files");
  if (!parts.ok()) return parts.error();
  NS_ASSIGN_OR_RETURN(manifest.architecture, parse_architecture(*architecture));
  NS_RETURN_IF_ERROR(parse_slots(*slots, manifest));
  NS_RETURN_IF_ERROR(parse_files(*files, manifest));

  const Bytes again = encode_file(encode_body(manifest), manifest);
  if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) {
    return make_error(ErrorCode::Corrupt, "the manifest is damaged: it is not in canonical form");
  }
  return manifest;
}

Expected<void> verify_signature(const Manifest& manifest) {
  const std::string text = dump(encode_body(manifest));
  if (manifest.instance != crypto::node_id(manifest.node_key) ||
      !crypto::verify(manifest.node_key, crypto::Purpose::Checkpoint, manifest.network_id, as_bytes(text),
                      manifest.signature)) {
    return make_error(ErrorCode::Corrupt,
                      "the manifest's signature does not match: it was changed or damaged");
  }
  return {};
}

std::string folder_name(std::uint64_t step, ByteSpan manifest_bytes) {
  return fmt::format("{:0{}}-{}", step, step_digits,
                     to_hex(crypto::sha256(manifest_bytes)).substr(0, hash_digits));
}

bool is_folder_name(const std::string& name) {
  const std::size_t dash = name.find('-');
  return dash != std::string::npos && dash >= step_digits && dash <= 20 &&
         name.size() == dash + 1 + hash_digits && name.find_first_not_of("0123456789") == dash &&
         name.find_first_not_of("0123456789abcdef", dash + 1) == std::string::npos;
}

}  // namespace neuroshard::checkpoint
