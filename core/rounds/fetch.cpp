#include "core/rounds/fetch.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "core/net/peer_channel.h"
#include "core/rounds/learner.h"

namespace neuroshard::rounds {
namespace {

// Sizes in bytes of the leaves after the header's: each section is cut for itself.
std::vector<std::size_t> leaf_sizes(const outer::AnchorCounts& counts) {
  std::vector<std::size_t> sizes;
  for (const std::uint64_t count : {counts.weights, counts.momentum, counts.bias})
    for (std::uint64_t left = 4 * count; left > 0; left -= sizes.back())
      sizes.push_back(static_cast<std::size_t>(std::min<std::uint64_t>(left, outer::anchor_chunk_bytes)));
  return sizes;
}

constexpr std::size_t hashes_at_once = net::chunk_bytes / sizeof(Hash256);

}  // namespace

struct RoundFetcher::Source {
  net::NodeId id{};
  std::size_t failures = 0;
  std::size_t turns_before = 0;         // of it, that came to nothing
  std::size_t under_way = 0, most = 0;  // pieces
  std::optional<MonotonicTime> gave;    // a good piece, last
  Duration patience{};                  // with its next piece, besides what any has
};

struct RoundFetcher::Task {
  PieceRequest request;  // all but the place
  // A payload is checked as a whole, so it comes from one source at a time: a wrong one is known then. Chunks
  // of an anchor come from all sources.
  std::vector<net::NodeId> pool;
  std::deque<Source> turns;  // the next sources, of which one is asked at a time
  std::vector<Source> sources;
  std::size_t turn = 0;
  std::deque<std::uint64_t> missing;  // pieces not asked for
  std::vector<std::size_t> asked;     // by piece: of how many sources now
  std::vector<bool> here;             // by piece
  std::size_t under_way = 0, left = 0;
  std::size_t first_pieces = 1;
  bool over = false;
  // Offset and length of piece i in the whole.
  std::vector<std::pair<std::uint64_t, std::size_t>> places;
  std::uint64_t whole = 0;
  // Null: no piece is here. Pieces of the next source overwrite those in it.
  std::unique_ptr<SpoolItem> item;
  std::vector<Hash256> leaves;  // of an anchor, once they are known
  bool anchor = false;
  outer::AnchorIdentity identity;
  outer::AnchorCounts counts;
  Holds holds;
  GotPayload got_payload;
  GotAnchor got_anchor;

  std::vector<std::size_t> sizes;
  void begin(std::vector<net::NodeId> ids, std::size_t pieces) {
    pool = std::move(ids);
    first_pieces = pieces;
    for (const net::NodeId& id : pool) turns.push_back(fresh(id));
    take_next_source();
  }
  bool take_next_source() {
    if (turns.empty()) return false;
    sources.assign(1, turns.front());
    turns.pop_front();
    return true;
  }
  void take_all_sources() {
    sources.clear();
    for (const net::NodeId& id : pool) sources.push_back(fresh(id));
  }
  Source fresh(const net::NodeId& id, std::size_t turns_before = 0) const {
    return {id, 0, turns_before, 0, first_pieces, {}, {}};
  }
  // Begins to collect these pieces.
  void lay_out(std::vector<std::size_t> pieces) {
    sizes = std::move(pieces);
    whole = 0;
    places.clear();
    missing.clear();
    for (const std::size_t size : sizes) {
      missing.push_back(places.size());
      places.emplace_back(whole, size);
      whole += size;
    }
    left = places.size();
    asked.assign(left, 0);
    here.assign(left, false);
  }
  // All pieces are here. An item takes no more after that: what follows gets another one.
  Expected<ByteSourcePtr> take_whole() { return std::exchange(item, nullptr)->finish(whole); }
  std::uint64_t place(std::uint64_t piece) const {
    return request.what == PieceRequest::What::Chunk ? piece + 1 : places[piece].first;
  }
};

RoundFetcher::RoundFetcher(net::PeerCaller& caller, chain::Peers& peers, Executor& executor,
                           const Clock& clock, Spool& spool, FetchOptions options)
    : caller_(caller), peers_(peers), executor_(executor), clock_(clock), spool_(spool), options_(options) {}
RoundFetcher::~RoundFetcher() = default;

void RoundFetcher::payload(const PieceRequest& request, std::uint64_t bytes, std::vector<net::NodeId> sources,
                           Holds holds, GotPayload done) {
  auto task = std::make_shared<Task>();
  task->request = request;
  task->holds = std::move(holds);
  task->begin(std::move(sources), options_.first_pieces);
  task->got_payload = std::move(done);
  if (bytes == 0) return end(task, make_error(ErrorCode::Unavailable, "nobody has a piece without bytes"));
  std::vector<std::size_t> sizes;
  for (std::uint64_t left = bytes; left > 0; left -= sizes.back())
    sizes.push_back(static_cast<std::size_t>(std::min<std::uint64_t>(left, net::chunk_bytes)));
  task->lay_out(std::move(sizes));
  ask(task);
}

Expected<void> RoundFetcher::keep(Task& task, std::uint64_t piece, ByteSpan bytes) {
  if (!task.item) {
    NS_ASSIGN_OR_RETURN(task.item, spool_.create(task.whole));
  }
  return task.item->write_at(task.places[piece].first, bytes);
}

RoundFetcher::Ticket RoundFetcher::anchor(std::uint32_t row, const Hash256& hash,
                                          const outer::AnchorIdentity& identity, std::uint64_t values,
                                          std::uint64_t bias, std::vector<net::NodeId> sources,
                                          GotAnchor done) {
  auto task = std::make_shared<Task>();
  task->request = {row, PieceRequest::What::Leaves, hash, 0};
  task->begin(std::move(sources), options_.first_pieces);
  task->got_anchor = std::move(done);
  task->anchor = true;
  task->identity = identity;
  task->counts = state_counts(values, bias);
  const std::size_t count = leaf_sizes(task->counts).size() + 1;
  std::vector<std::size_t> sizes;
  for (std::size_t left = count; left > 0; left -= sizes.back() / sizeof(Hash256))
    sizes.push_back(std::min(left, hashes_at_once) * sizeof(Hash256));
  task->lay_out(std::move(sizes));
  ask(task);
  return task;
}

bool RoundFetcher::abandon(const Ticket& ticket) {
  const auto task = ticket.lock();
  if (!task || task->over) return false;
  task->over = true;
  return true;
}

void RoundFetcher::ask(const std::shared_ptr<Task>& task) {
  while (!task->over && !task->missing.empty()) {
    const std::uint64_t piece = task->missing.front();
    task->missing.pop_front();
    if (task->here[piece]) continue;
    if (ask_piece(task, piece)) continue;
    // No source can be asked now. Without requests under way, the fetch has failed.
    task->missing.push_front(piece);
    if (task->under_way == 0) fail(task);
    return;
  }
}

bool RoundFetcher::ask_piece(const std::shared_ptr<Task>& task, std::uint64_t piece) {
  // Each source has a line of its own.
  if (task->under_way >= options_.pieces_under_way * task->sources.size()) return false;
  for (std::size_t i = 0; i < task->sources.size(); ++i) {
    const std::size_t which = task->turn++ % task->sources.size();
    Source& source = task->sources[which];
    if (source.failures >= options_.failures_per_source || source.under_way >= source.most) continue;
    const auto contact = peers_.find(source.id);
    if (!contact) {
      source.failures = options_.failures_per_source;
      continue;
    }
    PieceRequest request = task->request;
    request.place = task->place(piece);
    ++task->under_way;
    ++source.under_way;
    ++task->asked[piece];
    const std::size_t size = task->places[piece].second + 8;
    bytes_under_way_ += size;
    Bytes encoded = encode_piece_request(request);
    // All requested bytes share this node's line, and this piece comes last.
    const std::size_t answers = bytes_under_way_;
    const Duration deadline =
        std::min(options_.most_patience,
                 std::max(source.patience, net::call_deadline(options_.allowed, encoded.size(), answers)));
    const Asked asked{piece, which, clock_.monotonic_now(), ++calls_, task->request.what};
    widen_later(task, asked);
    caller_.call(*contact, net::Method::RoundPiece, std::move(encoded), deadline,
                 [this, life = lifetime_.token(), task, asked, size](Expected<Bytes> got_it) {
                   if (!life.alive()) return;
                   bytes_under_way_ -= size;
                   got(task, asked, std::move(got_it));
                 });
    return true;
  }
  return false;
}

// Only a piece that can be checked by itself is requested twice: a chunk, or a payload of one piece.
void RoundFetcher::widen_later(const std::shared_ptr<Task>& task, const Asked& asked) {
  const bool by_itself = asked.what == PieceRequest::What::Chunk || task->places.size() == 1;
  if (!by_itself || task->places[asked.piece].second > options_.small) return;
  widenings_[asked.call] = executor_.post_after(
      options_.widen_after, [this, life = lifetime_.token(), held = std::weak_ptr<Task>(task), asked] {
        if (!life.alive()) return;
        const auto done = widenings_.extract(asked.call);
        if (const auto of = held.lock()) widen(of, asked);
      });
}

void RoundFetcher::widen(const std::shared_ptr<Task>& task, const Asked& asked) {
  if (task->over || task->request.what != asked.what || task->here[asked.piece]) return;
  if (asked.what != PieceRequest::What::Chunk) {
    if (task->turns.empty()) return;
    task->sources.push_back(task->turns.front());
    task->turns.pop_front();
  }
  task->missing.push_back(asked.piece);
  ask(task);
}

std::optional<ByteSpan> RoundFetcher::piece_of(const Task& task, std::uint64_t piece,
                                               const Expected<Bytes>& answer) {
  if (!answer.ok()) return std::nullopt;
  const auto decoded = decode_piece_answer(*answer);
  if (!decoded.ok() || decoded->bytes.size() != task.places[piece].second) return std::nullopt;
  if (task.request.what == PieceRequest::What::Chunk &&
      crypto::merkle_leaf(decoded->bytes) != task.leaves[piece + 1])
    return std::nullopt;
  return decoded->bytes;
}

// A source that has answered before gets more time, and two time-outs end its turn. One that never answered is
// probably gone. One that lacks a payload may get it later, so the others have their turns first. One that
// lacks an anchor has dropped it.
void RoundFetcher::judge(Task& task, Source& source, MonotonicTime asked, bool good, ErrorCode error) {
  const MonotonicTime now = clock_.monotonic_now();
  const Duration took = now - asked;
  const bool silent = error == ErrorCode::Timeout, lacks = error == ErrorCode::NotFound;
  if (good) {
    piece_took_ = took;
    source.gave = now;
    source.patience = 4 * took;
    // With two requests at a source, one is answered while the other travels.
    const bool grows = took <= options_.fast || (took < options_.slow && source.most < 2);
    if (grows && source.most < options_.pieces_under_way) ++source.most;
    if (took >= options_.slow && source.most > 1) --source.most;
  } else if (silent && source.gave) {
    source.most = 1;
    source.patience = 2 * took;
    if (*source.gave < asked) source.failures += 2;
  } else if (lacks && task.anchor) {
    source.failures = options_.failures_per_source;
  } else if ((silent || lacks) && task.request.what != PieceRequest::What::Chunk) {
    const bool first = source.failures < options_.failures_per_source;
    source.failures = options_.failures_per_source;
    if (first && source.turns_before + 1 < options_.failures_per_source)
      task.turns.push_back(task.fresh(source.id, source.turns_before + 1));
  } else {
    ++source.failures;
  }
}

void RoundFetcher::got(const std::shared_ptr<Task>& task, const Asked& asked, Expected<Bytes> answer) {
  widenings_.erase(asked.call);
  if (task->over || asked.what != task->request.what) return;
  const std::uint64_t piece = asked.piece;
  Source& source = task->sources[asked.source];
  --task->under_way;
  --source.under_way;
  --task->asked[piece];
  const bool late = task->here[piece];  // another source was quicker
  const std::optional<ByteSpan> bytes = piece_of(*task, piece, answer);
  judge(*task, source, asked.at, bytes.has_value(), answer.ok() ? ErrorCode::Corrupt : answer.error().code);
  if (!bytes && answer.ok()) {
    source.failures = options_.failures_per_source;
    if (wrong_) wrong_(source.id, task->request);
  }
  if (!bytes && !late && task->asked[piece] == 0) task->missing.push_back(piece);
  if (bytes && !late) {
    if (const auto kept = keep(*task, piece, *bytes); !kept.ok()) return end(task, kept.error());
    bytes_received_ += bytes->size();
    task->here[piece] = true;
    if (--task->left == 0) return finish(task, source);
  }
  ask(task);
}

void RoundFetcher::fail(const std::shared_ptr<Task>& task) {
  if (task->request.what != PieceRequest::What::Chunk && task->take_next_source()) {
    task->lay_out(task->sizes);
    return ask(task);
  }
  end(task, make_error(ErrorCode::Unavailable, "no member sent the piece"));
}

void RoundFetcher::end(const std::shared_ptr<Task>& task, Error error) {
  task->over = true;
  static_cast<void>(executor_.post([task, error = std::move(error), life = lifetime_.token()] {
    if (!life.alive()) return;
    if (task->anchor)
      task->got_anchor(error);
    else
      task->got_payload(error);
  }));
}

// All bytes are here and are wrong. Another source may be sending them already: it still counts.
void RoundFetcher::refuse(const std::shared_ptr<Task>& task, Source& source) {
  source.failures = options_.failures_per_source;
  if (task->under_way == 0) return fail(task);
  std::vector<std::size_t> asked = std::move(task->asked);
  task->lay_out(task->sizes);
  task->asked = std::move(asked);
  std::erase_if(task->missing, [&](std::uint64_t piece) { return task->asked[piece] > 0; });
  ask(task);
}

void RoundFetcher::finish(const std::shared_ptr<Task>& task, Source& last) {
  if (!task->anchor) return got_payload(task, last);
  if (task->request.what == PieceRequest::What::Leaves) return got_leaves(task, last);
  got_anchor(task);
}

void RoundFetcher::got_payload(const std::shared_ptr<Task>& task, Source& last) {
  auto payload = task->take_whole();
  if (!payload.ok()) return end(task, payload.error());
  // Another source may be sending a single piece, too. Several come from one source, which has sent all of them.
  if (work_ == nullptr || task->places.size() == 1)
    return checked(task, last, *payload, task->holds(**payload));
  const auto holds = std::make_shared<bool>(false);  // the other thread's until the end
  const auto source = static_cast<std::size_t>(&last - task->sources.data());
  ++checks_;
  work_->run([holds, check = task->holds, whole = *payload] { *holds = check(*whole); },
             [this, life = lifetime_.token(), task, source, whole = *payload, holds] {
               if (!life.alive()) return;
               --checks_;
               if (!task->over) checked(task, task->sources[source], whole, *holds);
             });
}

void RoundFetcher::checked(const std::shared_ptr<Task>& task, Source& last, ByteSourcePtr payload,
                           bool holds) {
  if (!holds) return refuse(task, last);
  task->over = true;
  task->got_payload(std::move(payload));
}

void RoundFetcher::got_leaves(const std::shared_ptr<Task>& task, Source& last) {
  const auto kept = task->take_whole();
  if (!kept.ok()) return end(task, kept.error());
  task->leaves.resize(static_cast<std::size_t>(task->whole / sizeof(Hash256)));
  const auto read = (*kept)->read_at(0, {task->leaves.front().data(), static_cast<std::size_t>(task->whole)});
  if (!read.ok()) return end(task, read.error());
  if (crypto::merkle_root(task->leaves) != task->request.hash) return refuse(task, last);
  other_identity_ =
      crypto::merkle_leaf(outer::anchor_header(task->identity, task->counts)) != task->leaves[0];
  if (other_identity_) return refuse(task, last);
  task->request.what = PieceRequest::What::Chunk;
  task->under_way = 0;  // other sources' answers for the same leaves
  task->take_all_sources();
  task->lay_out(leaf_sizes(task->counts));
  ask(task);
}

void RoundFetcher::got_anchor(const std::shared_ptr<Task>& task) {
  auto bytes = task->take_whole();
  if (!bytes.ok()) return end(task, bytes.error());
  auto result = std::make_shared<StepResult>();
  result->state = std::make_shared<const OuterState>(OuterState{task->counts, std::move(*bytes)});
  result->leaves = std::move(task->leaves);
  result->hash = task->request.hash;
  task->over = true;
  task->got_anchor(StepPtr(std::move(result)));
}

}  // namespace neuroshard::rounds
