#include "core/chain/membership.h"

#include <algorithm>

#include "core/base/byte_reader.h"
#include "core/crypto/hash.h"

namespace neuroshard::chain {
namespace {

constexpr std::uint16_t local_version = 1;
constexpr std::size_t local_bytes = 4 + 2 + 32 + 8 + 4;
// A new beacon chain is committed to when the old one has so many rounds left, or a quarter of its length.
constexpr std::uint64_t rounds_left_to_renew = 256;
constexpr std::uint64_t rounds_until_commitment_holds = 2;

BlockReference reference_to(const ChainTip& tip) {
  return {tip.height(), tip.block->hash};
}

auto local_fields(auto& memory) {
  return std::tie(memory.beacon_seed, memory.boots, memory.vouchers);
}

// Without a limit a node offers what its machine has free, which is a little different at each start.
// By more than before / parts.
bool differs(std::uint32_t value, std::uint32_t before, std::uint64_t parts) {
  return parts * (std::max(value, before) - std::min(value, before)) > before;
}

// A tenth of the memory, or a quarter of the speed, which other programs on the computer change. A difference that decides whether
// the member has room for one of the sizes is never too small.
bool is_other_offer(const Offer& offer, const MemberRecord& member, const std::vector<SizeNeeds>& sizes) {
  const auto decides = [&](const SizeNeeds& size) {
    return (offer.memory_tiers >= size.member_tiers) != (member.memory_tiers >= size.member_tiers);
  };
  return differs(offer.memory_tiers, member.memory_tiers, 10) || differs(offer.speed, member.speed, 4) ||
         std::any_of(sizes.begin(), sizes.end(), decides);
}

}  // namespace

Bytes encode_local(const LocalMemory& memory) {
  Bytes bytes{'N', 'S', 'L', 'M'};
  append_le(bytes, local_version);
  append_record(bytes, local_fields(memory));
  return bytes;
}

Expected<LocalMemory> decode_local(ByteSpan bytes) {
  if (bytes.size() != local_bytes || !std::equal(bytes.begin(), bytes.begin() + 4, "NSLM"))
    return make_error(ErrorCode::Corrupt, "what this node keeps about its membership can't be read");
  ByteReader reader(bytes.subspan(4));
  if (reader.number<std::uint16_t>() != local_version)
    return make_error(ErrorCode::Unsupported, "a later version of NeuroShard wrote this node's membership");
  LocalMemory memory;
  reader.read(local_fields(memory));
  return memory;
}

OwnMembership::OwnMembership(const ChainRules& rules, const crypto::KeyPair& key,
                             crypto::Delegation delegation, const Hash256& beacon_seed,
                             std::optional<HeldVoucher> voucher, std::uint32_t beacon_length, RowSet rows,
                             bool follows_plan)
    : rules_(rules),
      key_(key),
      id_(crypto::node_id(key.public_key())),
      delegation_(std::move(delegation)),
      seed_(beacon_seed),
      voucher_(std::move(voucher)),
      beacon_length_(beacon_length),
      rows_(std::move(rows)),
      follows_plan_(follows_plan) {}

BeaconChain OwnMembership::chain_from(std::uint64_t round) const {
  Bytes bytes;
  append_le(bytes, round);
  crypto::Sha256 hash;
  hash.update("neuroshard.beacon-chain.v1").update(seed_).update(bytes);
  return BeaconChain(hash.finish(), round, beacon_length_);
}

const BeaconChain* OwnMembership::chain_of(const BeaconCommitment& commitment) {
  const auto holds = [&](const BeaconChain& chain) { return chain.commitment() == commitment; };
  auto found = std::find_if(chains_.begin(), chains_.end(), holds);
  if (found == chains_.end()) {
    BeaconChain chain = chain_from(commitment.first_round);
    if (!holds(chain)) return nullptr;
    if (chains_.size() == 2) chains_.erase(chains_.begin());
    chains_.push_back(std::move(chain));
    found = chains_.end() - 1;
  }
  return &*found;
}

Expected<Hash256> OwnMembership::reveal(const ChainTip& tip, std::uint64_t round) {
  const MemberRecord* member = tip.registry->find(id_);
  if (member == nullptr) return make_error(ErrorCode::NotFound, "this node is not a member of the chain yet");
  const bool next = member->next_beacon && round >= member->next_beacon->first_round;
  const BeaconChain* chain = chain_of(next ? *member->next_beacon : member->beacon);
  if (chain == nullptr)
    return make_error(ErrorCode::NotFound,
                      "the beacon commitment of this node was made with another data directory");
  return chain->reveal(round);
}

bool OwnMembership::needs_commitment(const MemberRecord& member, std::uint64_t round) {
  const BeaconCommitment& newest = member.next_beacon ? *member.next_beacon : member.beacon;
  const std::uint64_t end = newest.first_round + newest.length;
  const std::uint64_t margin = std::min<std::uint64_t>(rounds_left_to_renew, newest.length / 4);
  return round + margin >= end || chain_of(newest) == nullptr;
}

Statement OwnMembership::unsigned_at(const BlockReference& reference, What what) const {
  Statement statement;
  statement.node = key_.public_key();
  statement.reference = reference;
  statement.what = std::move(what);
  return statement;
}

Statement OwnMembership::sign(const BlockReference& reference, What what) const {
  Statement statement = unsigned_at(reference, std::move(what));
  sign_statement(statement, key_, rules_.network);
  return statement;
}

bool OwnMembership::applies(const ChainTip& tip, const Statement& statement) const {
  return admissible(rules_, *tip.registry, tip.block->hash, statement).ok();
}

bool OwnMembership::can_use(const ChainTip& tip, const Voucher& voucher) const {
  return applies(tip, unsigned_at(reference_to(tip), Vouch{voucher, {}, delegation_.wallet_key}));
}

void OwnMembership::take_voucher(const HeldVoucher& voucher, const ChainTip& tip) {
  if (!voucher_ || (!can_use(tip, voucher_->voucher) && can_use(tip, voucher.voucher))) voucher_ = voucher;
}

crypto::Signature OwnMembership::voucher_use() const {
  return use_voucher(crypto::KeyPair::from_seed(voucher_->secret), key_.public_key(), delegation_.wallet_key,
                     rules_.network);
}

Register OwnMembership::registration(std::uint64_t first_round) const {
  Register joining;
  joining.delegation = delegation_;
  joining.beacon = chain_from(first_round).commitment();
  joining.rows = rows_;
  joining.follows_plan = follows_plan_;
  return joining;
}

Statement OwnMembership::founding() const {
  return sign({}, registration(1));
}

std::optional<OwnMembership::What> OwnMembership::joining(const ChainTip& tip,
                                                          const WalletRecord* wallet) const {
  if (!active_ || !ready_) return std::nullopt;
  if (follows_plan_ ? wishes_.rows != rows_ : wishes_.rows.value_or(rows_) != rows_) return std::nullopt;
  const Register plain = registration(tip.registry->round() + 1);
  if (!voucher_ || (wallet != nullptr && wallet->vouched)) return plain;
  Register vouched = plain;
  vouched.voucher = voucher_->voucher;
  vouched.voucher_signature = voucher_use();
  // The issuer's other vouchers may have to wait their turn; a node is a candidate until then.
  return applies(tip, unsigned_at(reference_to(tip), vouched)) ? vouched : plain;
}

std::optional<OwnMembership::What> OwnMembership::change(const ChainTip& tip, const MemberRecord& member,
                                                         const WalletRecord& wallet) {
  const std::uint64_t round = tip.registry->round();
  if (member.presence == Presence::Active && !active_) return Away{};
  const Move move{wishes_.rows.value_or(follows_plan_ ? member.rows : rows_), follows_plan_};
  const bool moves = move.rows != member.rows || move.follows_plan != member.follows_plan;
  if (active_ && moves && applies(tip, unsigned_at(reference_to(tip), move))) return move;
  const bool holds = member.rows == rows_;
  if (member.presence == Presence::Dormant && active_ && ready_ && holds) return Back{};
  if (!active_) return std::nullopt;
  if (voucher_ && !wallet.is_trusted()) {
    if (can_use(tip, voucher_->voucher))
      return Vouch{voucher_->voucher, voucher_use(), delegation_.wallet_key};
  }
  if (needs_commitment(member, round))
    return Commit{chain_from(round + 1 + rounds_until_commitment_holds).commitment()};
  if (!wishes_.memory_tiers) return std::nullopt;
  // A node that has started again has not measured its speed yet.
  const Offer offer{*wishes_.memory_tiers, wishes_.speed != 0 ? wishes_.speed : member.speed};
  const bool news = is_other_offer(offer, member, rules_.sizes);
  if (news && applies(tip, unsigned_at(reference_to(tip), offer))) return offer;
  return std::nullopt;
}

std::optional<Statement> OwnMembership::missing(const ChainTip& tip) {
  const Registry& registry = *tip.registry;
  const MemberRecord* member = registry.find(id_);
  const WalletRecord* wallet = registry.wallet(delegation_.wallet_key);
  if (wallet != nullptr && wallet->expelled) return std::nullopt;
  if (registry.revocation(key_.public_key(), delegation_.wallet_key) != nullptr) return std::nullopt;
  const bool is_recent = last_ && registry.is_recent(last_->reference, tip.block->hash);
  if (member == nullptr && is_recent && std::holds_alternative<Register>(last_->what) && applies(tip, *last_))
    return last_;
  std::optional<What> what = member == nullptr ? joining(tip, wallet) : change(tip, *member, *wallet);
  if (!what) {
    last_.reset();
    return std::nullopt;
  }
  const bool names_values = std::holds_alternative<Move>(*what) || std::holds_alternative<Offer>(*what);
  const bool still_good = is_recent && last_->what.index() == what->index() &&
                          (!names_values || last_->what == *what) &&
                          (member == nullptr || last_->reference.height >= member->presence_height) &&
                          tip.height() - last_->reference.height < statement_life / 2;
  if (!still_good) last_ = sign(reference_to(tip), std::move(*what));
  return last_;
}

}  // namespace neuroshard::chain
