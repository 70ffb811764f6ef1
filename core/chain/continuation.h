// A node's part in going on without voters that are gone (recovery.h): hears who is there, carries the
// proposals, and hands a complete succession to the chain.
//
// All services outlive it. Threads: the executor's. Errors: those of Recovery.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/chain/outbox.h"
#include "core/chain/recovery.h"

namespace neuroshard::chain {

class Continuation {
 public:
  struct Services {
    const ChainRules& rules;
    const crypto::KeyPair& key;
    SignatureChecks& checks;
    Outbox& outbox;
    const Clock& clock;
    std::function<const ChainTip*()> tip;              // null: no history yet
    std::function<void(const CertifiedBlock&)> adopt;  // a succession that this node may adopt
  };
  Continuation(Services services, RecoveryOptions options);

  // A node showed that it is there, whatever its presence in the registry. height: of its newest block, if it told.
  void heard(const net::NodeId& id, std::optional<std::uint64_t> height = {});
  // Units of the committee whose nodes were heard lately, and the numbers of the others. This node counts as
  // heard, and after a start all do until they had time. For people: a node that is there and does not vote is
  // heard, too.
  struct Reach {
    std::uint64_t heard = 0, active = 0;
    std::vector<std::uint32_t> missing;
  };
  Reach reach(const Committee& committee) const;
  // This node's person goes on without these.
  Expected<void> continue_without(const std::vector<net::NodeId>& without);
  // A proposal of another node's person that waits for this node's, or a succession that others have adopted; null: none.
  const BlockPtr& asks() const { return recovery_.asks(); }
  bool waits_to_follow() const { return recovery_.waits_to_follow(); }
  // Whether this node's person is to decide on a succession that others have adopted: not while this chain can go on
  // without a person, with the voters that the block leaves out, are heard and have no newer block.
  bool may_ask(const Block& succession) const;
  void others_adopted(const BlockPtr& succession);
  void agree(const Hash256& block);
  Verdict take(const SuccessionProposal& proposal);
  bool may_adopt(const Block& block) const { return recovery_.may_adopt(block); }
  void tick();
  void on_tip(const ChainTip& tip) { recovery_.on_tip(tip); }

 private:
  void act(const Recovery::Output& output);
  Recovery::Situation situation(const ChainTip& tip);
  bool is_recent(MonotonicTime heard) const;

  Services services_;
  Recovery recovery_;
  const MonotonicTime begun_;
  struct Heard {
    MonotonicTime at{};
    std::uint64_t height = 0;
  };
  std::map<net::NodeId, Heard> heard_;
  std::set<std::uint32_t> present_;  // of the last situation
};

}  // namespace neuroshard::chain
