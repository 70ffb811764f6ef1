#include "core/engine/state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/crypto/hash.h"

namespace neuroshard::engine {
namespace {

constexpr std::uint64_t longest_certificate = std::uint64_t{8} << 20;
constexpr std::string_view state_magic = "NSRSTATE";
constexpr std::size_t state_head = 8 + 4 * 8;
constexpr std::size_t piece = 1u << 20;

Span<const float> part(const rounds::OuterState& state, int which) {
  return which == 0 ? state.weights : which == 1 ? state.momentum : state.bias;
}

Error damaged(const std::string& path, std::string_view what) {
  return make_error(
      ErrorCode::Corrupt,
      fmt::format("{} {}: the node does not use it and fetches the state from other members", path, what));
}

}  // namespace

Expected<StateFile> read_state_file(storage::FileEnv& files, const std::string& from, std::uint64_t values,
                                    std::uint64_t bias) {
  if (!files.exists(from)) return make_error(ErrorCode::NotFound, "no state is saved yet");
  NS_ASSIGN_OR_RETURN(const auto file, files.open_read(from));
  Bytes head(state_head);
  if (file->size() < state_head) return damaged(from, "ends early");
  NS_RETURN_IF_ERROR(file->read_at(0, head));
  if (as_text(ByteSpan(head).first(state_magic.size())) != state_magic)
    return damaged(from, "is not a state of rounds");
  StateFile known;
  known.round = load_le<std::uint64_t>(head.data() + 8);
  // Checks the sizes of this model first; allocates nothing for another one.
  const auto certificate_bytes = load_le<std::uint64_t>(head.data() + 32);
  if (load_le<std::uint64_t>(head.data() + 16) != values ||
      load_le<std::uint64_t>(head.data() + 24) != bias || certificate_bytes > longest_certificate ||
      file->size() != state_head + (2 * values + bias) * sizeof(float) + certificate_bytes + sizeof(Hash256))
    return damaged(from, "belongs to another model or is incomplete");
  auto state = std::make_shared<rounds::OuterState>();
  state->weights.resize(static_cast<std::size_t>(values));
  state->momentum.resize(static_cast<std::size_t>(values));
  state->bias.resize(static_cast<std::size_t>(bias));
  crypto::Sha256 hash;
  hash.update(head);
  std::uint64_t at = state_head;
  for (std::vector<float>* all : {&state->weights, &state->momentum, &state->bias}) {
    const MutableByteSpan target(reinterpret_cast<std::uint8_t*>(all->data()), all->size() * sizeof(float));
    NS_RETURN_IF_ERROR(file->read_at(at, target));
    hash.update(target);
    at += target.size();
  }
  Bytes certificate(static_cast<std::size_t>(certificate_bytes));
  NS_RETURN_IF_ERROR(file->read_at(at, certificate));
  hash.update(certificate);
  at += certificate_bytes;
  Hash256 kept{};
  NS_RETURN_IF_ERROR(file->read_at(at, {kept.data(), kept.size()}));
  if (hash.finish() != kept) return damaged(from, "is damaged");
  known.certificate = std::move(certificate);
  known.state = std::move(state);
  return known;
}

Expected<void> write_state_file(storage::FileEnv& files, const std::string& to, const StateFile& known) {
  const rounds::OuterState& state = *known.state;
  const std::string fresh = to + ".new";
  const Bytes& certificate = known.certificate;
  Bytes head(state_magic.begin(), state_magic.end());
  append_le(head, known.round);
  append_le(head, static_cast<std::uint64_t>(state.weights.size()));
  append_le(head, static_cast<std::uint64_t>(state.bias.size()));
  append_le(head, static_cast<std::uint64_t>(certificate.size()));
  storage::LargeFile size;
  size.bytes = head.size() + certificate.size() + sizeof(Hash256) +
               (state.weights.size() + state.momentum.size() + state.bias.size()) * sizeof(float);
  NS_ASSIGN_OR_RETURN(const auto file, files.open_write_large(fresh, size));
  crypto::Sha256 hash;
  const auto append = [&](ByteSpan bytes) -> Expected<void> {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      const ByteSpan next = bytes.subspan(at, std::min(piece, bytes.size() - at));
      hash.update(next);
      NS_RETURN_IF_ERROR(file->append(next));
    }
    return {};
  };
  NS_RETURN_IF_ERROR(append(head));
  for (int which = 0; which < 3; ++which) NS_RETURN_IF_ERROR(append(as_bytes(part(state, which))));
  NS_RETURN_IF_ERROR(append(certificate));
  const Hash256 end = hash.finish();
  NS_RETURN_IF_ERROR(file->append({end.data(), end.size()}));
  NS_RETURN_IF_ERROR(file->sync());
  NS_RETURN_IF_ERROR(file->close());
  return files.rename(fresh, to);
}

}  // namespace neuroshard::engine
