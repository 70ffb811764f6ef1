#include "core/chain/attestation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/chain/ascending.h"
#include "core/chain/detail/formats.h"
#include "core/chain/open_row.h"
#include "core/crypto/merkle.h"

namespace neuroshard::chain {
namespace {

auto place_of(auto& attestation) {
  return std::tie(attestation.opening, attestation.round, attestation.voter);
}

// attestation: a whole one, or one row of it.
Bytes signed_part(const auto& attestation, const Hash256& results) {
  Bytes bytes = bytes_of(place_of(attestation));
  append_array(bytes, results);
  return bytes;
}

std::vector<Hash256> leaves_of(const std::vector<RowResult>& rows) {
  std::vector<Hash256> leaves;
  leaves.reserve(rows.size());
  for (const RowResult& row : rows) leaves.push_back(result_hash(row));
  return leaves;
}

// One voice for each wallet. Its nodes may contradict each other: then it has none.
struct Voice {
  const RowResult* result = nullptr;
  bool contradicts_itself = false;
};

std::map<std::uint32_t, Voice> voices_of(const std::vector<HolderClaim>& claims) {
  std::map<std::uint32_t, Voice> voices;
  for (const HolderClaim& claim : claims) {
    Voice& voice = voices[claim.wallet];
    if (claim.result == nullptr) continue;
    if (voice.result != nullptr && !(*voice.result == *claim.result)) voice.contradicts_itself = true;
    voice.result = claim.result;
  }
  return voices;
}

std::optional<RowResult> majority(const std::map<std::uint32_t, Voice>& voices) {
  for (const auto& [wallet, voice] : voices) {
    if (voice.result == nullptr || voice.contradicts_itself) continue;
    const auto same = std::count_if(voices.begin(), voices.end(), [&voice = voice](const auto& other) {
      return other.second.result != nullptr && !other.second.contradicts_itself &&
             *other.second.result == *voice.result;
    });
    if (2 * static_cast<std::size_t>(same) > voices.size()) return *voice.result;
  }
  return std::nullopt;
}

}  // namespace

std::optional<RowResult> attested_result(std::uint32_t row, const std::vector<HolderClaim>& claims,
                                         bool late) {
  const std::map<std::uint32_t, Voice> voices = voices_of(claims);
  const auto silent = static_cast<std::size_t>(std::count_if(
      voices.begin(), voices.end(), [](const auto& one) { return one.second.result == nullptr; }));
  const bool all = silent == 0;
  if (voices.size() >= many_holders) {
    if (auto decided = majority(voices)) return decided;
    if (all || late) return carried_row(row);
    return std::nullopt;
  }
  const RowResult* agreed = nullptr;
  for (const auto& [wallet, voice] : voices) {
    if (voice.result == nullptr) continue;
    if (voice.contradicts_itself || (agreed != nullptr && !(*agreed == *voice.result)))
      return carried_row(row);
    agreed = voice.result;
  }
  if (!all && !late) return std::nullopt;
  return agreed == nullptr ? carried_row(row) : *agreed;
}

Hash256 results_root(const std::vector<RowResult>& rows) {
  return crypto::merkle_root(leaves_of(rows));
}

AttestedRow attested_row(const Attestation& attestation, std::size_t place) {
  return {attestation.opening,
          attestation.round,
          attestation.voter,
          attestation.rows[place],
          static_cast<std::uint32_t>(place),
          static_cast<std::uint32_t>(attestation.rows.size()),
          crypto::MerkleTree(leaves_of(attestation.rows)).path(place),
          attestation.signature};
}

bool attested_row_holds(const AttestedRow& row, const crypto::PublicKey& node, const Hash256& network) {
  const auto results = crypto::merkle_root_of_path(result_hash(row.result), row.place, row.rows, row.path);
  return results && crypto::verify(node, crypto::Purpose::ChainAttestation, network,
                                   signed_part(row, *results), row.signature);
}

void sign_attestation(Attestation& attestation, const crypto::KeyPair& node, const Hash256& network) {
  attestation.signature = node.sign(crypto::Purpose::ChainAttestation, network,
                                    signed_part(attestation, results_root(attestation.rows)));
}

bool attestation_holds(const Attestation& attestation, const crypto::PublicKey& node,
                       const Hash256& network) {
  return crypto::verify(node, crypto::Purpose::ChainAttestation, network,
                        signed_part(attestation, results_root(attestation.rows)), attestation.signature);
}

Bytes encode_attestation(const Attestation& attestation) {
  Bytes bytes = bytes_of(place_of(attestation));
  append_results(bytes, attestation.rows);
  append_array(bytes, attestation.signature);
  return bytes;
}

Expected<Attestation> decode_attestation(ByteSpan bytes, std::size_t most_rows) {
  ByteReader in(bytes);
  Attestation attestation;
  in.read(place_of(attestation));
  attestation.rows = read_results(in, most_rows);
  attestation.signature = in.array<crypto::Signature>();
  if (!in.at_end() || attestation.rows.empty() || !is_ascending(attestation.rows, &RowResult::row))
    return corrupt("an attestation can't be read");
  return attestation;
}

}  // namespace neuroshard::chain
