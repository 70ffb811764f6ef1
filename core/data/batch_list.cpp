#include "core/data/batch_list.h"

#include <algorithm>
#include <string_view>

#include "core/base/check.h"
#include "core/crypto/hash.h"

namespace neuroshard::data {
namespace {

constexpr std::string_view list_tag = "neuroshard/batch-list/1";
constexpr std::size_t work_head_bytes = 32 + 4 + 4 + 4;

// Past the end it gives zeros and remembers that.
class Reader {
 public:
  explicit Reader(ByteSpan bytes) : rest_(bytes) {}
  template <class T>
  void number(T& value) {
    const ByteSpan bytes = take(sizeof(T));
    if (!bytes.empty()) value = load_le<T>(bytes.data());
  }
  template <class Array>
  void array(Array& value) {
    const ByteSpan bytes = take(value.size());
    std::copy(bytes.begin(), bytes.end(), value.begin());
  }
  ByteSpan take(std::size_t count) {
    good_ = good_ && count <= rest_.size();
    if (!good_) return {};
    const ByteSpan bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }
  ByteSpan rest() { return take(rest_.size()); }
  std::size_t left() const { return good_ ? rest_.size() : 0; }
  bool good() const { return good_; }

 private:
  ByteSpan rest_;
  bool good_ = true;
};

template <class Array>
void append_array(Bytes& bytes, const Array& array) {
  bytes.insert(bytes.end(), array.begin(), array.end());
}

Error corrupt() {
  return make_error(ErrorCode::Corrupt, "the list of batches is damaged");
}

Bytes signed_part(const BatchList& list) {
  Bytes bytes(list_tag.begin(), list_tag.end());
  append_array(bytes, list.network);
  append_array(bytes, list.node);
  append_array(bytes, list.opening);
  append_le(bytes, list.round);
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
  for (const BatchRun& run : runs) {
    append_le(bytes, run.round);
    append_le(bytes, run.draw.round);
    append_le(bytes, run.draw.total);
    append_le(bytes, run.shard_id);
    append_array(bytes, run.shard_hash);
    append_le(bytes, run.offset);
    append_le(bytes, run.first);
    append_le(bytes, run.count);
    append_array(bytes, run.digest);
  }
  return bytes;
}

Expected<std::vector<BatchRun>> decode_runs(ByteSpan bytes) {
  if (bytes.size() % batch_run_bytes != 0 || bytes.size() / batch_run_bytes > max_batch_runs)
    return corrupt();
  Reader reader(bytes);
  std::vector<BatchRun> runs(bytes.size() / batch_run_bytes);
  for (BatchRun& run : runs) {
    reader.number(run.round);
    reader.number(run.draw.round);
    reader.number(run.draw.total);
    reader.number(run.shard_id);
    reader.array(run.shard_hash);
    reader.number(run.offset);
    reader.number(run.first);
    reader.number(run.count);
    reader.array(run.digest);
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
  Bytes bytes(work.tokenizer_hash.begin(), work.tokenizer_hash.end());
  append_le(bytes, work.sequence);
  append_le(bytes, work.batch_tokens);
  append_le(bytes, static_cast<std::uint32_t>(work.runs.size()));
  append_array(bytes, encode_runs(work.runs));
  return bytes;
}

Expected<BatchWork> decode_batch_work(ByteSpan bytes) {
  Reader reader(bytes);
  BatchWork work;
  reader.array(work.tokenizer_hash);
  reader.number(work.sequence);
  reader.number(work.batch_tokens);
  std::uint32_t runs = 0;
  reader.number(runs);
  if (!reader.good() || runs > max_batch_runs || reader.left() != runs * batch_run_bytes ||
      work.sequence == 0 || work.batch_tokens == 0)
    return corrupt();
  NS_ASSIGN_OR_RETURN(work.runs, decode_runs(reader.rest()));
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
  Reader reader(bytes);
  const ByteSpan tag = reader.take(list_tag.size());
  if (as_text(tag) != list_tag) return corrupt();
  BatchList list;
  reader.array(list.network);
  reader.array(list.node);
  reader.array(list.opening);
  reader.number(list.round);
  if (reader.left() < work_head_bytes + list.signature.size()) return corrupt();
  NS_ASSIGN_OR_RETURN(list.work, decode_batch_work(reader.take(reader.left() - list.signature.size())));
  reader.array(list.signature);
  return list;
}

}  // namespace neuroshard::data
