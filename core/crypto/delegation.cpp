#include "core/crypto/delegation.h"

#include <algorithm>

namespace neuroshard::crypto {
namespace {

constexpr std::string_view magic = "NSDL";
constexpr std::uint16_t version = 1;
constexpr std::size_t signed_size = delegation_bytes - sizeof(Signature);

bool signature_holds(const Delegation& delegation) {
  const Bytes bytes = encode_delegation(delegation);
  return verify(delegation.wallet_key, Purpose::Delegation, delegation.network_id,
                ByteSpan(bytes).first(signed_size), delegation.signature);
}

}  // namespace

Delegation delegate(const KeyPair& wallet, const PublicKey& node_key, const Hash256& network_id,
                    WallTime expires, std::uint64_t sequence) {
  Delegation delegation{node_key, wallet.public_key(), network_id, expires, sequence, {}};
  const Bytes bytes = encode_delegation(delegation);
  delegation.signature = wallet.sign(Purpose::Delegation, network_id, ByteSpan(bytes).first(signed_size));
  return delegation;
}

Bytes encode_delegation(const Delegation& delegation) {
  Bytes bytes;
  bytes.reserve(delegation_bytes);
  bytes.insert(bytes.end(), magic.begin(), magic.end());
  append_le(bytes, version);
  append_le(bytes, static_cast<std::uint16_t>(delegation_bytes));
  bytes.insert(bytes.end(), delegation.node_key.begin(), delegation.node_key.end());
  bytes.insert(bytes.end(), delegation.wallet_key.begin(), delegation.wallet_key.end());
  bytes.insert(bytes.end(), delegation.network_id.begin(), delegation.network_id.end());
  append_le(bytes, to_unix_ms(delegation.expires));
  append_le(bytes, delegation.sequence);
  bytes.insert(bytes.end(), delegation.signature.begin(), delegation.signature.end());
  return bytes;
}

Expected<Delegation> parse_delegation(ByteSpan bytes) {
  if (bytes.size() < 8 || as_text(bytes.first(magic.size())) != magic) {
    return make_error(ErrorCode::Corrupt, "this is not a delegation record");
  }
  if (load_le<std::uint16_t>(bytes.data() + 4) > version) {
    return make_error(ErrorCode::Unsupported,
                      "the delegation record has a newer version; update this program");
  }
  const bool whole = bytes.size() == delegation_bytes &&
                     load_le<std::uint16_t>(bytes.data() + 4) == version &&
                     load_le<std::uint16_t>(bytes.data() + 6) == delegation_bytes;
  if (!whole) return make_error(ErrorCode::Corrupt, "the delegation record has a wrong length");
  Delegation delegation;
  std::copy_n(bytes.data() + 8, 32, delegation.node_key.begin());
  std::copy_n(bytes.data() + 40, 32, delegation.wallet_key.begin());
  std::copy_n(bytes.data() + 72, 32, delegation.network_id.begin());
  delegation.expires = WallTime(std::chrono::milliseconds(load_le<std::int64_t>(bytes.data() + 104)));
  delegation.sequence = load_le<std::uint64_t>(bytes.data() + 112);
  std::copy_n(bytes.data() + signed_size, delegation.signature.size(), delegation.signature.begin());
  return delegation;
}

Expected<Delegation> decode_delegation(ByteSpan bytes) {
  NS_ASSIGN_OR_RETURN(Delegation delegation, parse_delegation(bytes));
  if (!signature_holds(delegation)) {
    return make_error(ErrorCode::Corrupt, "the delegation record is not signed by its wallet");
  }
  return delegation;
}

Expected<void> check_delegation(const Delegation& delegation, const PublicKey& node_key,
                                const Hash256& network_id, WallTime now) {
  if (!signature_holds(delegation)) {
    return make_error(ErrorCode::Denied, "the delegation is not signed by its wallet");
  }
  if (delegation.node_key != node_key)
    return make_error(ErrorCode::Denied, "the delegation is for another node");
  if (delegation.network_id != network_id) {
    return make_error(ErrorCode::Denied, "the delegation is for another network");
  }
  if (now >= delegation.expires) return make_error(ErrorCode::Denied, "the delegation has expired");
  return {};
}

}  // namespace neuroshard::crypto
