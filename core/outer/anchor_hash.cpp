#include "core/outer/anchor_hash.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "core/crypto/merkle.h"

namespace neuroshard::outer {
namespace {

static_assert(std::endian::native == std::endian::little, "floats are hashed as they lie in memory");

constexpr std::string_view domain = "neuroshard.anchor.v1";

void append(Bytes& target, ByteSpan bytes) {
  target.insert(target.end(), bytes.begin(), bytes.end());
}

void append_leaves(std::vector<Hash256>& leaves, Span<const float> values) {
  const ByteSpan bytes = as_bytes(values);
  for (std::size_t at = 0; at < bytes.size(); at += anchor_chunk_bytes)
    leaves.push_back(crypto::merkle_leaf(bytes.subspan(at, std::min(anchor_chunk_bytes, bytes.size() - at))));
}

}  // namespace

Bytes anchor_header(const AnchorIdentity& identity, std::uint64_t weights, std::uint64_t momentum,
                    std::uint64_t bias) {
  Bytes header;
  header.reserve(192);
  append(header, as_bytes(domain));
  append(header, identity.network);
  append_le(header, identity.architecture_version);
  append_le(header, identity.slot);
  append_le(header, identity.round);
  append(header, identity.tokenizer);
  append_le(header, weights);
  append_le(header, momentum);
  append_le(header, bias);
  return header;
}

std::vector<Hash256> anchor_leaves(const AnchorIdentity& identity, const AnchorState& state) {
  std::vector<Hash256> leaves;
  leaves.push_back(crypto::merkle_leaf(
      anchor_header(identity, state.weights.size(), state.momentum.size(), state.bias.size())));
  append_leaves(leaves, state.weights);
  append_leaves(leaves, state.momentum);
  append_leaves(leaves, state.bias);
  return leaves;
}

Hash256 anchor_hash(const AnchorIdentity& identity, const AnchorState& state) {
  return crypto::merkle_root(anchor_leaves(identity, state));
}

}  // namespace neuroshard::outer
