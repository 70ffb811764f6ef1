#include "core/chain/detail/leader_task.h"

namespace neuroshard::chain {

LeaderTask::Step LeaderTask::next(const Support& support, bool has_lock, bool presence_first) {
  if (has_proposed() || !support.suffices) return Step::Nothing;
  const bool waits = state_ == State::Waits || state_ == State::AwaitsOthers;
  if (waits && support.is_all) state_ = State::MayAsk;
  if (state_ == State::Waits) {
    state_ = State::AwaitsOthers;
    return Step::WaitForOthers;
  }
  if (state_ == State::AwaitsOthers) return Step::Nothing;
  if (has_lock) return Step::ProposeLock;
  if (presence_first && state_ == State::MayAsk) {
    state_ = State::AskedPresence;
    return Step::AskPresence;
  }
  if (support.is_full && (state_ == State::MayAsk || state_ == State::NoPresence)) {
    state_ = State::AskedAny;
    return Step::AskAny;
  }
  return Step::Nothing;
}

void LeaderTask::waited() {
  if (state_ == State::AwaitsOthers) state_ = State::MayAsk;
}

}  // namespace neuroshard::chain
