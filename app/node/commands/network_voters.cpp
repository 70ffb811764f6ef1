#include "app/node/commands/network_voters.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/node/commands/open_directory.h"
#include "core/chain/takeover.h"
#include "core/crypto/keystore.h"

namespace neuroshard::app {
namespace {

constexpr std::size_t shown_honest[] = {4, 16, 64};

Expected<std::string> own_wallet(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string directory, data_directory_path(context));
  const std::string path = directory + "/wallet.keystore";
  if (!context.files.exists(path))
    return make_error(ErrorCode::NotFound,
                      fmt::format("{} has no wallet for --founder mine: create one with \"neuroshardd wallet "
                                  "create --data-dir {}\"",
                                  directory, directory));
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(context.files, path, crypto::max_keystore_bytes));
  NS_ASSIGN_OR_RETURN(const crypto::Keystore keystore, crypto::Keystore::decode(bytes));
  return to_hex(keystore.public_key());
}

std::string takeover_text(const chain::ChainRules& rules, std::size_t honest, std::size_t wallets) {
  return fmt::format("{} wallets, {} rounds", wallets, chain::least_rounds_to_vote(rules, honest, wallets));
}

void explain_open(const config::ConsensusPart& consensus, CommandContext& context) {
  chain::ChainRules rules;
  rules.admission_contributions = static_cast<std::uint32_t>(consensus.admission_contributions);
  std::string text = fmt::format(
      "Every wallet can become a voter after {} contributions that count: one wallet a round, or a sixteenth "
      "of "
      "the voters. Wallets that nobody vouched for have less than a quarter of the votes together. They "
      "can't "
      "stop or own the network, however many they are. Wallets with a voucher count fully. If one voter "
      "vouches "
      "for a false wallet, that one can vouch for the next. Then false wallets need at least:\n"
      "  honest voters  to stop the rounds      to own the network\n",
      consensus.admission_contributions);
  for (const std::size_t honest : shown_honest)
    text += fmt::format("  {:>13}  {:<22}  {}\n", honest,
                        takeover_text(rules, honest, chain::wallets_to_freeze(honest)),
                        takeover_text(rules, honest, chain::wallets_to_own(honest)));
  context.output.note(text + "Each false wallet has to train at least half as much as the median voter.");
}

}  // namespace

Expected<std::vector<std::string>> parse_founders(const std::vector<std::string>& names,
                                                  CommandContext& context) {
  std::vector<std::string> founders;
  for (const std::string& name : names) {
    if (name == "mine") {
      NS_ASSIGN_OR_RETURN(std::string own, own_wallet(context));
      founders.push_back(std::move(own));
      continue;
    }
    const auto key = hash_from_hex(name);
    if (!key.ok())
      return make_error(
          ErrorCode::InvalidArgument,
          fmt::format("--founder can't be '{}'; it must be \"mine\", or the public key of a wallet: "
                      "see \"neuroshardd wallet show\"",
                      name));
    founders.push_back(to_hex(*key));
  }
  std::sort(founders.begin(), founders.end());
  return founders;
}

void explain_voters(const config::ConsensusPart& consensus, CommandContext& context) {
  if (consensus.inner_steps == 0) return;
  const auto mode = static_cast<chain::VotersMode>(consensus.voters);
  if (mode == chain::VotersMode::Open) {
    explain_open(consensus, context);
  } else if (mode == chain::VotersMode::Invited) {
    context.output.note(
        "A wallet becomes a voter by an invitation from a voter. If others stop answering, more than half of "
        "the "
        "voters can go on without them. Meanwhile one voter that cheats can split the network, so invite "
        "people "
        "whom you trust.");
  } else {
    context.output.note(fmt::format("Only the founders vote: {} wallets, which the profile names.",
                                    consensus.founders.size()));
  }
  if (consensus.founders.empty())
    context.output.note(
        "The profile names no founder, so the nodes that are there first begin the chain and vote. --founder "
        "mine "
        "names your wallet.");
}

}  // namespace neuroshard::app
