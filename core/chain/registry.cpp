#include "core/chain/registry.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/chain/detail/formats.h"
#include "core/chain/detail/shares.h"
#include "core/crypto/merkle.h"

namespace neuroshard::chain {
namespace {

constexpr std::string_view magic = "NSRG";
constexpr std::uint16_t version = 1;

enum class Leaf : std::uint8_t {
  Position = 1,
  Ancestors = 2,
  Epoch = 3,
  Closed = 4,
  Row = 5,
  Wallet = 6,
  Member = 7,
};

constexpr std::size_t row_bytes = 32 + 8 + 8 * 8;
constexpr std::size_t wallet_bytes = 4 + 32 + 4 + 8 + 8 + 4 + 8 + 8 + 4 + 8;
constexpr std::size_t least_member_bytes = 4 + 4 + 32 + 1 + 8 + 8 + 8 + 4 + 8 + commitment_bytes + 1 + 32 + 8;

void append_flag(Bytes& bytes, bool flag) {
  bytes.push_back(flag ? 1 : 0);
}

void append_hashes(Bytes& bytes, const std::vector<Hash256>& hashes) {
  append_le(bytes, static_cast<std::uint32_t>(hashes.size()));
  for (const Hash256& hash : hashes) append_array(bytes, hash);
}

std::vector<Hash256> read_hashes(Reader& in, std::size_t most) {
  std::vector<Hash256> hashes(in.count(sizeof(Hash256), most));
  for (Hash256& hash : hashes) hash = in.array<Hash256>();
  return hashes;
}

void append_record(Bytes& bytes, const RowRecord& row) {
  append_array(bytes, row.anchor);
  append_le(bytes, row.changed_round);
  for (const std::uint64_t norm : row.norm_bits) append_le(bytes, norm);
}

RowRecord read_row(Reader& in) {
  RowRecord row;
  row.anchor = in.array<Hash256>();
  row.changed_round = in.number<std::uint64_t>();
  for (std::uint64_t& norm : row.norm_bits) norm = in.number<std::uint64_t>();
  return row;
}

void append_record(Bytes& bytes, const WalletRecord& wallet) {
  append_le(bytes, wallet.number);
  append_array(bytes, wallet.key);
  for (const bool flag : {wallet.founder, wallet.vouched, wallet.voter, wallet.expelled})
    append_flag(bytes, flag);
  append_le(bytes, wallet.admitted_height);
  append_le(bytes, wallet.counted_tokens);
  append_le(bytes, wallet.qualifying);
  append_le(bytes, wallet.last_qualifying);
  append_le(bytes, wallet.last_voucher_round);
  append_le(bytes, wallet.highest_serial);
  append_le(bytes, wallet.used_serials);
}

WalletRecord read_wallet(Reader& in) {
  WalletRecord wallet;
  wallet.number = in.number<std::uint32_t>();
  wallet.key = in.array<crypto::PublicKey>();
  for (bool* flag : {&wallet.founder, &wallet.vouched, &wallet.voter, &wallet.expelled}) *flag = in.flag();
  wallet.admitted_height = in.number<std::uint64_t>();
  wallet.counted_tokens = in.number<std::uint64_t>();
  wallet.qualifying = in.number<std::uint32_t>();
  wallet.last_qualifying = in.number<std::uint64_t>();
  wallet.last_voucher_round = in.number<std::uint64_t>();
  wallet.highest_serial = in.number<std::uint32_t>();
  wallet.used_serials = in.number<std::uint64_t>();
  return wallet;
}

void append_record(Bytes& bytes, const MemberRecord& member) {
  append_le(bytes, member.number);
  append_le(bytes, member.wallet);
  append_array(bytes, member.key);
  bytes.push_back(static_cast<std::uint8_t>(member.presence));
  append_le(bytes, member.presence_height);
  append_le(bytes, member.dormant_ms);
  append_le(bytes, member.registered_height);
  append_le(bytes, member.contributions);
  append_le(bytes, member.last_round);
  append_commitment(bytes, member.beacon);
  append_flag(bytes, member.next_beacon.has_value());
  if (member.next_beacon) append_commitment(bytes, *member.next_beacon);
  append_array(bytes, member.revealed);
  append_le(bytes, member.revealed_round);
}

MemberRecord read_member(Reader& in) {
  MemberRecord member;
  member.number = in.number<std::uint32_t>();
  member.wallet = in.number<std::uint32_t>();
  member.key = in.array<crypto::PublicKey>();
  member.id = crypto::node_id(member.key);
  const auto presence = in.number<std::uint8_t>();
  if (presence != 1 && presence != 2) in.fail();
  member.presence = static_cast<Presence>(presence);
  member.presence_height = in.number<std::uint64_t>();
  member.dormant_ms = in.number<std::uint64_t>();
  member.registered_height = in.number<std::uint64_t>();
  member.contributions = in.number<std::uint32_t>();
  member.last_round = in.number<std::uint64_t>();
  member.beacon = read_commitment(in);
  if (in.flag()) member.next_beacon = read_commitment(in);
  member.revealed = in.array<Hash256>();
  member.revealed_round = in.number<std::uint64_t>();
  return member;
}

void append_closed(Bytes& bytes, const std::optional<ClosedRound>& closed) {
  append_flag(bytes, closed.has_value());
  if (!closed) return;
  append_le(bytes, closed->height);
  append_le(bytes, static_cast<std::uint32_t>(closed->contributions.size()));
  for (const ContributionEntry& entry : closed->contributions) append_entry(bytes, entry);
  append_le(bytes, static_cast<std::uint32_t>(closed->contributors.size()));
  for (const std::vector<std::uint32_t>& row : closed->contributors) append_numbers(bytes, row);
}

std::optional<ClosedRound> read_closed(Reader& in) {
  if (!in.flag()) return std::nullopt;
  ClosedRound closed;
  closed.height = in.number<std::uint64_t>();
  closed.contributions.resize(in.count(contribution_entry_bytes, max_members));
  for (std::size_t i = 0; i < closed.contributions.size(); ++i) {
    closed.contributions[i] = read_entry(in);
    if (i > 0 && closed.contributions[i].member <= closed.contributions[i - 1].member) in.fail();
  }
  closed.contributors.resize(in.count(sizeof(std::uint32_t), max_rows));
  for (std::vector<std::uint32_t>& row : closed.contributors)
    row = read_numbers(in, closed.contributions.size());
  return closed;
}

template <class Record>
bool ascending_below(const std::vector<Record>& records, std::uint32_t end) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].number >= end) return false;
    if (i > 0 && records[i].number <= records[i - 1].number) return false;
  }
  return true;
}

template <class Record>
const Record* at_number(const std::vector<Record>& records, std::uint32_t number) {
  const auto at =
      std::lower_bound(records.begin(), records.end(), number,
                       [](const Record& record, std::uint32_t wanted) { return record.number < wanted; });
  return at != records.end() && at->number == number ? &*at : nullptr;
}

Hash256 leaf_of(Leaf kind, ByteSpan record) {
  Bytes bytes;
  bytes.reserve(1 + record.size());
  bytes.push_back(static_cast<std::uint8_t>(kind));
  bytes.insert(bytes.end(), record.begin(), record.end());
  return crypto::merkle_leaf(bytes);
}

template <class Record>
void add_leaves(std::vector<Hash256>* leaves, Leaf kind, const std::vector<Record>& records) {
  Bytes bytes;
  for (const Record& record : records) {
    bytes.assign(1, static_cast<std::uint8_t>(kind));
    append_record(bytes, record);
    leaves->push_back(crypto::merkle_leaf(bytes));
  }
}

template <class Record>
void append_records(Bytes& bytes, const std::vector<Record>& records) {
  append_le(bytes, static_cast<std::uint32_t>(records.size()));
  for (const Record& record : records) append_record(bytes, record);
}

}  // namespace

const MemberRecord* Registry::find(std::uint32_t number) const {
  return at_number(members_, number);
}

const MemberRecord* Registry::find(const net::NodeId& id) const {
  const auto number = by_id_ ? by_id_->find(id) : std::nullopt;
  return number ? find(*number) : nullptr;
}

const WalletRecord* Registry::wallet(std::uint32_t number) const {
  return at_number(wallets_, number);
}

const WalletRecord* Registry::wallet(const crypto::PublicKey& key) const {
  const auto number = by_wallet_key_ ? by_wallet_key_->find(key) : std::nullopt;
  return number ? wallet(*number) : nullptr;
}

bool Registry::is_voter(const MemberRecord& member) const {
  const WalletRecord* owner = wallet(member.wallet);
  return owner != nullptr && owner->voter;
}

std::size_t Registry::voter_count() const {
  return static_cast<std::size_t>(std::count_if(wallets_.begin(), wallets_.end(),
                                                [](const WalletRecord& wallet) { return wallet.voter; }));
}

bool Registry::is_restricted() const {
  const SeenWallets seen = trusted_wallets_seen(*this);
  return 2 * seen.active < seen.seen;
}

bool Registry::is_recent(const BlockReference& reference, const Hash256& tip) const {
  if (reference.height > height_ || height_ - reference.height >= statement_life) return false;
  if (reference.height == height_) return reference.hash == tip;
  const auto back = static_cast<std::size_t>(height_ - reference.height - 1);
  return back < recent_.size() && recent_[back] == reference.hash;
}

bool Registry::is_ancestor(const Hash256& block, const Hash256& tip) const {
  const auto among = [&block](const std::vector<Hash256>& hashes) {
    return std::find(hashes.begin(), hashes.end(), block) != hashes.end();
  };
  return block == tip || block == opening(tip) || among(recent_) || among(openings_);
}

void Registry::rebuild_indexes() {
  std::vector<std::pair<Hash256, std::uint32_t>> ids, keys;
  ids.reserve(members_.size());
  keys.reserve(wallets_.size());
  for (const MemberRecord& member : members_) ids.emplace_back(member.id, member.number);
  for (const WalletRecord& wallet : wallets_) keys.emplace_back(wallet.key, wallet.number);
  by_id_ = std::make_shared<const KeyIndex>(std::move(ids));
  by_wallet_key_ = std::make_shared<const KeyIndex>(std::move(keys));
}

Bytes Registry::position_record() const {
  Bytes bytes;
  for (const std::uint64_t number : {height_, time_ms_, round_, opening_height_, epoch_round_, epoch_ms_})
    append_le(bytes, number);
  append_array(bytes, opening_hash_);
  append_array(bytes, beacon_);
  append_le(bytes, next_member_);
  append_le(bytes, next_wallet_);
  return bytes;
}

Bytes Registry::ancestors_record() const {
  Bytes bytes;
  append_hashes(bytes, recent_);
  append_hashes(bytes, openings_);
  return bytes;
}

Bytes Registry::epoch_record() const {
  Bytes bytes;
  append_numbers(bytes, epoch_committee_);
  return bytes;
}

Hash256 Registry::compute_root() const {
  std::vector<Hash256> leaves;
  leaves.reserve(4 + rows_.size() + wallets_.size() + members_.size());
  leaves.push_back(leaf_of(Leaf::Position, position_record()));
  leaves.push_back(leaf_of(Leaf::Ancestors, ancestors_record()));
  leaves.push_back(leaf_of(Leaf::Epoch, epoch_record()));
  Bytes closed;
  append_closed(closed, closed_);
  leaves.push_back(leaf_of(Leaf::Closed, closed));
  add_leaves(&leaves, Leaf::Row, rows_);
  add_leaves(&leaves, Leaf::Wallet, wallets_);
  add_leaves(&leaves, Leaf::Member, members_);
  return crypto::merkle_root(leaves);
}

Bytes Registry::encode() const {
  Bytes bytes(magic.begin(), magic.end());
  append_le(bytes, version);
  for (const Bytes& record : {position_record(), ancestors_record(), epoch_record()})
    bytes.insert(bytes.end(), record.begin(), record.end());
  append_closed(bytes, closed_);
  append_records(bytes, rows_);
  append_records(bytes, wallets_);
  append_records(bytes, members_);
  return bytes;
}

Expected<RegistryPtr> Registry::decode(ByteSpan bytes) {
  Reader in(bytes);
  if (as_text(in.bytes(magic.size())) != magic) return corrupt("this is not a registry");
  if (in.number<std::uint16_t>() != version)
    return make_error(ErrorCode::Unsupported, "the registry has another version");
  auto registry = std::make_shared<Registry>();
  Registry& r = *registry;
  for (std::uint64_t* number :
       {&r.height_, &r.time_ms_, &r.round_, &r.opening_height_, &r.epoch_round_, &r.epoch_ms_})
    *number = in.number<std::uint64_t>();
  r.opening_hash_ = in.array<Hash256>();
  r.beacon_ = in.array<Hash256>();
  r.next_member_ = in.number<std::uint32_t>();
  r.next_wallet_ = in.number<std::uint32_t>();
  r.recent_ = read_hashes(in, evidence_blocks - 1);
  r.openings_ = read_hashes(in, evidence_rounds - 1);
  r.epoch_committee_ = read_numbers(in, max_committee);
  r.closed_ = read_closed(in);
  r.rows_.resize(in.count(row_bytes, max_rows));
  for (RowRecord& row : r.rows_) row = read_row(in);
  r.wallets_.resize(in.count(wallet_bytes, max_wallets));
  for (WalletRecord& wallet : r.wallets_) wallet = read_wallet(in);
  r.members_.resize(in.count(least_member_bytes, max_members));
  for (MemberRecord& member : r.members_) member = read_member(in);
  if (!in.at_end()) return corrupt("the registry can't be read");

  r.rebuild_indexes();
  const bool consistent =
      ascending_below(r.wallets_, r.next_wallet_) && ascending_below(r.members_, r.next_member_) &&
      !r.by_id_->has_duplicates() && !r.by_wallet_key_->has_duplicates() &&
      std::all_of(r.members_.begin(), r.members_.end(),
                  [&r](const MemberRecord& member) { return r.wallet(member.wallet) != nullptr; });
  if (!consistent) return corrupt("the registry's records contradict each other");
  r.root_ = r.compute_root();
  return RegistryPtr(std::move(registry));
}

}  // namespace neuroshard::chain
