#include "core/chain/detail/close_bytes.h"

#include <algorithm>
#include <iterator>

#include "core/chain/detail/formats.h"

namespace neuroshard::chain {
namespace {

constexpr std::size_t least_vector_bytes = 4 + 32 + 64;

void append_all_withheld(Bytes& bytes, const std::vector<Vector>& vectors) {
  std::uint32_t count = 0;
  for (const Vector& vector : vectors) count += vector.withheld.empty() ? 0 : 1;
  if (count == 0) return;
  append_le(bytes, count);
  for (const Vector& vector : vectors) {
    if (vector.withheld.empty()) continue;
    append_le(bytes, vector.voter);
    append_withheld(bytes, vector.withheld);
  }
}

void read_all_withheld(ByteReader& in, std::vector<Vector>* vectors) {
  if (!in.good() || in.at_end()) return;
  const std::size_t count = in.count(4 + 4 + row_round_bytes, vectors->size());
  if (count == 0) in.fail();
  auto next = vectors->begin();
  for (std::size_t i = 0; in.good() && i < count; ++i) {
    const auto voter = in.number<std::uint32_t>();
    next = std::find_if(next, vectors->end(), [voter](const Vector& one) { return one.voter == voter; });
    if (next == vectors->end()) return in.fail();
    next++->withheld = read_withheld(in);
  }
}

std::vector<std::uint32_t> listed_by_any(const std::vector<Vector>& vectors) {
  std::vector<std::uint32_t> all, merged;
  for (const Vector& vector : vectors) {
    if (vector.members == all) continue;  // mostly everybody lists the same
    merged.clear();
    std::set_union(all.begin(), all.end(), vector.members.begin(), vector.members.end(),
                   std::back_inserter(merged));
    all.swap(merged);
  }
  return all;
}

// Both ascending; all of `members` are in `all`.
Bitmap places(const std::vector<std::uint32_t>& members, const std::vector<std::uint32_t>& all) {
  if (members.size() == all.size()) return Bitmap::of_ones(all.size());
  Bitmap bits(all.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < all.size() && at < members.size(); ++i) {
    if (all[i] != members[at]) continue;
    bits.set(i);
    ++at;
  }
  return bits;
}

Vector read_vector(ByteReader& in, const std::vector<std::uint32_t>& all, std::size_t rows, Bitmap* listed) {
  Vector vector;
  vector.voter = in.number<std::uint32_t>();
  vector.contributions = in.array<Hash256>();
  const Bitmap members = read_bitmap(in, all.size());
  if (!in.good()) return vector;
  vector.members.reserve(members.count());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!members.test(i)) continue;
    listed->set(i);
    vector.members.push_back(all[i]);
  }
  vector.payloads.reserve(rows);
  for (std::size_t row = 0; in.good() && row < rows; ++row)
    vector.payloads.push_back(read_bitmap(in, vector.members.size()));
  vector.signature = in.array<crypto::Signature>();
  return vector;
}

}  // namespace

Bytes encode_close(const CloseSection& close) {
  Bytes bytes;
  append_le(bytes, close.round);
  append_entries(bytes, close.contributions);
  const std::vector<std::uint32_t> all = listed_by_any(close.vectors);
  append_numbers(bytes, all);
  const std::size_t rows = close.vectors.empty() ? 0 : close.vectors.front().payloads.size();
  append_le(bytes, static_cast<std::uint32_t>(rows));
  append_le(bytes, static_cast<std::uint32_t>(close.vectors.size()));
  for (const Vector& vector : close.vectors) {
    append_le(bytes, vector.voter);
    append_array(bytes, vector.contributions);
    append_array(bytes, places(vector.members, all).bytes());
    for (const Bitmap& payloads : vector.payloads) append_array(bytes, payloads.bytes());
    append_array(bytes, vector.signature);
  }
  append_all_withheld(bytes, close.vectors);
  return bytes;
}

Expected<CloseSection> decode_close(ByteSpan bytes, const Hash256& opening) {
  ByteReader in(bytes);
  CloseSection close;
  close.round = in.number<std::uint64_t>();
  close.contributions = read_entries(in);
  const std::vector<std::uint32_t> all = read_numbers(in, max_members);
  const auto rows = in.number<std::uint32_t>();
  const std::size_t count = in.count(least_vector_bytes, max_committee);
  if (rows > max_rows || (count == 0 && rows != 0)) in.fail();
  Bitmap listed(all.size());
  std::size_t numbers = 0;
  for (std::size_t i = 0; in.good() && i < count; ++i) {
    Vector vector = read_vector(in, all, rows, &listed);
    numbers += vector.members.size();
    if (numbers > max_listed) in.fail();
    if (i > 0 && vector.voter <= close.vectors.back().voter) in.fail();
    vector.opening = opening;
    vector.round = close.round;
    close.vectors.push_back(std::move(vector));
  }
  read_all_withheld(in, &close.vectors);
  if (!in.at_end() || listed.count() != all.size()) return corrupt("a round's close can't be read");
  return close;
}

}  // namespace neuroshard::chain
