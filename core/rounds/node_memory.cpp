// RoundNode: what it keeps for a restart.
#include <algorithm>

#include "core/crypto/hash.h"
#include "core/rounds/node.h"

namespace neuroshard::rounds {
namespace {

constexpr std::string_view votes_magic = "NSRV1";

}  // namespace

void RoundNode::save(std::function<void()> then) {
  Bytes bytes(votes_magic.begin(), votes_magic.end());
  append_le(bytes, memory_round_);
  append_le(bytes, sequence_);
  bytes.push_back(own_ ? 1 : 0);
  if (own_) {
    const Bytes own = encode_contribution(*own_);
    bytes.insert(bytes.end(), own.begin(), own.end());
  }
  const Bytes memory = encode_agreement_memory(memory_);
  bytes.insert(bytes.end(), memory.begin(), memory.end());
  const Hash256 check = crypto::sha256(bytes);
  bytes.insert(bytes.end(), check.begin(), check.end());
  services_.store.save(
      RoundStore::Record::Votes, std::move(bytes),
      guarded([this, then = std::move(then)](Expected<void> saved) {
        if (saved.ok()) {
          then();
          return;
        }
        ++counters_.failed_saves;
        services_.logger.error(
            "rounds", "this node does not vote, because it can't note it: " + saved.error().describe());
      }));
}

void RoundNode::save_chain() {
  if (saved_chain_ == chain_->tip().round + 1) return;
  saved_chain_ = chain_->tip().round + 1;
  services_.store.save(RoundStore::Record::Chain, chain_->encode(), guarded([this](Expected<void> saved) {
                         if (saved.ok()) return;
                         ++counters_.failed_saves;
                         services_.logger.error("rounds", saved.error().describe());
                       }));
}

void RoundNode::restore() {
  const auto chain = services_.store.load(RoundStore::Record::Chain);
  if (chain.ok()) {
    auto decoded = RoundChain::decode(network_, *chain);
    if (decoded.ok() && decoded->slot() == options_.rules.slot &&
        (!options_.genesis || decoded->genesis() == body_hash(*options_.genesis)))
      chain_.emplace(std::move(*decoded));
    else
      services_.logger.warning("rounds", "this node's record of rounds can't be read: it is fetched again");
  }
  restore_votes();
  remind_learner();
  // Whether the certificate that came before the restart has this node's work in it; one that is not its
  // round's does not show it, as in take_certificate().
  if (!own_ || !chain_ || chain_->tip().round < own_->round) return;
  const auto& set = chain_->tip().contributors;
  counted_ = chain_->tip().round > own_->round ||
             std::any_of(set.begin(), set.end(),
                         [this](const RoundContributor& c) { return c.payload == own_->payload; });
}

void RoundNode::restore_votes() {
  const auto votes = services_.store.load(RoundStore::Record::Votes);
  if (!votes.ok()) {
    memory_lost_ = votes.error().code != ErrorCode::NotFound;
    return;
  }
  const auto lost = [this] {
    memory_lost_ = true;
    services_.logger.warning("rounds", "this node's votes can't be read: it abstains until the next round");
  };
  ByteSpan bytes = *votes;
  constexpr std::size_t head = 5 + 8 + 8 + 1;
  if (bytes.size() < head + sizeof(Hash256) || as_text(bytes.first(votes_magic.size())) != votes_magic)
    return lost();
  const Hash256 check = crypto::sha256(bytes.first(bytes.size() - sizeof(Hash256)));
  if (!std::equal(check.begin(), check.end(), bytes.end() - sizeof(Hash256))) return lost();
  bytes = bytes.first(bytes.size() - sizeof(Hash256));
  memory_round_ = load_le<std::uint64_t>(bytes.data() + 5);
  sequence_ = load_le<std::uint64_t>(bytes.data() + 13);
  const bool own = bytes[21] == 1;
  bytes = bytes.subspan(head);
  if (own) {
    if (bytes.size() < contribution_bytes) return lost();
    const auto contribution = decode_contribution(bytes.first(contribution_bytes));
    if (!contribution.ok()) return lost();
    own_ = *contribution;
    bytes = bytes.subspan(contribution_bytes);
  }
  auto memory = decode_agreement_memory(bytes);
  if (!memory.ok()) return lost();
  memory_ = std::move(*memory);
  load_payload();
}

}  // namespace neuroshard::rounds
