#include "core/runtime/rounds_presence.h"

#include <utility>

namespace neuroshard::runtime {
namespace {

constexpr Duration look_again = std::chrono::milliseconds(50);
// The longest wait for voters that do not answer this node's notice that it leaves.
constexpr Duration voters_answer_limit = std::chrono::seconds(2);

}  // namespace

RoundsPresence::RoundsPresence(PeerHost& host, FindNode node) : host_(host), find_node_(std::move(node)) {}

void RoundsPresence::announce_away(MonotonicTime deadline, std::function<void()> done) {
  host_.run([&] {
    leaving_ = Leaving{host_.clock().monotonic_now(), deadline, std::move(done)};
    if (chain::ChainNode* node = find_node_()) node->set_away(true);
    check();
  });
}

void RoundsPresence::announce_back() {
  host_.run([this] {
    close();
    chain::ChainNode* const node = find_node_();
    if (node != nullptr && !no_room_) node->set_away(false);
  });
}

// The others go on without this node, or nobody is there who could. Nobody waits for a node without a vote, whose
// statement may be in a block a block time later: the voters get some time to take it.
bool RoundsPresence::may_go() const {
  const chain::ChainNode* const node = find_node_();
  if (node == nullptr || node->is_away()) return true;
  const chain::ChainView now = node->view();
  if (now.committee <= 1) return true;
  const bool silence = now.committee - now.missing.size() <= 1;
  return (silence || !now.voter) && host_.clock().monotonic_now() - leaving_->begun >= voters_answer_limit;
}

void RoundsPresence::check() {
  if (!leaving_ || !leaving_->done) return;
  if (may_go() || host_.clock().monotonic_now() >= leaving_->deadline)
    return std::exchange(leaving_->done, nullptr)();
  timer_ = host_.executor().post_after(look_again, [this] { check(); });
}

void RoundsPresence::begin() {
  if (leaving_) find_node_()->set_away(true);
}

// The others go on without a node that has no room for a round.
void RoundsPresence::set_no_room(bool no_room) {
  chain::ChainNode* const node = find_node_();
  if (node == nullptr || no_room == std::exchange(no_room_, no_room) || leaving_) return;
  no_room ? node->set_away(true) : node->set_away(false);
}

void RoundsPresence::close() {
  leaving_.reset();
  timer_.reset();
}

}  // namespace neuroshard::runtime
