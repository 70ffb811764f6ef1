#include "core/data/detail/shard_encoder.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "core/data/encoder.h"

namespace neuroshard::data::detail {
namespace {

Error stopped() {
  return make_error(ErrorCode::Cancelled, "encoding was stopped");
}

}  // namespace

// One executor and one encoder a thread; encode() gives them pieces and waits for all.
class ShardEncoder::Workers {
 public:
  Workers(const std::shared_ptr<const Tokenizer>& tokenizer, std::uint32_t threads) {
    for (std::uint32_t i = 0; i < threads; ++i) {
      encoders_.push_back(std::make_unique<Encoder>(tokenizer));
      executors_.push_back(make_thread_executor("ns-encode", 4));
    }
  }

  std::size_t size() const { return executors_.size(); }

  void encode(std::vector<Piece>* pieces) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      next_ = 0;
      running_ = executors_.size();
    }
    for (std::size_t i = 0; i < executors_.size(); ++i) {
      const auto work = [this, i, pieces] {
        take_pieces(*encoders_[i], pieces);
        const std::lock_guard<std::mutex> lock(mutex_);
        if (--running_ == 0) done_.notify_one();
      };
      // Never full: a thread has at most this one task.
      if (!executors_[i]->post(work)) work();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  void take_pieces(Encoder& encoder, std::vector<Piece>* pieces) {
    while (true) {
      std::size_t mine = 0;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (next_ >= pieces->size()) return;
        mine = next_++;
      }
      Piece& piece = (*pieces)[mine];
      encoder.encode(piece.text, &piece.tokens);
      if (piece.ends_document) piece.tokens.push_back(eos_token);
    }
  }

  std::vector<std::unique_ptr<Encoder>> encoders_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t next_ = 0;
  std::size_t running_ = 0;
  std::vector<std::unique_ptr<Executor>> executors_;  // last: its threads stop before the rest goes
};

ShardEncoder::ShardEncoder(storage::FileEnv& env, std::shared_ptr<const Tokenizer> tokenizer,
                           std::uint32_t threads, std::set<std::uint64_t>* lost)
    : env_(env),
      lost_(lost),
      workers_(std::make_unique<Workers>(tokenizer, std::clamp(threads, 1u, max_encoding_threads))) {}
ShardEncoder::~ShardEncoder() = default;

Expected<std::vector<ShardEncoder::Piece>> ShardEncoder::read_pieces(const Corpus& corpus, Split split,
                                                                     CorpusPosition* from,
                                                                     const CancelToken& cancel) {
  // Small documents are many: read enough to keep every thread busy.
  const std::size_t wanted_bytes = 2 * workers_->size() * piece_bytes;
  std::vector<Piece> pieces;
  std::size_t bytes = 0;
  Losses losses(env_, corpus);
  while (from->document < corpus.documents.size() && bytes < wanted_bytes) {
    if (cancel.cancelled()) return stopped();
    const Document& document = corpus.documents[static_cast<std::size_t>(from->document)];
    const std::uint64_t end = document.end(split);
    from->offset = std::max(from->offset, document.begin(split));
    if (from->offset < end) {
      Piece piece;
      piece.at = *from;
      const auto read = read_piece(env_, document, from->offset, end, piece_bytes, &piece.text);
      if (read.ok()) {
        from->offset += piece.text.size();
        piece.ends_document = from->offset >= end;
        bytes += piece.text.size();
        pieces.push_back(std::move(piece));
      } else {
        if (lost_ == nullptr) return read.error();
        NS_RETURN_IF_ERROR(losses.note(read.error()));
        lost_->insert(from->document);
        from->offset = end;
      }
    }
    if (from->offset >= end) *from = {from->document + 1, 0, 0};
    from->skip_tokens = 0;
  }
  NS_RETURN_IF_ERROR(losses.check());
  return pieces;
}

Expected<std::vector<std::int32_t>> ShardEncoder::next(const Corpus& corpus, Split split, std::uint64_t limit,
                                                       CorpusPosition* position, const CancelToken& cancel,
                                                       const std::function<void(std::uint64_t)>& on_bytes) {
  std::vector<std::int32_t> tokens;
  std::uint64_t bytes = 0;
  while (tokens.size() < limit) {
    if (cancel.cancelled()) return stopped();
    CorpusPosition after = *position;
    NS_ASSIGN_OR_RETURN(std::vector<Piece> pieces, read_pieces(corpus, split, &after, cancel));
    if (pieces.empty()) {
      *position = after;
      break;
    }
    workers_->encode(&pieces);
    for (Piece& piece : pieces) {
      // Only the first piece can have been begun before; its document may be lost.
      const bool begun = &piece == &pieces.front() && piece.at.document == position->document;
      const std::uint64_t skip = begun ? position->skip_tokens : 0;
      const std::uint64_t there = piece.tokens.size() - std::min<std::uint64_t>(skip, piece.tokens.size());
      const std::uint64_t take = std::min<std::uint64_t>(there, limit - tokens.size());
      const auto first = piece.tokens.begin() + static_cast<std::ptrdiff_t>(piece.tokens.size() - there);
      tokens.insert(tokens.end(), first, first + static_cast<std::ptrdiff_t>(take));
      if (take < there) {
        piece.at.skip_tokens = skip + take;
        after = piece.at;
        break;
      }
      bytes += piece.text.size();
    }
    *position = after;
    if (on_bytes) on_bytes(bytes);
  }
  return tokens;
}

}  // namespace neuroshard::data::detail
