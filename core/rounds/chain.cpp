#include "core/rounds/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/crypto/hash.h"

namespace neuroshard::rounds {
namespace {

constexpr std::string_view magic = "NSRK1";

bool same_keys(const std::vector<RoundMember>& a, const std::vector<RoundMember>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const RoundMember& x, const RoundMember& y) { return x.key == y.key; });
}

Error denied(const char* why) {
  return make_error(ErrorCode::Denied, fmt::format("the round's certificate {}", why));
}

}  // namespace

bool better_branch(const RoundStatus& a, const RoundStatus& b) {
  if ((a.round > 0) != (b.round > 0)) return a.round > 0;
  if ((a.shared_rounds > 0) != (b.shared_rounds > 0)) return a.shared_rounds > 0;
  if (a.tokens != b.tokens) return a.tokens > b.tokens;
  return a.genesis < b.genesis;
}

RoundChain::RoundChain(const Hash256& network, RoundBody genesis) : network_(network) {
  genesis_ = tip_hash_ = body_hash(genesis);
  members_ = next_members(genesis);
  others_ = members_.size() > 1;
  kept_.push_back({std::move(genesis), 0, {}});
}

bool RoundChain::alone(const net::NodeId& self) const {
  return !others_ && members_.front().id == self;
}

std::uint32_t RoundChain::shared_rounds() const {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  return others_ ? static_cast<std::uint32_t>(std::min(tip().round - shared_from_, most)) : 0;
}

Expected<void> RoundChain::add(const RoundCertificate& certificate) {
  const RoundBody& body = certificate.body;
  if (body.slot != slot()) return denied("is of another slot");
  if (body.round <= tip().round)
    return make_error(ErrorCode::AlreadyExists, "the round's certificate is not newer than the newest known");
  if (body.round == tip().round + 1) {
    if (body.previous != tip_hash_) return denied("does not follow the newest known");
    if (body.members != members_) return denied("names other members than the newest known");
  } else if (!same_keys(body.members, members_)) {
    return denied("is of later members; those between are needed first");
  }
  if (body.tokens < tip().tokens) return denied("counts fewer tokens than there were");
  NS_RETURN_IF_ERROR(check_quorum(certificate, VoteStep::Commit, network_));
  append(certificate);
  forget();
  return {};
}

void RoundChain::append(const RoundCertificate& certificate) {
  const RoundBody& body = certificate.body;
  tip_hash_ = body_hash(body);
  members_ = next_members(body);
  if (!others_ && members_.size() > 1) {
    others_ = true;
    shared_from_ = body.round;
  }
  kept_.push_back(certificate);
}

Bytes RoundChain::encode() const {
  Bytes bytes(magic.begin(), magic.end());
  append_le(bytes, static_cast<std::uint32_t>(kept_.size()));
  for (const RoundCertificate& certificate : kept_) {
    const Bytes encoded = encode_quorum(certificate);
    append_le(bytes, static_cast<std::uint32_t>(encoded.size()));
    bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  }
  const Hash256 check = crypto::sha256(bytes);
  bytes.insert(bytes.end(), check.begin(), check.end());
  return bytes;
}

Expected<RoundChain> RoundChain::decode(const Hash256& network, ByteSpan bytes) {
  const auto corrupt = [] {
    return make_error(ErrorCode::Corrupt, "this node's record of rounds can't be read");
  };
  Hash256 check;
  if (bytes.size() < magic.size() + 4 + check.size() || as_text(bytes.first(magic.size())) != magic)
    return corrupt();
  std::copy_n(bytes.end() - check.size(), check.size(), check.begin());
  bytes = bytes.first(bytes.size() - check.size());
  if (crypto::sha256(bytes) != check) return corrupt();
  std::size_t count = load_le<std::uint32_t>(bytes.data() + magic.size());
  bytes = bytes.subspan(magic.size() + 4);
  std::optional<RoundChain> chain;
  for (; count > 0; --count) {
    if (bytes.size() < 4 || load_le<std::uint32_t>(bytes.data()) > bytes.size() - 4) return corrupt();
    const std::size_t size = load_le<std::uint32_t>(bytes.data());
    NS_ASSIGN_OR_RETURN(RoundCertificate certificate, decode_quorum(bytes.subspan(4, size)));
    bytes = bytes.subspan(4 + size);
    if (!chain)
      chain.emplace(network, std::move(certificate.body));
    else
      chain->append(certificate);
  }
  if (!chain || !bytes.empty()) return corrupt();
  return std::move(*chain);
}

ChainAnswer RoundChain::answer(std::uint64_t from) const {
  ChainAnswer answer;
  for (const RoundCertificate& certificate : kept_) {
    if (certificate.body.round < from) continue;
    if (answer.certificates.size() == max_chain_certificates) {
      answer.more = true;
      break;
    }
    answer.certificates.push_back(certificate);
  }
  return answer;
}

// The genesis, changes of members and the newest stay.
void RoundChain::forget() {
  if (kept_.size() <= recent_certificates + 1) return;
  const auto at = kept_.end() - 1 - static_cast<std::ptrdiff_t>(recent_certificates);
  const bool change = !same_keys(at->body.members, next_members(at->body));
  if (!change && at != kept_.begin()) kept_.erase(at);
  if (kept_.size() > max_kept_certificates) kept_.erase(kept_.begin() + 1);
}

}  // namespace neuroshard::rounds
