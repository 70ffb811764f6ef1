// The anchors of a node in its network's chain, and the parts of this node's invitations that give them to others. A
// node has anchors before it holds the chain: from the invitation that it followed, or from the network's profile.
//
// D/invitation holds the link, because a restart before the first block of the chain still needs it. The file is
// private: a link can hold the right to vote.
//
// Threads: any one at a time; an InvitationSource belongs to the host's executor.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/chain/node.h"
#include "core/config/invite_link.h"
#include "core/storage/file_env.h"

namespace neuroshard::runtime {

// An invitation without its profile and peers.
struct InvitationParts {
  chain::TrustAnchor trust;
  std::optional<chain::HeldVoucher> voucher;
  bool can_let_vote = false;  // an invitation of this node may carry a voucher
  std::string no_vote;        // why a voucher that was asked for is missing, for people
};
using InvitationSource = std::function<InvitationParts(bool with_vote)>;

inline constexpr auto voucher_life = std::chrono::hours(24 * 7);
// The block that invitations name stands so far behind the newest one, so that every node soon has it.
inline constexpr std::uint64_t recent_block_depth = 8;

// Keeps a link's trust and voucher. A later link replaces the parts that it has. Errors: InvalidArgument (the
// links begin with different blocks), those of read() and of the disk.
Expected<void> keep_invitation(storage::FileEnv& files, const std::string& data_directory,
                               const config::InviteLink& link);

class ChainTrust {
 public:
  // Errors: those of the disk and of parse_invite_link, with the remedy; InvalidArgument (the link is for another
  // network).
  static Expected<ChainTrust> read(storage::FileEnv& files, const std::string& data_directory,
                                   const config::NetworkProfile& profile);

  const chain::TrustAnchor& anchor() const { return anchor_; }
  const std::optional<chain::HeldVoucher>& voucher() const { return voucher_; }

  // Fills in trust, voucher and whether the node vouches on its local network.
  void fill(chain::ChainOptions& options) const;
  // The reason not to follow the chain that the peers have, for people; empty: none.
  std::string trouble(const chain::ChainView& view) const;
  // Nobody has a chain yet, and the founders alone begin one. wallet: this node's.
  bool waits_for_founder(const chain::ChainView& view, const crypto::PublicKey& wallet) const;
  // A voucher is made at each call that asks for one.
  InvitationParts invitation(chain::ChainNode& node, const crypto::PublicKey& wallet, WallTime now,
                             bool with_vote) const;

 private:
  chain::TrustAnchor anchor_;
  std::optional<chain::HeldVoucher> voucher_;
  std::vector<crypto::PublicKey> founders_;  // ascending
  bool founders_vote_ = false;               // nobody else
};

}  // namespace neuroshard::runtime
