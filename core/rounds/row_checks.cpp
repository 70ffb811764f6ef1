#include "core/rounds/row_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/byte_reader.h"
#include "core/base/rng.h"
#include "core/chain/ascending.h"
#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "core/rounds/round_exchange.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t few_wallets = 3;  // that can attest a row: fewer are not trusted to check each other

Hash256 work_leaf(const chain::RowWork& work) {
  Bytes bytes;
  append_record(bytes, std::tie(work.row, work.tokens, work.payload_bytes, work.payload));
  return crypto::merkle_leaf(bytes);
}

// A contribution's part in the row.  Nothing: it has none.
std::optional<ProofContributor> contributor_of(const HeldContribution& held, std::uint32_t row) {
  const std::vector<chain::RowWork>& rows = held.get().rows;
  const chain::RowWork* work = find_by(rows, &chain::RowWork::row, row);
  if (work == nullptr) return std::nullopt;
  std::vector<Hash256> leaves;
  for (const chain::RowWork& one : rows) leaves.push_back(work_leaf(one));
  const auto place = static_cast<std::size_t>(work - rows.data());
  ProofContributor contributor;
  contributor.id = held.id();
  contributor.work = {*work, crypto::MerkleTree(std::move(leaves)).path(place)};
  contributor.place = static_cast<std::uint32_t>(place);
  contributor.rows = static_cast<std::uint32_t>(rows.size());
  return contributor;
}

}  // namespace

RowChecks::RowChecks(RowChecker::Services services, const chain::ChainRules& rules, OuterRules outer,
                     Duration allowed, const net::NodeId& self, Accusations::RowOf row, Secret secret,
                     Wrong wrong, Logger& logger)
    : checker_(services, outer, allowed),
      rules_(rules),
      outer_(std::move(outer)),
      self_(self),
      row_(std::move(row)),
      secret_(std::move(secret)),
      wrong_(std::move(wrong)),
      logger_(logger) {}

void RowChecks::look(const chain::ChainTip& tip, const AttestationBook& attestations,
                     const ContributionBook& contributions) {
  const chain::MemberRecord* own = tip.registry->find(self_);
  if (own == nullptr || !tip.registry->closed()) return;
  if (const std::uint64_t round = tip.registry->round() + 1; round != round_) {
    round_ = round;
    std::erase_if(results_, [round](const auto& each) { return each.second.round + 1 < round; });
    waiting_.clear();  // their payloads are about to go
  }
  for (const chain::OpenRow& open : tip.registry->open_rows())
    if (open.round == round_ &&
        std::find(open.checkers.begin(), open.checkers.end(), own->number) != open.checkers.end())
      look_at(tip, open, attestations, contributions);
  check_next();
}

void RowChecks::look_at(const chain::ChainTip& tip, const chain::OpenRow& open,
                        const AttestationBook& attestations, const ContributionBook& contributions) {
  for (chain::AttestedRow& attested : attestations.attested(open.row)) {
    const chain::MemberRecord* member = tip.registry->find(attested.voter);
    if (member == nullptr || attested.result.carried) continue;
    const Hash256 hash = chain::result_hash(attested.result);
    auto known = results_.find(hash);
    if (known == results_.end()) {
      auto about = case_of(tip, open, attested.result, contributions);
      if (!about) continue;
      known = results_.emplace(hash, Result()).first;
      known->second.round = open.round;
      waiting_.emplace_back(hash, std::move(*about));
    }
    Result& result = known->second;
    const bool listed = std::any_of(result.attesters.begin(), result.attesters.end(),
                                    [&](const Accused& one) { return one.attested.voter == attested.voter; });
    if (listed) continue;
    result.attesters.push_back({member->key, std::move(attested)});
    accuse(result);
  }
}

// Nothing: a contribution is not here, or the row is one that can't be checked.
std::optional<RowCase> RowChecks::case_of(const chain::ChainTip& tip, const chain::OpenRow& open,
                                          const chain::RowResult& result,
                                          const ContributionBook& contributions) const {
  RowCase about;
  about.open = open;
  about.row = row_(open.row, open.round);
  about.attested = result;
  const std::vector<std::uint32_t> rows = rules_.rows_of(open.round);
  const auto at = std::lower_bound(rows.begin(), rows.end(), open.row) - rows.begin();
  for (const std::uint32_t number : tip.registry->closed()->contributors[static_cast<std::size_t>(at)]) {
    const ContributionBook::Entry* entry = contributions.find(number);
    if (entry == nullptr || !RoundExchange::is_certified(*entry->held, number, tip)) return std::nullopt;
    auto contributor = contributor_of(*entry->held, open.row);
    if (!contributor) return std::nullopt;
    about.contributors.push_back(std::move(*contributor));
  }
  if (!is_traced(outer_, about.contributors.size())) return std::nullopt;
  for (const chain::MemberRecord& member : tip.registry->members())
    if (member.presence == chain::Presence::Active && member.rows.has(open.row))
      about.holders.push_back(member.id);
  about.chunks = choose_chunks(tip, open, trace_chunks(about.row.values));
  return about;
}

// Ascending. Empty: all.
std::vector<std::uint64_t> RowChecks::choose_chunks(const chain::ChainTip& tip, const chain::OpenRow& open,
                                                    std::uint64_t chunks) const {
  std::set<std::uint32_t> wallets;
  for (const chain::CommitteeMember& voter : tip.committee->members())
    if (voter.rows.has(open.row)) wallets.insert(tip.registry->find(voter.number)->wallet);
  const auto secret = secret_(open.round);
  if (wallets.size() < few_wallets || chunks <= checked_chunks || !secret) return {};
  Bytes bytes(secret->begin(), secret->end());
  append_le(bytes, open.row);
  const Hash256 seed = crypto::sha256(bytes);
  Rng rng(load_le<std::uint64_t>(seed.data()));
  std::set<std::uint64_t> chosen;
  while (chosen.size() < checked_chunks) chosen.insert(rng.below(chunks));
  return {chosen.begin(), chosen.end()};
}

void RowChecks::check_next() {
  if (checker_.is_busy() || waiting_.empty()) return;
  auto [hash, about] = std::move(waiting_.front());
  waiting_.pop_front();
  const auto known = results_.find(hash);
  if (known == results_.end()) return check_next();
  for (const Accused& one : known->second.attesters) about.attesters.push_back(crypto::node_id(one.key));
  const std::uint32_t row = about.open.row;
  const std::uint64_t round = about.open.round;
  checker_.check(std::move(about), [this, hash = hash, row, round](CheckOutcome outcome,
                                                                   std::shared_ptr<const RowProof> proof) {
    switch (outcome) {
      case CheckOutcome::Right:
        ++seen_.right;
        logger_.debug(
            "rounds",
            fmt::format("round {}: the result of row {} is right where this node checked it", round, row));
        break;
      case CheckOutcome::Unavailable:
        ++seen_.unavailable;
        logger_.info("rounds",
                     fmt::format("round {}: a result of row {} can't be checked, because its holders do not "
                                 "give what it was made of",
                                 round, row));
        break;
      case CheckOutcome::Wrong:
        ++seen_.wrong;
        logger_.warning(
            "rounds",
            fmt::format("round {}: a result of row {} is wrong; this node has the proof", round, row));
        if (const auto at = results_.find(hash); at != results_.end()) {
          at->second.proof = std::move(proof);
          accuse(at->second);
        }
        break;
    }
    check_next();
  });
}

void RowChecks::accuse(Result& result) {
  if (!result.proof) return;
  const Bytes bytes = encode_row_proof(*result.proof);
  while (result.accused < result.attesters.size()) {
    const Accused& one = result.attesters[result.accused++];
    wrong_({one.key, chain::FalseResult{one.attested, crypto::sha256(bytes),
                                        static_cast<std::uint32_t>(bytes.size())}},
           *result.proof);
  }
}

}  // namespace neuroshard::rounds
