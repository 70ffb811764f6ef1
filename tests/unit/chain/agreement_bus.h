// Members of one committee on a virtual clock, each with an Agreement, and a bus that loses, delays and cuts.
// Each member would make another block, so that a second certificate would show. The bus also counts what the
// honest members signed: which blocks anybody could certify with that and all Byzantine votes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/rng.h"
#include "core/chain/agreement.h"
#include "core/chain/messages.h"
#include "core/sim/world.h"
#include "tests/support/time.h"

namespace neuroshard::test {

inline constexpr std::uint64_t bus_height = 5;
inline constexpr Hash256 bus_previous = [] {
  Hash256 hash{};
  hash.fill(7);
  return hash;
}();

crypto::KeyPair bus_key(std::uint64_t seed, std::size_t number);
std::vector<std::uint32_t> equal_units(std::size_t members);
// A block of that height: presence changes only, or the carried result of a round. mark: makes it another one.
chain::BlockPtr bus_block(std::uint64_t mark, bool presence_only);

struct BusOptions {
  std::uint64_t seed = 1;
  std::vector<std::uint32_t> units = equal_units(4);
  double loss = 0;
  std::size_t byzantine = 0;  // the first ones: they tell the others two stories
  chain::VotersMode mode = chain::VotersMode::Founders;
  bool local_views = false;  // each part takes those it sees for the committee: what must not be done
};

// Each signature is checked once, however many members receive it.
class RememberedChecks final : public chain::SignatureChecks {
 public:
  bool vote(const chain::SignedVote& vote, const crypto::PublicKey& node, const Hash256& network) override;

 private:
  std::map<std::pair<Bytes, crypto::PublicKey>, bool> known_;
};

class Bus {
 public:
  enum Kind : std::size_t { ProposalKind, PrepareKind, CommitKind, NewViewKind, LockedKind };
  struct Member final : chain::AgreementHost {
    explicit Member(Bus& b, std::size_t i) : bus(b), index(i), key(bus_key(b.options_.seed, i)) {}
    Bus& bus;
    const std::size_t index;
    const crypto::KeyPair key;
    int part = 0;
    std::unique_ptr<sim::HostExecutor> executor;
    std::optional<chain::Agreement> agreement;
    Bytes disk;
    struct Sent {
      std::shared_ptr<const chain::ChainItem> item;
      std::optional<std::size_t> to;
    };
    std::map<std::pair<std::size_t, bool>, Sent> outbox;  // by kind, and whether to one: repeated
    chain::BlockPtr result;
    chain::Certificate certificate;
    std::uint64_t life = 0;
    std::vector<std::pair<Hash256, chain::Demand>> questions;
    std::vector<bool> asked_for;  // make_block(presence_only)
    std::vector<chain::Evidence> evidence;

    void power_on();
    void power_off();
    bool is_byzantine() const { return index < bus.options_.byzantine; }
    chain::BlockPtr block(bool presence_only = false, std::uint64_t variant = 0) const;

    void send(const chain::AgreementItem& item, std::optional<std::size_t> to) override;
    void remember(const chain::AgreementMemory& memory, std::function<void()> then) override;
    void judge(const chain::BlockPtr& block, chain::Demand demand) override;
    void make_block(bool presence_only) override;
    bool is_byzantine(std::size_t) const override { return false; }
    void found_evidence(const chain::Evidence& found) override { evidence.push_back(found); }
    void certified(const chain::BlockPtr& block, const chain::Certificate& certificate) override;
  };

  explicit Bus(BusOptions options);

  Member& leader(std::uint32_t view) { return *members[committee->leader(view)]; }
  void stall();  // now, and after each start
  bool all_decided() const;
  bool run_until_decided(Duration limit);
  // Blocks that honest members believe to be certified.
  std::size_t different_results() const;
  // Blocks for which honest votes and those of all Byzantine members, whatever they sign, make a certificate.
  std::size_t certifiable() const;
  void give(Member& to, std::size_t from, const chain::AgreementItem& item);

  sim::World world;
  chain::CommitteePtr committee;
  std::vector<std::unique_ptr<Member>> members;
  RememberedChecks checks;
  std::size_t bad_certificates = 0;
  std::function<bool(const Member&, const chain::Block&, chain::Demand)> finds_right;
  std::function<chain::BlockPtr(const Member&, bool presence_only)> makes;
  std::function<bool(const Member& from, const Member& to, const chain::ChainItem&)> passes;
  std::function<bool(const Member&, std::size_t kind)> dies_after;
  std::map<std::pair<std::size_t, std::size_t>, int> sent;  // by member and kind

 private:
  struct Signed {
    std::map<std::size_t, std::uint64_t> units;  // by member
  };
  using VoteKey = std::tuple<chain::VoteStep, std::uint32_t, Hash256>;
  void deliver(Member& from, const Member::Sent& sent);
  chain::ChainItem other_story(const Member& from, const chain::ChainItem& item) const;
  void note(const Member& from, const chain::ChainItem& item);
  std::uint64_t signed_units(const VoteKey& key) const;
  void repeat();

  const BusOptions options_;
  Rng rng_;
  bool stalled_ = false;
  std::set<std::size_t> dying_;
  std::map<VoteKey, Signed> signed_;
  std::map<Hash256, bool> presence_only_;  // of every block that was seen
};

std::string seed_text(std::uint64_t seed);

}  // namespace neuroshard::test
