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

}  // namespace neuroshard::chain
