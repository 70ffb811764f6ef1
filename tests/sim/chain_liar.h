// Byzantine nodes of the chain for tests: a way out that changes, drops or adds what an honest node sends, and
// the kinds of posts that a test tells apart (core/chain/messages.h).
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "core/chain/messages.h"
#include "core/rounds/round_posts.h"
#include "core/sim/chain_world.h"

namespace neuroshard::test {

enum class PostKind : std::uint8_t {
  Proposal = 1,
  Vote = 2,
  NewView = 3,
  Locked = 4,
  Certified = 5,
  Statement = 6,
  Evidence = 7,
  Heartbeat = 8,
  Contribution = rounds::contribution_kind,
  Vector = rounds::vector_kind,
  Attestation = rounds::attestation_kind,
};

// The fate of one post on its way out. One that does not leave gets no answer, as on a connection that
// stands still.
struct Fate {
  bool leaves = true;
  Duration delay{};
  static const Fate Send, Drop;
};
inline const Fate Fate::Send{};
inline const Fate Fate::Drop{false, {}};

// One node's way out; of relayed items each is edited by itself. Threads: one. world and out outlive it.
class EditingCaller final : public net::PeerCaller {
 public:
  using Edit = std::function<Fate(const net::Contact& to, PostKind kind, Bytes* post)>;
  EditingCaller(sim::World& world, net::PeerCaller& out, Edit edit)
      : world_(world), out_(out), edit_(std::move(edit)) {}
  ~EditingCaller() override = default;

  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    if (method == net::Method::ChainPost && !request.empty()) {
      const auto kind = static_cast<PostKind>(request[0]);
      const Fate fate = is_relayed(request) ? edit_relayed(peer, &request) : edit_(peer, kind, &request);
      const std::weak_ptr<int> alive = alive_;
      if (!fate.leaves)
        return world_.after(deadline, [done = std::move(done), alive] {
          if (!alive.expired()) done(make_error(ErrorCode::Timeout, "no answer"));
        });
      if (fate.delay > Duration::zero())
        return world_.after(fate.delay, [this, alive, peer, method, deadline, request = std::move(request),
                                         done = std::move(done)]() mutable {
          if (!alive.expired()) out_.call(peer, method, std::move(request), deadline, std::move(done));
        });
    }
    out_.call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  static bool is_relayed(const Bytes& post) { return post[0] == 14; }
  // The latest of the items decides when all of them leave; what does not leave is left out.
  Fate edit_relayed(const net::Contact& to, Bytes* post) {
    auto read = chain::decode_item(*post, {});
    if (!read.ok()) return Fate::Send;
    auto& relayed = std::get<chain::RelayedPost>(*read);
    Fate whole = Fate::Drop;
    std::erase_if(relayed.items, [&](Bytes& item) {
      const Fate fate = edit_(to, static_cast<PostKind>(item[0]), &item);
      whole.leaves = whole.leaves || fate.leaves;
      if (fate.leaves) whole.delay = std::max(whole.delay, fate.delay);
      return !fate.leaves;
    });
    if (whole.leaves) *post = chain::encode_item(relayed);
    return whole;
  }
  sim::World& world_;
  net::PeerCaller& out_;
  const Edit edit_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

// The contribution in a post of that kind, and the post that has another one. Nothing: not to be read.
inline std::optional<rounds::PostedContribution> contribution_in(const Bytes& post) {
  return rounds::decode_contribution_post(ByteSpan(post).subspan(1), 1);
}
inline Bytes post_of(const rounds::PostedContribution& posted, bool with_payloads = true) {
  std::vector<rounds::Payload> payloads;
  for (const auto& [row, payload] : posted.payloads) payloads.push_back(in_memory(payload));
  if (!with_payloads) payloads.clear();
  return chain::encode_item(chain::RoundsPost{
      rounds::contribution_kind, rounds::encode_contribution_post(posted.contribution, payloads)});
}

}  // namespace neuroshard::test
