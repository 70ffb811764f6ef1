// Whether certificates and quorums hold: cheap checks of all that a quorum claims before any signature.
#include <algorithm>
#include <numeric>

#include "core/chain/ascending.h"
#include "core/chain/committee.h"
#include "core/chain/detail/errors.h"

namespace neuroshard::chain {
namespace {

bool is_for(const Quorum& quorum, VoteStep step, const Block& block) {
  return quorum.step == step && quorum.height == block.header.height &&
         quorum.previous == block.header.previous && quorum.block == block.hash;
}

Expected<void> check_signatures(const Quorum& quorum, const Committee& committee, const Hash256& network,
                                SignatureChecks& checks) {
  std::vector<crypto::PublicKey> keys;
  keys.reserve(quorum.signatures.size());
  for (const VoterSignature& signature : quorum.signatures)
    keys.push_back(committee.members()[*committee.position(signature.voter)].key);
  if (!checks.quorum(quorum, keys, network)) return denied("a signature of a quorum does not hold");
  return {};
}

// Signed by all that the block names, in one step without views.
Expected<void> check_named(const Certificate& certificate, const Block& block, VoteStep step,
                           const std::vector<std::uint32_t>& numbers,
                           const std::vector<crypto::PublicKey>& keys, const Hash256& network,
                           SignatureChecks& checks) {
  const Quorum& commits = certificate.commits;
  if (certificate.lock || !is_for(commits, step, block) || commits.view != 0)
    return denied("the certificate is for another block or step");
  const bool complete = std::equal(
      commits.signatures.begin(), commits.signatures.end(), numbers.begin(), numbers.end(),
      [](const VoterSignature& signature, std::uint32_t number) { return signature.voter == number; });
  if (!complete) return denied("the certificate is not signed by all nodes that the block names");
  if (!checks.quorum(commits, keys, network)) return denied("a signature of a certificate does not hold");
  return {};
}

Expected<void> check_genesis(const Certificate& certificate, const Block& block, const Hash256& network,
                             SignatureChecks& checks) {
  std::vector<crypto::PublicKey> keys;
  for (const Statement& founder : block.body.genesis->founders) keys.push_back(founder.node);
  std::vector<std::uint32_t> numbers(keys.size());
  std::iota(numbers.begin(), numbers.end(), 0u);
  return check_named(certificate, block, VoteStep::Genesis, numbers, keys, network, checks);
}

Expected<void> check_succession(const Certificate& certificate, const Block& block,
                                const Committee& committee, const Hash256& network, SignatureChecks& checks) {
  const std::vector<std::uint32_t>& continuing = block.body.succession->continuing;
  const bool same =
      std::equal(committee.members().begin(), committee.members().end(), continuing.begin(), continuing.end(),
                 [](const CommitteeMember& member, std::uint32_t number) { return member.number == number; });
  if (!same) return denied("the voters of a succession are not those that it names");
  std::vector<crypto::PublicKey> keys;
  for (const CommitteeMember& member : committee.members()) keys.push_back(member.key);
  return check_named(certificate, block, VoteStep::Succession, continuing, keys, network, checks);
}

}  // namespace

bool SignatureChecks::quorum(const Quorum& quorum, Span<const crypto::PublicKey> nodes,
                             const Hash256& network) {
  for (std::size_t i = 0; i < quorum.signatures.size(); ++i)
    if (!vote(vote_of(quorum, quorum.signatures[i]), nodes[i], network)) return false;
  return true;
}

Expected<std::uint64_t> quorum_units(const Quorum& quorum, const Committee& committee) {
  if (quorum.signatures.size() > committee.size()) return denied("a quorum has too many signatures");
  if (!is_ascending(quorum.signatures, &VoterSignature::voter))
    return denied("a quorum's signers are not ascending");
  std::uint64_t units = 0;
  for (const VoterSignature& signature : quorum.signatures) {
    const std::uint32_t own = committee.units_of(signature.voter);
    if (own == 0) return denied("a signer of a quorum is not in the committee");
    units += own;
  }
  return units;
}

Expected<std::uint64_t> check_quorum(const Quorum& quorum, const Committee& committee, const Hash256& network,
                                     SignatureChecks& checks) {
  NS_ASSIGN_OR_RETURN(const std::uint64_t units, quorum_units(quorum, committee));
  NS_RETURN_IF_ERROR(check_signatures(quorum, committee, network, checks));
  return units;
}

Expected<void> check_certificate(const Certificate& certificate, const Block& block,
                                 const Committee& committee, const Hash256& network,
                                 SignatureChecks& checks) {
  if (block.body.genesis) return check_genesis(certificate, block, network, checks);
  if (block.body.succession) return check_succession(certificate, block, committee, network, checks);

  const Quorum& commits = certificate.commits;
  if (!is_for(commits, VoteStep::Commit, block))
    return denied("the certificate is for another block or step");
  NS_ASSIGN_OR_RETURN(const std::uint64_t units, quorum_units(commits, committee));
  const bool full = committee.is_quorum(units);
  if (!full && !committee.is_stall_quorum(units)) return denied("the certificate has too few signers");
  if (full && certificate.lock) return denied("the certificate has a lock that it does not need");
  if (!full && !certificate.lock && !block.body.is_presence_only())
    return denied("a stall quorum certifies presence changes only, or what was locked before");
  if (certificate.lock) {
    const Quorum& lock = *certificate.lock;
    if (!is_for(lock, VoteStep::Prepare, block) || lock.view > commits.view)
      return denied("the certificate's lock is for another block or a later view");
    NS_ASSIGN_OR_RETURN(const std::uint64_t locked, quorum_units(lock, committee));
    if (!committee.is_quorum(locked)) return denied("the certificate's lock has too few signers");
    NS_RETURN_IF_ERROR(check_signatures(lock, committee, network, checks));
  }
  return check_signatures(commits, committee, network, checks);
}

}  // namespace neuroshard::chain
