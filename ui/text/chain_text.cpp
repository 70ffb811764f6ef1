#include "ui/text/chain_text.h"

#include <cmath>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

constexpr int id_characters = 12;

QString names_of(const node::ChainView& chain) {
  QStringList names;
  for (const std::string& id : chain.missing) names << QString::fromStdString(id).left(id_characters);
  QString text = names.join(QStringLiteral(", "));
  if (chain.missing_count > chain.missing.size())
    text = ChainWords::tr("%1 and %2 more")
               .arg(text, Format::integer(chain.missing_count - chain.missing.size()));
  return text;
}

// A voter that returns finds itself away, and the last one that voted may be gone.
bool waits_for_person(const node::ChainView& chain) {
  return chain.outlook == "needs_a_person" && (chain.standing == "voter" || chain.standing == "away");
}

}  // namespace

QString ChainWords::block(const node::ChainView& chain) {
  if (chain.genesis.empty()) return {};
  const auto age = std::chrono::seconds(static_cast<std::int64_t>(chain.block_age));
  const QString text =
      tr("Block %1 was certified %2 ago").arg(Format::integer(chain.height), Format::duration(age));
  return chain.stalled ? tr("%1. The next one waits for voters").arg(text) : text;
}

QString ChainWords::presence(const node::ChainView& chain) {
  if (chain.active_units == 0) return {};
  if (chain.missing_count == 0) return tr("All voters are reachable.");
  const double share =
      std::min(0.99, static_cast<double>(chain.heard_units) / static_cast<double>(chain.active_units));
  return tr("%1 of the votes are reachable. No message comes from %2.")
      .arg(Format::percent(share), names_of(chain));
}

QString ChainWords::standing(const node::ChainView& chain) {
  if (chain.standing == "voter") return tr("This node votes.");
  if (chain.standing == "away")
    return tr("The others count this node as away. Its vote returns once they hear it again.");
  if (chain.standing == "revoked") return tr("The wallet of this node has revoked it.");
  if (chain.standing != "candidate") return tr("This node is no member yet.");
  const QString progress =
      tr("This node is a candidate: %1 of %2 contributions for a vote.")
          .arg(Format::integer(chain.contributions), Format::integer(chain.contributions_needed));
  if (!chain.needs_voucher) return progress;
  return tr("%1 It also needs an invitation from a person whose node votes.").arg(progress);
}

QString ChainWords::others(const node::ChainView& chain) {
  if (chain.others.empty()) return {};
  std::uint64_t peers = 0;
  for (const node::OtherHistory& other : chain.others) peers += other.peers;
  return tr("Nodes with another history of this network: %1. Their rounds are not this node's.")
      .arg(Format::integer(peers));
}

QString ChainWords::recovery(const node::ChainView& chain) {
  if (!chain.asks_succession.empty())
    return tr(
        "Other members go on without some that do not answer, or did so while this node was away. This node "
        "goes on with them once you agree.");
  if (!waits_for_person(chain)) return {};
  const QString text =
      tr("Too few voters are left, so the network waits for %1. Start them again.").arg(names_of(chain));
  if (!offers_continuation(chain)) return text;
  return tr("%1 If they never return, go on without them.").arg(text);
}

bool ChainWords::offers_continuation(const node::ChainView& chain) {
  if (!chain.asks_succession.empty()) return true;
  // The names of all missing members have to be known.
  return waits_for_person(chain) && !chain.missing.empty() && chain.missing_count == chain.missing.size() &&
         chain.person_needed_seconds >= std::chrono::duration<double>(offer_after).count();
}

}  // namespace neuroshard::ui
