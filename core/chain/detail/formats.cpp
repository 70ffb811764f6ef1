#include "core/chain/detail/formats.h"

namespace neuroshard::chain {

void append_commitment(Bytes& bytes, const BeaconCommitment& commitment) {
  append_array(bytes, commitment.tip);
  append_le(bytes, commitment.first_round);
  append_le(bytes, commitment.length);
}

BeaconCommitment read_commitment(Reader& in) {
  BeaconCommitment commitment;
  commitment.tip = in.array<Hash256>();
  commitment.first_round = in.number<std::uint64_t>();
  commitment.length = in.number<std::uint32_t>();
  if (commitment.length < 1 || commitment.length > beacon_chain_length) in.fail();
  return commitment;
}

void append_reference(Bytes& bytes, const BlockReference& reference) {
  append_le(bytes, reference.height);
  append_array(bytes, reference.hash);
}

BlockReference read_reference(Reader& in) {
  BlockReference reference;
  reference.height = in.number<std::uint64_t>();
  reference.hash = in.array<Hash256>();
  return reference;
}

void append_entry(Bytes& bytes, const ContributionEntry& entry) {
  append_le(bytes, entry.member);
  append_le(bytes, entry.tokens);
  append_array(bytes, entry.work);
  append_array(bytes, entry.batches);
  append_array(bytes, entry.reveal);
  append_array(bytes, entry.signature);
}

ContributionEntry read_entry(Reader& in) {
  ContributionEntry entry;
  entry.member = in.number<std::uint32_t>();
  entry.tokens = in.number<std::uint64_t>();
  entry.work = in.array<Hash256>();
  entry.batches = in.array<Hash256>();
  entry.reveal = in.array<Hash256>();
  entry.signature = in.array<crypto::Signature>();
  return entry;
}

void append_numbers(Bytes& bytes, const std::vector<std::uint32_t>& numbers) {
  append_le(bytes, static_cast<std::uint32_t>(numbers.size()));
  for (const std::uint32_t number : numbers) append_le(bytes, number);
}

std::vector<std::uint32_t> read_numbers(Reader& in, std::size_t most) {
  std::vector<std::uint32_t> numbers(in.count(sizeof(std::uint32_t), most));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = in.number<std::uint32_t>();
    if (i > 0 && numbers[i] <= numbers[i - 1]) in.fail();
  }
  return numbers;
}

Bitmap read_bitmap(Reader& in, std::size_t bits) {
  auto bitmap = Bitmap::from_bytes(bits, in.bytes((bits + 7) / 8));
  if (bitmap.ok()) return *std::move(bitmap);
  in.fail();
  return {};
}

}  // namespace neuroshard::chain
