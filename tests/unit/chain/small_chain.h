// A network of a few wallets with one node each, whose keys this process has: its genesis, statements and
// certified blocks. Rounds are empty: every row is carried. Header only.
#pragma once

#include <QtTest>

#include <algorithm>

#include "core/chain/beacon.h"
#include "core/chain/history.h"
#include "tests/support/keys.h"

namespace neuroshard::chain::small {

inline const Hash256 network = [] {
  Hash256 id{};
  id.fill(7);
  return id;
}();
inline constexpr std::uint64_t first_ms = 1'700'000'000'000;

inline ChainRules rules_of(VotersMode mode = VotersMode::Invited) {
  ChainRules rules;
  rules.network = network;
  rules.voters = mode;
  return rules;
}
inline std::vector<Hash256> anchors() {
  return {Hash256{1}};
}

// A person with a wallet and a node.
struct Party {
  crypto::KeyPair wallet, node;
  net::NodeId id{};
};
// wallet: of another party when it has that number; else its own.
inline Party party_of(std::uint16_t number, std::optional<std::uint16_t> wallet = {}) {
  Party party{test::key_numbered(static_cast<std::uint16_t>(10'000 + wallet.value_or(number))),
              test::key_numbered(number),
              {}};
  party.id = crypto::node_id(party.node.public_key());
  return party;
}

inline Statement statement_of(const Party& party, decltype(Statement::what) what,
                              const BlockReference& reference) {
  Statement statement;
  statement.reference = reference;
  statement.what = std::move(what);
  sign_statement(statement, party.node, network);
  return statement;
}
inline BlockReference reference_to(const ChainTip& tip) {
  return {tip.height(), tip.block->hash};
}
inline Register registration_of(const Party& party) {
  Register what;
  what.delegation = crypto::delegate(party.wallet, party.node.public_key(), network,
                                     WallTime(std::chrono::milliseconds(4 * first_ms)), 1);
  what.beacon = {Hash256{9}, 1, 60'000};
  return what;
}
inline Statement founder_of(const Party& party) {
  return statement_of(party, registration_of(party), {});
}

// The same block with other commits.
template <class Change>
CertifiedBlock recertified(const CertifiedBlock& block, const Change& change) {
  Certificate certificate = *block.certificate;
  change(certificate.commits);
  return make_certified(block.block, std::move(certificate));
}

class Chain {
 public:
  explicit Chain(std::size_t founders, VotersMode mode = VotersMode::Invited) : rules(rules_of(mode)) {
    for (std::size_t i = 0; i < founders; ++i) parties.push_back(party_of(static_cast<std::uint16_t>(i)));
    sort();
  }
  explicit Chain(std::vector<Party> of) : rules(rules_of()), parties(std::move(of)) { sort(); }

  History::Services services() { return {rules, checks, nullptr}; }
  CertifiedBlock genesis(std::uint64_t time_ms = first_ms) {
    BlockBody body;
    body.genesis.emplace();
    body.genesis->anchors = anchors();
    for (const Party& party : parties) body.genesis->founders.push_back(founder_of(party));
    const auto proposed = apply_genesis(rules, time_ms, body, checks);
    if (!proposed.ok()) qFatal("genesis: %s", proposed.error().message.c_str());
    const BlockPtr block = make_block(proposed->header, std::move(body), {}, network);
    Certificate certificate;
    certificate.commits = sign(*block, VoteStep::Genesis, 0, all());
    return make_certified(block, std::move(certificate));
  }
  History begin() {
    auto history = History::begin(services(), genesis());
    if (!history.ok()) qFatal("history: %s", history.error().message.c_str());
    return std::move(*history);
  }
  // The next block, without votes. time_ms 0: a second later.
  BlockPtr block(const ChainTip& tip, BlockBody body, std::uint64_t time_ms = 0) {
    if (time_ms == 0) time_ms = tip.block->header.time_ms + 1000;
    const auto proposed = apply_body(rules, *tip.registry, tip.block->hash, time_ms, body, checks);
    if (!proposed.ok()) qFatal("block: %s", proposed.error().message.c_str());
    return make_block(proposed->header, std::move(body), tip.opening, network);
  }
  // Committed by these members; empty: by the whole committee.
  CertifiedBlock certified(const ChainTip& tip, BlockBody body, std::vector<std::uint32_t> signers = {},
                           std::uint64_t time_ms = 0) {
    const BlockPtr made = block(tip, std::move(body), time_ms);
    if (signers.empty())
      for (const CommitteeMember& member : tip.committee->members()) signers.push_back(member.number);
    Certificate certificate;
    certificate.commits = sign(*made, VoteStep::Commit, 0, signers);
    return make_certified(made, std::move(certificate));
  }
  CertifiedBlock succession(const ChainTip& tip, std::vector<std::uint32_t> continuing,
                            std::uint64_t time_ms = 0) {
    BlockBody body;
    body.succession = SuccessionSection{continuing};
    const BlockPtr made = block(tip, std::move(body), time_ms);
    Certificate certificate;
    certificate.commits = sign(*made, VoteStep::Succession, 0, continuing);
    return make_certified(made, std::move(certificate));
  }
  Quorum sign(const Block& block, VoteStep step, std::uint32_t view,
              const std::vector<std::uint32_t>& signers) const {
    Quorum quorum{step, block.header.height, block.header.previous, view, block.hash, {}};
    const Vote vote{step, quorum.height, quorum.previous, view, quorum.block};
    for (const std::uint32_t number : signers)
      quorum.signatures.push_back({number, sign_vote(vote, number, parties[number].node, network).signature});
    return quorum;
  }

  // A change of presence by the party with this number.
  BlockBody away(const ChainTip& tip, std::uint32_t number) const {
    BlockBody body;
    body.statements = {statement_of(parties[number], Away{}, reference_to(tip))};
    return body;
  }
  BlockBody back(const ChainTip& tip, std::uint32_t number) const {
    BlockBody body;
    body.statements = {statement_of(parties[number], Back{}, reference_to(tip))};
    return body;
  }
  // Closes the round without contributions, or gives its result.
  BlockBody round_step(const ChainTip& tip) const {
    BlockBody body;
    const std::uint64_t round = tip.registry->round() + 1;
    if (tip.registry->closed()) {
      body.result = ResultSection{round, {}};
      for (const std::uint32_t row : rules.rows_of(round))
        body.result->rows.push_back({row, true, {}, {}, 0});
      return body;
    }
    body.close = CloseSection{round, {}, {}};
    for (const CommitteeMember& member : tip.committee->members()) {
      Vector vector;
      vector.opening = tip.opening;
      vector.round = round;
      vector.voter = member.number;
      vector.contributions = contributions_root({});
      vector.payloads.assign(rules.rows_of(round).size(), Bitmap(0));
      sign_vector(vector, parties[member.number].node, network);
      body.close->vectors.push_back(std::move(vector));
    }
    return body;
  }
  // Presence changes of the last party: blocks that always apply when there are several parties.
  CertifiedBlock flip(const ChainTip& tip) {
    const auto last = static_cast<std::uint32_t>(parties.size() - 1);
    const bool active = tip.registry->find(last)->presence == Presence::Active;
    return certified(tip, active ? away(tip, last) : back(tip, last));
  }

  std::vector<std::uint32_t> all() const {
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < parties.size(); ++i) numbers.push_back(i);
    return numbers;
  }

  const ChainRules rules;
  SignatureChecks checks;
  std::vector<Party> parties;  // ascending by node key: positions are numbers in the registry

 private:
  void sort() {
    std::sort(parties.begin(), parties.end(),
              [](const Party& a, const Party& b) { return a.node.public_key() < b.node.public_key(); });
  }
};

}  // namespace neuroshard::chain::small
