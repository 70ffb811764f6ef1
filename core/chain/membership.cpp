#include "core/chain/membership.h"

#include <algorithm>

#include "core/chain/reader.h"
#include "core/crypto/hash.h"

namespace neuroshard::chain {
namespace {

constexpr std::uint16_t local_version = 1;
constexpr std::size_t local_bytes = 4 + 2 + 32 + 8 + 4;
// A new beacon chain is committed to when the old one has so many rounds left, or a quarter of its length.
constexpr std::uint64_t rounds_left_to_renew = 256;
constexpr std::uint64_t rounds_until_commitment_holds = 2;

}  // namespace

Bytes encode_local(const LocalMemory& memory) {
  Bytes bytes{'N', 'S', 'L', 'M'};
  append_le(bytes, local_version);
  append_array(bytes, memory.beacon_seed);
  append_le(bytes, memory.boots);
  append_le(bytes, memory.vouchers);
  return bytes;
}

Expected<LocalMemory> decode_local(ByteSpan bytes) {
  if (bytes.size() != local_bytes || !std::equal(bytes.begin(), bytes.begin() + 4, "NSLM"))
    return make_error(ErrorCode::Corrupt, "what this node keeps about its membership can't be read");
  Reader reader(bytes.subspan(4));
  if (reader.number<std::uint16_t>() != local_version)
    return make_error(ErrorCode::Unsupported, "a later version of NeuroShard wrote this node's membership");
  LocalMemory memory;
  memory.beacon_seed = reader.array<Hash256>();
  memory.boots = reader.number<std::uint64_t>();
  memory.vouchers = reader.number<std::uint32_t>();
  if (!reader.at_end())
    return make_error(ErrorCode::Corrupt, "what this node keeps about its membership can't be read");
  return memory;
}

OwnMembership::OwnMembership(const ChainRules& rules, const crypto::KeyPair& key,
                             crypto::Delegation delegation, const Hash256& beacon_seed,
                             std::optional<HeldVoucher> voucher, std::uint32_t beacon_length)
    : rules_(rules),
      key_(key),
      id_(crypto::node_id(key.public_key())),
      delegation_(std::move(delegation)),
      seed_(beacon_seed),
      voucher_(std::move(voucher)),
      beacon_length_(beacon_length) {}

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

Statement OwnMembership::unsigned_at(const ChainTip& tip, decltype(Statement::what) what) const {
  Statement statement;
  statement.node = key_.public_key();
  statement.reference = {tip.height(), tip.block->hash};
  statement.what = std::move(what);
  return statement;
}

Statement OwnMembership::sign(const ChainTip& tip, decltype(Statement::what) what) const {
  Statement statement = unsigned_at(tip, std::move(what));
  sign_statement(statement, key_, rules_.network);
  return statement;
}

Statement OwnMembership::founding() const {
  Register founder;
  founder.delegation = delegation_;
  founder.beacon = chain_from(1).commitment();
  Statement statement;
  statement.node = key_.public_key();
  statement.what = std::move(founder);
  sign_statement(statement, key_, rules_.network);
  return statement;
}

std::optional<Statement> OwnMembership::missing(const ChainTip& tip) {
  const Registry& registry = *tip.registry;
  const MemberRecord* member = registry.find(id_);
  const WalletRecord* wallet = registry.wallet(delegation_.wallet_key);
  if (wallet != nullptr && wallet->expelled) return std::nullopt;

  const auto applies = [&](const Statement& statement) {
    return admissible(rules_, registry, tip.block->hash, statement).ok();
  };
  std::optional<decltype(Statement::what)> what;
  if (member == nullptr) {
    if (last_ && last_->what.index() == 0 && registry.is_recent(last_->reference, tip.block->hash) &&
        applies(*last_))
      return last_;
    if (active_ && ready_) {
      Register joining;
      joining.delegation = delegation_;
      joining.beacon = chain_from(registry.round() + 1).commitment();
      what = joining;
      if (voucher_ && (wallet == nullptr || !wallet->vouched)) {
        joining.voucher = voucher_->voucher;
        joining.voucher_signature = use_voucher(crypto::KeyPair::from_seed(voucher_->secret),
                                                key_.public_key(), delegation_.wallet_key, rules_.network);
        // The issuer's other vouchers may have to wait their turn; a node is a candidate until then.
        if (applies(unsigned_at(tip, joining))) what = std::move(joining);
      }
    }
  } else if (member->presence == Presence::Active && !active_ && registry.is_voter(*member)) {
    what = Away{};
  } else if (member->presence == Presence::Dormant && active_ && ready_) {
    what = Back{};
  } else if (voucher_ && active_ && !wallet->vouched && !wallet->founder &&
             applies(unsigned_at(tip, Vouch{voucher_->voucher, {}, delegation_.wallet_key}))) {
    what = Vouch{voucher_->voucher,
                 use_voucher(crypto::KeyPair::from_seed(voucher_->secret), key_.public_key(),
                             delegation_.wallet_key, rules_.network),
                 delegation_.wallet_key};
  } else if (active_ && needs_commitment(*member, registry.round())) {
    const std::uint64_t from = registry.round() + 1 + rounds_until_commitment_holds;
    what = Commit{chain_from(from).commitment()};
  }
  if (!what) {
    last_.reset();
    return std::nullopt;
  }
  const bool still_good = last_ && last_->what.index() == what->index() &&
                          registry.is_recent(last_->reference, tip.block->hash) &&
                          (member == nullptr || last_->reference.height >= member->presence_height) &&
                          tip.height() - last_->reference.height < statement_life / 2;
  if (!still_good) last_ = sign(tip, std::move(*what));
  return last_;
}

}  // namespace neuroshard::chain
