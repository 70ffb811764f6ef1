#include "core/chain/beacon.h"

#include <string_view>

#include "core/base/check.h"
#include "core/chain/detail/formats.h"

namespace neuroshard::chain {
namespace {

constexpr std::uint32_t keep_every = 256;

// Tag and value fit into one block of SHA-256.
Hash256 next_value(const Hash256& value) {
  return tagged_hash("neuroshard/beacon/1", value);
}

Hash256 hashed(Hash256 value, std::uint64_t times) {
  for (; times > 0; --times) value = next_value(value);
  return value;
}

bool lasts(const BeaconCommitment& commitment, std::uint64_t round) {
  return round >= commitment.first_round && round - commitment.first_round < commitment.length;
}

}  // namespace

BeaconChain::BeaconChain(const Hash256& seed, std::uint64_t first_round, std::uint32_t length)
    : first_round_(first_round), length_(length) {
  NS_CHECK(length >= 1 && length <= beacon_chain_length);
  kept_.reserve(length / keep_every + 1);
  Hash256 value = seed;
  for (std::uint32_t i = 0; i <= length; ++i) {
    if (i % keep_every == 0) kept_.push_back(value);
    if (i < length) value = next_value(value);
  }
  tip_ = value;
}

BeaconCommitment BeaconChain::commitment() const {
  return {tip_, first_round_, length_};
}

Expected<Hash256> BeaconChain::reveal(std::uint64_t round) const {
  if (!lasts(commitment(), round))
    return make_error(ErrorCode::Exhausted, "the beacon's hash chain has no value for this round");
  const std::uint64_t position = length_ - 1 - (round - first_round_);
  return hashed(kept_[position / keep_every], position % keep_every);
}

bool reveal_holds(const BeaconCommitment& commitment, std::uint64_t round, const Hash256& value,
                  const Hash256& known, std::uint64_t known_round) {
  if (!lasts(commitment, round) || commitment.length > beacon_chain_length) return false;
  if (known_round == 0 || !lasts(commitment, known_round))
    return hashed(value, round - commitment.first_round + 1) == commitment.tip;
  if (known_round < round) return hashed(value, round - known_round) == known;
  return hashed(known, known_round - round) == value;
}

std::uint64_t reveal_cost(const BeaconCommitment& commitment, std::uint64_t round,
                          std::uint64_t known_round) {
  if (!lasts(commitment, round) || commitment.length > beacon_chain_length) return 0;
  if (known_round == 0 || !lasts(commitment, known_round)) return round - commitment.first_round + 1;
  return known_round < round ? round - known_round : known_round - round;
}

Hash256 next_beacon(const Hash256& beacon, std::uint64_t round, const std::vector<Reveal>& reveals) {
  Bytes bytes = bytes_of(std::tie(beacon, round));
  append_le(bytes, static_cast<std::uint32_t>(reveals.size()));
  for (const Reveal& reveal : reveals) append_record(bytes, std::tie(reveal.id, reveal.value));
  return tagged_hash("neuroshard/chain/next-beacon/1", bytes);
}

Hash256 lot(const char* purpose, const Hash256& beacon, const net::NodeId& id) {
  const std::string_view name(purpose);
  Bytes bytes;
  append_part(bytes, as_bytes(name));
  append_record(bytes, std::tie(beacon, id));
  return tagged_hash("neuroshard/chain/lot/1", bytes);
}

}  // namespace neuroshard::chain
