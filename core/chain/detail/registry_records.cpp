#include "core/chain/detail/registry_records.h"

#include <tuple>

#include "core/chain/detail/formats.h"

namespace neuroshard::chain {
namespace {

auto wallet_fields(auto& wallet) {
  return std::tie(wallet.number, wallet.key, wallet.founder, wallet.vouched, wallet.voter, wallet.expelled,
                  wallet.admitted_height, wallet.counted_tokens, wallet.qualifying, wallet.last_qualifying,
                  wallet.last_voucher_round, wallet.highest_serial, wallet.used_serials);
}

// Those between presence and beacons.
auto history_fields(auto& member) {
  return std::tie(member.presence_height, member.dormant_ms, member.registered_height, member.contributions,
                  member.last_round);
}

auto revocation_fields(auto& revocation) {
  return std::tie(revocation.node, revocation.wallet, revocation.height);
}

auto open_row_fields(auto& row) {
  return std::tie(row.row, row.round, row.before, row.before_round, row.contributors, row.most_tokens,
                  row.most_norm_bits, row.result, row.norm_bits);
}

auto strike_fields(auto& strike) {
  return std::tie(strike.wallet, strike.round, strike.result);
}

auto size_fields(auto& size) {
  return std::tie(size.size, size.next, size.results, size.changing);
}

}  // namespace

void append(Bytes& bytes, const RowRecord& row) {
  append_record(bytes, std::tie(row.anchor, row.changed_round));
  for (const std::uint64_t norm : row.norm_bits) append_le(bytes, norm);
}

RowRecord read_row(ByteReader& in) {
  RowRecord row;
  in.read(std::tie(row.anchor, row.changed_round));
  for (std::uint64_t& norm : row.norm_bits) norm = in.number<std::uint64_t>();
  return row;
}

void append(Bytes& bytes, const WalletRecord& wallet) {
  append_record(bytes, wallet_fields(wallet));
}

WalletRecord read_wallet(ByteReader& in) {
  WalletRecord wallet;
  in.read(wallet_fields(wallet));
  return wallet;
}

void append(Bytes& bytes, const MemberRecord& member) {
  append_record(bytes, std::tie(member.number, member.wallet, member.key));
  bytes.push_back(static_cast<std::uint8_t>(member.presence));
  append_record(bytes, history_fields(member));
  append_record(bytes, commitment_fields(member.beacon));
  const bool moved = member.moved_height != 0, offers = member.offered_height != 0;
  append_optional_flags(bytes, {member.next_beacon.has_value(), !member.rows.is_all(), member.follows_plan,
                                moved, offers, member.speed != 0});
  if (member.next_beacon) append_record(bytes, commitment_fields(*member.next_beacon));
  append_record(bytes, std::tie(member.revealed, member.revealed_round));
  append_rows(bytes, member.rows);
  if (moved) append_le(bytes, member.moved_height);
  if (offers) append_record(bytes, std::tie(member.memory_tiers, member.offered_height));
  if (member.speed != 0) append_le(bytes, member.speed);
}

MemberRecord read_member(ByteReader& in) {
  MemberRecord member;
  in.read(std::tie(member.number, member.wallet, member.key));
  member.id = crypto::node_id(member.key);
  const auto presence = in.number<std::uint8_t>();
  if (presence != 1 && presence != 2) in.fail();
  member.presence = static_cast<Presence>(presence);
  in.read(history_fields(member));
  member.beacon = read_commitment(in);
  const OptionalFlags flags = read_optional_flags(in);
  if (flags.optional) member.next_beacon = read_commitment(in);
  in.read(std::tie(member.revealed, member.revealed_round));
  if (flags.rows) member.rows = read_rows(in);
  member.follows_plan = flags.follows_plan;
  if (flags.moved && (member.moved_height = in.number<std::uint64_t>()) == 0) in.fail();
  if (flags.offers) {
    in.read(std::tie(member.memory_tiers, member.offered_height));
    if (member.offered_height == 0) in.fail();
  }
  if (flags.speed && (member.speed = in.number<std::uint32_t>()) == 0) in.fail();
  return member;
}

void append(Bytes& bytes, const RevocationRecord& revocation) {
  append_record(bytes, revocation_fields(revocation));
}

RevocationRecord read_revocation(ByteReader& in) {
  RevocationRecord revocation;
  in.read(revocation_fields(revocation));
  return revocation;
}

void append(Bytes& bytes, const OpenRow& row) {
  append_record(bytes, open_row_fields(row));
  bytes.push_back(static_cast<std::uint8_t>(row.checkers.size()));
  for (const std::uint32_t checker : row.checkers) append_le(bytes, checker);
}

OpenRow read_open_row(ByteReader& in) {
  OpenRow row;
  in.read(open_row_fields(row));
  const auto checkers = in.number<std::uint8_t>();
  if (checkers > most_checkers) in.fail();
  for (std::size_t i = 0; i < checkers && in.good(); ++i) row.checkers.push_back(in.number<std::uint32_t>());
  return row;
}

void append(Bytes& bytes, const StrikeRecord& strike) {
  append_record(bytes, strike_fields(strike));
}

StrikeRecord read_strike(ByteReader& in) {
  StrikeRecord strike;
  in.read(strike_fields(strike));
  return strike;
}

void append(Bytes& bytes, const SizeRecord& size) {
  append_record(bytes, size_fields(size));
}

SizeRecord read_size(ByteReader& in) {
  SizeRecord size;
  in.read(size_fields(size));
  return size;
}

void append_closed(Bytes& bytes, const std::optional<ClosedRound>& closed) {
  append_flag(bytes, closed.has_value());
  if (!closed) return;
  append_le(bytes, closed->height);
  append_entries(bytes, closed->contributions);
  append_le(bytes, static_cast<std::uint32_t>(closed->contributors.size()));
  for (const std::vector<std::uint32_t>& row : closed->contributors) append_numbers(bytes, row);
}

std::optional<ClosedRound> read_closed(ByteReader& in) {
  if (!in.flag()) return std::nullopt;
  ClosedRound closed;
  closed.height = in.number<std::uint64_t>();
  closed.contributions = read_entries(in);
  closed.contributors.resize(in.count(sizeof(std::uint32_t), max_rows));
  for (std::vector<std::uint32_t>& row : closed.contributors)
    row = read_numbers(in, closed.contributions.size());
  return closed;
}

}  // namespace neuroshard::chain
