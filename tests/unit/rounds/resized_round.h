// A chain of two rows whose round in progress changes the size of the model. Each of four wallets has a member, which holds
// both rows unless a test says otherwise. Header only.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/chain/evidence.h"
#include "core/chain/history.h"
#include "tests/unit/chain/growing_chain.h"
#include "tests/unit/rounds/row_round.h"

namespace neuroshard::test {

class ResizedRound {
 public:
  static constexpr std::uint64_t values = 5000;

  // seed: another one gives both rows another state. last: the rows of the last member.
  explicit ResizedRound(std::uint64_t seed = 1, chain::RowSet last = {})
      : chain(growing_rules()),
        members(chain.add_nodes(4)),
        round(options()),
        before(rounds::state_in_memory(Round::drawn(seed, 1.0f, values), std::vector<float>(values))) {
    chain.set_rows(members.back(), std::move(last));
    if (!chain.begin(members).ok()) qFatal("no chain");
    chain::testing::offer_memory(chain, workers(), {12, 12, 12});
    while (!chain.registry().size().changing) result();
  }

  chain::ChainTip tip() const {
    return {chain.blocks().back(),
            chain.registry_ptr(),
            chain.committee(),
            chain.registry().opening(chain.hash()),
            {}};
  }
  const chain::RowRecord& record(std::uint32_t row) const { return chain.registry().rows()[row]; }
  // The row's state of the other size, as all members make it.
  static rounds::Anchor resized(std::uint32_t row, std::uint32_t to) {
    const std::vector<float> drawn = Round::drawn(100 + 10 * row + to, 1.0f, 2 * values);
    return rounds::state_in_memory(drawn, std::vector<float>(drawn.size()));
  }
  static Expected<rounds::Anchor> resize(std::uint32_t row, std::uint32_t to, const rounds::OuterState&,
                                         Spool& spool) {
    NS_ASSIGN_OR_RETURN(const auto item, spool.create(1));
    static_cast<void>(item);
    return resized(row, to);
  }
  // Its result by the protocol: the anchor has the version of the other size.
  chain::RowResult right(std::uint32_t row) const {
    chain::RowResult result;
    result.row = row;
    outer::AnchorIdentity identity = identity_of(row, chain.registry().round() + 1);
    ++identity.architecture_version;
    result.anchor = (*rounds::hashed_state(identity, resized(row, 1)))->hash;
    return result;
  }
  chain::ResultSection section(const std::vector<chain::RowResult>& rows) const {
    return {chain.registry().round() + 1, rows};
  }
  chain::Attestation attestation(std::size_t member, const std::vector<chain::RowResult>& rows) const {
    chain::Attestation made;
    made.opening = tip().opening;
    made.round = chain.registry().round() + 1;
    made.voter = chain.number(members[member]);
    made.rows = rows;
    chain::sign_attestation(made, chain.key(members[member]), chain.rules().network);
    return made;
  }

  // By a proof that the newest result of this row is wrong.
  void take_back(std::uint32_t row) {
    chain::Attestation made;
    made.opening = opening_;
    made.round = result_.round;
    made.voter = chain.number(members[0]);
    made.rows = {result_.rows[row]};
    chain::sign_attestation(made, chain.key(members[0]), chain.rules().network);
    const Bytes proof(1000);
    chain::BlockBody body;
    body.evidence = {{chain.key(members[0]).public_key(),
                      chain::FalseResult{chain::attested_row(made, 0), crypto::sha256(proof),
                                         static_cast<std::uint32_t>(proof.size())}}};
    const Hash256 anchor = record(row).anchor;
    if (!chain.append(body).ok() || record(row).anchor == anchor) qFatal("the row is not taken back");
  }

  chain::testing::ChainFixture chain;
  std::vector<std::size_t> members;  // nodes of the fixture
  const Round round;                 // for the parts of a node that need one
  const rounds::Anchor before;       // of each row

 private:
  static chain::ChainRules growing_rules() {
    chain::ChainRules rules = chain::testing::small_rules(chain::VotersMode::Invited, 2);
    rules.sizes = {{8, 24}};
    return rules;
  }
  static RoundOptions options() {
    RoundOptions options;
    options.values = values;
    options.row = 0;
    options.contributors = {Round::id_of(0)};
    return options;
  }
  outer::AnchorIdentity identity_of(std::uint32_t row, std::uint64_t number) const {
    return rounds::anchor_identity(Round::id_of(99), round.rules, row, number);
  }
  // The fixture's contributions are of all rows.
  std::vector<std::size_t> workers() const { return {members.begin(), members.begin() + 3}; }
  // A round after which each row has the state.
  void result() {
    opening_ = tip().opening;
    chain::BlockBody closing, resulting;
    std::vector<chain::testing::Work> works;
    for (const std::size_t member : workers()) works.push_back({member});
    closing.close = chain.close(works);
    if (!chain.append(closing).ok()) qFatal("no close");
    resulting.result = chain.result();
    for (chain::RowResult& row : resulting.result->rows)
      row.anchor = (*rounds::hashed_state(identity_of(row.row, resulting.result->round), before))->hash;
    if (!chain.append(resulting).ok()) qFatal("no result");
    result_ = *resulting.result;
  }

  Hash256 opening_{};  // of the newest round with a result
  chain::ResultSection result_;
};

}  // namespace neuroshard::test
