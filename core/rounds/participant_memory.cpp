// RoundParticipant: what it keeps for a restart.
//
//   votes: "NSRV1" · round u64 · sequence u64 · 0 or 1 · own contribution · memory of the agreement
//          "NSGV1" · round u64 · sequence u64 · four times length u32 and as many bytes: own contribution or
//          nothing, memory of the sub-group's agreement, of the agreement of all, what its lock names or
//          nothing SHA-256 of all before
#include <algorithm>

#include "core/crypto/hash.h"
#include "core/rounds/detail/reader.h"
#include "core/rounds/participant.h"

namespace neuroshard::rounds {
namespace {

constexpr std::string_view one_magic = "NSRV1", grouped_magic = "NSGV1";

Error corrupt() {
  return make_error(ErrorCode::Corrupt, "this node's votes can't be read");
}

Expected<void> read_one(Reader& in, KeptVotes* votes) {
  const auto own = in.number<std::uint8_t>();
  ByteSpan rest = in.rest();
  if (own > 1 || (own == 1 && rest.size() < contribution_bytes)) return corrupt();
  if (own == 1) {
    NS_ASSIGN_OR_RETURN(votes->own, decode_contribution(rest.first(contribution_bytes)));
    rest = rest.subspan(contribution_bytes);
  }
  NS_ASSIGN_OR_RETURN(votes->first, decode_agreement_memory(rest));
  return {};
}

Expected<void> read_grouped(Reader& in, KeptVotes* votes) {
  const ByteSpan own = in.part(), first = in.part(), top = in.part(), content = in.part();
  if (!in.at_end()) return corrupt();
  if (!own.empty()) {
    NS_ASSIGN_OR_RETURN(votes->own, decode_contribution(own));
  }
  NS_ASSIGN_OR_RETURN(votes->first, decode_agreement_memory(first));
  NS_ASSIGN_OR_RETURN(votes->top, decode_agreement_memory(top, true));
  if (!content.empty()) votes->content = std::make_shared<const Bytes>(content.begin(), content.end());
  return {};
}

}  // namespace

Bytes encode_votes(const KeptVotes& votes) {
  const std::string_view magic = votes.grouped ? grouped_magic : one_magic;
  Bytes bytes(magic.begin(), magic.end());
  append_le(bytes, votes.round);
  append_le(bytes, votes.sequence);
  const Bytes own = votes.own ? encode_contribution(*votes.own) : Bytes();
  const Bytes first = encode_agreement_memory(votes.first);
  if (votes.grouped) {
    append_part(bytes, own);
    append_part(bytes, first);
    append_part(bytes, encode_agreement_memory(votes.top));
    append_part(bytes, votes.content ? *votes.content : Bytes());
  } else {
    bytes.push_back(votes.own ? 1 : 0);
    append_array(bytes, own);
    append_array(bytes, first);
  }
  append_array(bytes, crypto::sha256(bytes));
  return bytes;
}

Expected<KeptVotes> decode_votes(ByteSpan bytes) {
  if (bytes.size() < one_magic.size() + sizeof(Hash256)) return corrupt();
  const ByteSpan body = bytes.first(bytes.size() - sizeof(Hash256));
  const Hash256 check = crypto::sha256(body);
  const std::string_view magic = as_text(body.first(one_magic.size()));
  if ((magic != one_magic && magic != grouped_magic) ||
      !std::equal(check.begin(), check.end(), bytes.end() - sizeof(Hash256)))
    return corrupt();
  Reader in(body.subspan(magic.size()));
  KeptVotes votes;
  votes.grouped = magic == grouped_magic;
  votes.round = in.number<std::uint64_t>();
  votes.sequence = in.number<std::uint64_t>();
  NS_RETURN_IF_ERROR(votes.grouped ? read_grouped(in, &votes) : read_one(in, &votes));
  if (!in.at_end()) return corrupt();
  return votes;
}

void RoundParticipant::save(std::function<void()> then) {
  services_.store.save(
      RoundStore::Record::Votes, encode_votes(votes()),
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

void RoundParticipant::save_chain() {
  if (saved_chain_ == tip_round() + 1) return;
  saved_chain_ = tip_round() + 1;
  services_.store.save(RoundStore::Record::Chain, chain_->encode(), guarded([this](Expected<void> saved) {
                         if (saved.ok()) return;
                         ++counters_.failed_saves;
                         services_.logger.error("rounds", saved.error().describe());
                       }));
}

void RoundParticipant::restore() {
  const auto chain = services_.store.load(RoundStore::Record::Chain);
  if (chain.ok()) {
    auto decoded = RoundChain::decode(network_, *chain, common_.group_members);
    if (decoded.ok() && decoded->slot() == common_.rules.slot &&
        (!common_.genesis || decoded->genesis() == body_hash(*common_.genesis)))
      chain_.emplace(std::move(*decoded));
    else
      services_.logger.warning("rounds", "this node's record of rounds can't be read: it is fetched again");
  }
  restore_votes();
  if (auto memory = services_.store.load(RoundStore::Record::Learner); memory.ok())
    services_.learner.recall(std::move(*memory));
  // Whether the certificate that came before the restart has this node's work in it; one that is not its
  // round's does not show it, as in link_taken().
  if (!own_ || !chain_ || tip_round() < own_->round) return;
  const auto& set = chain_->tip().contributors;
  counted_ = tip_round() > own_->round ||
             std::any_of(set.begin(), set.end(),
                         [this](const RoundContributor& c) { return c.payload == own_->payload; });
}

void RoundParticipant::restore_votes() {
  const auto bytes = services_.store.load(RoundStore::Record::Votes);
  if (!bytes.ok()) {
    memory_lost_ = bytes.error().code != ErrorCode::NotFound;
    return;
  }
  auto kept = decode_votes(*bytes);
  if (!kept.ok()) {
    memory_lost_ = true;
    services_.logger.warning("rounds", kept.error().message + ": it abstains until the next round");
    return;
  }
  memory_round_ = kept->round;
  sequence_ = kept->sequence;
  own_ = kept->own;
  kept_votes_ = std::move(*kept);
  auto payload = services_.store.load(RoundStore::Record::Payload);
  if (own_ && payload.ok() && crypto::sha256(*payload) == own_->payload) kept_payload_ = std::move(*payload);
}

}  // namespace neuroshard::rounds
