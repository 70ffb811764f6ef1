#include "app/node/commands/invite_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "app/node/commands/open_directory.h"
#include "app/node/output/qr_text.h"
#include "app/node/output/rounds_text.h"
#include "core/compute/slot.h"
#include "core/config/invite_link.h"
#include "core/node/network_view.h"
#include "core/platform/process/terminal.h"
#include "core/runtime/chain_trust.h"
#include "core/runtime/invited_peers.h"
#include "core/swarm/peer_cache.h"

namespace neuroshard::app {
namespace {

struct InviteFlags {
  std::vector<std::string> peers;
  bool qr = false;
  std::string svg;
  bool force = false;
  bool with_vote = false, without_vote = false;
};

struct MadeInvitation {
  config::InviteLink link;
  std::string no_vote;  // why a vote that was asked for is missing
};

// Returns the profile of the command line, else that of the data directory, which may be in use.
Expected<config::NetworkProfile> chosen_profile(const std::string& directory, CommandContext& context) {
  if (!context.profile.empty()) return config::load_network_profile(context.files, context.profile);
  const std::string own = directory + "/profile.json";
  if (context.files.exists(own)) return config::load_network_profile(context.files, own);
  return make_error(ErrorCode::NotFound,
                    fmt::format("{} has no network to invite to; set one with --profile", directory));
}

// Returns nodes that answered this one recently and can be dialled from outside.
std::vector<config::InvitedPeer> cached_peers(const std::string& directory, const Hash256& network,
                                              CommandContext& context) {
  std::vector<config::InvitedPeer> peers;
  const auto bytes =
      storage::read_file(context.files, directory + "/peers.cache", swarm::max_peer_cache_bytes);
  if (!bytes.ok()) return peers;
  const auto cached = swarm::decode_peer_cache(*bytes);
  if (!cached.ok()) return peers;
  for (const swarm::CachedPeer& peer : *cached) {
    if (peers.size() == runtime::invited_by_default) break;
    if (!net::check_node_record(peer.record, network, peer.record.made).ok()) continue;
    for (const net::NodeEndpoint& at : peer.record.endpoints) {
      if (at.reach != net::Reach::Direct) continue;
      peers.push_back({peer.record.id(), platform::to_text(at.endpoint)});
      break;
    }
  }
  return peers;
}

bool is_by_invitation(const config::ConsensusPart& consensus) {
  return consensus.inner_steps > 0 &&
         consensus.voters == static_cast<std::uint64_t>(chain::VotersMode::Invited);
}

// Asks the running node of the directory, which names peers and itself if other nodes can dial it. Nothing: no
// node runs, or it is in no network.
std::optional<MadeInvitation> ask_running_node(bool with_vote, CommandContext& context) {
  const auto client = CoreClient::find(context);
  if (!client.ok() || !*client) return std::nullopt;
  const auto answer =
      (*client)->ask<node::Invitation>([with_vote](node::Node& node, node::Reply<node::Invitation> reply) {
        return node.query_invitation(with_vote, std::move(reply));
      });
  if (!answer.ok()) return std::nullopt;
  auto link = config::parse_invite_link(answer->link);
  if (!link.ok()) return std::nullopt;
  return MadeInvitation{std::move(*link), answer->no_vote};
}

Expected<MadeInvitation> make_invitation(const InviteFlags& flags, const std::string& directory,
                                         CommandContext& context) {
  MadeInvitation made;
  NS_ASSIGN_OR_RETURN(made.link.profile, chosen_profile(directory, context));
  const config::ConsensusPart consensus = made.link.profile.consensus;
  const bool with_vote = flags.with_vote || (is_by_invitation(consensus) && !flags.without_vote);
  std::optional<MadeInvitation> running;
  if (context.profile.empty()) running = ask_running_node(with_vote, context);
  if (running && config::network_id(running->link.profile.consensus) == config::network_id(consensus))
    return std::move(*running);
  if (context.profile.empty()) {
    NS_ASSIGN_OR_RETURN(const auto trust,
                        runtime::ChainTrust::read(context.files, directory, made.link.profile));
    made.link.trust = trust.anchor();
  }
  if (with_vote) made.no_vote = "only a running node of a wallet with a vote can give one";
  return made;
}

// Tells a person about the vote that the link gives, or why it gives none.
void explain_vote(const MadeInvitation& made, CommandContext& context) {
  if (made.link.voucher) {
    context.output.note(
        "The link holds a secret: the first wallet that uses it gets a vote, once, within 7 days. Send it to "
        "one "
        "person, in private. With --without-vote you get a link that you can publish.");
  } else if (!made.no_vote.empty()) {
    context.output.note(fmt::format(
        "The link gives no vote: {}. A node that joins by it trains along as a candidate.", made.no_vote));
  }
}

Expected<void> invite(const InviteFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string directory, data_directory_path(context));
  NS_ASSIGN_OR_RETURN(MadeInvitation made, make_invitation(flags, directory, context));
  config::InviteLink& link = made.link;
  const std::string& name = link.profile.consensus.name;
  if (name == "solo")
    return make_error(ErrorCode::InvalidArgument,
                      "the network solo has no peers; create your own with \"neuroshardd network create\"");
  const Hash256 id = config::network_id(link.profile.consensus);
  if (!flags.peers.empty()) link.peers.clear();
  for (const std::string& text : flags.peers) {
    NS_ASSIGN_OR_RETURN(config::InvitedPeer peer, config::parse_invited_peer(text));
    link.peers.push_back(std::move(peer));
  }
  if (link.peers.empty()) link.peers = cached_peers(directory, id, context);
  NS_ASSIGN_OR_RETURN(const std::string text, config::format_invite_link(link));
  std::vector<std::string> peers;
  for (const config::InvitedPeer& peer : link.peers) peers.push_back(config::to_text(peer));
  context.output.json_line({{"link", text},
                            {"name", name},
                            {"network_id", to_hex(id)},
                            {"peers", peers},
                            {"may_vote", link.voucher.has_value()},
                            {"no_vote", made.no_vote}});
  if (flags.qr && !context.json) {
    NS_ASSIGN_OR_RETURN(const std::string code,
                        qr_for_terminal(text, platform::is_terminal(platform::Stream::Out)));
    context.output.raw(code);
  }
  context.output.line(text);
  if (!flags.svg.empty()) {
    if (!flags.force && context.files.exists(flags.svg))
      return make_error(
          ErrorCode::AlreadyExists,
          fmt::format("{} already exists; choose another --svg, or replace it with --force", flags.svg));
    NS_ASSIGN_OR_RETURN(const std::string picture, qr_as_svg(text));
    NS_RETURN_IF_ERROR(
        storage::write_file_atomic(context.files, flags.svg, as_bytes(picture), /*world_readable=*/true));
  }
  explain_vote(made, context);
  const config::DirectoryPart& known = link.profile.directory;
  if (peers.empty() && known.bootstrap.empty() && known.trackers.empty())
    context.output.note(
        "The link names no bootstrap address, so a new node may take long to find peers. Add a reachable "
        "node "
        "or tracker with --peer HOST:PORT.");
  return {};
}

std::string question_of(const config::InviteLink& link, const std::string& directory) {
  const config::ConsensusPart& c = link.profile.consensus;
  std::string text =
      fmt::format("Invitation to the network '{}'\n  id          {}\n  parameters  {}\n", c.name,
                  to_hex(config::network_id(c)), compute::model_parameter_count(config::model_shape(c)));
  text += fmt::format("  publisher   {}\n",
                      c.publisher_key == "none" ? "none: its addresses are not signed" : c.publisher_key);
  const auto row = [&text](const char* what, const std::string& place) {
    text += fmt::format("  {:<10}  {}\n", what, place);
  };
  if (link.trust.genesis) row("chain", "begins with block " + to_hex(*link.trust.genesis));
  if (link.voucher) row("vote", "your wallet may vote after its first counted work");
  if (const std::string round = round_traffic_text(c); !round.empty()) row("round", round);
  for (const config::InvitedPeer& peer : link.peers) row("bootstrap", config::to_text(peer));
  for (const std::string& place : link.profile.directory.trackers) row("tracker", place);
  for (const std::string& place : link.profile.directory.bootstrap) row("bootstrap", place);
  return text + fmt::format("  data in     {}\nJoin it? [y/N] ", directory);
}

}  // namespace

Expected<config::InviteLink> follow_invitation(const std::string& link, bool yes, CommandContext& context) {
  if (!context.profile.empty())
    return make_error(ErrorCode::InvalidArgument,
                      "an invitation contains its own profile: remove --profile or --join");
  NS_ASSIGN_OR_RETURN(config::InviteLink invited, config::parse_invite_link(link));
  if (!yes) {
    NS_ASSIGN_OR_RETURN(const std::string directory, data_directory_path(context));
    const auto answer = platform::prompt(question_of(invited, directory), /*hidden=*/false);
    if (!answer.ok() && answer.error().code == ErrorCode::Unavailable)
      return make_error(ErrorCode::InvalidArgument,
                        "joining requires your consent, but there is no terminal: inspect the link with "
                        "\"neuroshardd network show LINK\" and add --yes");
    if (!answer.ok()) return answer.error();
    if (*answer != "y" && *answer != "Y" && *answer != "yes")
      return make_error(ErrorCode::Cancelled, "the invitation was declined; nothing was changed");
  }
  if (yes)
    if (const std::string round = round_traffic_text(invited.profile.consensus); !round.empty())
      context.output.note("This network has " + round + ".");
  context.profile = link;
  return invited;
}

void add_invite_command(CLI::App& network, CommandContext& context) {
  auto flags = std::make_shared<InviteFlags>();
  CLI::App& command = add_command(network, "invite",
                                  "Print a link that invites to the network of a profile or data directory",
                                  {"neuroshardd network invite --qr",
                                   "neuroshardd network invite --profile village.json --peer "
                                   "host.example.org:29000 --svg village.svg"});
  command
      .add_option(
          "--peer", flags->peers,
          fmt::format(
              "bootstrap node or tracker, at most {} (default: three that answered this node recently)",
              config::max_invited_peers))
      ->type_name("[ID@]HOST:PORT");
  command.add_flag("--qr", flags->qr, "also print the link as a QR code");
  command.add_option("--svg", flags->svg, "write the QR code to this file")->type_name("FILE");
  command.add_flag("--without-vote", flags->without_vote,
                   "the invited wallet trains along, but the link gives it no vote");
  command
      .add_flag("--with-vote", flags->with_vote,
                "the first wallet that uses the link may vote; usual where voters is \"invited\"")
      ->excludes("--without-vote");
  command.add_flag("--force", flags->force, "replace an existing file");
  set_body(command, context, [flags, &context] { return invite(*flags, context); });
}

}  // namespace neuroshard::app
