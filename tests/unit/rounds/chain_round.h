// A chain of two rows whose first round is closed, and all that row 0 of this round is made of: some nodes hold row 0 and
// contributed to it, the others hold row 1 and can check row 0. Header only.
#pragma once

#include <QtGlobal>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/chain/evidence.h"
#include "core/chain/history.h"
#include "core/rounds/row_proof.h"
#include "tests/unit/chain/chain_fixture.h"
#include "tests/unit/rounds/row_round.h"

namespace neuroshard::test {

struct ChainRoundOptions {
  std::size_t holders = 3, others = 6;
  std::uint32_t rows = 2;  // 1: all members hold the only row, and nobody attests it
  std::uint64_t values = RoundOptions().values;
  std::uint16_t first_key = 1;  // another one: another network of the same kind
};

class ChainRound {
 public:
  explicit ChainRound(const ChainRoundOptions& options = {})
      : chain(chain::testing::small_rules(chain::VotersMode::Invited, options.rows), options.first_key),
        holders(chain.add_nodes(options.holders)),
        others(chain.add_nodes(options.others)) {
    if (options.rows > 1) {
      for (const std::size_t node : holders) chain.set_rows(node, chain::RowSet::of({0}));
      for (const std::size_t node : others) chain.set_rows(node, chain::RowSet::of({1}));
    }
    // As the genesis numbers them.
    std::sort(holders.begin(), holders.end(), [&](std::size_t a, std::size_t b) {
      return chain.key(a).public_key() < chain.key(b).public_key();
    });
    RoundOptions made;
    made.values = options.values;
    made.row = 0;
    made.round = 1;
    made.first_tokens = 500;
    made.limits = {chain.rules().most_tokens, std::nullopt};
    for (const std::size_t node : holders) made.contributors.push_back(id(node));
    round = std::make_unique<const Round>(made);
    std::vector<std::size_t> founders = holders;
    founders.insert(founders.end(), others.begin(), others.end());
    need(chain.begin(founders, {round->before_step->hash}));
    opening = tip();
    close();
  }

  net::NodeId id(std::size_t node) const { return crypto::node_id(chain.key(node).public_key()); }
  chain::ChainTip tip() const {
    return {chain.blocks().back(),
            chain.registry_ptr(),
            chain.committee(),
            chain.registry().opening(chain.hash()),
            {}};
  }
  // Of the first round; null: it is settled.
  const chain::OpenRow* open() const { return chain.registry().open_row(0, 1); }
  rounds::ProofRow row() const { return round->row; }

  // ---- What holders sign in the first round, each named by its place among them
  chain::Contribution contribution(std::size_t holder) const {
    chain::Contribution made;
    made.opening = opening.opening;
    made.round = 1;
    made.rows = {round->works[holder]};
    made.reveal = chain.contribution(holders[holder], 1).reveal;
    chain::sign_contribution(made, chain.key(holders[holder]), chain.rules().network);
    return made;
  }
  chain::Attestation attestation(std::size_t holder, const chain::RowResult& result) const {
    chain::Attestation made;
    made.opening = opening.opening;
    made.round = 1;
    made.voter = chain.number(holders[holder]);
    made.rows = {result};
    chain::sign_attestation(made, chain.key(holders[holder]), chain.rules().network);
    return made;
  }
  // That this holder attested the result of this step, and these bytes prove that it is wrong.
  chain::Evidence accusation(std::size_t holder, const rounds::StepResult& of, const Bytes& proof) const {
    return {chain.key(holders[holder]).public_key(),
            chain::FalseResult{chain::attested_row(attestation(holder, round->result_of(of)), 0),
                               crypto::sha256(proof), static_cast<std::uint32_t>(proof.size())}};
  }

  // ---- How it goes on
  // With this result of row 0.
  void end(const chain::RowResult& result) {
    chain::BlockBody body;
    body.result = chain.result();
    body.result->rows[0] = result;
    need(chain.append(body));
  }
  // A round without contributions.
  void close_empty() {
    chain::BlockBody body;
    body.close = chain.close({});
    need(chain.append(body));
  }
  void end_empty() {
    chain::BlockBody body;
    body.result = chain.result();
    need(chain.append(body));
  }

  chain::testing::ChainFixture chain;
  std::vector<std::size_t> holders, others;  // nodes of the fixture
  std::unique_ptr<const Round> round;
  chain::ChainTip opening;  // with which the first round began

 private:
  static void need(const Expected<void>& done) {
    if (!done.ok()) qFatal("chain: %s", done.error().message.c_str());
  }
  void close() {
    chain::BlockBody body;
    body.close.emplace();
    body.close->round = 1;
    for (std::size_t i = 0; i < holders.size(); ++i)
      body.close->contributions.push_back(chain::entry_of(contribution(i), chain.number(holders[i])));
    chain::testing::Received received;
    received.payload = [](std::size_t, std::size_t, std::size_t row) { return row == 0; };
    for (const std::size_t voter : chain.committee_nodes())
      body.close->vectors.push_back(chain.vector(voter, body.close->contributions, received));
    std::sort(body.close->vectors.begin(), body.close->vectors.end(),
              [](const chain::Vector& a, const chain::Vector& b) { return a.voter < b.voter; });
    need(chain.append(body));
    if (!chain.rules().has_holders()) return;
    const chain::OpenRow& made = *open();
    if (made.before != round->open.before || made.contributors != round->open.contributors ||
        made.most_tokens != round->open.most_tokens || made.most_norm_bits != round->open.most_norm_bits)
      qFatal("the chain has another round than the row");
  }
};

}  // namespace neuroshard::test
