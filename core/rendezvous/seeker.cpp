#include "core/rendezvous/seeker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace neuroshard::rendezvous {

Seeker::Seeker(Rendezvous& place, Executor& executor, const Clock& clock, Logger& logger,
               SeekerQuestions questions, SeekerOptions options, std::uint64_t seed)
    : place_(place),
      executor_(executor),
      clock_(clock),
      logger_(logger),
      questions_(std::move(questions)),
      options_(options),
      rng_(seed) {
  step();
}

Seeker::~Seeker() {
  lifetime_.end();
  if (announced_) place_.announce(std::nullopt);
}

void Seeker::step() {
  const MonotonicTime now = clock_.monotonic_now();
  keep_announced(now);
  if (!questions_.alone()) {
    if (alone_since_ && looks_ > 0) state_ = "found enough others";
    alone_since_.reset();
    next_search_.reset();
    pause_ = Duration(0);
  } else {
    if (!alone_since_) alone_since_ = now;
    if (!next_search_) next_search_ = *alone_since_ + options_.patience;
    if (now >= *next_search_) search();
  }
  timer_ = executor_.post_after(options_.check_period, [this] { step(); });
}

void Seeker::search() {
  const MonotonicTime now = clock_.monotonic_now();
  pause_ = std::clamp(pause_ * 2, options_.first_pause, options_.longest_pause);
  // Half to one and a half of it, so that nodes that lost each other together do not search at the same
  // moments.
  next_search_ = now + pause_ / 2 +
                 Duration(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(pause_.count()))));
  ++looks_;
  state_ = fmt::format("looks for others in {}", place_.name());
  logger_.info("swarm", state_);
  // Announces again, too: an announcement may be lost, and other nodes would not find this one until the next
  // is due.
  if (announced_ && looks_ > 1) place_.announce(announced_);
  place_.look_up([this, life = lifetime_.token()](const std::vector<platform::Endpoint>& found) {
    if (!life.alive()) return;
    logger_.info("swarm", fmt::format("{} first peer(s) found in {}", found.size(), place_.name()));
    // In random order: the node tries the first few, and an attacker may have announced itself before others.
    std::vector<platform::Endpoint> drawn = found;
    for (std::size_t i = 0; i < std::min(drawn.size(), max_found); ++i) {
      std::swap(drawn[i], drawn[i + rng_.below(drawn.size() - i)]);
      questions_.found(drawn[i]);
    }
  });
}

void Seeker::keep_announced(MonotonicTime now) {
  const auto port = questions_.port();
  if (port == announced_ && (!port || now < *next_announcement_)) return;
  if (port != announced_)
    logger_.info("swarm", port ? fmt::format("announced in {}", place_.name())
                               : fmt::format("not announced in {} any more", place_.name()));
  announced_ = port;
  next_announcement_ = now + options_.announce_every;
  place_.announce(port);
}

}  // namespace neuroshard::rendezvous
