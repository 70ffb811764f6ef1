#include "core/chain/resume.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "core/chain/detail/formats.h"

namespace neuroshard::chain {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view resume_magic = "NSRP";
constexpr std::uint16_t resume_version = 1;

auto resume_fields(auto& point) {
  return std::tie(point.genesis, point.first_height, point.height, point.block);
}

Hash256 resume_checksum(ByteSpan bytes) {
  return tagged_hash("neuroshard/chain/resume/1", bytes);
}

// From the point's block back to the log's first one: each is the one that the block after it names.
Expected<void> read_back(ChainStore& store, const History::Services& services, const ResumePoint& point,
                         History::Verified* verified) {
  const Hash256& network = services.rules.network;
  verified->hashes.resize(static_cast<std::size_t>(point.height - point.first_height + 1));
  Hash256 named = point.block;
  std::size_t results = 0;
  for (std::size_t i = verified->hashes.size(); i-- > 0;) {
    const std::uint64_t height = point.first_height + i;
    const std::size_t kept = verified->blocks.size();
    const bool in_memory = kept < blocks_kept || (results < rounds_kept && kept < most_blocks_kept);
    BlockHeader header;
    if (in_memory) {
      NS_ASSIGN_OR_RETURN(const Bytes bytes, store.load_block(height));
      NS_ASSIGN_OR_RETURN(CertifiedBlock block, decode_certified(bytes, network, services.cache));
      header = block.block->header;
      if (block.block->body.result) ++results;
      verified->blocks.push_back(std::move(block));
    } else {
      NS_ASSIGN_OR_RETURN(const Bytes bytes, store.load_beginning(height, certified_header_bytes));
      NS_ASSIGN_OR_RETURN(header, decode_certified_header(bytes));
    }
    if (header.height != height || block_hash(header, network) != named)
      return denied("the saved state of the chain does not follow from the log of blocks");
    verified->hashes[i] = named;
    named = header.previous;
  }
  std::reverse(verified->blocks.begin(), verified->blocks.end());
  return {};
}

}  // namespace

bool can_resume_after(const ChainTip& tip) {
  return !tip.block->body.succession;
}

ResumePoint resume_point(const Hash256& genesis, std::uint64_t first_height, const ChainTip& tip) {
  ResumePoint point;
  point.genesis = genesis;
  point.first_height = first_height;
  point.height = tip.height();
  point.block = tip.block->hash;
  point.times = tip.times;
  point.registry = tip.registry->encode();
  return point;
}

Bytes encode_resume_point(const ResumePoint& point) {
  Bytes bytes(resume_magic.begin(), resume_magic.end());
  append_le(bytes, resume_version);
  append_record(bytes, resume_fields(point));
  const auto& [opened_ms, durations] = point.times;
  append_flag(bytes, opened_ms.has_value());
  if (opened_ms) append_le(bytes, *opened_ms);
  append_le(bytes, static_cast<std::uint32_t>(durations.size()));
  for (const Duration duration : durations)
    append_le(bytes, static_cast<std::uint32_t>(std::chrono::duration_cast<milliseconds>(duration).count()));
  append_array(bytes, point.registry);
  const Hash256 checksum = resume_checksum(bytes);
  append_array(bytes, checksum);
  return bytes;
}

Expected<ResumePoint> decode_resume_point(ByteSpan bytes) {
  if (bytes.size() < sizeof(Hash256)) return corrupt("the saved state of the chain can't be read");
  const ByteSpan content = bytes.first(bytes.size() - sizeof(Hash256));
  ByteReader in(content), end(bytes.subspan(content.size()));
  if (as_text(in.bytes(resume_magic.size())) != resume_magic)
    return corrupt("the saved state of the chain can't be read");
  if (in.number<std::uint16_t>() != resume_version)
    return make_error(ErrorCode::Unsupported, "the saved state of the chain has another version");
  if (end.array<Hash256>() != resume_checksum(content))
    return corrupt("the saved state of the chain is damaged");
  ResumePoint point;
  in.read(resume_fields(point));
  if (in.flag()) point.times.opened_ms = in.number<std::uint64_t>();
  const std::size_t durations = in.count(sizeof(std::uint32_t), durations_kept);
  for (std::size_t i = 0; i < durations; ++i)
    point.times.durations.push_back(milliseconds(in.number<std::uint32_t>()));
  const ByteSpan registry = in.rest();
  if (!in.good()) return corrupt("the saved state of the chain can't be read");
  point.registry.assign(registry.begin(), registry.end());
  return point;
}

Expected<History> resume_history(ChainStore& store, const History::Services& services) {
  const auto saved = store.load(ChainStore::Record::Resume);
  if (!saved.ok()) return saved.error();
  NS_ASSIGN_OR_RETURN(const ResumePoint point, decode_resume_point(*saved));
  const std::uint64_t first = store.first_block();
  if (point.first_height != first || point.height < first || point.height - first >= store.block_count())
    return denied("the saved state of the chain is of a block that the log does not have");
  History::Verified verified;
  verified.genesis = point.genesis;
  verified.times = point.times;
  NS_RETURN_IF_ERROR(read_back(store, services, point, &verified));
  if (first == 0 && verified.hashes.front() != point.genesis)
    return denied("the saved state of the chain names another genesis than the log");
  return History::resume(services, std::move(verified), point.registry);
}

Expected<History> first_history(ChainStore& store, const History::Services& services) {
  const std::uint64_t first = store.first_block();
  NS_ASSIGN_OR_RETURN(const Bytes bytes, store.load_block(first));
  NS_ASSIGN_OR_RETURN(const CertifiedBlock block,
                      decode_certified(bytes, services.rules.network, services.cache));
  if (first == 0) return History::begin(services, block);
  NS_ASSIGN_OR_RETURN(const Bytes snapshot, store.load(ChainStore::Record::Snapshot));
  ByteReader reader(snapshot);
  const auto genesis = reader.array<Hash256>();
  return History::begin_at(services, genesis, block, reader.rest());
}

}  // namespace neuroshard::chain
