#include "core/pipeline/peer_lines.h"

#include <utility>

#include "core/net/local_stream.h"

namespace neuroshard::pipeline {

PeerLines::PeerLines(net::PeerPool& pool, Executor& executor, const Clock& clock, const net::NodeId& own,
                     FindContact find)
    : pool_(pool), executor_(executor), clock_(clock), own_(own), find_(std::move(find)) {}

void PeerLines::open(const net::NodeId& peer, Opened done) {
  if (peer == own_) return open_own(std::move(done));
  const Duration wait = pace_.wait(peer, clock_.monotonic_now());
  if (wait <= Duration::zero()) return connect(peer, std::move(done));
  const std::uint64_t number = next_number_++;
  waiting_[number] = executor_.post_after(wait, [this, number, peer, done = std::move(done)] {
    const auto timer = waiting_.extract(number);
    connect(peer, done);
  });
}

void PeerLines::connect(const net::NodeId& peer, Opened done) {
  const auto contact = find_(peer);
  if (!contact) {
    (void)executor_.post([done = std::move(done)] {
      done(make_error(ErrorCode::NotFound, "no address of that node is known"));
    });
    return;
  }
  pool_.connect(*contact,
                [done = std::move(done)](const Expected<std::shared_ptr<net::PeerChannel>>& channel) {
                  // FrameStream notices silence itself.
                  if (!channel.ok()) return done(channel.error());
                  done((*channel)->open(net::Method::PipelineSession, Duration::max()));
                });
}

void PeerLines::open_own(Opened done) {
  (void)executor_.post([this, life = lifetime_.token(), done = std::move(done)] {
    if (!life.alive()) return;
    if (own_sessions_ == nullptr) return done(make_error(ErrorCode::Unavailable, "this node has no stage"));
    auto [here, there] = net::make_local_stream(executor_);
    own_sessions_->take(own_, std::move(there));
    done(std::move(here));
  });
}

}  // namespace neuroshard::pipeline
