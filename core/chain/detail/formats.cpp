#include "core/chain/detail/formats.h"

#include "core/chain/ascending.h"
#include "core/chain/rules.h"

namespace neuroshard::chain {

BeaconCommitment read_commitment(ByteReader& in) {
  BeaconCommitment commitment;
  in.read(commitment_fields(commitment));
  if (commitment.length < 1 || commitment.length > beacon_chain_length) in.fail();
  return commitment;
}

void append_entries(Bytes& bytes, const std::vector<ContributionEntry>& entries) {
  append_le(bytes, static_cast<std::uint32_t>(entries.size()));
  for (const ContributionEntry& entry : entries) append_record(bytes, entry_fields(entry));
}

std::vector<ContributionEntry> read_entries(ByteReader& in) {
  std::vector<ContributionEntry> entries(in.count(contribution_entry_bytes, max_members));
  for (ContributionEntry& entry : entries) in.read(entry_fields(entry));
  if (!is_ascending(entries, &ContributionEntry::member)) in.fail();
  return entries;
}

void append_numbers(Bytes& bytes, const std::vector<std::uint32_t>& numbers) {
  append_le(bytes, static_cast<std::uint32_t>(numbers.size()));
  for (const std::uint32_t number : numbers) append_le(bytes, number);
}

std::vector<std::uint32_t> read_numbers(ByteReader& in, std::size_t most) {
  std::vector<std::uint32_t> numbers(in.count(sizeof(std::uint32_t), most));
  for (std::uint32_t& number : numbers) number = in.number<std::uint32_t>();
  if (!is_ascending(numbers, std::identity())) in.fail();
  return numbers;
}

Bitmap read_bitmap(ByteReader& in, std::size_t bits) {
  auto bitmap = Bitmap::from_bytes(bits, in.bytes((bits + 7) / 8));
  if (bitmap.ok()) return *std::move(bitmap);
  in.fail();
  return {};
}

void append_withheld(Bytes& bytes, const std::vector<RowRound>& withheld) {
  if (withheld.empty()) return;
  append_le(bytes, static_cast<std::uint32_t>(withheld.size()));
  for (const RowRound& one : withheld) append_record(bytes, one.place());
}

std::vector<RowRound> read_withheld(ByteReader& in) {
  if (!in.good() || in.at_end()) return {};
  std::vector<RowRound> withheld(in.count(row_round_bytes, most_withheld));
  for (RowRound& one : withheld) in.read(std::tie(one.row, one.round));
  if (withheld.empty() || !is_ascending(withheld, &RowRound::place)) in.fail();
  return withheld;
}

void append_optional_flags(Bytes& bytes, const OptionalFlags& flags) {
  bytes.push_back(static_cast<std::uint8_t>((flags.optional ? 1 : 0) | (flags.rows ? 2 : 0) |
                                            (flags.follows_plan ? 4 : 0) | (flags.moved ? 8 : 0) |
                                            (flags.offers ? 16 : 0) | (flags.speed ? 32 : 0)));
}

OptionalFlags read_optional_flags(ByteReader& in) {
  const auto flags = in.number<std::uint8_t>();
  const OptionalFlags read{(flags & 1u) != 0, (flags & 2u) != 0,  (flags & 4u) != 0,
                           (flags & 8u) != 0, (flags & 16u) != 0, (flags & 32u) != 0};
  if (flags > 63 || (!read.rows && (read.follows_plan || read.moved)) || (read.speed && !read.offers))
    in.fail();
  return read;
}

void append_rows(Bytes& bytes, const RowSet& rows) {
  if (rows.is_all()) return;
  bytes.push_back(static_cast<std::uint8_t>(rows.bits().size()));
  bytes.insert(bytes.end(), rows.bits().begin(), rows.bits().end());
}

RowSet read_rows(ByteReader& in) {
  const auto size = in.number<std::uint8_t>();
  const auto rows = RowSet::from_bits(in.bytes(size));
  if (!rows || rows->end() > max_rows) in.fail();
  return rows.value_or(RowSet());
}

void append_result(Bytes& bytes, const RowResult& row) {
  append_record(bytes, std::tie(row.row, row.carried));
  if (!row.carried) append_record(bytes, std::tie(row.anchor, row.trace, row.norm_bits));
}

void append_results(Bytes& bytes, const std::vector<RowResult>& rows) {
  append_le(bytes, static_cast<std::uint32_t>(rows.size()));
  for (const RowResult& row : rows) append_result(bytes, row);
}

RowResult read_result(ByteReader& in) {
  RowResult row;
  in.read(std::tie(row.row, row.carried));
  if (!row.carried) in.read(std::tie(row.anchor, row.trace, row.norm_bits));
  return row;
}

std::vector<RowResult> read_results(ByteReader& in, std::size_t most) {
  constexpr std::size_t least_bytes = 4 + 1;
  std::vector<RowResult> rows(in.count(least_bytes, most));
  for (RowResult& row : rows) row = read_result(in);
  return rows;
}

}  // namespace neuroshard::chain
