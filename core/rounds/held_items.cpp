#include "core/rounds/held_items.h"

#include <algorithm>
#include <utility>

#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "core/rounds/round_posts.h"

namespace neuroshard::rounds {

Expected<std::vector<Hash256>> payload_leaves(const net::NodeId& contributor, const ByteSource& payload) {
  std::vector<Hash256> leaves;
  Bytes leaf(contributor.begin(), contributor.end());
  std::uint64_t at = 0;
  do {
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(payload_slice_bytes, payload.size() - at));
    leaf.resize(contributor.size() + size);
    NS_RETURN_IF_ERROR(payload.read_at(at, {leaf.data() + contributor.size(), size}));
    leaves.push_back(crypto::merkle_leaf(leaf));
    at += size;
  } while (at < payload.size());
  return leaves;
}

Expected<PayloadReading> read_payload(const net::NodeId& contributor, const ByteSource& payload) {
  NS_ASSIGN_OR_RETURN(std::vector<Hash256> leaves, payload_leaves(contributor, payload));
  PayloadReading reading;
  reading.root = crypto::merkle_root(leaves);
  if (leaves.size() > 1) reading.leaves = std::make_shared<const std::vector<Hash256>>(std::move(leaves));
  return reading;
}

Hash256 payload_root(const net::NodeId& contributor, ByteSpan payload) {
  return read_payload(contributor, BytesView(payload)).value().root;
}

HeldContribution::HeldContribution(chain::Contribution contribution, std::vector<Payload> payloads)
    : contribution_(std::move(contribution)),
      id_(crypto::node_id(contribution_.node)),
      payloads_(std::move(payloads)) {}

const chain::ContributionEntry& HeldContribution::entry() const {
  if (!entry_) entry_ = chain::entry_of(contribution_, 0);
  return *entry_;
}

chain::ContributionEntry HeldContribution::entry_of(std::uint32_t member) const {
  chain::ContributionEntry entry = this->entry();
  entry.member = member;
  return entry;
}

bool is_entry_of(const chain::ContributionEntry& entry, const HeldContribution& held) {
  chain::ContributionEntry own = held.entry_of(entry.member);
  own.signature = entry.signature;
  return own == entry;
}

const Hash256& HeldContribution::contribution_id() const {
  if (!contribution_id_) contribution_id_ = chain::contribution_id(entry());
  return *contribution_id_;
}

const std::vector<Payload>& HeldContribution::payloads() const {
  if (payloads_checked_) return payloads_;
  payloads_checked_ = true;
  for (std::size_t i = 0; i < payloads_.size(); ++i) {
    const chain::RowWork& work = contribution_.rows[i];
    Payload& payload = payloads_[i];
    const auto has_root = [&] {
      const auto reading = read_payload(id_, *payload);
      return reading.ok() && reading->root == work.payload;
    };
    if (payload->size() != work.payload_bytes || !has_root()) payload.reset();
  }
  return payloads_;
}

const chain::VectorClaim& HeldVector::claim() const {
  if (!claim_) claim_ = chain::claim_of(vector_);
  return *claim_;
}

HeldContributionPtr RoundPool::read_contribution(ByteSpan post, std::size_t most_rows) {
  auto posted = decode_contribution_post(post, most_rows);
  if (!posted) return nullptr;
  std::vector<Payload> payloads;
  payloads.reserve(posted->payloads.size());
  for (auto& [row, payload] : posted->payloads) payloads.push_back(in_memory(std::move(payload)));
  return std::make_shared<const HeldContribution>(std::move(posted->contribution), std::move(payloads));
}

HeldVectorPtr RoundPool::read_vector(ByteSpan bytes, std::size_t most_members, std::size_t rows) {
  auto vector = chain::decode_vector(bytes, most_members, rows);
  return vector.ok() ? std::make_shared<const HeldVector>(std::move(*vector)) : nullptr;
}

}  // namespace neuroshard::rounds
