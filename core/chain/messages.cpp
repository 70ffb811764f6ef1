#include "core/chain/messages.h"

#include "core/base/check.h"
#include "core/chain/detail/formats.h"

namespace neuroshard::chain {
namespace {

// The numbers of the kinds are the alternatives' positions, from 1; a RoundsPost has its own.
enum Kind : std::uint8_t {
  kind_proposal = 1,
  kind_vote,
  kind_new_view,
  kind_locked,
  kind_certified,
  kind_statement,
  kind_evidence,
  kind_heartbeat,
  kind_hello,
  kind_genesis,
  kind_genesis_signature,
  kind_succession,
  kind_voucher_offer,
  kind_relayed
};

// All but the signature.
auto signed_fields(auto& heartbeat) {
  return std::tie(heartbeat.node, heartbeat.tip.height, heartbeat.tip.hash, heartbeat.time_ms, heartbeat.boot,
                  heartbeat.incarnation);
}

auto signature_fields(auto& genesis) {
  return std::tie(genesis.block, genesis.node, genesis.signature);
}

// The number of quorums, and these: a lock, and the lock of more than two thirds that it may need.
void append_lock(Bytes& bytes, const std::optional<Quorum>& lock, const std::optional<Quorum>& full) {
  NS_CHECK(lock || !full);
  bytes.push_back(static_cast<std::uint8_t>((lock ? 1 : 0) + (full ? 1 : 0)));
  if (lock) append_part(bytes, encode_quorum(*lock));
  if (full) append_part(bytes, encode_quorum(*full));
}
bool is_earlier_lock(const Quorum& full, const Quorum& lock) {
  return full.step == VoteStep::Prepare && full.height == lock.height && full.previous == lock.previous &&
         full.block == lock.block && full.view < lock.view;
}
Expected<void> read_lock(ByteReader& in, std::optional<Quorum>* lock, std::optional<Quorum>* full) {
  const auto count = in.number<std::uint8_t>();
  if (count > 2) in.fail();
  const ByteSpan first = count > 0 ? in.part() : ByteSpan();
  const ByteSpan second = count > 1 ? in.part() : ByteSpan();
  if (!in.good()) return corrupt("a lock can't be read");
  if (count > 0) {
    NS_ASSIGN_OR_RETURN(*lock, decode_quorum(first));
    if ((*lock)->step != VoteStep::Prepare) return corrupt("a lock has votes of another step");
  }
  if (count > 1) {
    NS_ASSIGN_OR_RETURN(*full, decode_quorum(second));
    if (!is_earlier_lock(**full, **lock)) return corrupt("a lock goes with one of another block");
  }
  return {};
}

// One writer and one reader per kind; the reader gets what follows the kind.
void write(Bytes& bytes, const Proposal& proposal) {
  append_le(bytes, proposal.view);
  append_lock(bytes, proposal.justification, proposal.full);
  append_flag(bytes, proposal.prepare.has_value());
  if (proposal.prepare) append_array(bytes, *proposal.prepare);
  append_array(bytes, encode_block(*proposal.block));
}
void write(Bytes& bytes, const SignedVote& vote) {
  append_array(bytes, encode_vote(vote));
}
void write(Bytes& bytes, const NewView& view) {
  NS_CHECK(view.lock.has_value() == (view.block != nullptr));
  append_record(bytes, std::tie(view.height, view.previous, view.view));
  append_lock(bytes, view.lock, view.full);
  if (view.lock) append_array(bytes, encode_block(*view.block));
}
void write(Bytes& bytes, const Locked& locked) {
  append_lock(bytes, locked.prepares, locked.full);
}
void write(Bytes& bytes, const CertifiedPost& post) {
  append_record(bytes, std::tie(post.height, post.hash));
  append_flag(bytes, post.block.has_value());
  if (post.block) append_array(bytes, *post.block->bytes);
}
void write(Bytes& bytes, const StatementPost& post) {
  append_array(bytes, encode_statement(post.statement));
}
void write(Bytes& bytes, const EvidencePost& post) {
  append_array(bytes, encode_evidence(post.evidence));
}
void write(Bytes& bytes, const Heartbeat& heartbeat) {
  append_array(bytes, encode_heartbeat(heartbeat));
}
void write(Bytes& bytes, const GenesisHello& hello) {
  append_array(bytes, hello.tokenizer);
  append_array(bytes, encode_statement(hello.founder));
}
void write(Bytes& bytes, const GenesisProposal& proposal) {
  append_array(bytes, encode_block(*proposal.block));
}
void write(Bytes& bytes, const GenesisSignature& signature) {
  append_record(bytes, signature_fields(signature));
}
void write(Bytes& bytes, const SuccessionProposal& proposal) {
  append_part(bytes, encode_quorum(proposal.signatures));
  append_array(bytes, encode_block(*proposal.block));
}
void write(Bytes& bytes, const VoucherOffer& offer) {
  append_array(bytes, encode_voucher(offer.held.voucher));
  append_array(bytes, offer.held.secret);
}
void write(Bytes& bytes, const RelayedPost& post) {
  NS_CHECK(!post.items.empty() && post.items.size() <= max_relayed_items);
  bytes.push_back(static_cast<std::uint8_t>(post.path));
  append_le(bytes, static_cast<std::uint16_t>(post.items.size()));
  for (const Bytes& item : post.items) append_part(bytes, item);
}
void write(Bytes& bytes, const RoundsPost& post) {
  append_array(bytes, post.bytes);
}

std::uint8_t kind_of(const ChainItem& item) {
  const auto* post = std::get_if<RoundsPost>(&item);
  if (post == nullptr) return static_cast<std::uint8_t>(item.index() + 1);
  NS_CHECK(post->kind >= first_rounds_kind);
  return post->kind;
}

// A block of the height that the quorum is for.
bool is_for(const Quorum& quorum, const Block& block) {
  return quorum.block == block.hash && quorum.height == block.header.height &&
         quorum.previous == block.header.previous;
}

// An item that consists of one thing with a reader of its own.
template <class Item, class Content>
Expected<ChainItem> item_of(Expected<Content> content) {
  if (!content.ok()) return content.error();
  return ChainItem(Item{*std::move(content)});
}

Expected<ChainItem> read_proposal(ByteSpan bytes, const Hash256& network, RegistryCache* cache) {
  ByteReader in(bytes);
  Proposal proposal;
  proposal.view = in.number<std::uint32_t>();
  NS_RETURN_IF_ERROR(read_lock(in, &proposal.justification, &proposal.full));
  if (in.flag()) proposal.prepare = in.array<crypto::Signature>();
  if (!in.good()) return corrupt("a proposal can't be read");
  NS_ASSIGN_OR_RETURN(proposal.block,
                      cache != nullptr ? cache->read(in.rest(), network) : decode_block(in.rest(), network));
  if (proposal.justification && !is_for(*proposal.justification, *proposal.block))
    return corrupt("a proposal is justified by votes for another block");
  return ChainItem(std::move(proposal));
}

Expected<ChainItem> read_new_view(ByteSpan bytes, const Hash256& network) {
  ByteReader in(bytes);
  NewView view;
  in.read(std::tie(view.height, view.previous, view.view));
  NS_RETURN_IF_ERROR(read_lock(in, &view.lock, &view.full));
  const ByteSpan block = in.rest();
  if (!view.lock && !block.empty()) return corrupt("a new view can't be read");
  if (!view.lock) return ChainItem(std::move(view));
  NS_ASSIGN_OR_RETURN(view.block, decode_block(block, network));
  if (view.lock->height != view.height || view.lock->previous != view.previous ||
      !is_for(*view.lock, *view.block))
    return corrupt("a new view has a lock on another block");
  return ChainItem(std::move(view));
}

Expected<ChainItem> read_locked(ByteSpan bytes) {
  ByteReader in(bytes);
  std::optional<Quorum> prepares, full;
  NS_RETURN_IF_ERROR(read_lock(in, &prepares, &full));
  if (!prepares || !in.at_end()) return corrupt("a lock can't be read");
  return ChainItem(Locked{std::move(*prepares), std::move(full)});
}

Expected<ChainItem> read_certified(ByteSpan bytes, const Hash256& network) {
  ByteReader in(bytes);
  CertifiedPost post;
  in.read(std::tie(post.height, post.hash));
  const bool has_block = in.flag();
  const ByteSpan block = in.rest();
  if (!in.good() || (!has_block && !block.empty())) return corrupt("a certified block can't be read");
  if (!has_block) return ChainItem(std::move(post));
  NS_ASSIGN_OR_RETURN(post.block, decode_certified(block, network));
  if (post.block->block->hash != post.hash || post.block->block->header.height != post.height)
    return corrupt("a certified block is not the one that is announced with it");
  return ChainItem(std::move(post));
}

Expected<ChainItem> read_hello(ByteSpan bytes) {
  ByteReader in(bytes);
  const auto tokenizer = in.array<Hash256>();
  NS_ASSIGN_OR_RETURN(Statement founder, decode_statement(in.rest()));
  if (!std::holds_alternative<Register>(founder.what) || founder.reference != BlockReference{})
    return corrupt("a founder's hello is no registration");
  return ChainItem(GenesisHello{std::move(founder), tokenizer});
}

Expected<ChainItem> read_genesis_signature(ByteSpan bytes) {
  ByteReader in(bytes);
  GenesisSignature signature;
  in.read(signature_fields(signature));
  if (!in.at_end()) return corrupt("a founder's signature can't be read");
  return ChainItem(signature);
}

Expected<ChainItem> read_voucher_offer(ByteSpan bytes) {
  ByteReader in(bytes);
  const ByteSpan voucher = in.bytes(voucher_bytes);
  VoucherOffer offer;
  offer.held.secret = in.array<Hash256>();
  if (!in.at_end()) return corrupt("a voucher can't be read");
  NS_ASSIGN_OR_RETURN(offer.held.voucher, decode_voucher(voucher));
  return ChainItem(std::move(offer));
}

Expected<ChainItem> read_relayed(ByteSpan bytes) {
  ByteReader in(bytes);
  const auto path = in.number<std::uint8_t>();
  const auto count = in.number<std::uint16_t>();
  if (!in.good() || path > static_cast<std::uint8_t>(RelayPath::Column) || count == 0 ||
      count > max_relayed_items)
    return corrupt("relayed items can't be read");
  RelayedPost post{static_cast<RelayPath>(path), {}};
  for (std::size_t i = 0; i < count && in.good(); ++i) {
    const ByteSpan item = in.part();
    if (!may_be_relayed(item)) return corrupt("an item of this kind is not relayed");
    post.items.emplace_back(item.begin(), item.end());
  }
  if (!in.at_end()) return corrupt("relayed items can't be read");
  return ChainItem(std::move(post));
}

Expected<ChainItem> read_succession(ByteSpan bytes, const Hash256& network) {
  ByteReader in(bytes);
  const ByteSpan signatures = in.part();
  const ByteSpan block = in.rest();
  if (!in.good()) return corrupt("a succession can't be read");
  SuccessionProposal proposal;
  NS_ASSIGN_OR_RETURN(proposal.signatures, decode_quorum(signatures));
  NS_ASSIGN_OR_RETURN(proposal.block, decode_block(block, network));
  if (proposal.signatures.step != VoteStep::Succession || !is_for(proposal.signatures, *proposal.block))
    return corrupt("a succession has signatures under another block");
  return ChainItem(std::move(proposal));
}

}  // namespace

void sign_heartbeat(Heartbeat& heartbeat, const crypto::KeyPair& node, const Hash256& network) {
  heartbeat.node = node.public_key();
  heartbeat.signature =
      node.sign(crypto::Purpose::ChainHeartbeat, network, bytes_of(signed_fields(heartbeat)));
}

bool heartbeat_holds(const Heartbeat& heartbeat, const Hash256& network) {
  return crypto::verify(heartbeat.node, crypto::Purpose::ChainHeartbeat, network,
                        bytes_of(signed_fields(heartbeat)), heartbeat.signature);
}

Bytes encode_heartbeat(const Heartbeat& heartbeat) {
  Bytes bytes = bytes_of(signed_fields(heartbeat));
  append_array(bytes, heartbeat.signature);
  return bytes;
}

Expected<Heartbeat> decode_heartbeat(ByteSpan bytes) {
  ByteReader in(bytes);
  Heartbeat heartbeat;
  in.read(signed_fields(heartbeat));
  heartbeat.signature = in.array<crypto::Signature>();
  if (!in.at_end()) return corrupt("a heartbeat can't be read");
  return heartbeat;
}

bool may_be_relayed(ByteSpan item) {
  if (item.empty()) return false;
  switch (item[0]) {
    case kind_proposal:
    case kind_locked:
    case kind_statement:
    case kind_evidence:
    case kind_heartbeat: return true;
    default: return item[0] >= first_rounds_kind;
  }
}

bool SignatureChecks::heartbeat(const Heartbeat& heartbeat, const Hash256& network) {
  return heartbeat_holds(heartbeat, network);
}

Bytes encode_item(const ChainItem& item) {
  Bytes bytes = {kind_of(item)};
  std::visit([&bytes](const auto& each) { write(bytes, each); }, item);
  return bytes;
}

StrangerItem item_of_stranger(ByteSpan item) {
  if (item.empty()) return StrangerItem::Read;  // malformed
  switch (item[0]) {
    case kind_proposal:
    case kind_vote:
    case kind_new_view:
    case kind_locked:
    case kind_voucher_offer: return StrangerItem::Later;
    case kind_evidence:
    case kind_succession: return StrangerItem::Refuse;
    default: return item[0] >= first_rounds_kind ? StrangerItem::Refuse : StrangerItem::Read;
  }
}

Expected<ChainItem> decode_item(ByteSpan bytes, const Hash256& network, RegistryCache* cache) {
  if (bytes.empty()) return corrupt("an empty post");
  const ByteSpan item = bytes.subspan(1);
  if (bytes[0] >= first_rounds_kind) return ChainItem(RoundsPost{bytes[0], Bytes(item.begin(), item.end())});
  switch (bytes[0]) {
    case kind_proposal: return read_proposal(item, network, cache);
    case kind_vote: return item_of<SignedVote>(decode_vote(item));
    case kind_new_view: return read_new_view(item, network);
    case kind_locked: return read_locked(item);
    case kind_certified: return read_certified(item, network);
    case kind_statement: return item_of<StatementPost>(decode_statement(item));
    case kind_evidence: return item_of<EvidencePost>(decode_evidence(item));
    case kind_heartbeat: return item_of<Heartbeat>(decode_heartbeat(item));
    case kind_hello: return read_hello(item);
    case kind_genesis: return item_of<GenesisProposal>(decode_block(item, network));
    case kind_genesis_signature: return read_genesis_signature(item);
    case kind_succession: return read_succession(item, network);
    case kind_voucher_offer: return read_voucher_offer(item);
    case kind_relayed: return read_relayed(item);
    default: return make_error(ErrorCode::Unsupported, "a post of a kind that this program does not know");
  }
}

Bytes encode_answer(const PostAnswer& answer) {
  Bytes bytes = {static_cast<std::uint8_t>(answer.verdict)};
  append_le(bytes, answer.height);
  return bytes;
}

Expected<PostAnswer> decode_answer(ByteSpan bytes) {
  ByteReader in(bytes);
  const auto verdict = in.number<std::uint8_t>();
  const auto height = in.number<std::uint64_t>();
  if (!in.at_end() || verdict >= static_cast<std::uint8_t>(Verdict::Count_))
    return corrupt("the answer to a post can't be read");
  return PostAnswer{static_cast<Verdict>(verdict), height};
}

Bytes encode_blocks_request(std::uint64_t from) {
  return bytes_of(std::tie(from));
}

Expected<std::uint64_t> decode_blocks_request(ByteSpan bytes) {
  ByteReader in(bytes);
  const auto from = in.number<std::uint64_t>();
  if (!in.at_end()) return corrupt("the request for blocks can't be read");
  return from;
}

Bytes encode_blocks_answer(const BlocksAnswer& answer) {
  NS_CHECK(answer.blocks.size() <= max_blocks_per_answer);
  Bytes bytes = {static_cast<std::uint8_t>(answer.more ? 1 : 0),
                 static_cast<std::uint8_t>(answer.blocks.size())};
  for (const ByteSpan block : answer.blocks) append_part(bytes, block);
  return bytes;
}

Expected<BlocksAnswer> decode_blocks_answer(ByteSpan bytes) {
  ByteReader in(bytes);
  BlocksAnswer answer;
  answer.more = in.flag();
  const auto count = in.number<std::uint8_t>();
  if (count > max_blocks_per_answer) in.fail();
  std::size_t whole = 0;
  for (std::size_t i = 0; in.good() && i < count; ++i) {
    const ByteSpan block = in.part();
    whole += block.size();
    if (block.empty() || (count > 1 && whole > most_answer_bytes)) in.fail();
    if (in.good()) answer.blocks.push_back(block);
  }
  if (!in.at_end()) return corrupt("the answer's blocks can't be read");
  return answer;
}

Bytes encode_registry_request(const RegistryRequest& request) {
  return bytes_of(std::tie(request.block, request.offset));
}

Expected<RegistryRequest> decode_registry_request(ByteSpan bytes) {
  ByteReader in(bytes);
  RegistryRequest request;
  in.read(std::tie(request.block, request.offset));
  if (!in.at_end()) return corrupt("the request for a registry can't be read");
  return request;
}

Bytes encode_registry_answer(const RegistryAnswer& answer) {
  NS_CHECK(answer.piece.size() <= max_registry_piece);
  Bytes bytes;
  append_le(bytes, answer.size);
  append_array(bytes, answer.piece);
  return bytes;
}

Expected<RegistryAnswer> decode_registry_answer(ByteSpan bytes) {
  ByteReader in(bytes);
  RegistryAnswer answer;
  answer.size = in.number<std::uint64_t>();
  const ByteSpan piece = in.rest();
  if (!in.good() || piece.size() > max_registry_piece || piece.size() > answer.size)
    return corrupt("a piece of a registry can't be read");
  answer.piece.assign(piece.begin(), piece.end());
  return answer;
}

}  // namespace neuroshard::chain
