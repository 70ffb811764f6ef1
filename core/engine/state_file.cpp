#include "core/engine/state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/crypto/hash.h"
#include "core/storage/file_spool.h"

namespace neuroshard::engine {
namespace {

constexpr std::uint64_t longest_certificate = std::uint64_t{8} << 20;
constexpr std::string_view state_magic = "NSRSTATE";
constexpr std::size_t state_head = 8 + 4 * 8;
constexpr std::size_t piece = 1u << 20;

Error damaged(const std::string& path, std::string_view what, ErrorCode code = ErrorCode::Corrupt) {
  return make_error(
      code,
      fmt::format("{} {}: the node does not use it and fetches the state from other members", path, what));
}

}  // namespace

Expected<StateFile> read_state_file(storage::FileEnv& files, const std::string& from, std::uint64_t values,
                                    std::uint64_t bias) {
  if (!files.exists(from)) return make_error(ErrorCode::NotFound, "no state is saved yet");
  NS_ASSIGN_OR_RETURN(const ByteSourcePtr file, storage::open_bytes(files, from));
  Bytes head(state_head);
  if (file->size() < state_head) return damaged(from, "ends early");
  NS_RETURN_IF_ERROR(file->read_at(0, head));
  if (as_text(ByteSpan(head).first(state_magic.size())) != state_magic)
    return damaged(from, "is not a state of rounds");
  StateFile known;
  known.round = load_le<std::uint64_t>(head.data() + 8);
  // Checks the sizes of this model first; allocates nothing for another one.
  const auto certificate_bytes = load_le<std::uint64_t>(head.data() + 32);
  if (load_le<std::uint64_t>(head.data() + 16) != values || load_le<std::uint64_t>(head.data() + 24) != bias)
    return damaged(from, "belongs to another model", ErrorCode::InvalidArgument);
  if (certificate_bytes > longest_certificate ||
      file->size() != state_head + (2 * values + bias) * sizeof(float) + certificate_bytes + sizeof(Hash256))
    return damaged(from, "is incomplete");
  const outer::AnchorCounts counts = rounds::state_counts(values, bias);
  const std::uint64_t state_end = state_head + rounds::state_bytes(counts);
  crypto::Sha256 hash;
  const std::uint64_t hashed = file->size() - sizeof(Hash256);
  NS_RETURN_IF_ERROR(
      read_in_parts(*part_of(file, 0, hashed), piece, [&](std::uint64_t, ByteSpan bytes) -> Expected<void> {
        hash.update(bytes);
        return {};
      }));
  Hash256 kept{};
  NS_RETURN_IF_ERROR(file->read_at(hashed, {kept.data(), kept.size()}));
  if (hash.finish() != kept) return damaged(from, "is damaged");
  known.certificate.resize(static_cast<std::size_t>(certificate_bytes));
  NS_RETURN_IF_ERROR(file->read_at(state_end, known.certificate));
  known.state = std::make_shared<const rounds::OuterState>(
      rounds::OuterState{counts, part_of(file, state_head, state_end - state_head)});
  return known;
}

Expected<void> write_state_file(storage::FileEnv& files, const std::string& to, const StateFile& known) {
  const rounds::OuterState& state = *known.state;
  const std::string fresh = to + ".new";
  const Bytes& certificate = known.certificate;
  Bytes head(state_magic.begin(), state_magic.end());
  append_le(head, known.round);
  append_le(head, state.counts.weights);
  append_le(head, state.counts.bias);
  append_le(head, static_cast<std::uint64_t>(certificate.size()));
  storage::LargeFile size;
  size.bytes = head.size() + state.bytes->size() + certificate.size() + sizeof(Hash256);
  NS_ASSIGN_OR_RETURN(const auto file, files.open_write_large(fresh, size));
  crypto::Sha256 hash;
  const auto append = [&](ByteSpan bytes) {
    hash.update(bytes);
    return file->append(bytes);
  };
  NS_RETURN_IF_ERROR(append(head));
  NS_RETURN_IF_ERROR(
      read_in_parts(*state.bytes, piece, [&](std::uint64_t, ByteSpan bytes) { return append(bytes); }));
  NS_RETURN_IF_ERROR(append(certificate));
  const Hash256 end = hash.finish();
  NS_RETURN_IF_ERROR(file->append({end.data(), end.size()}));
  NS_RETURN_IF_ERROR(file->sync());
  NS_RETURN_IF_ERROR(file->close());
  return files.rename(fresh, to);
}

}  // namespace neuroshard::engine
