// A session at one of its stages: the hop before, the hop behind, and the route between them. The
// kind of session decides what is done with the work (stage_session.h, text_session.h).
//
// Threads: the executor's.
#pragma once

#include "core/net/token_bucket.h"
#include "core/pipeline/next_hop.h"

namespace neuroshard::pipeline {

class HopSession {
 public:
  // route: checked, names this node at `position`.
  HopSession(const Surroundings& surroundings, const Route& route, std::size_t position);
  virtual ~HopSession() = default;
  HopSession(const HopSession&) = delete;
  HopSession& operator=(const HopSession&) = delete;

  const Route& route() const { return route_; }
  std::size_t position() const { return position_; }

  // Results go to the stream that was attached last; null: there is none now.
  void attach(FrameStream* earlier);
  bool attached() const { return earlier_ != nullptr; }
  MonotonicTime detached_at() const { return detached_at_; }
  void follow(const Route& route);  // of a higher revision
  // Whether the route may change once more now; if so, it counts. A driver changes it for each hop that is lost.
  bool may_change_route();
  // The size of the payload that belongs to a message of the hop before, or why it may not come.
  Expected<std::size_t> admit(const Message& message) const;
  virtual Expected<void> work(const Work& work, Bytes payload) = 0;
  // When the route came that the session follows.
  MonotonicTime led_at() const { return led_at_; }
  std::size_t hops_behind() const { return route_.hops.size() - 1 - position_; }
  // The hop behind gives no results: this reports it to the driver as lost, unless a loss is reported already.
  void doubt_next(const Error& why);
  // A hop beside this one does not read, so what it is sent piles up.
  bool is_crowded() const;
  // When work came last; at first, when the session began.
  MonotonicTime last_work() const { return last_work_; }
  void note_work() { last_work_ = around_.clock.monotonic_now(); }
  virtual bool has_unfinished() const = 0;  // work that may still get a result
  // The driver is done, or gone; what is unfinished is dropped.
  virtual void close(std::uint64_t finished_below);

 protected:
  virtual Expected<void> admit_work(const Work& work) const = 0;
  virtual void returned(const Result& result, Bytes payload) = 0;

  const RouteHop& own_hop() const { return route_.hops[position_]; }
  bool is_last() const { return position_ + 1 == route_.hops.size(); }
  net::NodeId earlier_node() const;
  const Surroundings& around() const { return around_; }
  NextHop& next() { return next_; }
  FrameStream* earlier() { return earlier_; }
  // Counts the streams of the hop before, the present one included.
  std::uint64_t attachment() const { return attachment_; }

 private:
  void lead_on();
  void tell_ready();

  const Surroundings around_;
  Route route_;
  std::size_t position_;
  bool ready_ = false;  // all later hops follow the route
  NextHop next_;
  FrameStream* earlier_ = nullptr;
  std::uint64_t attachment_ = 0;
  MonotonicTime detached_at_{}, last_work_{}, led_at_{};
  net::TokenBucket route_changes_;
  bool closed_ = false;
};

}  // namespace neuroshard::pipeline
