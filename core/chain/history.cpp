#include "core/chain/history.h"

#include <algorithm>

#include "core/chain/detail/formats.h"
#include "core/chain/messages.h"
#include "core/chain/recovery.h"

namespace neuroshard::chain {
namespace {

constexpr std::array<std::uint8_t, 4> certified_magic{'N', 'S', 'C', 'B'};
constexpr std::uint16_t certified_version = 1;

// For blocks that this node checked before it kept them.
class CheckedBefore final : public SignatureChecks {
 public:
  bool vote(const SignedVote&, const crypto::PublicKey&, const Hash256&) override { return true; }
  bool statement(const Statement&, const Hash256&) override { return true; }
  bool entry(const ContributionEntry&, const Hash256&, std::uint64_t, const crypto::PublicKey&,
             const Hash256&) override {
    return true;
  }
  bool vector(const VectorClaim&, const crypto::PublicKey&, const Hash256&) override { return true; }
  bool evidence(const Evidence&, const Hash256&) override { return true; }
};

constexpr std::uint64_t longest_round_ms = 24ull * 3600 * 1000;  // a longer one counts as this

Expected<void> read_certified_head(ByteReader& in) {
  const auto magic = in.array<std::array<std::uint8_t, 4>>();
  const auto version = in.number<std::uint16_t>();
  if (!in.good() || magic != certified_magic) return corrupt("a certified block can't be read");
  if (version != certified_version)
    return make_error(ErrorCode::Unsupported, "a certified block has a version that this build can't read");
  return {};
}

RoundTimes times_after(const ChainTip* before, const Block& block) {
  RoundTimes times = before != nullptr ? before->times : RoundTimes();
  const std::uint64_t now = block.header.time_ms;
  if (block.body.genesis || block.body.result) times.opened_ms = now;
  if (!block.body.close || !times.opened_ms) return times;
  // The chain is ahead of the clocks, so its times measure nothing.
  if (now == before->block->header.time_ms + 1) return times;
  const Committee& committee = *before->committee;
  if (!committee.is_quorum(contributed_units(*block.body.close, committee))) return times;
  times.durations.push_back(std::chrono::milliseconds(std::min(now - *times.opened_ms, longest_round_ms)));
  if (times.durations.size() > durations_kept) times.durations.pop_front();
  return times;
}

}  // namespace

CertifiedBlock make_certified(BlockPtr block, Certificate certificate) {
  Bytes bytes;
  append_array(bytes, certified_magic);
  append_le(bytes, certified_version);
  append_part(bytes, encode_block(*block));
  append_array(bytes, encode_certificate(certificate));
  return {std::move(block), std::make_shared<const Certificate>(std::move(certificate)),
          std::make_shared<const Bytes>(std::move(bytes))};
}

Expected<BlockHeader> decode_certified_header(ByteSpan beginning) {
  ByteReader in(beginning);
  NS_RETURN_IF_ERROR(read_certified_head(in));
  in.bytes(sizeof(std::uint32_t));  // the length of the block
  const ByteSpan header = in.bytes(header_bytes);
  if (!in.good()) return corrupt("a certified block can't be read");
  return decode_header(header);
}

Expected<CertifiedBlock> decode_certified(ByteSpan bytes, const Hash256& network, RegistryCache* cache) {
  if (cache != nullptr) return cache->read_certified(bytes, network);
  ByteReader in(bytes);
  NS_RETURN_IF_ERROR(read_certified_head(in));
  const ByteSpan block_bytes = in.part();
  const ByteSpan certificate_bytes = in.rest();
  if (!in.good()) return corrupt("a certified block can't be read");
  NS_ASSIGN_OR_RETURN(Certificate certificate, decode_certificate(certificate_bytes));
  NS_ASSIGN_OR_RETURN(BlockPtr block, decode_block(block_bytes, network));
  return CertifiedBlock{std::move(block), std::make_shared<const Certificate>(std::move(certificate)),
                        std::make_shared<const Bytes>(bytes.begin(), bytes.end())};
}

ChainTip History::tip_of(const ChainRules& rules, const ChainTip* before, BlockPtr block,
                         RegistryPtr registry) {
  ChainTip tip;
  tip.times = times_after(before, *block);
  tip.committee = make_committee(rules, *registry);
  tip.opening = registry->opening(block->hash);
  tip.block = std::move(block);
  tip.registry = std::move(registry);
  return tip;
}

Expected<History> History::begin(Services services, const CertifiedBlock& genesis) {
  const Block& block = *genesis.block;
  if (!block.body.genesis || block.header.height != 0 || block.header.previous != Hash256{})
    return denied("the first block is not a genesis");
  std::optional<ChainTip> tip;
  if (services.cache) tip = services.cache->find(block.hash);
  if (!tip) {
    NS_ASSIGN_OR_RETURN(RegistryPtr registry, genesis_registry(services.rules, block, services.checks));
    tip = tip_of(services.rules, nullptr, genesis.block, std::move(registry));
  }
  NS_RETURN_IF_ERROR(check_certificate(*genesis.certificate, block, *tip->committee, services.rules.network,
                                       services.checks));
  if (services.cache) services.cache->put(*tip);
  History history(services);
  history.genesis_ = block.hash;
  history.adopt(std::move(*tip), genesis);
  return history;
}

Expected<History> History::begin_at(Services services, const Hash256& genesis, const CertifiedBlock& block,
                                    ByteSpan registry) {
  const BlockHeader& header = block.block->header;
  History history(services);
  history.genesis_ = genesis;
  history.first_height_ = header.height;
  std::optional<ChainTip> tip;
  if (services.cache) tip = services.cache->find(block.block->hash);
  if (!tip) {
    NS_ASSIGN_OR_RETURN(RegistryPtr records, Registry::decode(registry));
    if (records->root() != header.registry || records->height() != header.height)
      return denied("the snapshot is not the registry after this block");
    if (records->rows().size() != services.rules.rows) return denied("the snapshot is of another model");
    tip = tip_of(services.rules, nullptr, block.block, std::move(records));
  }
  history.adopt(std::move(*tip), block);
  return history;
}

Expected<History> History::resume(Services services, Verified before, ByteSpan registry) {
  const CertifiedBlock& newest = before.blocks.back();
  if (newest.block->body.succession) return denied("the newest block may still be replaced");
  NS_ASSIGN_OR_RETURN(History history, begin_at(services, before.genesis, newest, registry));
  history.tip_.times = std::move(before.times);
  history.first_height_ = history.tip_.height() + 1 - before.hashes.size();
  history.hashes_ = std::move(before.hashes);
  history.kept_.clear();
  history.opening_heights_.clear();
  for (const CertifiedBlock& block : before.blocks) history.keep(block);
  return history;
}

Expected<History> History::from_the_beginning(const CertifiedBlock& genesis) const {
  NS_ASSIGN_OR_RETURN(History again, begin(services_, genesis));
  if (first_height_ != 0 || again.genesis() != genesis_) return denied("the chain has another genesis");
  again.known_.assign(hashes_.begin(), hashes_.end() - 1);
  return again;
}

const CertifiedBlock* History::find(std::uint64_t height) const {
  const std::uint64_t first = tip_.height() + 1 - kept_.size();
  if (height < first || height > tip_.height()) return nullptr;
  return &kept_[height - first];
}

std::optional<Hash256> History::hash_at(std::uint64_t height) const {
  if (height < first_height_ || height > tip_.height()) return std::nullopt;
  return hashes_[height - first_height_];
}

bool History::contains(const BlockReference& reference) const {
  return hash_at(reference.height) == reference.hash;
}

Expected<ChainTip> History::apply(const ChainTip& before, const CertifiedBlock& block, Origin origin) const {
  if (services_.cache)
    if (auto known = services_.cache->find(block.block->hash)) return *std::move(known);
  CheckedBefore checked_before;
  SignatureChecks& checks = origin == Origin::Peer ? services_.checks : checked_before;
  NS_ASSIGN_OR_RETURN(RegistryPtr registry, apply_block(services_.rules, *before.registry, before.block->hash,
                                                        *block.block, checks));
  return tip_of(services_.rules, &before, block.block, std::move(registry));
}

Expected<ChainTip> History::next(const ChainTip& before, const CertifiedBlock& block, Origin origin) const {
  const BlockHeader& header = block.block->header;
  const bool is_succession = block.block->body.succession.has_value();
  const bool from_peer = origin == Origin::Peer;
  if (header.height != before.height() + 1 || header.previous != before.block->hash)
    return denied("the block does not follow the newest one");
  if (block.block->opening != before.opening) return denied("the block names another opening block");
  if (header.height < known_.size() && block.block->hash != known_[header.height])
    return denied("the block is not the one that was verified before");
  // Before the body's many signatures. A succession is certified by the committee that it makes.
  const auto check = [&](const Committee& committee) {
    return check_certificate(*block.certificate, *block.block, committee, services_.rules.network,
                             services_.checks);
  };
  if (from_peer && !is_succession) NS_RETURN_IF_ERROR(check(*before.committee));
  NS_ASSIGN_OR_RETURN(ChainTip tip, apply(before, block, origin));
  if (from_peer && is_succession) NS_RETURN_IF_ERROR(check(*tip.committee));
  if (services_.cache && from_peer) services_.cache->put(tip);
  return tip;
}

void History::adopt(ChainTip tip, const CertifiedBlock& block) {
  before_ = std::move(tip_);
  tip_ = std::move(tip);
  hashes_.push_back(block.block->hash);
  keep(block);
}

void History::keep(const CertifiedBlock& block) {
  kept_.push_back(block);
  if (block.block->body.result) opening_heights_.push_back(block.block->header.height);
  if (opening_heights_.size() > rounds_kept) opening_heights_.pop_front();
  forget_old_blocks();
}

void History::forget_old_blocks() {
  while (kept_.size() > blocks_kept) {
    const std::uint64_t oldest = kept_.front().block->header.height;
    const bool in_kept_round = opening_heights_.size() < rounds_kept || oldest >= opening_heights_.front();
    if (in_kept_round && kept_.size() <= most_blocks_kept) return;
    kept_.pop_front();
  }
}

Expected<void> History::append(const CertifiedBlock& block, Origin origin) {
  if (block.block->header.height <= tip_.height())
    return make_error(ErrorCode::AlreadyExists, "the chain has a block of this height");
  NS_ASSIGN_OR_RETURN(ChainTip tip, next(tip_, block, origin));
  adopt(std::move(tip), block);
  return {};
}

Expected<void> History::check_next(const CertifiedBlock& block) const {
  const auto tip = next(tip_, block, Origin::Peer);
  if (!tip.ok()) return tip.error();
  return {};
}

Expected<void> History::replace_succession(const CertifiedBlock& other) {
  if (!before_.block || !tip_.block->body.succession) return denied("the newest block is not a succession");
  if (other.block->hash == tip_.block->hash)
    return make_error(ErrorCode::AlreadyExists, "the chain has this block");
  if (!beats_succession(*other.block, *tip_.block, *before_.registry))
    return denied("the block does not beat the newest one");
  NS_ASSIGN_OR_RETURN(ChainTip tip, next(before_, other, Origin::Peer));
  kept_.pop_back();
  hashes_.pop_back();
  tip_ = std::move(before_);
  adopt(std::move(tip), other);
  return {};
}

std::vector<BlockBytes> History::blocks_from(std::uint64_t height, std::size_t most_bytes,
                                             const LoadBlock& load) const {
  std::vector<BlockBytes> blocks;
  std::size_t sum = 0;
  for (; height <= tip_.height() && blocks.size() < max_blocks_per_answer; ++height) {
    BlockBytes bytes;
    if (const CertifiedBlock* kept = find(height)) {
      bytes = kept->bytes;
    } else {
      if (!load) break;
      auto loaded = load(height);
      if (!loaded.ok()) break;
      bytes = std::make_shared<const Bytes>(*std::move(loaded));
    }
    if (!blocks.empty() && sum + bytes->size() > most_bytes) break;
    sum += bytes->size();
    blocks.push_back(std::move(bytes));
  }
  return blocks;
}

}  // namespace neuroshard::chain
