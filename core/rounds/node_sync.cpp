// RoundNode: answering others, and beginning without them.
#include <algorithm>

#include "core/rounds/detail/overloaded.h"
#include "core/rounds/node.h"

namespace neuroshard::rounds {
PostAnswer RoundNode::on_post(const net::NodeId& from, ByteSpan bytes) {
  auto item = decode_item(bytes);
  if (!item.ok()) return {Verdict::Malformed, round_};
  if (!chain_) return {Verdict::Busy, 0};
  const Verdict verdict =
      std::visit(Overloaded{[&](CertificatePost& post) {
                              const auto taken = take_link(post.certificate);
                              if (taken.ok()) return Verdict::Taken;
                              if (taken.error().code == ErrorCode::AlreadyExists) return Verdict::Known;
                              // Of later members: those between are asked for.
                              const Verdict here = at_round(post.certificate.body.round, from);
                              return here == Verdict::Taken ? Verdict::BadCertificate : here;
                            },
                            [&](ChangePost& post) {
                              const Verdict taken = on_change(from, post, max_round_changes);
                              if (taken == Verdict::Taken)
                                static_cast<void>(services_.executor.post(guarded([this] { advance(); })));
                              return taken;
                            },
                            [&](auto&) { return on_item(from, *item, agreement_ ? &*agreement_ : nullptr); }},
                 *item);
  return {verdict, round_};
}

// One of the members; all when it is back after a while.
std::vector<net::NodeId> RoundNode::asked_how_far(bool back) {
  std::vector<net::NodeId> members = others();
  if (!back && !members.empty()) members = {members[rng_.below(members.size())]};
  return members;
}

// Of those that begin together the one with the lowest id makes the history, and the others find it when they
// ask again: if all waited as long, all would make one at the same moment.
void RoundNode::found_alone() {
  const bool first = !beginners_.empty() && self_ < *beginners_.begin();
  const Duration wait =
      first || services_.peers.nobody() ? options_.found_alone_soon : options_.found_alone_after;
  if (options_.genesis || settling_ || services_.clock.monotonic_now() - started_ < wait ||
      initial_.round != 0 || !initial_.state)
    return;
  settling_ = true;
  auto hash = std::make_shared<Hash256>();
  services_.work.run(
      [hash, state = initial_.state, identity = identity(0)] { *hash = hash_of(identity, *state); },
      guarded([this, hash] {
        settling_ = false;
        if (chain_) return;
        chain_.emplace(network_, genesis_body(options_.rules.slot, *hash, {services_.key.public_key()}));
        open_round();
        settle_state();
      }));
}

}  // namespace neuroshard::rounds
