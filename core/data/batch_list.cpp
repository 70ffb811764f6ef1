#include "core/data/batch_list.h"

#include <string_view>
#include <tuple>

#include "core/base/byte_reader.h"
#include "core/base/check.h"
#include "core/crypto/hash.h"

namespace neuroshard::data {
namespace {

constexpr std::string_view list_tag = "neuroshard/batch-list/1";
constexpr std::size_t work_head_bytes = 32 + 4 + 4 + 4;

template <class Run>  // BatchRun, const or not
auto run_fields(Run& run) {
  return std::tie(run.round, run.draw.round, run.draw.total, run.shard_id, run.shard_hash, run.offset,
                  run.first, run.count, run.digest);
}
template <class Work>  // without the runs
auto work_fields(Work& work) {
  return std::tie(work.tokenizer_hash, work.sequence, work.batch_tokens);
}
template <class List>  // without tag, work and signature
auto list_fields(List& list) {
  return std::tie(list.network, list.node, list.opening, list.round);
}

Error corrupt() {
  return make_error(ErrorCode::Corrupt, "the list of batches is damaged");
}

Bytes signed_part(const BatchList& list) {
  Bytes bytes(list_tag.begin(), list_tag.end());
  append_record(bytes, list_fields(list));
  append_array(bytes, encode_batch_work(list.work));
  return bytes;
}

}  // namespace

Hash256 next_digest(const Hash256& before, const Batch& batch) {
  const Hash256 content = crypto::Sha256()
                              .update(as_bytes(Span<const std::int32_t>(batch.tokens)))
                              .update(as_bytes(Span<const std::int32_t>(batch.targets)))
                              .finish();
  return crypto::Sha256().update(before).update(content).finish();
}

Bytes encode_runs(const std::vector<BatchRun>& runs) {
  Bytes bytes;
  bytes.reserve(runs.size() * batch_run_bytes);
  for (const BatchRun& run : runs) append_record(bytes, run_fields(run));
  return bytes;
}

Expected<std::vector<BatchRun>> decode_runs(ByteSpan bytes) {
  if (bytes.size() % batch_run_bytes != 0 || bytes.size() / batch_run_bytes > max_batch_runs)
    return corrupt();
  ByteReader reader(bytes);
  std::vector<BatchRun> runs(bytes.size() / batch_run_bytes);
  for (BatchRun& run : runs) {
    reader.read(run_fields(run));
    if (run.count == 0 || run.first + run.count < run.first) return corrupt();
  }
  return runs;
}

BatchRecord BatchWork::record(const BatchRun& run, const Hash256& driver) const {
  BatchRecord record{run.round,  run.shard_id, run.shard_hash, tokenizer_hash,
                     run.offset, batch_tokens, driver,         run.draw};
  return record;
}

std::uint64_t BatchWork::batches() const {
  std::uint64_t sum = 0;
  for (const BatchRun& run : runs) sum += run.count;
  return sum;
}

Bytes encode_batch_work(const BatchWork& work) {
  Bytes bytes = bytes_of(work_fields(work));
  append_le(bytes, static_cast<std::uint32_t>(work.runs.size()));
  append_array(bytes, encode_runs(work.runs));
  return bytes;
}

Expected<BatchWork> decode_batch_work(ByteSpan bytes) {
  ByteReader reader(bytes);
  BatchWork work;
  reader.read(work_fields(work));
  const auto runs = reader.count(batch_run_bytes, max_batch_runs);
  const ByteSpan rest = reader.rest();
  if (!reader.good() || rest.size() != runs * batch_run_bytes || work.sequence == 0 || work.batch_tokens == 0)
    return corrupt();
  NS_ASSIGN_OR_RETURN(work.runs, decode_runs(rest));
  if (work.batches() > max_listed_batches) return corrupt();
  return work;
}

void sign_batch_list(BatchList& list, const crypto::KeyPair& node) {
  list.node = node.public_key();
  list.signature = node.sign(crypto::Purpose::BatchRecord, list.network, signed_part(list));
}

bool batch_list_holds(const BatchList& list) {
  return crypto::verify(list.node, crypto::Purpose::BatchRecord, list.network, signed_part(list),
                        list.signature);
}

Bytes encode_batch_list(const BatchList& list) {
  Bytes bytes = signed_part(list);
  append_array(bytes, list.signature);
  return bytes;
}

Expected<BatchList> decode_batch_list(ByteSpan bytes) {
  if (bytes.size() > max_batch_list_bytes) return corrupt();
  ByteReader reader(bytes);
  BatchList list;
  if (as_text(reader.bytes(list_tag.size())) != list_tag) return corrupt();
  reader.read(list_fields(list));
  const ByteSpan rest = reader.rest();
  if (!reader.good() || rest.size() < work_head_bytes + list.signature.size()) return corrupt();
  const std::size_t work_bytes = rest.size() - list.signature.size();
  NS_ASSIGN_OR_RETURN(list.work, decode_batch_work(rest.first(work_bytes)));
  list.signature = ByteReader(rest.subspan(work_bytes)).array<crypto::Signature>();
  return list;
}

}  // namespace neuroshard::data
