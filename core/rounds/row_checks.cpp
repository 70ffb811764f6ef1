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
constexpr Duration pause_before_another_check = std::chrono::seconds(30);

std::size_t attesting_wallets(const chain::ChainTip& tip, std::uint32_t row) {
  std::set<std::uint32_t> wallets;
  for (const chain::CommitteeMember& voter : tip.committee->members())
    if (voter.rows.has(row)) wallets.insert(tip.registry->find(voter.number)->wallet);
  return wallets.size();
}

// Holders can attest the same result in two rounds. It can be right in one of them only, as an anchor names its round.
Hash256 key_of(std::uint64_t round, const Hash256& result) {
  Bytes bytes(result.begin(), result.end());
  append_le(bytes, round);
  return crypto::sha256(bytes);
}

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
      logger_(logger),
      executor_(services.executor) {}

void RowChecks::look(const chain::ChainTip& tip, const AttestationBook& attestations,
                     const ContributionBook& contributions) {
  const chain::MemberRecord* own = tip.registry->find(self_);
  if (own == nullptr || !tip.registry->closed()) return;
  std::erase_if(results_, [&](const auto& each) {  // settled, or of another history
    const chain::OpenRow& open = each.second.about.open;
    return tip.registry->open_row(open.row, open.round) == nullptr;
  });
  for (const chain::OpenRow& open : tip.registry->open_rows()) {
    const auto at = std::find(open.checkers.begin(), open.checkers.end(), own->number);
    if (open.round != tip.registry->round() + 1 || at == open.checkers.end()) continue;
    const bool first = at - open.checkers.begin() < static_cast<std::ptrdiff_t>(chain::checkers_per_row);
    look_at(tip, open, first, attestations, contributions);
  }
  check_next();
}

void RowChecks::on_close(std::uint64_t round) {
  std::erase_if(waiting_, [&](const Hash256& hash) {
    const auto known = results_.find(hash);
    return known == results_.end() ||
           (known->second.state == State::Waiting && known->second.about.open.round < round);
  });
}

void RowChecks::call(const std::vector<chain::OpenRow>& open, std::uint64_t round,
                     const std::vector<chain::Vector>& vectors) {
  for (const chain::OpenRow& one : open) {
    const auto known = results_.find(key_of(one.round, one.result));
    if (known == results_.end() || known->second.state != State::Reserved || one.round + 1 != round) continue;
    if (count_withheld(one, vectors, chain::checkers_per_row) < chain::withheld_to_call) continue;
    known->second.state = State::Waiting;
    waiting_.push_back(known->first);
  }
}

std::vector<chain::RowRound> RowChecks::withheld(const chain::Registry& registry) const {
  std::vector<chain::RowRound> withheld;
  for (const chain::OpenRow& open : registry.open_rows()) {
    const auto known = results_.find(key_of(open.round, open.result));
    if (known != results_.end() && known->second.state == State::Withheld)
      withheld.push_back({open.row, open.round});
  }
  return withheld;
}

void RowChecks::look_at(const chain::ChainTip& tip, const chain::OpenRow& open, bool first,
                        const AttestationBook& attestations, const ContributionBook& contributions) {
  for (chain::AttestedRow& attested : attestations.attested(open.row)) {
    const chain::MemberRecord* member = tip.registry->find(attested.voter);
    if (member == nullptr || attested.result.carried) continue;
    const Hash256 hash = key_of(open.round, chain::result_hash(attested.result));
    auto known = results_.find(hash);
    if (known == results_.end()) {
      auto about = case_of(tip, open, attested.result, contributions);
      if (!about) continue;
      known = results_.emplace(hash, Result()).first;
      known->second.about = std::move(*about);
      known->second.whole = attesting_wallets(tip, open.row) < few_wallets;
      if (first) {
        known->second.state = State::Waiting;
        waiting_.push_back(hash);
      }
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
  return about;
}

// Ascending. Empty: all.
std::vector<std::uint64_t> RowChecks::choose_chunks(const Result& result) const {
  const std::uint64_t chunks = trace_chunks(result.about.row.values);
  const auto secret = secret_();
  if (result.whole || chunks <= checked_chunks || !secret) return {};
  Bytes bytes(secret->begin(), secret->end());
  append_le(bytes, result.about.open.row);
  const Hash256 seed = crypto::sha256(bytes);
  Rng rng(load_le<std::uint64_t>(seed.data()));
  std::set<std::uint64_t> chosen;
  while (chosen.size() < checked_chunks) chosen.insert(rng.below(chunks));
  return {chosen.begin(), chosen.end()};
}

void RowChecks::check_next() {
  if (checker_.is_busy() || waiting_.empty()) return;
  const Hash256 hash = waiting_.front();
  waiting_.pop_front();
  const auto known = results_.find(hash);
  if (known == results_.end()) return check_next();
  Result& result = known->second;
  // A second try is about the same chunks: else holders would give only those that they like.
  if (result.state == State::Waiting) result.about.chunks = choose_chunks(result);
  RowCase about = result.about;
  for (const Accused& one : result.attesters) about.attesters.push_back(crypto::node_id(one.key));
  checker_.check(std::move(about), [this, hash](CheckOutcome outcome, std::shared_ptr<const RowProof> proof) {
    if (results_.count(hash) != 0) checked(hash, outcome, std::move(proof));
    check_next();
  });
}

void RowChecks::checked(const Hash256& hash, CheckOutcome outcome, std::shared_ptr<const RowProof> proof) {
  Result& result = results_.at(hash);
  const auto [row, round] = result.about.open.place();
  const bool was_withheld =
      std::exchange(result.state, outcome == CheckOutcome::Unavailable ? State::Withheld : State::Known) ==
      State::Withheld;
  if (outcome == CheckOutcome::Unavailable) check_again_later();
  if (outcome == CheckOutcome::Unavailable && !was_withheld) {
    ++seen_.withheld;
    logger_.info("rounds",
                 fmt::format("round {}: this node can't check the result of row {}, because its holders do "
                             "not give all that it was made of",
                             round, row));
  } else if (outcome != CheckOutcome::Unavailable && was_withheld) {
    --seen_.withheld;
  }
  if (outcome == CheckOutcome::Right) {
    ++seen_.right;
    logger_.debug("rounds", fmt::format("round {}: the result of row {} is right where this node checked it",
                                        round, row));
  } else if (outcome == CheckOutcome::Wrong) {
    ++seen_.wrong;
    logger_.warning(
        "rounds", fmt::format("round {}: a result of row {} is wrong; this node has the proof", round, row));
    result.proof = std::move(proof);
    accuse(result);
  }
}

void RowChecks::check_again_later() {
  if (again_) return;
  again_ = executor_.post_after(pause_before_another_check, [this] {
    again_.reset();
    for (const auto& [hash, result] : results_)
      if (result.state == State::Withheld &&
          std::find(waiting_.begin(), waiting_.end(), hash) == waiting_.end())
        waiting_.push_back(hash);
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
