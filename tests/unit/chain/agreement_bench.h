// One member alone, on a virtual clock, and what the others say to it.
#pragma once

#include <set>
#include <vector>

#include "core/sim/world.h"
#include "tests/unit/chain/agreement_bus.h"

namespace neuroshard::test {

inline constexpr chain::AgreementOptions bench_patience{4 * second, 30 * second};

class CountingChecks final : public chain::SignatureChecks {
 public:
  bool vote(const chain::SignedVote& vote, const crypto::PublicKey& node, const Hash256& network) override {
    ++checked;
    return chain::vote_holds(vote, node, network);
  }
  int checked = 0;
};

// The member that leads none of the first views, and how the others speak to it.
class Bench final : public chain::AgreementHost {
 public:
  explicit Bench(const std::vector<std::uint32_t>& units, std::size_t byzantine_first = 0) {
    std::vector<chain::CommitteeMember> rows;
    for (std::size_t i = 0; i < units.size(); ++i) {
      keys.push_back(bus_key(1, i));
      const crypto::PublicKey key = keys.back().public_key();
      rows.push_back({static_cast<std::uint32_t>(i), units[i], key, crypto::node_id(key)});
    }
    committee = std::make_shared<const chain::Committee>(std::move(rows), chain::VotersMode::Founders,
                                                         Hash256{}, bus_height);
    self = committee->leader(static_cast<std::uint32_t>(units.size()) - 1);
    for (std::size_t i = 0; i < byzantine_first; ++i)
      byzantine.insert(committee->leader(static_cast<std::uint32_t>(i)));
    begin({});
  }

  // Again, as after a restart: with what was on the disk.
  void begin(chain::AgreementMemory memory) {
    chain::Agreement::Setup setup{{}, bus_height, bus_previous, committee, self, &checks};
    agreement.emplace(std::move(setup), bench_patience, keys[self], executor_, *this, std::move(memory));
    agreement->start();
  }

  // Said by that many members, this one not among them; each says it in both ways that there are.
  void say(std::size_t from, std::size_t count, std::uint32_t view, std::uint32_t apart = 0) {
    for (std::size_t i = 0, said = 0; said < count; ++i) {
      const std::size_t member = (from + i) % committee->size();
      if (member == self) continue;
      const std::uint32_t its = view - static_cast<std::uint32_t>(said++) * apart;
      say_as(member, its);
    }
  }
  chain::Verdict say_as(std::size_t member, std::uint32_t view) {
    agreement->on_view(member, view);
    return agreement->on_item(member, chain::NewView{bus_height, bus_previous, view, {}, nullptr, {}});
  }
  // Time passes, and every second the last `count` others come to the view of this member.
  void run_with_others(std::size_t count, Duration time) {
    for (const auto end = world.now() + time; world.now() < end;) {
      for (std::size_t i = 0; i < count; ++i) say_as(other(committee->size() - 2 - i), view());
      world.run_for(std::min<Duration>(second, end - world.now()));
    }
  }
  chain::Verdict propose_as_leader(std::uint32_t view, const chain::BlockPtr& block) {
    return agreement->on_item(committee->leader(view), chain::Proposal{view, block, {}, {}});
  }
  chain::SignedVote vote(std::size_t member, chain::VoteStep step, std::uint32_t view,
                         const Hash256& block) const {
    return chain::sign_vote({step, bus_height, bus_previous, view, block},
                            committee->members()[member].number, keys[member], {});
  }
  // Prepares of the first `count` members other than this one.
  chain::Quorum prepares(std::size_t count, std::uint32_t view, const chain::BlockPtr& block) const {
    chain::Quorum quorum{chain::VoteStep::Prepare, bus_height, bus_previous, view, block->hash, {}};
    for (std::size_t i = 0; i < count; ++i) {
      const chain::SignedVote each = vote(other(i), chain::VoteStep::Prepare, view, block->hash);
      quorum.signatures.push_back({each.voter, each.signature});
    }
    return quorum;
  }
  chain::Verdict show_lock(const chain::Quorum& lock, const chain::BlockPtr& block,
                           std::optional<chain::Quorum> full = {}) {
    return agreement->on_item(
        other(0), chain::NewView{bus_height, bus_previous, lock.view + 1, lock, block, std::move(full)});
  }
  // Members beside this one, one after the other.
  std::size_t other(std::size_t i) const { return i < self ? i : i + 1; }
  std::uint32_t view() const { return agreement->view(); }

  void send(const chain::AgreementItem& item, std::optional<std::size_t> to) override {
    if (const auto* said = std::get_if<chain::NewView>(&item); said && !to) new_views.push_back(said->view);
    sent.emplace_back(item, to);
  }
  void remember(const chain::AgreementMemory& memory, std::function<void()> then) override {
    disk = chain::encode_agreement_memory(memory);
    then();
  }
  void judge(const chain::BlockPtr& block, chain::Demand demand) override {
    questions.emplace_back(block->hash, demand);
  }
  void make_block(bool) override { ++asked_to_lead; }
  bool is_byzantine(std::size_t member) const override { return byzantine.count(member) != 0; }
  void found_evidence(const chain::Evidence& found) override { evidence.push_back(found); }
  void certified(const chain::BlockPtr& block, const chain::Certificate&) override { result = block; }

  sim::World world;
  std::vector<crypto::KeyPair> keys;
  chain::CommitteePtr committee;
  std::size_t self = 0;
  CountingChecks checks;
  std::optional<chain::Agreement> agreement;
  std::vector<std::uint32_t> new_views;  // that it told all
  std::vector<std::pair<chain::AgreementItem, std::optional<std::size_t>>> sent;
  std::vector<std::pair<Hash256, chain::Demand>> questions;
  std::vector<chain::Evidence> evidence;
  chain::BlockPtr result;
  Bytes disk;
  int asked_to_lead = 0;
  std::set<std::size_t> byzantine;  // proven to be

 private:
  sim::HostExecutor executor_{world};
};

}  // namespace neuroshard::test
