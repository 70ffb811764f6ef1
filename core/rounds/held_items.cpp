#include "core/rounds/held_items.h"

#include <algorithm>

#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "core/rounds/round_posts.h"

namespace neuroshard::rounds {

Hash256 payload_root(const net::NodeId& contributor, ByteSpan payload) {
  std::vector<Hash256> leaves;
  Bytes leaf;
  std::size_t at = 0;
  do {
    const ByteSpan slice = payload.subspan(at, std::min(payload_slice_bytes, payload.size() - at));
    leaf.assign(contributor.begin(), contributor.end());
    leaf.insert(leaf.end(), slice.begin(), slice.end());
    leaves.push_back(crypto::merkle_leaf(leaf));
    at += slice.size();
  } while (at < payload.size());
  return crypto::merkle_root(leaves);
}

HeldContribution::HeldContribution(chain::Contribution contribution, std::vector<PayloadBytes> payloads)
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

const Hash256& HeldContribution::contribution_id() const {
  if (!contribution_id_) contribution_id_ = chain::contribution_id(entry());
  return *contribution_id_;
}

const std::vector<PayloadBytes>& HeldContribution::payloads() const {
  if (payloads_checked_) return payloads_;
  payloads_checked_ = true;
  for (std::size_t i = 0; i < payloads_.size(); ++i) {
    const chain::RowWork& work = contribution_.rows[i];
    PayloadBytes& payload = payloads_[i];
    if (payload->size() != work.payload_bytes || payload_root(id_, *payload) != work.payload) payload.reset();
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
  std::vector<PayloadBytes> payloads;
  payloads.reserve(posted->payloads.size());
  for (auto& [row, payload] : posted->payloads)
    payloads.push_back(std::make_shared<const Bytes>(std::move(payload)));
  return std::make_shared<const HeldContribution>(std::move(posted->contribution), std::move(payloads));
}

HeldVectorPtr RoundPool::read_vector(ByteSpan bytes, std::size_t most_members, std::size_t rows) {
  auto vector = chain::decode_vector(bytes, most_members, rows);
  return vector.ok() ? std::make_shared<const HeldVector>(std::move(*vector)) : nullptr;
}

}  // namespace neuroshard::rounds
