#include "core/rounds/accusations.h"

#include <algorithm>
#include <utility>

#include "core/crypto/hash.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t most_entries = 64;

}  // namespace

Accusations::Accusations(Services services, const chain::ChainRules& rules, OuterRules outer, RowOf row,
                         IsProven proven)
    : services_(services),
      rules_(rules),
      outer_(std::move(outer)),
      row_(std::move(row)),
      proven_(std::move(proven)) {}

Hash256 Accusations::key_of(const chain::Evidence& evidence) {
  return crypto::sha256(chain::encode_evidence(evidence));
}

void Accusations::add(const chain::Evidence& evidence, const RowProof& proof) {
  entries_.insert_or_assign(key_of(evidence), Entry{evidence, State::Proven, std::nullopt,
                                                    in_memory(encode_row_proof(proof)), false});
  proven_(evidence);
}

const chain::OpenRow* Accusations::open_row_of(const chain::Evidence& evidence, const chain::ChainTip& tip) {
  const chain::AttestedRow& attested = result_of(evidence).attested;
  return tip.registry->open_row(attested.result.row, attested.round);
}

// All but the proof.
bool Accusations::is_of_this_chain(const chain::Evidence& evidence, const chain::ChainTip& tip) const {
  return result_of(evidence).proof_bytes <= max_proof_bytes &&
         chain::admissible(rules_, *tip.registry, tip.block->hash, evidence).ok() &&
         services_.checks.evidence(evidence, rules_.network);
}

chain::Verdict Accusations::take(const net::NodeId& from, const chain::Evidence& evidence,
                                 const chain::ChainTip& tip) {
  if (!rules_.has_holders() || unreliable_.count(from) != 0) return chain::Verdict::Inadmissible;
  const Hash256 key = key_of(evidence);
  const auto known = entries_.find(key);
  if (known != entries_.end() && known->second.state != State::Fetching)
    return known->second.state == State::Proven ? chain::Verdict::Known : chain::Verdict::Inadmissible;
  if (known != entries_.end() && known->second.fetching) return chain::Verdict::Limit;  // from another peer
  if (known == entries_.end()) {
    const bool busy = std::any_of(entries_.begin(), entries_.end(), [&](const auto& each) {
      return each.second.state == State::Fetching && each.second.accuser == from;
    });
    if (busy) return chain::Verdict::Limit;
    if (entries_.size() >= most_entries) return chain::Verdict::Limit;
    if (!is_of_this_chain(evidence, tip)) return chain::Verdict::Inadmissible;
  }
  const chain::OpenRow* open = open_row_of(evidence, tip);
  if (open == nullptr) return chain::Verdict::Past;
  entries_.try_emplace(key, Entry{evidence, State::Fetching, from, nullptr, false});
  fetch(key, *open, {from});
  return chain::Verdict::Taken;
}

Accusations::Finding Accusations::examine(const chain::Evidence& evidence, const chain::ChainTip& tip,
                                          const std::vector<net::NodeId>& sources) {
  const Hash256 key = key_of(evidence);
  const auto known = entries_.find(key);
  if (known != entries_.end() && known->second.state != State::Fetching)
    return known->second.state == State::Proven ? Finding::Right : Finding::Wrong;
  if (known == entries_.end() && !is_of_this_chain(evidence, tip)) return Finding::Wrong;
  const chain::OpenRow* open = open_row_of(evidence, tip);
  if (open == nullptr) return Finding::Wrong;
  entries_.try_emplace(key, Entry{evidence, State::Fetching, std::nullopt, nullptr, false});
  fetch(key, *open, sources);
  return Finding::Wait;
}

// One fetch of a proof at a time.
void Accusations::fetch(const Hash256& key, const chain::OpenRow& open, std::vector<net::NodeId> from) {
  Entry& entry = entries_.at(key);
  if (std::exchange(entry.fetching, true)) return;
  const chain::FalseResult& what = result_of(entry.evidence);
  services_.fetcher.payload(
      {open.row, PieceRequest::What::Proof, what.proof, 0}, what.proof_bytes, std::move(from),
      [hash = what.proof](const ByteSource& bytes) {
        const auto whole = read_all(bytes);
        return whole.ok() && crypto::sha256(*whole) == hash;
      },
      [this, life = lifetime_.token(), key, open](Expected<ByteSourcePtr> proof) {
        if (!life.alive()) return;
        const auto entry = entries_.find(key);
        if (entry == entries_.end()) return;
        if (proof.ok()) return verify(key, open, std::move(*proof));
        entry->second.fetching = false;
        // Else evidence whose proof never comes would keep its peer's other evidence out, and fill the room.
        if (entry->second.accuser) entries_.erase(entry);
      });
}

void Accusations::verify(const Hash256& key, const chain::OpenRow& open, ByteSourcePtr proof) {
  const chain::RowResult accused = result_of(entries_.at(key).evidence).attested.result;
  const auto finding = std::make_shared<ProofFinding>(ProofFinding::NotProven);
  services_.work.run(
      [finding, proof, open, accused, rules = outer_, row = row_(open.row, open.round)] {
        const auto bytes = read_all(*proof);
        const auto decoded = bytes.ok() ? decode_row_proof(*bytes) : Expected<RowProof>(bytes.error());
        if (decoded.ok()) *finding = judge(rules, row, open, accused, *decoded);
      },
      [this, life = lifetime_.token(), key, finding, proof] {
        if (!life.alive()) return;
        const auto at = entries_.find(key);
        if (at == entries_.end() || at->second.state != State::Fetching) return;
        Entry& entry = at->second;
        entry.state = *finding == ProofFinding::Wrong ? State::Proven : State::Refuted;
        if (entry.state == State::Refuted) {
          if (entry.accuser) unreliable_.insert(*entry.accuser);
          return;
        }
        entry.proof = proof;
        proven_(chain::Evidence(entry.evidence));
      });
}

void Accusations::on_block(const chain::ChainTip& tip) {
  if (const std::uint64_t round = tip.registry->round(); round != round_) {
    round_ = round;
    unreliable_.clear();
  }
  std::erase_if(entries_,
                [&](const auto& each) { return open_row_of(each.second.evidence, tip) == nullptr; });
}

Expected<Bytes> Accusations::piece(const PieceRequest& request) const {
  for (const auto& [key, entry] : entries_)
    if (entry.proof && result_of(entry.evidence).proof == request.hash)
      return answer_from(*entry.proof, 0, entry.proof->size(), request.place);
  return piece_not_held();
}

}  // namespace neuroshard::rounds
