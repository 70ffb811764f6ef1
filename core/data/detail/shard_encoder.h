// Documents to shards: encodes one split of a corpus in order, several pieces at a time, and can go on from
// any shard's end. The tokens depend only on documents and tokenizer, not on threads or on where a run was
// interrupted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/executor.h"
#include "core/base/expected.h"
#include "core/data/detail/corpus.h"
#include "core/data/tokenizer.h"
#include "core/storage/file_env.h"

namespace neuroshard::data::detail {

inline constexpr std::size_t piece_bytes = 256u << 10;  // encoded by one thread at a time
inline constexpr std::uint32_t max_encoding_threads = 64;

// Where encoding goes on: after `skip_tokens` tokens of the piece that begins at `offset` of the document's
// split.
struct CorpusPosition {
  std::uint64_t document = 0;  // index; the number of documents at the end
  std::uint64_t offset = 0;    // bytes from the start of the file
  std::uint64_t skip_tokens = 0;
};

// Every document's part ends with EOS, so that a model learns where texts end and windows over several
// documents make sense. Threads: one caller; works on threads of its own.
class ShardEncoder {
 public:
  // lost: gets the places of lost documents; the rest of them is left out. Null: they are an error.
  ShardEncoder(storage::FileEnv& env, std::shared_ptr<const Tokenizer> tokenizer, std::uint32_t threads,
               std::set<std::uint64_t>* lost = nullptr);
  ~ShardEncoder();

  // The next `limit` tokens at most; fewer, or none, at the end of the documents. Moves *position.
  // on_bytes: bytes of text encoded by this call so far.
  Expected<std::vector<std::int32_t>> next(const Corpus& corpus, Split split, std::uint64_t limit,
                                           CorpusPosition* position, const CancelToken& cancel,
                                           const std::function<void(std::uint64_t)>& on_bytes = {});

 private:
  class Workers;
  struct Piece {
    CorpusPosition at;
    Bytes text;
    bool ends_document = false;
    std::vector<TokenId> tokens;
  };
  Expected<std::vector<Piece>> read_pieces(const Corpus& corpus, Split split, CorpusPosition* from,
                                           const CancelToken& cancel);

  storage::FileEnv& env_;
  std::set<std::uint64_t>* const lost_;
  std::unique_ptr<Workers> workers_;
};

}  // namespace neuroshard::data::detail
