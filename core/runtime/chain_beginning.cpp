#include "core/runtime/chain_beginning.h"

#include <fmt/format.h>

namespace neuroshard::runtime {
namespace {

// A network that begins anew starts with the weights of the rounds of the former format, where there are some.
void offer_former(const BeginningSources& from, std::uint32_t row, ChainBeginning* beginning) {
  const std::string former =
      from.directory + "/rounds" + (from.fragments.size() == 1 ? "" : fmt::format("/fragment-{}", row + 1));
  if (!from.disk.exists(former + "/state")) return;
  const auto old = engine::read_state_file(from.disk, former + "/state", from.fragments[row].count, 0);
  const bool offered = !from.has_blocks && old.ok();
  if (offered) beginning->first[row] = old->state;
  beginning->notes.push_back(
      fmt::format("{} has rounds of the former format, which are kept there{}", former,
                  offered ? "; a network that this node begins starts with their weights" : ""));
}

// With a history nobody asks for the first states of rows that other nodes hold.
Expected<Hash256> first_hash(const BeginningSources& from, const outer::AnchorIdentity& identity,
                             rounds::Anchor first, std::uint32_t row) {
  if (!first && from.other_row && !from.has_blocks) {
    NS_ASSIGN_OR_RETURN(first, from.other_row(row));
  }
  if (!first) return Hash256{};
  return rounds::hash_of(identity, *first);
}

std::vector<engine::StateFile> kept_states(const BeginningSources& from, std::uint32_t row,
                                           std::vector<std::string>* notes) {
  std::vector<engine::StateFile> states;
  for (std::size_t age = 0; age <= from.rows.earlier; ++age) {
    auto state = from.rows.load(row, age, from.fragments[row].count, 0);
    if (state.ok())
      states.push_back(std::move(*state));
    else if (state.error().code != ErrorCode::NotFound &&
             !(from.changes_size && state.error().code == ErrorCode::InvalidArgument))
      notes->push_back(state.error().describe());
  }
  return states;
}

}  // namespace

ChainBeginning read_beginning(const BeginningSources& from, std::vector<rounds::Anchor> first) {
  ChainBeginning beginning;
  beginning.first = std::move(first);
  beginning.first.resize(from.fragments.size());
  for (std::uint32_t row = 0; row < from.fragments.size(); ++row) {
    beginning.kept.push_back(kept_states(from, row, &beginning.notes));
    offer_former(from, row, &beginning);
    const auto identity = rounds::anchor_identity(from.network, from.rules, row, 0);
    beginning.hashes.emplace_back();
    if (const auto hash = first_hash(from, identity, beginning.first[row], row); hash.ok())
      beginning.hashes.back() = *hash;
    else
      beginning.notes.push_back(hash.error().describe());
  }
  return beginning;
}

}  // namespace neuroshard::runtime
