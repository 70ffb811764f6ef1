#include "core/runtime/chain_trust.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::runtime {
namespace {

std::string path_of(const std::string& data_directory) {
  return data_directory + "/invitation";
}

std::string short_hash(const Hash256& hash) {
  return to_hex(hash).substr(0, 16) + "…";
}

// Nothing: no invitation is kept.
Expected<std::optional<config::InviteLink>> read_link(storage::FileEnv& files,
                                                      const std::string& data_directory) {
  const std::string path = path_of(data_directory);
  if (!files.exists(path)) return std::optional<config::InviteLink>();
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(files, path, config::max_invite_link + 1));
  auto link = config::parse_invite_link(as_text(bytes));
  if (!link.ok())
    return Error(link.error())
        .with_context(fmt::format("{} can't be used; follow the invitation again, or delete the file", path));
  return std::optional(std::move(*link));
}

bool says_something(const config::InviteLink& link) {
  return !link.trust.is_open() || link.voucher;
}

}  // namespace

Expected<void> keep_invitation(storage::FileEnv& files, const std::string& data_directory,
                               const config::InviteLink& link) {
  if (!says_something(link)) return {};
  // A link that can't be read any more is replaced: its anchor is of no use.
  const auto before = read_link(files, data_directory);
  config::InviteLink kept = link;
  kept.peers.clear();
  if (before.ok() && *before) {
    const chain::TrustAnchor& old = (*before)->trust;
    if (old.genesis && link.trust.genesis && *old.genesis != *link.trust.genesis)
      return make_error(
          ErrorCode::InvalidArgument,
          fmt::format("this data directory follows the chain that begins with block {}, and the invitation "
                      "names {}; use another --data-dir, or delete {} to trust the new invitation",
                      short_hash(*old.genesis), short_hash(*link.trust.genesis), path_of(data_directory)));
    if (!kept.trust.genesis) kept.trust = old;
    if (!kept.voucher) kept.voucher = (*before)->voucher;
  }
  NS_ASSIGN_OR_RETURN(const std::string text, config::format_invite_link(kept));
  NS_RETURN_IF_ERROR(storage::write_file_atomic(files, path_of(data_directory), as_bytes(text)));
  return files.sync_directory(data_directory);
}

Expected<ChainTrust> ChainTrust::read(storage::FileEnv& files, const std::string& data_directory,
                                      const config::NetworkProfile& profile) {
  ChainTrust trust;
  trust.founders_ = config::founder_keys(profile.consensus);
  trust.founders_vote_ = profile.consensus.voters == static_cast<std::uint64_t>(chain::VotersMode::Founders);
  NS_ASSIGN_OR_RETURN(const std::optional<config::InviteLink> link, read_link(files, data_directory));
  if (link) {
    if (config::network_id(link->profile.consensus) != config::network_id(profile.consensus))
      return make_error(
          ErrorCode::InvalidArgument,
          fmt::format("{} is an invitation to another network; delete it", path_of(data_directory)));
    trust.anchor_ = link->trust;
    trust.voucher_ = link->voucher;
  }
  // The inviting person goes before the publisher.
  if (!trust.anchor_.genesis) trust.anchor_.genesis = profile.directory.genesis;
  return trust;
}

void ChainTrust::fill(chain::ChainOptions& options) const {
  options.trust = anchor_;
  options.voucher = voucher_;
  options.vouch_on_lan = founders_.empty();
}

std::string ChainTrust::trouble(const chain::ChainView& view) const {
  if (!anchor_.genesis) {
    if (view.genesis != Hash256{} || view.peers.refused.empty()) return {};
    return "this node refuses the chain that a peer has: " + view.peers.refused;
  }
  const Hash256& trusted = *anchor_.genesis;
  if (view.genesis != Hash256{} && view.genesis != trusted)
    return fmt::format(
        "this node's chain begins with block {}, but its invitation names {}: join with another "
        "data directory",
        short_hash(view.genesis), short_hash(trusted));
  if (view.genesis != Hash256{}) return {};
  const bool somebody_has_it = view.peers.histories.contains(trusted);
  if (somebody_has_it && !view.peers.refused.empty())
    return "this node refuses the chain that a peer has: " + view.peers.refused;
  if (somebody_has_it || view.peers.histories.empty()) return {};
  return fmt::format(
      "this node joins no chain: its peers have the one that begins with block {}, but the "
      "invitation names {}. Ask the person who invited you for a new invitation",
      short_hash(view.peers.histories.begin()->first), short_hash(trusted));
}

bool ChainTrust::waits_for_founder(const chain::ChainView& view, const crypto::PublicKey& wallet) const {
  return view.genesis == Hash256{} && view.peers.histories.empty() && !founders_.empty() &&
         !std::binary_search(founders_.begin(), founders_.end(), wallet);
}

InvitationParts ChainTrust::invitation(chain::ChainNode& node, const crypto::PublicKey& wallet, WallTime now,
                                       bool with_vote) const {
  InvitationParts parts;
  const chain::History* history = node.history();
  if (history == nullptr) {
    parts.trust = anchor_;
    // An open start: the first block has to name this node's wallet, as far as the invited node is concerned.
    if (anchor_.is_open() && founders_.empty()) parts.trust.founder_wallet = wallet;
    if (with_vote) parts.no_vote = "this node has no chain yet, so its wallet has no vote to vouch with";
    return parts;
  }
  parts.trust.genesis = history->genesis();
  if (const std::uint64_t height = history->tip().height(); height > recent_block_depth) {
    if (const auto hash = history->hash_at(height - recent_block_depth))
      parts.trust.recent = chain::BlockReference{height - recent_block_depth, *hash};
  }
  const chain::WalletRecord* own = history->tip().registry->wallet(wallet);
  parts.can_let_vote = !founders_vote_ && own != nullptr && own->voter && own->is_trusted();
  if (!with_vote) return parts;
  auto voucher = node.give_voucher(static_cast<std::uint64_t>(to_unix_ms(now + voucher_life)));
  if (voucher.ok())
    parts.voucher = std::move(*voucher);
  else
    parts.no_vote = voucher.error().message;
  return parts;
}

}  // namespace neuroshard::runtime
