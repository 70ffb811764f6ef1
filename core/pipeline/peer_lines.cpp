#include "core/pipeline/peer_lines.h"

#include <utility>

#include "core/net/local_stream.h"

namespace neuroshard::pipeline {

class PeerLines::Turn final : public TimerHandle {
 public:
  Turn(PeerLines& lines, std::uint64_t number)
      : lines_(lines), number_(number), life_(lines.lifetime_.token()) {}
  ~Turn() override {
    if (life_.alive()) lines_.give_up(number_);
  }

 private:
  PeerLines& lines_;
  const std::uint64_t number_;
  const Lifetime::Token life_;
};

PeerLines::PeerLines(net::PeerPool& pool, Executor& executor, const Clock& clock, const net::NodeId& own,
                     FindContact find)
    : pool_(pool),
      executor_(executor),
      clock_(clock),
      own_(own),
      find_(std::move(find)),
      results_(std::make_shared<net::Mailbox>(executor)) {}

PeerLines::~PeerLines() {
  results_->close();
}

std::unique_ptr<TimerHandle> PeerLines::open(const net::NodeId& peer, Opened done) {
  if (peer == own_) {
    open_own(std::move(done));
    return nullptr;
  }
  const Duration wait = pace_.wait(peer, clock_.monotonic_now());
  if (wait <= Duration::zero()) {
    connect(peer, std::move(done));
    return nullptr;
  }
  const std::uint64_t number = next_number_++;
  Waiting& waiting = waiting_[number];
  waiting.peer = peer;
  waiting.timer = executor_.post_after(wait, [this, number, peer, done = std::move(done)] {
    const auto turn = waiting_.extract(number);
    connect(peer, done);
  });
  return std::make_unique<Turn>(*this, number);
}

void PeerLines::give_up(std::uint64_t number) {
  const auto found = waiting_.find(number);
  if (found == waiting_.end()) return;  // its turn has come
  pace_.give_back(found->second.peer);
  waiting_.erase(found);
}

void PeerLines::connect(const net::NodeId& peer, Opened done) {
  const auto contact = find_(peer);
  if (!contact)
    return results_->put([done = std::move(done)] {
      done(make_error(ErrorCode::NotFound, "no address of that node is known"));
    });
  // FrameStream notices silence itself.
  pool_.open(*contact, net::Method::PipelineSession, Duration::max(), std::move(done));
}

void PeerLines::open_own(Opened done) {
  results_->put([this, done = std::move(done)] {
    if (own_sessions_ == nullptr) return done(make_error(ErrorCode::Unavailable, "this node has no stage"));
    auto [here, there] = net::make_local_stream(executor_);
    own_sessions_->take(own_, std::move(there));
    done(std::move(here));
  });
}

}  // namespace neuroshard::pipeline
