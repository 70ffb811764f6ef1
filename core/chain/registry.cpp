#include "core/chain/registry.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/chain/ascending.h"
#include "core/chain/detail/formats.h"
#include "core/chain/detail/registry_records.h"
#include "core/chain/detail/shares.h"
#include "core/crypto/merkle.h"

namespace neuroshard::chain {
namespace {

constexpr std::string_view magic = "NSRG";
constexpr std::uint16_t version = 2;

enum class Leaf : std::uint8_t {
  Position = 1,
  Ancestors = 2,
  Epoch = 3,
  Closed = 4,
  Row = 5,
  Wallet = 6,
  Member = 7,
  Revocation = 8,
  OpenRow = 9,
  Strike = 10,
  Size = 11,
};

constexpr std::size_t most_open_rows = (rounds_to_settle + 1) * max_rows;
constexpr std::size_t most_strikes = max_wallets;

void append_hashes(Bytes& bytes, const std::vector<Hash256>& hashes) {
  append_le(bytes, static_cast<std::uint32_t>(hashes.size()));
  for (const Hash256& hash : hashes) append_array(bytes, hash);
}

std::vector<Hash256> read_hashes(ByteReader& in, std::size_t most) {
  std::vector<Hash256> hashes(in.count(sizeof(Hash256), most));
  for (Hash256& hash : hashes) hash = in.array<Hash256>();
  return hashes;
}

bool is_consistent(const SizeRecord& size, const std::optional<ClosedRound>& closed) {
  const bool near = size.next + 1 >= size.size && size.size + 1 >= size.next;
  return near && size.results <= results_to_change_size && (size.next != size.size || size.results == 0) &&
         size.changing == (size.results == results_to_change_size) && (!size.changing || closed);
}

template <class Record>
bool ascending_below(const std::vector<Record>& records, std::uint32_t end) {
  return is_ascending(records, &Record::number) && (records.empty() || records.back().number < end);
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
    append(bytes, record);
    leaves->push_back(crypto::merkle_leaf(bytes));
  }
}

template <class Record>
void append_records(Bytes& bytes, const std::vector<Record>& records) {
  append_le(bytes, static_cast<std::uint32_t>(records.size()));
  for (const Record& record : records) append(bytes, record);
}

}  // namespace

const MemberRecord* Registry::find(std::uint32_t number) const {
  return find_by(members_, &MemberRecord::number, number);
}

const MemberRecord* Registry::find(const net::NodeId& id) const {
  const auto number = by_id_ ? by_id_->find(id) : std::nullopt;
  return number ? find(*number) : nullptr;
}

const WalletRecord* Registry::wallet(std::uint32_t number) const {
  return find_by(wallets_, &WalletRecord::number, number);
}

const WalletRecord* Registry::wallet(const crypto::PublicKey& key) const {
  const auto number = by_wallet_key_ ? by_wallet_key_->find(key) : std::nullopt;
  return number ? wallet(*number) : nullptr;
}

const RevocationRecord* Registry::revocation(const crypto::PublicKey& node,
                                             const crypto::PublicKey& wallet) const {
  const auto place = std::tie(node, wallet);
  const auto at = std::lower_bound(
      revocations_.begin(), revocations_.end(), place,
      [](const RevocationRecord& revocation, const auto& sought) { return revocation.place() < sought; });
  return at != revocations_.end() && at->place() == place ? &*at : nullptr;
}

const OpenRow* Registry::open_row(std::uint32_t row, std::uint64_t round) const {
  const auto place = std::tie(row, round);
  const auto at =
      std::lower_bound(open_rows_.begin(), open_rows_.end(), place,
                       [](const OpenRow& one, const auto& sought) { return one.place() < sought; });
  return at != open_rows_.end() && at->place() == place ? &*at : nullptr;
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

auto Registry::position_fields(auto& r) {
  return std::tie(r.height_, r.time_ms_, r.round_, r.opening_height_, r.epoch_round_, r.epoch_ms_,
                  r.opening_hash_, r.beacon_, r.tokenizer_, r.next_member_, r.next_wallet_);
}

Bytes Registry::position_record() const {
  return bytes_of(position_fields(*this));
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

void Registry::complete() {
  active_.clear();
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (members_[i].presence == Presence::Active) active_.push_back(static_cast<std::uint32_t>(i));
  root_ = compute_root();
}

Hash256 Registry::compute_root() const {
  std::vector<Hash256> leaves;
  leaves.reserve(4 + rows_.size() + wallets_.size() + members_.size() + revocations_.size() +
                 open_rows_.size() + strikes_.size());
  leaves.push_back(leaf_of(Leaf::Position, position_record()));
  leaves.push_back(leaf_of(Leaf::Ancestors, ancestors_record()));
  leaves.push_back(leaf_of(Leaf::Epoch, epoch_record()));
  Bytes closed;
  append_closed(closed, closed_);
  leaves.push_back(leaf_of(Leaf::Closed, closed));
  add_leaves(&leaves, Leaf::Row, rows_);
  add_leaves(&leaves, Leaf::Wallet, wallets_);
  add_leaves(&leaves, Leaf::Member, members_);
  add_leaves(&leaves, Leaf::Revocation, revocations_);
  add_leaves(&leaves, Leaf::OpenRow, open_rows_);
  add_leaves(&leaves, Leaf::Strike, strikes_);
  if (size_ != SizeRecord{}) {
    Bytes size;
    append(size, size_);
    leaves.push_back(leaf_of(Leaf::Size, size));
  }
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
  append_records(bytes, revocations_);
  const bool first_size = size_ == SizeRecord{};
  if (open_rows_.empty() && strikes_.empty() && first_size) return bytes;
  append_records(bytes, open_rows_);
  append_records(bytes, strikes_);
  if (!first_size) append(bytes, size_);
  return bytes;
}

Expected<RegistryPtr> Registry::decode(ByteSpan bytes) {
  ByteReader in(bytes);
  if (as_text(in.bytes(magic.size())) != magic) return corrupt("this is not a registry");
  if (in.number<std::uint16_t>() != version)
    return make_error(ErrorCode::Unsupported, "the registry has another version");
  auto registry = std::make_shared<Registry>();
  Registry& r = *registry;
  in.read(position_fields(r));
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
  r.revocations_.resize(in.count(revocation_bytes, max_revocations));
  for (RevocationRecord& revocation : r.revocations_) revocation = read_revocation(in);
  const bool has_more = !in.at_end();
  if (has_more) {
    r.open_rows_.resize(in.count(least_open_row_bytes, most_open_rows));
    for (OpenRow& row : r.open_rows_) row = read_open_row(in);
    r.strikes_.resize(in.count(strike_bytes, most_strikes));
    for (StrikeRecord& strike : r.strikes_) strike = read_strike(in);
  }
  const bool has_size = !in.at_end();
  if (has_size) r.size_ = read_size(in);
  const bool is_first_size = r.size_ == SizeRecord{};
  if (!in.at_end() || has_size == is_first_size ||
      has_more == (r.open_rows_.empty() && r.strikes_.empty() && is_first_size))
    return corrupt("the registry can't be read");

  r.rebuild_indexes();
  const bool consistent =
      ascending_below(r.wallets_, r.next_wallet_) && ascending_below(r.members_, r.next_member_) &&
      !r.by_id_->has_duplicates() && !r.by_wallet_key_->has_duplicates() &&
      is_ascending(r.revocations_, &RevocationRecord::place) && is_ascending(r.open_rows_, &OpenRow::place) &&
      is_ascending(r.strikes_, &StrikeRecord::place) && is_consistent(r.size_, r.closed_) &&
      std::all_of(r.members_.begin(), r.members_.end(),
                  [&r](const MemberRecord& member) { return r.wallet(member.wallet) != nullptr; });
  if (!consistent) return corrupt("the registry's records contradict each other");
  r.complete();
  return RegistryPtr(std::move(registry));
}

}  // namespace neuroshard::chain
