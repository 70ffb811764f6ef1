#include "core/outer/anchor_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/crypto/merkle.h"

namespace neuroshard::outer {
namespace {

constexpr std::string_view domain = "neuroshard.anchor.v1";

void append(Bytes& target, ByteSpan bytes) {
  target.insert(target.end(), bytes.begin(), bytes.end());
}

// Of the bytes of one kind of values, [begin, begin + bytes) of the state.
Expected<void> append_leaves(std::vector<Hash256>& leaves, const ByteSource& state, std::uint64_t begin,
                             std::uint64_t bytes) {
  Bytes chunk;
  for (std::uint64_t at = 0; at < bytes; at += chunk.size()) {
    chunk.resize(static_cast<std::size_t>(std::min<std::uint64_t>(anchor_chunk_bytes, bytes - at)));
    NS_RETURN_IF_ERROR(state.read_at(begin + at, chunk));
    leaves.push_back(crypto::merkle_leaf(chunk));
  }
  return {};
}

}  // namespace

Bytes anchor_header(const AnchorIdentity& identity, const AnchorCounts& counts) {
  Bytes header;
  header.reserve(192);
  append(header, as_bytes(domain));
  append(header, identity.network);
  append_le(header, identity.architecture_version);
  append_le(header, identity.slot);
  append_le(header, identity.round);
  append(header, identity.tokenizer);
  append_le(header, counts.weights);
  append_le(header, counts.momentum);
  append_le(header, counts.bias);
  return header;
}

Expected<std::vector<Hash256>> anchor_leaves(const AnchorIdentity& identity, const AnchorCounts& counts,
                                             const ByteSource& state) {
  const std::uint64_t needed = sizeof(float) * (counts.weights + counts.momentum + counts.bias);
  if (state.size() != needed)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("An anchor of {} bytes is needed; this one has {}.", needed, state.size()));
  std::vector<Hash256> leaves;
  leaves.push_back(crypto::merkle_leaf(anchor_header(identity, counts)));
  std::uint64_t at = 0;
  for (const std::uint64_t count : {counts.weights, counts.momentum, counts.bias}) {
    NS_RETURN_IF_ERROR(append_leaves(leaves, state, at, sizeof(float) * count));
    at += sizeof(float) * count;
  }
  return leaves;
}

Expected<Hash256> anchor_hash(const AnchorIdentity& identity, const AnchorCounts& counts,
                              const ByteSource& state) {
  NS_ASSIGN_OR_RETURN(const std::vector<Hash256> leaves, anchor_leaves(identity, counts, state));
  return crypto::merkle_root(leaves);
}

}  // namespace neuroshard::outer
