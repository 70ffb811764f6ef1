#include "core/chain/contribution.h"

#include <algorithm>
#include <bit>

#include "core/chain/ascending.h"
#include "core/chain/detail/formats.h"
#include "core/crypto/merkle.h"

namespace neuroshard::chain {
namespace {

auto work_fields(auto& row) {
  return std::tie(row.row, row.tokens, row.payload_bytes, row.payload);
}

// Those before the rows.
auto contribution_fields(auto& contribution) {
  return std::tie(contribution.opening, contribution.round, contribution.node, contribution.batches,
                  contribution.reveal);
}

// Those before the lists.
auto vector_fields(auto& vector) {
  return std::tie(vector.opening, vector.round, vector.voter, vector.contributions);
}

Bytes signed_part(const ContributionEntry& entry, const Hash256& opening, std::uint64_t round,
                  const crypto::PublicKey& node) {
  return bytes_of(std::tie(opening, round, node, entry.tokens, entry.work, entry.batches, entry.reveal));
}

Bytes signed_part(const VectorClaim& claim) {
  return bytes_of(std::tie(claim.opening, claim.round, claim.voter, claim.content));
}

Bytes lists_of(const Vector& vector) {
  Bytes bytes;
  append_array(bytes, vector.contributions);
  append_numbers(bytes, vector.members);
  for (const Bitmap& payloads : vector.payloads) append_array(bytes, payloads.bytes());
  append_withheld(bytes, vector.withheld);
  return bytes;
}

// Mostly everybody contributes: the members of a large network are a few runs of consecutive numbers.
struct Run {
  std::uint32_t first = 0, count = 0;
};

void append_runs(Bytes& bytes, const std::vector<std::uint32_t>& numbers) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool goes_on = i > 0 && numbers[i - 1] + std::uint64_t{1} == numbers[i];
    if (!goes_on) runs.push_back({numbers[i], 0});
    ++runs.back().count;
  }
  append_le(bytes, static_cast<std::uint32_t>(runs.size()));
  for (const Run& run : runs) {
    append_le(bytes, run.first);
    append_le(bytes, run.count);
  }
}

std::vector<std::uint32_t> read_runs(ByteReader& in, std::size_t most) {
  std::vector<std::uint32_t> numbers;
  const std::size_t runs = in.count(2 * sizeof(std::uint32_t), most);
  std::uint64_t end = 0;  // of the run before
  for (std::size_t i = 0; in.good() && i < runs; ++i) {
    const std::uint64_t first = in.number<std::uint32_t>(), count = in.number<std::uint32_t>();
    const bool follows = i == 0 || first > end;
    end = first + count;
    if (!follows || count == 0 || count > most - numbers.size() || end > std::uint64_t{1} << 32) in.fail();
    for (std::uint64_t number = first; in.good() && number < end; ++number)
      numbers.push_back(static_cast<std::uint32_t>(number));
  }
  return numbers;
}

}  // namespace

Hash256 work_root(const std::vector<RowWork>& rows) {
  std::vector<Hash256> leaves;
  leaves.reserve(rows.size());
  for (const RowWork& row : rows) leaves.push_back(crypto::merkle_leaf(bytes_of(work_fields(row))));
  return crypto::merkle_root(leaves);
}

std::uint64_t tokens_of(const std::vector<RowWork>& rows) {
  std::uint64_t most = 0;
  for (const RowWork& row : rows) most = std::max(most, row.tokens);
  return most;
}

void sign_contribution(Contribution& contribution, const crypto::KeyPair& node, const Hash256& network) {
  contribution.node = node.public_key();
  contribution.signature = node.sign(
      crypto::Purpose::ChainContribution, network,
      signed_part(entry_of(contribution, 0), contribution.opening, contribution.round, contribution.node));
}

bool contribution_holds(const Contribution& contribution, const Hash256& network) {
  return entry_holds(entry_of(contribution, 0), contribution.opening, contribution.round, contribution.node,
                     network);
}

bool entry_holds(const ContributionEntry& entry, const Hash256& opening, std::uint64_t round,
                 const crypto::PublicKey& node, const Hash256& network) {
  return crypto::verify(node, crypto::Purpose::ChainContribution, network,
                        signed_part(entry, opening, round, node), entry.signature);
}

ContributionEntry entry_of(const Contribution& contribution, std::uint32_t member) {
  return {member,
          tokens_of(contribution.rows),
          work_root(contribution.rows),
          contribution.batches,
          contribution.reveal,
          contribution.signature};
}

Hash256 contribution_id(const ContributionEntry& entry) {
  const Bytes bytes = bytes_of(entry_fields(entry));
  return tagged_hash("neuroshard/chain/contribution/1", ByteSpan(bytes).subspan(sizeof entry.member));
}

Bytes encode_contribution(const Contribution& contribution) {
  Bytes bytes = bytes_of(contribution_fields(contribution));
  append_le(bytes, static_cast<std::uint32_t>(contribution.rows.size()));
  for (const RowWork& row : contribution.rows) append_record(bytes, work_fields(row));
  append_array(bytes, contribution.signature);
  return bytes;
}

Expected<Contribution> decode_contribution(ByteSpan bytes, std::size_t most_rows) {
  ByteReader in(bytes);
  Contribution contribution;
  in.read(contribution_fields(contribution));
  contribution.rows.resize(in.count(row_work_bytes, most_rows));
  for (RowWork& row : contribution.rows) in.read(work_fields(row));
  if (!is_ascending(contribution.rows, &RowWork::row)) in.fail();
  contribution.signature = in.array<crypto::Signature>();
  if (!in.at_end()) return corrupt("a contribution can't be read");
  return contribution;
}

Bitmap Bitmap::of_ones(std::size_t bits) {
  Bitmap bitmap(bits);
  std::fill(bitmap.bytes_.begin(), bitmap.bytes_.end(), std::uint8_t{0xff});
  if (bits % 8 != 0) bitmap.bytes_.back() = static_cast<std::uint8_t>((1u << bits % 8) - 1);
  return bitmap;
}

std::size_t Bitmap::count() const {
  std::size_t bits = 0;
  for (const std::uint8_t byte : bytes_) bits += static_cast<std::size_t>(std::popcount(byte));
  return bits;
}

Expected<Bitmap> Bitmap::from_bytes(std::size_t bits, ByteSpan bytes) {
  const bool unused_set = bits % 8 != 0 && !bytes.empty() && (bytes.back() >> (bits % 8)) != 0;
  if (bytes.size() != (bits + 7) / 8 || unused_set) return corrupt("a bitmap can't be read");
  Bitmap bitmap;
  bitmap.bits_ = bits;
  bitmap.bytes_.assign(bytes.begin(), bytes.end());
  return bitmap;
}

Hash256 contributions_root(const std::vector<Hash256>& ids) {
  std::vector<Hash256> leaves;
  leaves.reserve(ids.size());
  for (const Hash256& id : ids) leaves.push_back(crypto::merkle_leaf(id));
  return crypto::merkle_root(leaves);
}

VectorClaim claim_of(const Vector& vector) {
  return {vector.opening, vector.round, vector.voter,
          tagged_hash("neuroshard/chain/vector/1", lists_of(vector)), vector.signature};
}

bool claim_holds(const VectorClaim& claim, const crypto::PublicKey& node, const Hash256& network) {
  return crypto::verify(node, crypto::Purpose::ChainVector, network, signed_part(claim), claim.signature);
}

void sign_vector(Vector& vector, const crypto::KeyPair& node, const Hash256& network) {
  vector.signature = node.sign(crypto::Purpose::ChainVector, network, signed_part(claim_of(vector)));
}

bool vector_holds(const Vector& vector, const crypto::PublicKey& node, const Hash256& network) {
  return claim_holds(claim_of(vector), node, network);
}

Bytes encode_vector(const Vector& vector) {
  Bytes bytes = bytes_of(vector_fields(vector));
  append_runs(bytes, vector.members);
  for (const Bitmap& payloads : vector.payloads) append_array(bytes, payloads.bytes());
  append_array(bytes, vector.signature);
  append_withheld(bytes, vector.withheld);
  return bytes;
}

Expected<Vector> decode_vector(ByteSpan bytes, std::size_t most_members, std::size_t rows) {
  ByteReader in(bytes);
  Vector vector;
  in.read(vector_fields(vector));
  vector.members = read_runs(in, most_members);
  for (std::size_t row = 0; in.good() && row < rows; ++row)
    vector.payloads.push_back(read_bitmap(in, vector.members.size()));
  vector.signature = in.array<crypto::Signature>();
  vector.withheld = read_withheld(in);
  if (!in.at_end()) return corrupt("a voter's vector can't be read");
  return vector;
}

}  // namespace neuroshard::chain
