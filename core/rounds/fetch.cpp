#include "core/rounds/fetch.h"

#include <algorithm>
#include <deque>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "core/net/peer_channel.h"

namespace neuroshard::rounds {
namespace {

// Sizes in bytes of the leaves after the header's: each section is cut for itself.
std::vector<std::size_t> leaf_sizes(std::uint64_t values, std::uint64_t bias) {
  std::vector<std::size_t> sizes;
  for (const std::uint64_t count : {values, values, bias})
    for (std::uint64_t left = 4 * count; left > 0; left -= sizes.back())
      sizes.push_back(static_cast<std::size_t>(std::min<std::uint64_t>(left, outer::anchor_chunk_bytes)));
  return sizes;
}

constexpr std::size_t hashes_at_once = net::chunk_bytes / sizeof(Hash256);

}  // namespace

struct RoundFetcher::Task {
  FetchRequest request;  // all but the place
  // What can only be checked as a whole comes from one source at a time, so that whoever sends rubbish is
  // known; chunks of an anchor from all of them.
  std::vector<net::NodeId> pool, sources;
  std::size_t next_source = 0;
  std::vector<std::size_t> failures;  // by source
  std::size_t turn = 0;
  std::deque<std::uint64_t> missing;  // pieces not asked for
  std::size_t under_way = 0, left = 0;
  bool over = false;
  // Where piece i begins and how long it is, in `bytes`.
  std::vector<std::pair<std::size_t, std::size_t>> places;
  Bytes bytes;
  std::vector<Hash256> leaves;  // of an anchor, once they are known
  bool anchor = false;
  outer::AnchorIdentity identity;
  std::uint64_t values = 0, bias = 0;
  GotBytes got_bytes;
  GotAnchor got_anchor;

  std::vector<std::size_t> sizes;
  bool take_next_source() {
    if (next_source >= pool.size()) return false;
    sources = {pool[next_source++]};
    return true;
  }
  void lay_out(std::vector<std::size_t> pieces) {
    sizes = std::move(pieces);
    failures.assign(sources.size(), 0);
    std::size_t at = 0;
    places.clear();
    missing.clear();
    for (const std::size_t size : sizes) {
      missing.push_back(places.size());
      places.emplace_back(at, size);
      at += size;
    }
    left = places.size();
    bytes.assign(at, 0);
  }
  std::uint64_t place(std::uint64_t piece) const {
    return request.what == FetchRequest::What::Chunk ? piece + 1 : places[piece].first;
  }
};

RoundFetcher::RoundFetcher(net::PeerCaller& caller, RoundPeers& peers, Executor& executor,
                           FetchOptions options)
    : caller_(caller), peers_(peers), executor_(executor), options_(options) {}
RoundFetcher::~RoundFetcher() = default;

void RoundFetcher::payload(const RoundSlot& slot, const Hash256& hash, std::uint64_t bytes,
                           std::vector<net::NodeId> sources, GotBytes done) {
  auto task = std::make_shared<Task>();
  task->request = {slot, FetchRequest::What::Payload, hash, 0};
  task->pool = std::move(sources);
  task->take_next_source();
  task->got_bytes = std::move(done);
  std::vector<std::size_t> sizes;
  for (std::uint64_t left = bytes; left > 0; left -= sizes.back())
    sizes.push_back(static_cast<std::size_t>(std::min<std::uint64_t>(left, net::chunk_bytes)));
  task->lay_out(sizes);
  ask(task);
}

void RoundFetcher::contribution(const RoundSlot& slot, const Hash256& payload,
                                std::vector<net::NodeId> sources, GotBytes done) {
  auto task = std::make_shared<Task>();
  task->request = {slot, FetchRequest::What::Contribution, payload, 0};
  task->pool = std::move(sources);
  task->take_next_source();
  task->got_bytes = std::move(done);
  task->lay_out({contribution_bytes});
  ask(task);
}

void RoundFetcher::anchor(const RoundSlot& slot, const Hash256& hash, const outer::AnchorIdentity& identity,
                          std::uint64_t values, std::uint64_t bias, std::vector<net::NodeId> sources,
                          GotAnchor done) {
  auto task = std::make_shared<Task>();
  task->request = {slot, FetchRequest::What::Leaves, hash, 0};
  task->pool = std::move(sources);
  task->take_next_source();
  task->got_anchor = std::move(done);
  task->anchor = true;
  task->identity = identity;
  task->values = values;
  task->bias = bias;
  const std::size_t count = leaf_sizes(values, bias).size() + 1;
  std::vector<std::size_t> sizes;
  for (std::size_t left = count; left > 0; left -= sizes.back() / sizeof(Hash256))
    sizes.push_back(std::min(left, hashes_at_once) * sizeof(Hash256));
  task->lay_out(sizes);
  ask(task);
}

void RoundFetcher::ask(const std::shared_ptr<Task>& task) {
  while (!task->over && !task->missing.empty() && task->under_way < options_.pieces_under_way) {
    const std::uint64_t piece = task->missing.front();
    task->missing.pop_front();
    if (ask_piece(task, piece)) continue;
    // Nobody is left to ask: what is under way may still arrive, but the rest never will.
    task->missing.push_front(piece);
    if (task->under_way == 0) fail(task);
    return;
  }
}

bool RoundFetcher::ask_piece(const std::shared_ptr<Task>& task, std::uint64_t piece) {
  for (std::size_t i = 0; i < task->sources.size(); ++i) {
    const std::size_t source = task->turn++ % task->sources.size();
    const auto contact = peers_.find(task->sources[source]);
    if (task->failures[source] >= options_.failures_per_source) continue;
    if (!contact) {
      ++task->failures[source];
      continue;
    }
    FetchRequest request = task->request;
    request.place = task->place(piece);
    ++task->under_way;
    Bytes encoded = encode_fetch_request(request);
    const std::size_t answer = task->places[piece].second + 8;
    const Duration deadline = net::call_deadline(options_.allowed, encoded.size(), answer);
    caller_.call(*contact, net::Method::RoundFetch, std::move(encoded), deadline,
                 [this, alive = std::weak_ptr<bool>(alive_), task, piece, source](Expected<Bytes> got_it) {
                   if (!alive.expired()) got(task, piece, source, std::move(got_it));
                 });
    return true;
  }
  return false;
}

void RoundFetcher::got(const std::shared_ptr<Task>& task, std::uint64_t piece, std::size_t source,
                       Expected<Bytes> answer) {
  if (task->over) return;
  --task->under_way;
  const auto [at, size] = task->places[piece];
  bool good = false;
  if (answer.ok()) {
    const auto decoded = decode_fetch_answer(*answer);
    good = decoded.ok() && decoded->bytes.size() == size;
    if (good && task->request.what == FetchRequest::What::Chunk)
      good = crypto::merkle_leaf(decoded->bytes) == task->leaves[piece + 1];
    if (good) {
      std::copy(decoded->bytes.begin(), decoded->bytes.end(),
                task->bytes.begin() + static_cast<std::ptrdiff_t>(at));
      bytes_received_ += size;
    }
  }
  if (good) {
    if (--task->left == 0) {
      finish(task);
      return;
    }
  } else {
    ++task->failures[source];
    task->missing.push_back(piece);
  }
  ask(task);
}

void RoundFetcher::fail(const std::shared_ptr<Task>& task) {
  if (task->request.what != FetchRequest::What::Chunk && task->take_next_source()) {
    task->lay_out(task->sizes);
    ask(task);
    return;
  }
  task->over = true;
  const Error error = make_error(ErrorCode::Unavailable, "no member gave what was asked of it");
  static_cast<void>(executor_.post([task, error, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    if (task->anchor)
      task->got_anchor(error);
    else
      task->got_bytes(error);
  }));
}

void RoundFetcher::finish(const std::shared_ptr<Task>& task) {
  switch (task->request.what) {
    case FetchRequest::What::Payload:
    case FetchRequest::What::Contribution:
      if (task->request.what == FetchRequest::What::Payload &&
          crypto::sha256(task->bytes) != task->request.hash) {
        fail(task);
        return;
      }
      task->over = true;
      task->got_bytes(std::move(task->bytes));
      return;
    case FetchRequest::What::Leaves: {
      task->leaves.resize(task->bytes.size() / sizeof(Hash256));
      for (std::size_t i = 0; i < task->leaves.size(); ++i)
        std::copy_n(task->bytes.begin() + static_cast<std::ptrdiff_t>(i * sizeof(Hash256)), sizeof(Hash256),
                    task->leaves[i].begin());
      const Bytes header = outer::anchor_header(task->identity, task->values, task->values, task->bias);
      if (crypto::merkle_root(task->leaves) != task->request.hash ||
          crypto::merkle_leaf(header) != task->leaves[0]) {
        fail(task);
        return;
      }
      task->request.what = FetchRequest::What::Chunk;
      task->sources = task->pool;
      task->lay_out(leaf_sizes(task->values, task->bias));
      ask(task);
      return;
    }
    case FetchRequest::What::Chunk: break;
  }
  auto state = std::make_shared<OuterState>();
  state->weights.resize(task->values);
  state->momentum.resize(task->values);
  state->bias.resize(task->bias);
  std::size_t at = 0;
  for (std::vector<float>* part : {&state->weights, &state->momentum, &state->bias}) {
    for (float& value : *part) {
      const auto bits = load_le<std::uint32_t>(task->bytes.data() + at);
      std::memcpy(&value, &bits, sizeof value);
      at += sizeof value;
    }
  }
  task->over = true;
  task->got_anchor(std::move(state));
}

}  // namespace neuroshard::rounds
