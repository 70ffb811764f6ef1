// Chain nodes on virtual time, one of which gets messages that nobody of them sent. Header only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/chain/server.h"
#include "tests/sim/chain_lab.h"
#include "tests/support/fuzz_target.h"
#include "tests/support/message_pool.h"

namespace neuroshard::test {

// Changes a node's own requests; empty: they leave as they are.
using Edit = std::function<void(net::Method method, Bytes* request)>;

// Records requests on their way out.
class RecordingCaller final : public net::PeerCaller {
 public:
  RecordingCaller(net::PeerCaller& out, MessagePool& pool, const Edit& edit)
      : out_(out), pool_(pool), edit_(edit) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    pool_.learn(method, request);
    if (edit_) edit_(method, &request);
    out_.call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  net::PeerCaller& out_;
  MessagePool& pool_;
  const Edit& edit_;
};

// A world of chain nodes, all of whose messages are recorded, and a target among them.
struct AttackedWorld {
  AttackedWorld(sim::ChainWorldOptions options, std::uint64_t seed)
      : lab(with_seed(std::move(options), seed), pool, edits),
        target([this](const net::Caller& from, net::Method method, ByteSpan request,
                      const net::Reply& reply) { give(from, method, request, reply); }) {}
  static sim::ChainWorldOptions with_seed(sim::ChainWorldOptions options, std::uint64_t seed) {
    options.seed = seed;
    return options;
  }
  void give(const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply) {
    sim::ChainWorld& world = lab.world;
    if (chain::ChainServer::handles(method)) return world.chain(victim).on_call(from, method, request, reply);
    if (method == net::Method::RoundPiece) return world.training(victim).on_call(from, request, reply);
    reply(make_error(ErrorCode::Unsupported, "no such method"));
  }

  struct RecordedLab {
    RecordedLab(sim::ChainWorldOptions options, std::optional<MessagePool>& pool,
                std::map<std::size_t, Edit>& edits)
        : world(options, lab_model, {},
                [this, &pool, &edits](std::size_t node, net::PeerCaller& out, const crypto::KeyPair&) {
                  if (!pool) pool.emplace(world.network_id());
                  return std::make_unique<RecordingCaller>(out, *pool, edits[node]);
                }) {
      world.start_all();
    }
    sim::ChainWorld world;
  };
  std::optional<MessagePool> pool;
  std::map<std::size_t, Edit> edits;  // by node
  RecordedLab lab;
  std::size_t victim = 0;
  FuzzTarget target;
};

}  // namespace neuroshard::test
