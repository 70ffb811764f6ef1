// Members that give pieces of a row's round (row_round.h) to whoever checks it, each as the test has it, over virtual time. Header
// only.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/chain/outbox.h"
#include "core/net/peer_caller.h"
#include "core/rounds/fetch.h"
#include "core/rounds/learner.h"
#include "core/rounds/pieces.h"
#include "core/sim/world.h"
#include "tests/unit/rounds/row_round.h"

namespace neuroshard::test {

// All of them hold the same. Each answer takes a millisecond.
class RowSources final : public net::PeerCaller, public chain::Peers {
 public:
  using What = rounds::PieceRequest::What;
  struct Asked {
    net::NodeId of;
    rounds::PieceRequest request;
    MonotonicTime at;
  };
  // Another answer than the right one. Nothing: the right one.
  using Script =
      std::function<std::optional<Expected<Bytes>>(const net::NodeId& of, const rounds::PieceRequest&)>;

  RowSources(sim::World& world, const Round& round)
      : world_(world), round_(round), steps_{round.before_step, round.step} {}

  Script script;
  std::vector<Asked> asked;
  std::vector<net::NodeId> unknown;  // have no address
  void add_step(rounds::StepPtr step) { steps_.push_back(std::move(step)); }
  void add_proof(Bytes proof) { proofs_[crypto::sha256(proof)] = std::move(proof); }
  std::size_t asked_of(const net::NodeId& id) const {
    return count([&](const Asked& one) { return one.of == id; });
  }
  std::size_t asked_for(What what) const {
    return count([&](const Asked& one) { return one.request.what == what; });
  }
  // Ascending, each once.
  std::vector<std::uint64_t> places(What what) const {
    std::vector<std::uint64_t> places;
    for (const Asked& one : asked)
      if (one.request.what == what) places.push_back(one.request.place);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
  }

  Expected<Bytes> right(const rounds::PieceRequest& request) const {
    switch (request.what) {
      case What::Payload:
      case What::PayloadLeaves: return of_payload(request);
      case What::Proof: {
        const auto proof = proofs_.find(request.hash);
        return proof == proofs_.end() ? rounds::piece_not_held()
                                      : rounds::answer_from(proof->second, request.place);
      }
      default: return of_step(request);
    }
  }
  // The right piece, with a bit of it changed.
  Expected<Bytes> wrong(const rounds::PieceRequest& request) const {
    Expected<Bytes> answer = right(request);
    if (answer.ok()) answer->back() ^= 1;
    return answer;
  }

  void call(const net::Contact& peer, net::Method method, Bytes bytes, Duration,
            net::CallDone done) override {
    const rounds::PieceRequest request = *rounds::decode_piece_request(bytes);
    if (method != net::Method::RoundPiece) qFatal("a call that is none for a piece");
    asked.push_back({peer.id, request, world_.now()});
    auto scripted = script ? script(peer.id, request) : std::nullopt;
    Expected<Bytes> answer = scripted ? std::move(*scripted) : right(request);
    world_.after(std::chrono::milliseconds(1),
                 [answer = std::move(answer), done = std::move(done)] { done(answer); });
  }
  std::optional<net::Contact> find(const net::NodeId& id) override {
    if (std::find(unknown.begin(), unknown.end(), id) != unknown.end()) return std::nullopt;
    return net::Contact{id, {platform::IpAddress::v4(11, 0, 0, id[0]), 9000}};
  }
  std::vector<net::Contact> some() override { return {}; }

 private:
  template <class Holds>
  std::size_t count(const Holds& holds) const {
    return static_cast<std::size_t>(std::count_if(asked.begin(), asked.end(), holds));
  }
  static Expected<Bytes> of_leaves(const std::vector<Hash256>& leaves, std::uint64_t place) {
    Bytes bytes;
    for (const Hash256& leaf : leaves) bytes.insert(bytes.end(), leaf.begin(), leaf.end());
    return rounds::answer_from(bytes, place);
  }
  Expected<Bytes> of_payload(const rounds::PieceRequest& request) const {
    for (std::size_t i = 0; i < round_.works.size(); ++i) {
      if (round_.works[i].payload != request.hash) continue;
      if (request.what == What::Payload) return rounds::answer_from(round_.payloads[i], request.place);
      return of_leaves(*rounds::payload_leaves(round_.workers[i].id, BytesView(round_.payloads[i])),
                       request.place);
    }
    return rounds::piece_not_held();
  }
  Expected<Bytes> of_step(const rounds::PieceRequest& request) const {
    for (const rounds::StepPtr& step : steps_) {
      const bool of_trace = request.what == What::TraceLeaves || request.what == What::TraceSums;
      if (of_trace ? !step->trace || step->trace->root != request.hash : step->hash != request.hash) continue;
      if (request.what == What::Leaves) return of_leaves(step->leaves, request.place);
      if (request.what == What::TraceLeaves) return of_leaves(step->trace->leaves, request.place);
      if (request.what == What::TraceSums)
        return rounds::answer_from(Round::sums_of(*step, request.place), 0);
      if (step == round_.before_step) return of_chunk(request.place - 1);
    }
    return rounds::piece_not_held();
  }
  Expected<Bytes> of_chunk(std::uint64_t at) const {
    const std::uint64_t chunks = round_.chunks();
    return rounds::answer_from(at < chunks ? round_.old_weights(at) : round_.old_momentum(at - chunks), 0);
  }

  sim::World& world_;
  const Round& round_;
  std::vector<rounds::StepPtr> steps_;
  std::map<Hash256, Bytes> proofs_;
};

// Takes a millisecond for each job.
class WorldWork final : public rounds::RoundWork {
 public:
  explicit WorldWork(sim::World& world) : world_(world) {}
  void run(std::function<void()> job, std::function<void()> done) override {
    ++jobs;
    world_.after(std::chrono::milliseconds(1), [job = std::move(job), done = std::move(done)] {
      job();
      done();
    });
  }
  std::size_t jobs = 0;

 private:
  sim::World& world_;
};

// The other parts of a node: each of a test's nodes has its own.
struct RowNode {
  RowNode(sim::World& world, const Round& round)
      : sources(world, round),
        executor(world),
        work(world),
        fetcher(sources, sources, executor, world.clock(), spool, rounds::FetchOptions()) {}
  RowSources sources;
  sim::HostExecutor executor;
  WorldWork work;
  MemorySpool spool;
  rounds::RoundFetcher fetcher;
};

}  // namespace neuroshard::test
