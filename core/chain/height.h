// One node's part in making the next block: it proposes when it leads, judges what others propose, votes, and
// counts. Made for each tip by the node (node.h); ends with the block that follows, however that arrives.
//
// Threads: the executor's. All services outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/base/lifetime.h"
#include "core/chain/agreement.h"
#include "core/chain/content.h"
#include "core/chain/detail/stall_marks.h"
#include "core/chain/durable_state.h"
#include "core/chain/mempool.h"
#include "core/chain/outbox.h"
#include "core/chain/presence.h"
#include "core/chain/relay.h"

namespace neuroshard::chain {

struct HeightServices {
  const ChainRules& rules;
  const crypto::KeyPair& key;
  Executor& executor;
  const Clock& clock;
  Outbox& outbox;
  Relay& relay;
  DurableState& durable;
  SignatureChecks& checks;
  RegistryCache* cache;  // null: none
  PresenceWatch& presence;
  Mempool& mempool;
  BlockContent& content;
};

class Height final : private AgreementHost {
 public:
  using Certified = std::function<void(const CertifiedBlock& block)>;
  using FoundEvidence = std::function<void(const Evidence& evidence)>;
  // tip: what the block follows; this node is in its committee. memory: of before a restart, any height.
  Height(HeightServices services, ChainTip tip, AgreementOptions options, AgreementMemory memory,
         FoundEvidence evidence, Certified certified);
  ~Height() override;

  const ChainTip& tip() const { return tip_; }
  // Looks whether a block is due, and at the stall rule; called at every tick and when something changed.
  void advance();
  // From another member: a position in the committee, which the connection proved.
  Verdict on_item(std::size_t from, const AgreementItem& item);
  void on_view(std::size_t from, std::uint32_t view) { agreement_.on_view(from, view); }
  void byzantine_member_found() { agreement_.byzantine_member_found(); }
  std::uint32_t view() const { return agreement_.view(); }
  bool is_due() const { return agreement_.started(); }
  bool is_stalled() const { return stalled_; }
  const SignedVote* vote_of(std::size_t position) const { return agreement_.votes().newest(position); }
  // Against votes that this node got.
  std::vector<Evidence> contradictions(const Certificate& certificate) const;
  const AgreementMemory& memory() const { return agreement_.memory(); }
  // The view in which this node proposed last.
  std::optional<std::uint32_t> led_view() const { return led_view_; }
  // Nothing is sent or reported any more; called before a later destruction.
  void end();

 private:
  void send(const AgreementItem& item, std::optional<std::size_t> to) override;
  void remember(const AgreementMemory& memory, std::function<void()> then) override;
  void judge(const BlockPtr& block, Demand demand) override;
  void make_block(bool presence_only) override;
  bool is_byzantine(std::size_t position) const override;
  void found_evidence(const Evidence& evidence) override;
  void certified(const BlockPtr& block, const Certificate& certificate) override;

  bool applies(const BlockPtr& block) const;
  bool block_is_due() const;
  bool is_due_without_content() const;
  BlockBody common_sections(bool presence_only);
  std::uint64_t time_of_block() const;  // that this node would propose now
  void propose(BlockBody body);
  bool is_plausible(const Block& block, Demand demand) const;

  HeightServices services_;
  const ChainTip tip_;
  const std::size_t self_;
  const FoundEvidence on_evidence_;
  const Certified on_certified_;
  const MonotonicTime opened_;
  bool stalled_ = false, ended_ = false;
  StallMarks stall_marks_;
  std::optional<std::uint32_t> led_view_;
  std::map<Hash256, bool> valid_;  // proposed blocks: whether they apply
  Agreement agreement_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::chain
