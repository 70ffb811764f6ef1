#include "tests/support/message_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/chain/messages.h"
#include "core/rounds/pieces.h"
#include "core/rounds/round_posts.h"

namespace neuroshard::test {
namespace {

constexpr std::uint8_t most_chain_kind = 14;  // core/chain/messages.h

std::string_view name_of(net::Method method) {
  using net::Method;
  switch (method) {
    case Method::Ping: return "Ping";
    case Method::Peers: return "Peers";
    case Method::AddressEcho: return "AddressEcho";
    case Method::DialBack: return "DialBack";
    case Method::RelayReserve: return "RelayReserve";
    case Method::Punch: return "Punch";
    case Method::LetIn: return "LetIn";
    case Method::TrackerRegister: return "TrackerRegister";
    case Method::TrackerHeartbeat: return "TrackerHeartbeat";
    case Method::TrackerPeers: return "TrackerPeers";
    case Method::DhtPing: return "DhtPing";
    case Method::DhtFindNode: return "DhtFindNode";
    case Method::DhtFindValue: return "DhtFindValue";
    case Method::DhtStore: return "DhtStore";
    case Method::ChainPost: return "ChainPost";
    case Method::ChainStatus: return "ChainStatus";
    case Method::ChainBlocks: return "ChainBlocks";
    case Method::ChainRegistry: return "ChainRegistry";
    case Method::RoundPiece: return "RoundPiece";
    case Method::StatusPull: return "StatusPull";
    case Method::ContentNamed: return "ContentNamed";
    case Method::ContentPieces: return "ContentPieces";
    case Method::ContentPiece: return "ContentPiece";
    case Method::PipelineSession: return "PipelineSession";  // a stream: no call has it
  }
  return {};
}

}  // namespace

std::string to_string(const MessageKind& kind) {
  const std::string_view name = name_of(kind.method);
  const std::string method =
      name.empty() ? fmt::format("method {}", static_cast<unsigned>(kind.method)) : std::string(name);
  return kind.method == net::Method::ChainPost ? fmt::format("{} {}", method, kind.item) : method;
}

MessageKind kind_of(net::Method method, ByteSpan request) {
  if (method != net::Method::ChainPost || request.empty()) return {method, 0};
  const std::uint8_t item = request[0];
  const bool is_known =
      item <= most_chain_kind || item == rounds::contribution_kind || item == rounds::vector_kind;
  return {method, is_known ? item : MessageKind::other};
}

void MessagePool::learn(net::Method method, ByteSpan request) {
  learn_hashes(method, request);
  auto& known = messages_[kind_of(method, request)];
  Bytes bytes(request.begin(), request.end());
  const auto same = [&](const Message& one) { return one.request == bytes; };
  if (std::any_of(known.begin(), known.end(), same)) return;
  if (known.size() == kept) known.pop_front();
  known.push_back({method, std::move(bytes)});
}

void MessagePool::learn_hashes(net::Method method, ByteSpan request) {
  if (method == net::Method::ChainPost && !request.empty() && request[0] == rounds::contribution_kind) {
    const auto post = rounds::decode_contribution_post(request.subspan(1), chain::max_rows);
    if (!post) return;
    learn_hash(crypto::node_id(post->contribution.node));
    for (const chain::RowWork& row : post->contribution.rows) learn_hash(row.payload);
  }
  if (method == net::Method::RoundPiece)
    if (const auto piece = rounds::decode_piece_request(request); piece.ok()) learn_hash(piece->hash);
}

void MessagePool::learn_hash(const Hash256& hash) {
  if (std::find(hashes_.begin(), hashes_.end(), hash) != hashes_.end()) return;
  if (hashes_.size() == most_hashes) hashes_.pop_front();
  hashes_.push_back(hash);
}

void MessagePool::learn_block(const chain::CertifiedBlock& certified) {
  const chain::Block& block = *certified.block;
  const chain::Quorum& commits = certified.certificate->commits;
  learn_hash(block.hash);
  learn_hash(block.opening);
  learn_item(chain::encode_item(chain::CertifiedPost{block.header.height, block.hash, certified}));
  learn_item(chain::encode_item(chain::CertifiedPost{block.header.height, block.hash, std::nullopt}));
  if (block.header.height > 0) {
    learn_item(chain::encode_item(chain::Proposal{commits.view, certified.block, {}, {}}));
    for (const chain::VoterSignature& signature : commits.signatures)
      learn_item(chain::encode_item(chain::vote_of(commits, signature)));
    chain::Locked locked{commits, {}};
    locked.prepares.step = chain::VoteStep::Prepare;  // as a node would write it; its signatures are others
    learn_item(chain::encode_item(locked));
    learn_item(chain::encode_item(chain::NewView{block.header.height + 1, block.hash, 1, {}, {}, {}}));
  }
  for (const chain::Statement& statement : block.body.statements)
    learn_item(chain::encode_item(chain::StatementPost{statement}));
  for (const chain::Evidence& evidence : block.body.evidence)
    learn_item(chain::encode_item(chain::EvidencePost{evidence}));
  if (block.body.genesis) {
    for (const chain::Statement& founder : block.body.genesis->founders)
      learn_item(chain::encode_item(chain::GenesisHello{founder, block.body.genesis->tokenizer}));
    learn_item(chain::encode_item(chain::GenesisProposal{certified.block}));
    for (const Hash256& anchor : block.body.genesis->anchors) learn_hash(anchor);
  }
  if (block.body.close)
    for (const chain::Vector& vector : block.body.close->vectors)
      learn_item(chain::encode_item(chain::RoundsPost{rounds::vector_kind, chain::encode_vector(vector)}));
  if (block.body.result)
    for (const chain::RowResult& row : block.body.result->rows) learn_hash(row.anchor);
  if (!newest_ || newest_->block->header.height <= block.header.height) newest_ = certified;
}

const Message& MessagePool::any_of(const MessageKind& kind, Rng& rng) const {
  const auto& known = messages_.at(kind);
  const std::size_t a = rng.below(known.size()), b = rng.below(known.size());
  return known[std::max(a, b)];
}

const Message& MessagePool::any(Rng& rng) const {
  NS_CHECK(!messages_.empty());
  return any_of(std::next(messages_.begin(), static_cast<std::ptrdiff_t>(rng.below(messages_.size())))->first,
                rng);
}

Hash256 MessagePool::any_hash(Rng& rng) const {
  return hashes_.empty() ? Hash256{} : hashes_[rng.below(hashes_.size())];
}

}  // namespace neuroshard::test
