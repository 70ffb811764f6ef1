#include "core/chain/detail/errors.h"
#include "core/chain/history.h"

namespace neuroshard::chain {
namespace {

bool names_founder(const GenesisSection& genesis, const crypto::PublicKey& wallet) {
  for (const Statement& founder : genesis.founders) {
    const auto* what = std::get_if<Register>(&founder.what);
    if (what && what->delegation.wallet_key == wallet) return true;
  }
  return false;
}

// Cheap: nothing of the block is verified here.
Expected<void> check_trusted(const TrustAnchor& trust, const Block& block) {
  if (trust.recent && block.header.height == trust.recent->height && block.hash != trust.recent->hash)
    return denied("the chain does not contain the block that the invitation names");
  if (block.header.height != 0) return {};
  if (trust.genesis && block.hash != *trust.genesis) return denied("the chain begins with another genesis");
  if (trust.founder_wallet &&
      (!block.body.genesis || !names_founder(*block.body.genesis, *trust.founder_wallet)))
    return denied("the genesis does not name the expected founder");
  return {};
}

}  // namespace

ForeignChain::ForeignChain(History::Services services, TrustAnchor trust)
    : services_(services), trust_(trust) {}

std::uint64_t ForeignChain::next_height() const {
  return history_ ? history_->tip().height() + 1 : 0;
}

Expected<void> ForeignChain::take(const std::vector<CertifiedBlock>& blocks) {
  for (const CertifiedBlock& block : blocks) {
    const std::uint64_t height = block.block->header.height;
    if (height < next_height()) {  // an answer that overlaps with the one before
      if (history_->hash_at(height) == block.block->hash) continue;
      return denied("the peer gave two blocks of one height");
    }
    NS_RETURN_IF_ERROR(check_trusted(trust_, *block.block));
    if (history_) {
      NS_RETURN_IF_ERROR(history_->append(block));
    } else {
      NS_ASSIGN_OR_RETURN(History begun, History::begin(services_, block));
      history_.emplace(std::move(begun));
      genesis_ = block;
    }
  }
  return {};
}

const History* ForeignChain::history() const {
  return history_ ? &*history_ : nullptr;
}

Expected<History> ForeignChain::finish() && {
  if (!history_) return denied("the peer has no genesis");
  if (trust_.recent && !history_->contains(*trust_.recent))
    return denied("the chain ends before the block that the invitation names");
  if (history_->find(0) == nullptr) return history_->from_the_beginning(*genesis_);
  return std::move(*history_);
}

bool prefers_other(const MeetingSide& own, const MeetingSide& other) {
  if (own.genesis == other.genesis || own.rounds >= most_rounds_to_merge) return false;
  if (own.answering_wallets != other.answering_wallets)
    return other.answering_wallets > own.answering_wallets;
  return other.genesis < own.genesis;
}

}  // namespace neuroshard::chain
