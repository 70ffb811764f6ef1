#include "core/chain/remembered_checks.h"

#include <algorithm>
#include <utility>

#include "core/chain/detail/formats.h"
#include "core/crypto/hash.h"

namespace neuroshard::chain {
namespace {

enum Kind : std::uint8_t { kind_vote, kind_entry, kind_vector };

}  // namespace

template <class Check>
bool RememberedChecks::remember(std::uint8_t kind, const Bytes& what, const Hash256& network,
                                const Check& check) {
  Bytes bytes = {kind};
  append_array(bytes, network);
  append_array(bytes, what);
  const Hash256 hash = crypto::sha256(bytes);
  Key key;
  std::copy_n(hash.begin(), key.size(), key.begin());
  if (young_.count(key) != 0 || old_.count(key) != 0) return true;
  if (!check()) return false;
  if (young_.size() >= most_remembered) {
    old_ = std::move(young_);
    young_.clear();
  }
  young_.insert(key);
  return true;
}

bool RememberedChecks::vote(const SignedVote& vote, const crypto::PublicKey& node, const Hash256& network) {
  Bytes what(node.begin(), node.end());
  append_array(what, encode_vote(vote));
  return remember(kind_vote, what, network, [&] { return inner_.vote(vote, node, network); });
}

bool RememberedChecks::entry(const ContributionEntry& entry, const Hash256& opening, std::uint64_t round,
                             const crypto::PublicKey& node, const Hash256& network) {
  const Bytes what = bytes_of(std::tuple_cat(std::tie(node, opening, round), entry_fields(entry)));
  return remember(kind_entry, what, network,
                  [&] { return inner_.entry(entry, opening, round, node, network); });
}

bool RememberedChecks::vector(const VectorClaim& claim, const crypto::PublicKey& node,
                              const Hash256& network) {
  const Bytes what =
      bytes_of(std::tie(node, claim.opening, claim.round, claim.voter, claim.content, claim.signature));
  return remember(kind_vector, what, network, [&] { return inner_.vector(claim, node, network); });
}

// Seldom, or never the same twice.
bool RememberedChecks::statement(const Statement& statement, const Hash256& network) {
  return inner_.statement(statement, network);
}
bool RememberedChecks::evidence(const Evidence& evidence, const Hash256& network) {
  return inner_.evidence(evidence, network);
}
bool RememberedChecks::heartbeat(const Heartbeat& heartbeat, const Hash256& network) {
  return inner_.heartbeat(heartbeat, network);
}

}  // namespace neuroshard::chain
