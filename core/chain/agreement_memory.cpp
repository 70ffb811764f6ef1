#include "core/chain/agreement_memory.h"

#include "core/chain/detail/formats.h"
#include "core/chain/rules.h"

namespace neuroshard::chain {
namespace {

constexpr std::uint32_t magic = 0x4d41534e;  // "NSAM"
constexpr std::uint16_t version = 1;
enum Part : std::uint8_t { HasPrepared = 1, HasLock = 2, HasFullLock = 4 };
// A block, two quorums and what frames them.
constexpr std::size_t most_bytes = max_body_bytes + (256u << 10);

Error unreadable() {
  return corrupt("this node's record of its votes can't be read");
}

bool belongs(const Quorum& lock, const AgreementMemory& memory) {
  return lock.step == VoteStep::Prepare && lock.height == memory.height && lock.previous == memory.previous &&
         lock.block == memory.block->hash && lock.view <= memory.view;
}

Expected<QuorumPtr> read_quorum(ByteReader& in) {
  NS_ASSIGN_OR_RETURN(Quorum quorum, decode_quorum(in.part()));
  return std::make_shared<const Quorum>(std::move(quorum));
}

Expected<void> read_lock(ByteReader& in, std::uint8_t parts, const Hash256& network,
                         AgreementMemory* memory) {
  NS_ASSIGN_OR_RETURN(memory->lock, read_quorum(in));
  NS_ASSIGN_OR_RETURN(memory->block, decode_block(in.part(), network));
  if (memory->block->header.height != memory->height || memory->block->header.previous != memory->previous ||
      !belongs(*memory->lock, *memory))
    return unreadable();
  if ((parts & HasFullLock) == 0) return {};
  NS_ASSIGN_OR_RETURN(memory->full_lock, read_quorum(in));
  if (!belongs(*memory->full_lock, *memory) || memory->full_lock->view >= memory->lock->view)
    return unreadable();
  return {};
}

}  // namespace

bool remembers(const AgreementMemory& memory, const Vote& vote) {
  if (memory.height != vote.height || memory.previous != vote.previous) return false;
  if (memory.view != vote.view) return memory.view > vote.view;
  if (vote.step == VoteStep::Prepare) return memory.prepared == vote.block;
  return memory.lock && memory.lock->view == vote.view && memory.lock->block == vote.block;
}

Bytes encode_agreement_memory(const AgreementMemory& memory) {
  return encode_agreement_memory_with(memory, memory.lock ? encode_block(*memory.block) : Bytes());
}

Bytes encode_agreement_memory_with(const AgreementMemory& memory, ByteSpan block) {
  Bytes bytes;
  if (!block.empty()) bytes.reserve(block.size() + (64u << 10));
  append_record(bytes, std::tie(magic, version, memory.height, memory.previous, memory.view));
  bytes.push_back(static_cast<std::uint8_t>((memory.prepared ? HasPrepared : 0) |
                                            (memory.lock ? HasLock : 0) |
                                            (memory.full_lock ? HasFullLock : 0)));
  if (memory.prepared) append_array(bytes, *memory.prepared);
  if (memory.lock) {
    append_part(bytes, encode_quorum(*memory.lock));
    append_part(bytes, block);
  }
  if (memory.full_lock) append_part(bytes, encode_quorum(*memory.full_lock));
  return bytes;
}

Expected<AgreementMemory> decode_agreement_memory(ByteSpan bytes, const Hash256& network) {
  if (bytes.size() > most_bytes) return unreadable();
  ByteReader in(bytes);
  if (in.number<std::uint32_t>() != magic) return unreadable();
  const auto its_version = in.number<std::uint16_t>();
  if (in.good() && its_version > version)
    return make_error(ErrorCode::Unsupported, "a newer program wrote this node's record of its votes");
  if (its_version != version) return unreadable();
  AgreementMemory memory;
  in.read(std::tie(memory.height, memory.previous, memory.view));
  const auto parts = in.number<std::uint8_t>();
  if (parts > (HasPrepared | HasLock | HasFullLock) || ((parts & HasFullLock) != 0 && (parts & HasLock) == 0))
    return unreadable();
  if ((parts & HasPrepared) != 0) memory.prepared = in.array<Hash256>();
  if (!in.good()) return unreadable();
  if ((parts & HasLock) != 0 && !read_lock(in, parts, network, &memory).ok()) return unreadable();
  if (!in.at_end()) return unreadable();
  return memory;
}

}  // namespace neuroshard::chain
