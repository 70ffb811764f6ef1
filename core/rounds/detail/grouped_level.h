// One of the two agreements of a grouped node's round, and what it lends to it. Included by grouped_*.cpp
// only.
#pragma once

#include "core/rounds/grouped_node.h"

namespace neuroshard::rounds {

class GroupedNode::Level final : public AgreementHost {
 public:
  Level(GroupedNode& node, bool top) : node_(node), top_(top) {}

  void broadcast(const RoundItem& item) override;
  void remember(const AgreementMemory& memory, std::function<void()> then) override;
  void judge(const RoundBody& body) override;
  void make_body() override;
  void locked(const RoundQuorum& quorum) override;
  void certified(const RoundCertificate& certificate) override;
  bool is_liar(std::size_t member) const override;

  std::optional<RoundAgreement> agreement;
  struct Judging {
    RoundBody body;
    bool computing = false;
  };
  std::map<Hash256, Judging> judging;

 private:
  GroupedNode& node_;
  const bool top_;
};

// Keys of a grouped node's outbox beside those of its sub-group (outbox_keys.h).
inline constexpr std::uint32_t top_proposal_key = 32, top_lock_key = 33, top_certificate_key = 34,
                               top_result_key = 35, top_new_view_key = 36, own_vote_key = 40,
                               bundle_key = 48;  // + step + 2 * body, of 16 at most; passing on: + 64
inline constexpr std::uint32_t pass_on_key = 64;

}  // namespace neuroshard::rounds
