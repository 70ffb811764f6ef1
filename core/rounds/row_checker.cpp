#include "core/rounds/row_checker.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/net/peer_channel.h"
#include "core/rounds/held_items.h"

namespace neuroshard::rounds {
namespace {

using TreePtr = std::shared_ptr<const crypto::MerkleTree>;
constexpr Duration pause_of_busy_source = std::chrono::seconds(1);
constexpr std::size_t most_pauses = 600;  // in one check
constexpr std::size_t slices_at_once = net::chunk_bytes / payload_slice_bytes;

std::uint64_t anchor_leaf_count(const ProofRow& row) {
  const std::uint64_t bias =
      (row.bias * sizeof(float) + outer::anchor_chunk_bytes - 1) / outer::anchor_chunk_bytes;
  return 1 + 2 * trace_chunks(row.values) + bias;
}

Hash256 slice_leaf(const net::NodeId& contributor, ByteSpan slice) {
  Bytes leaf(contributor.begin(), contributor.end());
  leaf.insert(leaf.end(), slice.begin(), slice.end());
  return crypto::merkle_leaf(leaf);
}

Proven<Hash256> leaf_of(const crypto::MerkleTree& tree, std::size_t index) {
  return {tree.leaves()[index], tree.path(index)};
}

// A result that counts a payload of another size is wrong, whatever the payload is.
bool has_whole_payloads(const OuterRules& rules, const RowCase& about) {
  const std::uint64_t bytes = outer::max_payload_bytes(rules.codec, about.row.values);
  return std::all_of(about.contributors.begin(), about.contributors.end(),
                     [bytes](const ProofContributor& one) { return one.work.part.payload_bytes == bytes; });
}

}  // namespace

struct RowChecker::Task {
  RowCase about;
  Done done;
  TreePtr before, after, trace;
  std::vector<TreePtr> payloads;  // by contributor
  std::size_t at = 0;             // in about.chunks
  RowProof proof;                 // of that chunk
  std::size_t waiting = 0;        // for so many answers
  std::size_t pauses = 0;         // because a source was busy
  bool has_leaves = false, unavailable = false;

  std::uint64_t chunk() const { return about.chunks[at]; }
};

RowChecker::RowChecker(Services services, OuterRules rules, Duration allowed)
    : services_(services), rules_(std::move(rules)), allowed_(allowed) {}

void RowChecker::check(RowCase about, Done done) {
  task_ = std::make_shared<Task>();
  Task& task = *task_;
  task.about = std::move(about);
  task.done = std::move(done);
  RowCase& c = task.about;
  const std::uint64_t chunks = trace_chunks(c.row.values);
  if (c.chunks.empty()) {
    c.chunks.resize(static_cast<std::size_t>(chunks));
    std::iota(c.chunks.begin(), c.chunks.end(), std::uint64_t{0});
  }
  if (!has_whole_payloads(rules_, c)) {
    task.proof.chunk = c.chunks.front();
    task.proof.contributors = c.contributors;
    return judge_chunk();
  }
  task.payloads.resize(c.contributors.size());
  task.waiting = 1;  // until all is asked for
  using What = PieceRequest::What;
  fetch_leaves(What::Leaves, c.open.before, anchor_leaf_count(c.row), c.holders, &task.before);
  fetch_leaves(What::Leaves, c.attested.anchor, anchor_leaf_count(c.row), c.attesters, &task.after);
  fetch_leaves(What::TraceLeaves, c.attested.trace, chunks, c.attesters, &task.trace);
  for (std::size_t i = 0; i < c.contributors.size(); ++i) {
    const chain::RowWork& work = c.contributors[i].work.part;
    fetch_leaves(What::PayloadLeaves, work.payload,
                 (work.payload_bytes + payload_slice_bytes - 1) / payload_slice_bytes, c.holders,
                 &task.payloads[i]);
  }
  arrived();
}

void RowChecker::fetch_leaves(PieceRequest::What what, const Hash256& root, std::uint64_t count,
                              const std::vector<net::NodeId>& from, TreePtr* tree) {
  ++task_->waiting;
  const auto leaves_in = [](const ByteSource& bytes) {
    std::vector<Hash256> leaves(static_cast<std::size_t>(bytes.size() / sizeof(Hash256)));
    const MutableByteSpan target(leaves.front().data(), leaves.size() * sizeof(Hash256));
    if (!bytes.read_at(0, target).ok()) leaves.assign(1, Hash256{});
    return leaves;
  };
  services_.fetcher.payload(
      {task_->about.open.row, what, root, 0}, count * sizeof(Hash256), from,
      [leaves_in, root](const ByteSource& bytes) { return crypto::merkle_root(leaves_in(bytes)) == root; },
      [this, life = lifetime_.token(), task = task_, tree, leaves_in](Expected<ByteSourcePtr> bytes) {
        if (!life.alive() || !is_current(task)) return;
        if (bytes.ok())
          *tree = std::make_shared<const crypto::MerkleTree>(leaves_in(**bytes));
        else
          task->unavailable = true;
        arrived();
      });
}

void RowChecker::fetch_piece(const PieceRequest& request, const std::vector<net::NodeId>& from,
                             std::size_t first, Holds holds) {
  std::size_t at = first;
  std::optional<net::Contact> contact;
  for (; at < from.size() && !contact; ++at) contact = services_.peers.find(from[at]);
  if (!contact) {
    task_->unavailable = true;
    return arrived();
  }
  services_.caller.call(
      *contact, net::Method::RoundPiece, encode_piece_request(request), allowed_,
      [this, life = lifetime_.token(), task = task_, request, from, at,
       holds = std::move(holds)](Expected<Bytes> answer) {
        if (!life.alive()) return;
        if (answer.ok()) bytes_received_ += answer->size();
        if (!is_current(task)) return;
        const auto piece = answer.ok() ? decode_piece_answer(*answer) : Expected<PieceAnswer>(answer.error());
        if (piece.ok() && holds(piece->bytes)) return arrived();
        if (!piece.ok() && piece.error().code == ErrorCode::Exhausted && task->pauses++ < most_pauses)
          return fetch_later([this, request, from, at, holds] { fetch_piece(request, from, at - 1, holds); });
        fetch_piece(request, from, at, holds);
      });
}

void RowChecker::fetch_later(std::function<void()> fetch) {
  pauses_.push_back(
      services_.executor.post_after(pause_of_busy_source, [this, task = task_, fetch = std::move(fetch)] {
        if (is_current(task)) fetch();
      }));
}

// All answers are here, or nobody has one of them.
void RowChecker::arrived() {
  Task& task = *task_;
  if (--task.waiting > 0) return;
  if (task.unavailable) return end(CheckOutcome::Unavailable);
  if (std::exchange(task.has_leaves, true)) return judge_chunk();
  next_chunk();
}

void RowChecker::next_chunk() {
  Task& task = *task_;
  const RowCase& c = task.about;
  const std::uint64_t chunk = task.chunk(), chunks = trace_chunks(c.row.values);
  const auto weights = static_cast<std::size_t>(1 + chunk),
             momentum = static_cast<std::size_t>(1 + chunks + chunk);
  RowProof& proof = task.proof = {};
  proof.chunk = chunk;
  proof.contributors = c.contributors;
  proof.header = leaf_of(*task.after, 0);
  proof.new_weights = leaf_of(*task.after, weights);
  proof.new_momentum = leaf_of(*task.after, momentum);
  proof.sums_after = leaf_of(*task.trace, static_cast<std::size_t>(chunk));
  task.waiting = 1;
  pauses_.clear();
  const auto part = [&](PieceRequest::What what, const Hash256& root, std::uint64_t place,
                        const crypto::MerkleTree& tree, std::size_t leaf,
                        const std::vector<net::NodeId>& from, Proven<Bytes>* to) {
    ++task.waiting;
    to->path = tree.path(leaf);
    fetch_piece({c.open.row, what, root, place}, from, 0, [to, wanted = tree.leaves()[leaf]](ByteSpan bytes) {
      to->part.assign(bytes.begin(), bytes.end());
      return crypto::merkle_leaf(bytes) == wanted;
    });
  };
  using What = PieceRequest::What;
  part(What::Chunk, c.open.before, weights, *task.before, weights, c.holders, &proof.weights);
  part(What::Chunk, c.open.before, momentum, *task.before, momentum, c.holders, &proof.momentum);
  const auto sums = [&](std::uint64_t of, Proven<Bytes>* to) {
    part(What::TraceSums, c.attested.trace, of, *task.trace, static_cast<std::size_t>(of), c.attesters, to);
  };
  if (chunk > 0) sums(chunk - 1, &proof.sums_before);
  sums(chunks - 1, &proof.last_sums);
  for (std::size_t i = 0; i < c.contributors.size(); ++i) fetch_slices(i);
  arrived();
}

void RowChecker::fetch_slices(std::size_t contributor) {
  Task& task = *task_;
  ProofContributor& one = task.proof.contributors[contributor];
  const crypto::MerkleTree& tree = *task.payloads[contributor];
  const auto range = chunk_slices(rules_.codec, task.about.row.values, task.chunk());
  // A payload that is too short is wrong without its slices.
  if (!range || range->first + range->count > tree.leaves().size()) return;
  one.slices.resize(static_cast<std::size_t>(range->count));
  for (std::size_t i = 0; i < one.slices.size(); ++i)
    one.slices[i].path = tree.path(static_cast<std::size_t>(range->first) + i);
  for (std::size_t from = 0; from < one.slices.size(); from += slices_at_once) {
    ++task.waiting;
    const std::size_t count = std::min(slices_at_once, one.slices.size() - from);
    fetch_piece({task.about.open.row, PieceRequest::What::Payload, one.work.part.payload,
                 (range->first + from) * payload_slice_bytes},
                task.about.holders, 0, [&one, &tree, from, count, first = range->first](ByteSpan bytes) {
                  for (std::size_t i = from; i < from + count; ++i) {
                    const ByteSpan slice = bytes.first(std::min(bytes.size(), payload_slice_bytes));
                    bytes = bytes.subspan(slice.size());
                    if (slice_leaf(one.id, slice) != tree.leaves()[static_cast<std::size_t>(first) + i])
                      return false;
                    one.slices[i].part.assign(slice.begin(), slice.end());
                  }
                  return true;
                });
  }
}

void RowChecker::judge_chunk() {
  const auto finding = std::make_shared<ProofFinding>(ProofFinding::NotProven);
  services_.work.run(
      [finding, task = task_, rules = rules_] {
        *finding = judge(rules, task->about.row, task->about.open, task->about.attested, task->proof);
      },
      [this, life = lifetime_.token(), task = task_, finding] {
        if (!life.alive() || !is_current(task)) return;
        if (*finding == ProofFinding::Wrong) return end(CheckOutcome::Wrong);
        if (*finding == ProofFinding::NotProven) return end(CheckOutcome::Unavailable);
        if (++task->at == task->about.chunks.size()) return end(CheckOutcome::Right);
        next_chunk();
      });
}

void RowChecker::end(CheckOutcome outcome) {
  const TaskPtr task = std::exchange(task_, nullptr);
  std::shared_ptr<const RowProof> proof;
  if (outcome == CheckOutcome::Wrong) proof = std::make_shared<const RowProof>(std::move(task->proof));
  task->done(outcome, std::move(proof));
}

}  // namespace neuroshard::rounds
