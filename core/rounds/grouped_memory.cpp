// GroupedNode: what it keeps for a restart.
#include <algorithm>

#include "core/crypto/hash.h"
#include "core/rounds/detail/grouped_level.h"
#include "core/rounds/detail/reader.h"

namespace neuroshard::rounds {
namespace {

constexpr std::string_view votes_magic = "NSGV1", chain_magic = "NSGK1";

// Without magic and checksum; empty: not what was written.
ByteSpan sealed(const Bytes& bytes, std::string_view magic) {
  if (bytes.size() < magic.size() + sizeof(Hash256)) return {};
  const ByteSpan all(bytes);
  const ByteSpan body = all.first(all.size() - sizeof(Hash256));
  const Hash256 check = crypto::sha256(body);
  if (as_text(body.first(magic.size())) != magic ||
      !std::equal(check.begin(), check.end(), bytes.end() - sizeof(Hash256)))
    return {};
  return body.subspan(magic.size());
}

}  // namespace

void GroupedNode::save(std::function<void()> then) {
  Bytes bytes(votes_magic.begin(), votes_magic.end());
  append_le(bytes, memory_round_);
  append_le(bytes, sequence_);
  append_part(bytes, own_ ? encode_contribution(*own_) : Bytes());
  append_part(bytes, encode_agreement_memory(group_level_->memory));
  append_part(bytes, encode_agreement_memory(top_level_->memory));
  append_array(bytes, crypto::sha256(bytes));
  services_.store.save(
      RoundStore::Record::Votes, std::move(bytes),
      guarded([this, then = std::move(then)](Expected<void> saved) {
        if (saved.ok()) return then();
        ++counters_.failed_saves;
        services_.logger.error(
            "rounds", "this node does not vote, because it can't note it: " + saved.error().describe());
      }));
}

// Where its own chain stands, and who makes the next round: what came before is behind it.
void GroupedNode::save_chain() {
  Bytes bytes(chain_magic.begin(), chain_magic.end());
  append_le(bytes, tip_.round);
  append_array(bytes, tip_.tip);
  append_array(bytes, tip_.anchor);
  append_le(bytes, tip_.tokens);
  append_part(bytes, encode_roster(roster()));
  append_array(bytes, crypto::sha256(bytes));
  services_.store.save(RoundStore::Record::Chain, std::move(bytes), guarded([this](Expected<void> saved) {
                         if (!saved.ok()) ++counters_.failed_saves;
                       }));
}

void GroupedNode::restore() {
  group_level_ = std::make_unique<Level>(*this, false);
  top_level_ = std::make_unique<Level>(*this, true);
  if (const auto chain = services_.store.load(RoundStore::Record::Chain); chain.ok()) {
    Reader in(sealed(*chain, chain_magic));
    GroupedBase base;
    base.round = in.number<std::uint64_t>();
    base.tip = in.array<Hash256>();
    base.anchor = in.array<Hash256>();
    base.tokens = in.number<std::uint64_t>();
    auto members = decode_roster(in.part());
    if (in.at_end() && members.ok() && base.round >= tip_.round) {
      base.roster = *members;
      tip_ = base;
    }
  }
  const auto votes = services_.store.load(RoundStore::Record::Votes);
  if (!votes.ok() && votes.error().code == ErrorCode::NotFound) return;
  Reader in(votes.ok() ? sealed(*votes, votes_magic) : ByteSpan());
  memory_round_ = in.number<std::uint64_t>();
  sequence_ = in.number<std::uint64_t>();
  const ByteSpan own = in.part(), group = in.part(), top = in.part();
  const auto contribution = decode_contribution(own);
  auto group_memory = decode_agreement_memory(group), top_memory = decode_agreement_memory(top, true);
  if (!in.at_end() || !group_memory.ok() || !top_memory.ok()) {
    // It can't know what it has voted for: not in the round that is made now.
    memory_round_ = 0;
    abstain_ = tip_.round + 1;
    services_.logger.warning("rounds", "this node's votes can't be read: it abstains until the next round");
    return;
  }
  if (contribution.ok()) own_ = *contribution;
  group_level_->memory = std::move(*group_memory);
  top_level_->memory = std::move(*top_memory);
  load_payload();
}

}  // namespace neuroshard::rounds
