#include "core/sim/chain_shared.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/base/byte_reader.h"
#include "core/chain/messages.h"
#include "core/sim/sampled_key.h"

namespace neuroshard::sim {
namespace {

constexpr std::size_t tips_kept = 128, blocks_kept = 16;
constexpr std::size_t sweep_at = 1u << 16, checks_kept = 1u << 19;

bool same(ByteSpan a, const Bytes& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), b.size()) == 0;
}

template <class Held>
void sweep(Held& held) {
  if (held.size() % sweep_at == sweep_at - 1)
    std::erase_if(held, [](const auto& entry) { return entry.second.expired(); });
}

template <class Held, class T>
std::shared_ptr<const T> hold_once(Held& held, std::size_t key, T value) {
  const auto [from, to] = held.equal_range(key);
  for (auto at = from; at != to; ++at)
    if (auto known = at->second.lock(); known && *known == value) return known;
  sweep(held);
  auto kept = std::make_shared<const T>(std::move(value));
  held.emplace(key, kept);
  return kept;
}

}  // namespace

std::shared_ptr<const Bytes> BytesPool::hold(Bytes bytes) {
  const std::size_t key = sampled_key(bytes);
  return hold_once(held_, key, std::move(bytes));
}

rounds::Payload SharedRounds::hold(rounds::Payload payload) {
  const Bytes bytes = read_all(*payload).value();
  const std::size_t key = sampled_key(bytes);
  const auto [from, to] = payloads_.equal_range(key);
  for (auto at = from; at != to; ++at)
    if (auto known = at->second.lock(); known && read_all(*known).value() == bytes) return known;
  sweep(payloads_);
  payloads_.emplace(key, payload);
  return payload;
}

std::optional<chain::ChainTip> SharedChain::find(const Hash256& block) {
  const auto at = tips_.find(block);
  return at == tips_.end() ? std::nullopt : std::optional(at->second);
}

void SharedChain::put(const chain::ChainTip& tip) {
  if (!tips_.emplace(tip.block->hash, tip).second) return;
  order_.push_back(tip.block->hash);
  if (order_.size() <= tips_kept) return;
  tips_.erase(order_.front());
  order_.pop_front();
}

void SharedChain::know(Known known) {
  blocks_.push_back(std::move(known));
  if (blocks_.size() > blocks_kept) blocks_.pop_front();
}

Expected<chain::BlockPtr> SharedChain::read(ByteSpan bytes, const Hash256& network) {
  for (const Known& known : blocks_)
    if (same(bytes, *known.bytes)) return known.block;
  auto block = chain::decode_block(bytes, network);
  if (block.ok()) know({std::make_shared<const Bytes>(bytes.begin(), bytes.end()), *block});
  return block;
}

Expected<chain::CertifiedBlock> SharedChain::read_certified(ByteSpan bytes, const Hash256& network) {
  for (const chain::CertifiedBlock& known : certified_)
    if (same(bytes, *known.bytes)) return known;
  NS_ASSIGN_OR_RETURN(const chain::CertifiedBlock read, chain::decode_certified(bytes, network));
  certified_.push_back(read);
  if (certified_.size() > blocks_kept) certified_.pop_front();
  return read;
}

Bytes SharedChain::write(const chain::Block& block) {
  for (const Known& known : blocks_)
    if (known.block->hash == block.hash) return *known.bytes;
  return chain::encode_block(block);
}

Expected<rounds::StepPtr> SharedSteps::make(const Hash256& key,
                                            const std::function<Expected<rounds::StepPtr>()>& step) {
  if (const auto known = made_.find(key); known != made_.end()) return known->second;
  const auto made = made_.emplace(key, step()).first;
  order_.push_back(key);
  constexpr std::size_t kept = 64;
  if (order_.size() > kept) {
    made_.erase(order_.front());
    order_.pop_front();
  }
  return made->second;
}

template <class T, class Decode>
std::shared_ptr<const T> SharedRounds::read_once(Held<T>& held, ByteSpan bytes, std::size_t most,
                                                 std::size_t rows, const Decode& decode) {
  const std::size_t key = sampled_key(bytes);
  const auto [from, to] = held.equal_range(key);
  for (auto at = from; at != to; ++at) {
    const Key& one = at->second.key;
    if (one.most != most || one.rows != rows || !same(bytes, *one.bytes)) continue;
    if (auto known = at->second.item.lock()) return known;
  }
  std::shared_ptr<const T> item = decode();
  if (!item) return nullptr;
  sweep(held);
  held.emplace(key, Read<T>{{std::make_shared<const Bytes>(bytes.begin(), bytes.end()), most, rows}, item});
  return item;
}

rounds::HeldContributionPtr SharedRounds::read_contribution(ByteSpan post, std::size_t most_rows) {
  return read_once(contributions_, post, most_rows, 0,
                   [&] { return RoundPool::read_contribution(post, most_rows); });
}

rounds::HeldVectorPtr SharedRounds::read_vector(ByteSpan bytes, std::size_t most_members, std::size_t rows) {
  return read_once(vectors_, bytes, most_members, rows,
                   [&] { return RoundPool::read_vector(bytes, most_members, rows); });
}

bool SharedChecks::holds(ByteSpan what, const std::function<bool()>& check) {
  const std::size_t key = std::hash<std::string_view>()(as_text(what));
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  if (known_.size() >= checks_kept) known_.clear();
  return known_.emplace(key, check()).first->second;
}

template <class... Arrays>
Bytes& CountedChecks::joined(char kind, const Arrays&... arrays) {
  what_.assign(1, static_cast<std::uint8_t>(kind));
  (append_array(what_, arrays), ...);
  return what_;
}

bool CountedChecks::vote(const chain::SignedVote& vote, const crypto::PublicKey& node,
                         const Hash256& network) {
  ++count_;
  Bytes& what = joined('v', node, network, vote.vote.previous, vote.vote.block, vote.signature);
  what.push_back(static_cast<std::uint8_t>(vote.vote.step));
  append_le(what, vote.vote.height);
  append_le(what, vote.vote.view);
  return shared_.holds(what, [&] { return chain::vote_holds(vote, node, network); });
}

bool CountedChecks::quorum(const chain::Quorum& quorum, Span<const crypto::PublicKey> nodes,
                           const Hash256& network) {
  count_ += quorum.signatures.size();
  Bytes& what = joined('q', network, chain::encode_quorum(quorum));
  for (const crypto::PublicKey& node : nodes) append_array(what, node);
  return shared_.holds(what, [&] { return chain::SignatureChecks().quorum(quorum, nodes, network); });
}

bool CountedChecks::statement(const chain::Statement& statement, const Hash256& network) {
  ++count_;
  return shared_.holds(joined('s', network, chain::encode_statement(statement)),
                       [&] { return chain::statement_holds(statement, network); });
}

bool CountedChecks::entry(const chain::ContributionEntry& entry, const Hash256& opening, std::uint64_t round,
                          const crypto::PublicKey& node, const Hash256& network) {
  ++count_;
  Bytes& what = joined('c', node, network, opening, entry.work, entry.batches, entry.reveal, entry.signature);
  append_le(what, round);
  append_le(what, entry.tokens);
  return shared_.holds(what, [&] { return chain::entry_holds(entry, opening, round, node, network); });
}

bool CountedChecks::vector(const chain::VectorClaim& claim, const crypto::PublicKey& node,
                           const Hash256& network) {
  ++count_;
  Bytes& what = joined('l', node, network, claim.opening, claim.content, claim.signature);
  append_le(what, claim.round);
  append_le(what, claim.voter);
  return shared_.holds(what, [&] { return chain::claim_holds(claim, node, network); });
}

bool CountedChecks::evidence(const chain::Evidence& evidence, const Hash256& network) {
  ++count_;
  return chain::evidence_holds(evidence, network);
}

bool CountedChecks::heartbeat(const chain::Heartbeat& heartbeat, const Hash256& network) {
  ++count_;
  Bytes& what = joined('h', network, heartbeat.node, heartbeat.tip.hash, heartbeat.signature);
  append_le(what, heartbeat.tip.height);
  for (const std::uint64_t number : {heartbeat.time_ms, heartbeat.boot, heartbeat.incarnation})
    append_le(what, number);
  return shared_.holds(what, [&] { return chain::heartbeat_holds(heartbeat, network); });
}

}  // namespace neuroshard::sim
