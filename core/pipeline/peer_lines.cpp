#include "core/pipeline/peer_lines.h"

#include <utility>

#include "core/net/local_stream.h"

namespace neuroshard::pipeline {

PeerLines::PeerLines(net::PeerPool& pool, Executor& executor, const net::NodeId& own, FindContact find)
    : pool_(pool), executor_(executor), own_(own), find_(std::move(find)) {}

void PeerLines::open(const net::NodeId& peer, Opened done) {
  const auto contact = peer == own_ ? std::nullopt : find_(peer);
  if (contact) {
    return pool_.connect(
        *contact, [done = std::move(done)](const Expected<std::shared_ptr<net::PeerChannel>>& channel) {
          // FrameStream notices silence itself.
          if (!channel.ok()) return done(channel.error());
          done((*channel)->open(net::Method::PipelineSession, Duration::max()));
        });
  }
  (void)executor_.post([this, peer, life = lifetime_.token(), done = std::move(done)] {
    if (!life.alive()) return;
    if (peer != own_) return done(make_error(ErrorCode::NotFound, "no address of that node is known"));
    if (own_sessions_ == nullptr) return done(make_error(ErrorCode::Unavailable, "this node has no stage"));
    auto [here, there] = net::make_local_stream(executor_);
    own_sessions_->take(own_, std::move(there));
    done(std::move(here));
  });
}

}  // namespace neuroshard::pipeline
