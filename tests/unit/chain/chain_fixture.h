// A chain of real signed blocks for tests: nodes with keys, wallets and beacon chains, statements, closes,
// results and certificates. A node is named by its position in the fixture; numbers of the registry are looked
// up. Every block is applied as a node would apply it. Header only.  Threads: one.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/chain/beacon.h"
#include "core/chain/committee.h"
#include "core/chain/history.h"
#include "core/chain/registry.h"
#include "core/chain/rights.h"
#include "tests/support/keys.h"

namespace neuroshard::chain::testing {

// Takes everything for signed: for chains of thousands of nodes.
class NoChecks final : public SignatureChecks {
 public:
  bool vote(const SignedVote&, const crypto::PublicKey&, const Hash256&) override { return true; }
  bool statement(const Statement&, const Hash256&) override { return true; }
  bool entry(const ContributionEntry&, const Hash256&, std::uint64_t, const crypto::PublicKey&,
             const Hash256&) override {
    return true;
  }
  bool vector(const VectorClaim&, const crypto::PublicKey&, const Hash256&) override { return true; }
  bool evidence(const Evidence&, const Hash256&) override { return true; }
};

inline ChainRules small_rules(VotersMode mode = VotersMode::Invited, std::uint32_t rows = 2) {
  ChainRules rules;
  rules.network.fill(9);
  rules.voters = mode;
  rules.rows = rows;
  rules.most_tokens = 1000;
  rules.admission_contributions = 2;
  return rules;
}

struct Work {
  std::size_t node = 0;
  std::uint64_t tokens = 500;
};
// A contribution in a voter's vector; nodes of the fixture. Payloads by position among the rows.
struct Received {
  std::function<bool(std::size_t voter, std::size_t node)> lists = [](std::size_t, std::size_t) {
    return true;
  };
  std::function<bool(std::size_t voter, std::size_t node, std::size_t row)> payload =
      [](std::size_t, std::size_t, std::size_t) { return true; };
};

// Nodes with keys, wallets and beacon chains, and what they sign for themselves.
class FixtureNodes {
 public:
  struct Node {
    crypto::KeyPair key;
    std::size_t wallet;
    BeaconChain beacon;
    RowSet rows = {};  // that it registers with
  };
  static constexpr std::uint64_t begin_ms = 1'700'000'000'000;
  static constexpr std::uint32_t beacon_length = 512;

  FixtureNodes(ChainRules rules, std::uint16_t first_key) : rules_(std::move(rules)), next_key_(first_key) {}

  // ---- Nodes
  std::size_t add_node(std::uint64_t first_round = 1) { return add_node_of(add_wallet(), first_round); }
  std::size_t add_node_of(std::size_t wallet, std::uint64_t first_round = 1) {
    crypto::KeyPair key = test::key_numbered(next_key_++);
    const Hash256 seed = key.public_key();
    nodes_.push_back({std::move(key), wallet, BeaconChain(seed, first_round, beacon_length)});
    return nodes_.size() - 1;
  }
  std::vector<std::size_t> add_nodes(std::size_t count) {
    std::vector<std::size_t> added;
    for (std::size_t i = 0; i < count; ++i) added.push_back(add_node());
    return added;
  }
  std::size_t add_wallet() {
    wallets_.push_back(test::key_numbered(next_key_++));
    return wallets_.size() - 1;
  }
  std::size_t wallet_index(std::size_t node) const { return nodes_[node].wallet; }
  void set_rows(std::size_t node, RowSet rows) { nodes_[node].rows = std::move(rows); }
  const crypto::KeyPair& key(std::size_t node) const { return nodes_[node].key; }
  const crypto::KeyPair& wallet_key(std::size_t node) const { return wallets_[nodes_[node].wallet]; }
  const ChainRules& rules() const { return rules_; }

  // ---- Statements
  template <class What>
  Statement statement_at(std::size_t node, BlockReference reference, What what) const {
    Statement statement;
    statement.node = key(node).public_key();
    statement.reference = reference;
    statement.what = std::move(what);
    sign_statement(statement, key(node), rules_.network);
    return statement;
  }
  // By this wallet's key.
  Statement revocation_at(std::size_t node, BlockReference reference, const crypto::KeyPair& wallet) const {
    Statement statement;
    statement.node = key(node).public_key();
    statement.reference = reference;
    sign_revocation(statement, wallet, rules_.network);
    return statement;
  }
  Register registration(std::size_t node) const {
    Register what;
    what.delegation = crypto::delegate(wallet_key(node), key(node).public_key(), rules_.network,
                                       WallTime(std::chrono::milliseconds(begin_ms * 2)), 1);
    what.beacon = nodes_[node].beacon.commitment();
    what.rows = nodes_[node].rows;
    return what;
  }
  Voucher voucher(std::size_t issuer, std::uint32_t serial, std::size_t key_node) const {
    Voucher voucher;
    voucher.key = key(key_node).public_key();
    voucher.serial = serial;
    voucher.expires_ms = begin_ms * 2;
    sign_voucher(voucher, key(issuer), rules_.network);
    return voucher;
  }
  // The voucher's key is the node's own, for brevity.
  Register registration(std::size_t node, std::size_t issuer, std::uint32_t serial) const {
    Register what = registration(node);
    what.voucher = voucher(issuer, serial, node);
    what.voucher_signature =
        use_voucher(key(node), key(node).public_key(), wallet_key(node).public_key(), rules_.network);
    return what;
  }
  Vouch vouch(std::size_t node, std::size_t issuer, std::uint32_t serial) const {
    return {voucher(issuer, serial, node),
            use_voucher(key(node), key(node).public_key(), wallet_key(node).public_key(), rules_.network),
            wallet_key(node).public_key()};
  }

 protected:
  std::size_t node_with(const crypto::PublicKey& key) const {
    const auto at = std::find_if(nodes_.begin(), nodes_.end(),
                                 [&key](const Node& node) { return node.key.public_key() == key; });
    return static_cast<std::size_t>(at - nodes_.begin());
  }

  ChainRules rules_;
  std::deque<Node> nodes_;

 private:
  std::uint16_t next_key_;
  std::deque<crypto::KeyPair> wallets_;
};

class ChainFixture : public FixtureNodes {
 public:
  explicit ChainFixture(ChainRules rules = small_rules(), std::uint16_t first_key = 1)
      : FixtureNodes(std::move(rules), first_key) {}

  // ---- Where the chain stands
  const Registry& registry() const { return *registry_; }
  RegistryPtr registry_ptr() const { return registry_; }
  const Hash256& hash() const { return blocks_.back()->hash; }
  const std::vector<BlockPtr>& blocks() const { return blocks_; }
  CommitteePtr committee() const { return make_committee(rules_, *registry_); }
  std::vector<std::size_t> committee_nodes() const {
    const CommitteePtr now = committee();
    std::vector<std::size_t> nodes;
    for (const CommitteeMember& member : now->members()) nodes.push_back(node_of(member.number));
    return nodes;
  }
  const MemberRecord* member(std::size_t node) const {
    return registry_->find(crypto::node_id(nodes_[node].key.public_key()));
  }
  std::uint32_t number(std::size_t node) const { return member(node)->number; }
  const WalletRecord* wallet(std::size_t node) const {
    return registry_->wallet(wallet_key(node).public_key());
  }
  std::uint32_t units(std::size_t node) const {
    return member(node) == nullptr ? 0 : committee()->units_of(number(node));
  }
  bool is_active(std::size_t node) const { return member(node)->presence == Presence::Active; }
  bool is_voter(std::size_t node) const { return wallet(node) != nullptr && wallet(node)->voter; }
  std::size_t node_of(std::uint32_t number) const { return node_with(registry_->find(number)->key); }
  template <class What>
  Statement statement(std::size_t node, What what) const {
    return statement_at(node, {registry_->height(), hash()}, std::move(what));
  }
  // By the node's own wallet.
  Statement revocation(std::size_t node) const {
    return revocation_at(node, {registry_->height(), hash()}, wallet_key(node));
  }

  // ---- Rounds
  Contribution contribution(std::size_t node, std::uint64_t tokens) const {
    Contribution contribution;
    contribution.opening = registry_->opening(hash());
    contribution.round = registry_->round() + 1;
    for (const std::uint32_t row : rules_.rows_of(contribution.round)) {
      Hash256 payload = key(node).public_key();
      payload[0] ^= static_cast<std::uint8_t>(row + 16 * contribution.round);
      contribution.rows.push_back({row, tokens, 4096, payload});
    }
    contribution.reveal = nodes_[node].beacon.reveal(contribution.round).value_or({});
    sign_contribution(contribution, key(node), rules_.network);
    return contribution;
  }
  // With the vectors of all committee members, or of those named.
  CloseSection close(const std::vector<Work>& works, const Received& received = {},
                     std::optional<std::vector<std::size_t>> voters = {}) const {
    CloseSection close;
    close.round = registry_->round() + 1;
    for (const Work& work : works)
      close.contributions.push_back(entry_of(contribution(work.node, work.tokens), number(work.node)));
    std::sort(close.contributions.begin(), close.contributions.end(),
              [](const ContributionEntry& a, const ContributionEntry& b) { return a.member < b.member; });
    if (!voters) {
      voters = committee_nodes();
    }
    for (const std::size_t voter : *voters)
      close.vectors.push_back(vector(voter, close.contributions, received));
    std::sort(close.vectors.begin(), close.vectors.end(),
              [](const Vector& a, const Vector& b) { return a.voter < b.voter; });
    return close;
  }
  Vector vector(std::size_t voter, const std::vector<ContributionEntry>& entries,
                const Received& received = {}) const {
    Vector vector;
    vector.opening = registry_->opening(hash());
    vector.round = registry_->round() + 1;
    vector.voter = number(voter);
    std::vector<Hash256> ids;
    std::vector<std::size_t> listed;
    for (const ContributionEntry& entry : entries) {
      const std::size_t node = node_of(entry.member);
      if (!received.lists(voter, node)) continue;
      vector.members.push_back(entry.member);
      ids.push_back(contribution_id(entry));
      listed.push_back(node);
    }
    vector.contributions = contributions_root(ids);
    vector.payloads.assign(rules_.rows_of(vector.round).size(), Bitmap(listed.size()));
    for (std::size_t row = 0; row < vector.payloads.size(); ++row) {
      for (std::size_t i = 0; i < listed.size(); ++i) {
        if (received.payload(voter, listed[i], row)) vector.payloads[row].set(i);
      }
    }
    sign_vector(vector, key(voter), rules_.network);
    return vector;
  }
  // New anchors for all rows that have contributors.
  ResultSection result(std::uint64_t norm_bits = 0x3ff0'0000'0000'0000) const {
    ResultSection result;
    result.round = registry_->round() + 1;
    const std::vector<std::uint32_t> rows = rules_.rows_of(result.round);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      RowResult row;
      row.row = rows[i];
      row.carried = registry_->closed()->contributors[i].empty();
      if (!row.carried) {
        row.anchor.fill(static_cast<std::uint8_t>(result.round % 251 + 1));
        row.anchor[0] = static_cast<std::uint8_t>(rows[i]);
        row.trace.fill(3);
        row.norm_bits = norm_bits;
      }
      result.rows.push_back(row);
    }
    return result;
  }

  // ---- Blocks
  // anchors: of the first rows; others are made up.
  BlockBody genesis_body(const std::vector<std::size_t>& founders,
                         const std::vector<Hash256>& anchors = {}) const {
    BlockBody body;
    body.genesis.emplace();
    for (const std::size_t node : founders)
      body.genesis->founders.push_back(statement_at(node, {}, registration(node)));
    std::sort(body.genesis->founders.begin(), body.genesis->founders.end(),
              [](const Statement& a, const Statement& b) { return a.node < b.node; });
    for (std::uint32_t row = 0; row < rules_.rows; ++row) {
      body.genesis->anchors.emplace_back();
      body.genesis->anchors.back().fill(static_cast<std::uint8_t>(200 + row % 50));
    }
    std::copy(anchors.begin(), anchors.end(), body.genesis->anchors.begin());
    return body;
  }
  // Error: what does not hold.
  Expected<void> begin(const std::vector<std::size_t>& founders, const std::vector<Hash256>& anchors = {}) {
    const BlockBody body = genesis_body(founders, anchors);
    NS_ASSIGN_OR_RETURN(const Proposed proposed, apply_genesis(rules_, begin_ms, body, *checks_));
    const BlockPtr block = make_block(proposed.header, body, {}, rules_.network);
    NS_ASSIGN_OR_RETURN(registry_, genesis_registry(rules_, *block, *checks_));
    blocks_ = {block};
    return {};
  }
  // The block with this body after the newest, with the header that belongs to it.
  Expected<BlockPtr> propose(const BlockBody& body, std::uint64_t after_ms = 1000) const {
    NS_ASSIGN_OR_RETURN(const Proposed proposed, apply_body(rules_, *registry_, hash(),
                                                            registry_->time_ms() + after_ms, body, *checks_));
    return make_block(proposed.header, body, registry_->opening(hash()), rules_.network);
  }
  Expected<void> append(const BlockBody& body, std::uint64_t after_ms = 1000) {
    NS_ASSIGN_OR_RETURN(const BlockPtr block, propose(body, after_ms));
    return append(block);
  }
  Expected<void> append(const BlockPtr& block) {
    NS_ASSIGN_OR_RETURN(RegistryPtr next, apply_block(rules_, *registry_, hash(), *block, *checks_));
    registry_ = std::move(next);
    blocks_.push_back(block);
    return {};
  }
  // The reason that a block with this body is not valid; empty: it is valid.
  std::string refusal(const BlockBody& body, std::uint64_t after_ms = 1000) const {
    const auto proposed = propose(body, after_ms);
    return proposed.ok() ? std::string() : proposed.error().message;
  }
  template <class What>
  std::string refusal(std::size_t node, What what, std::uint64_t after_ms = 1000) const {
    return refusal(body_of({statement(node, std::move(what))}), after_ms);
  }
  static BlockBody body_of(std::vector<Statement> statements) {
    BlockBody body;
    body.statements = std::move(statements);
    return body;
  }
  // False when a block that a test needs is not valid.
  template <class What>
  bool say(std::size_t node, What what, std::uint64_t after_ms = 1000) {
    return append(body_of({statement(node, std::move(what))}), after_ms).ok();
  }
  bool revoke(std::size_t node) { return append(body_of({revocation(node)})).ok(); }
  bool join(std::size_t node) { return say(node, registration(node)); }
  // A round of two blocks in which these nodes contribute.
  bool round(const std::vector<Work>& works, const Received& received = {}) {
    BlockBody closing;
    closing.close = close(works, received);
    if (!append(closing).ok()) return false;
    BlockBody resulting;
    resulting.result = result();
    return append(resulting).ok();
  }
  bool round_of(const std::vector<std::size_t>& nodes, std::uint64_t tokens = 500) {
    std::vector<Work> works;
    for (const std::size_t node : nodes) works.push_back({node, tokens});
    return round(works);
  }

  // ---- Certificates
  Quorum quorum(VoteStep step, const Block& block, const std::vector<std::size_t>& signers,
                std::uint32_t view = 0) const {
    Quorum quorum{step, block.header.height, block.header.previous, view, block.hash, {}};
    const Vote vote{step, quorum.height, quorum.previous, view, quorum.block};
    for (const std::size_t signer : signers)
      quorum.signatures.push_back(
          {number(signer), sign_vote(vote, number(signer), key(signer), rules_.network).signature});
    std::sort(quorum.signatures.begin(), quorum.signatures.end(),
              [](const VoterSignature& a, const VoterSignature& b) { return a.voter < b.voter; });
    return quorum;
  }
  // By the whole committee of the block after the newest one.
  CertifiedBlock certify(const BlockPtr& block) const {
    return make_certified(block, {quorum(VoteStep::Commit, *block, committee_nodes()), {}});
  }
  CertifiedBlock certified_genesis() const {
    const Block& genesis = *blocks_.front();
    const Vote vote{VoteStep::Genesis, 0, {}, 0, genesis.hash};
    Quorum quorum{VoteStep::Genesis, 0, {}, 0, genesis.hash, {}};
    for (const Statement& founder : genesis.body.genesis->founders) {
      const auto voter = static_cast<std::uint32_t>(quorum.signatures.size());
      quorum.signatures.push_back(
          {voter, sign_vote(vote, voter, key(node_with(founder.node)), rules_.network).signature});
    }
    return make_certified(blocks_.front(), {quorum, {}});
  }

  void set_checks(SignatureChecks& checks) { checks_ = &checks; }

 private:
  SignatureChecks own_checks_;
  SignatureChecks* checks_ = &own_checks_;
  RegistryPtr registry_;
  std::vector<BlockPtr> blocks_;
};

}  // namespace neuroshard::chain::testing
