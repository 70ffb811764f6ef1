// The streams that other nodes open to a stage, and the sessions that they belong to. A host for each kind of session
// (stage_worker.h, text_stage.h) says what is done in them.
//
// A stage that pauses breaks off the streams of its sessions; drivers then lead them around it. A session whose earlier hop
// is gone waits for another one. Without its driver it ends. Where there is no place for a new session, those that have had no
// work for longer than `place_without_work` end, the longest first; their drivers may ask again.
//
// A driver signs a route once, and every node on it has it. So the table remembers the sessions that have ended: a node that
// sends such a route again would take its driver's places.
//
// Bad input: a stream of a stranger, a route that is wrong or leads elsewhere, a message that is out of order or too
// large break that stream off with a reason; other sessions go on. Threads: the executor's, all members.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/pipeline/hop_session.h"

namespace neuroshard::pipeline {

struct SessionLimits {
  std::size_t sessions = 32;
  std::size_t of_one_driver = 8;
  std::uint64_t bytes = 1u << 30;  // of all sessions, as bytes_of() counts
};

struct TableOptions {
  StageRange range;  // that this node holds
  Bytes network;     // for the signatures of routes
  // Streams that have not named their session. One more takes the place of another.
  std::size_t newcomers = 64;
  Duration newcomer_patience = std::chrono::seconds(5);
  Duration earlier_hop_missing = std::chrono::seconds(15);
  Duration place_without_work = std::chrono::minutes(1);  // then another session may have the place
};

// Of the sessions of one kind.
struct SessionRules {
  SessionLimits limits;
  // Whether the driver may use the stage for such a session, before its signature is checked; null: every one. The
  // error's message travels to it.
  std::function<Expected<void>(const Route& route)> admit;
  // The most that a session of this route keeps.
  std::function<std::uint64_t(const Route&)> bytes_of;
  // position: of this node.
  std::function<std::unique_ptr<HopSession>(const Route&, std::size_t position)> make;
};

class SessionTable {
 public:
  // All surroundings outlive the table.
  SessionTable(const Surroundings& surroundings, TableOptions options);
  ~SessionTable();
  SessionTable(const SessionTable&) = delete;
  SessionTable& operator=(const SessionTable&) = delete;

  // Lets sessions of this kind in, until withdraw(). The rules' callbacks stay valid until then.
  void serve(SessionKind kind, SessionRules rules);
  void withdraw(SessionKind kind);

  // A stream of method PipelineSession that another node opened.
  void take(const net::NodeId& from, std::shared_ptr<net::PeerStream> stream);
  // Sessions of the kind end. The reason travels to their drivers, and to those of new ones until resume().
  void pause(SessionKind kind, const Error& reason);
  void resume(SessionKind kind) { paused_.erase(kind); }
  bool paused(SessionKind kind) const { return paused_.contains(kind); }

  HopSession* find(SessionKind kind, const SessionId& id);  // null: it is over
  void refuse(const SessionId& id, const Error& reason);
  // And its driver's new sessions for a time, which doubles each time: it has cost the stage more than work.
  void refuse_driver(const SessionId& id, const Error& reason);
  void refuse_all(SessionKind kind, const Error& reason);
  // Sessions whose driver, or hop before this one, is not admitted any more end with the reason.
  void review(const std::function<Expected<void>(const net::NodeId&)>& admit);
  std::size_t size(SessionKind kind) const;

 private:
  struct Earlier {  // the stream of a hop before
    net::NodeId from{};
    std::unique_ptr<FrameStream> frames;
    HopSession* session = nullptr;  // null: a newcomer
    MonotonicTime since{};
  };
  using EarlierPtr = std::list<Earlier>::iterator;

  Expected<std::size_t> admit(const Earlier& earlier, ByteSpan header) const;
  Expected<void> admit_route(const Earlier& earlier, const Route& route) const;
  Expected<void> admit_change(HopSession& session, const Route& route) const;
  Expected<void> admit_new(const Route& route) const;
  // The sessions that have to end for a new one. Exhausted: too few have no work.
  Expected<std::vector<SessionId>> room_for(const Route& route) const;
  void make_room(const Route& route);
  // For one more stream that has not named its session.
  void make_place_for_stream();
  void drop(EarlierPtr earlier, Error reason);
  void received(EarlierPtr earlier, ByteSpan header, Bytes payload);
  void follow(EarlierPtr earlier, const Route& route);
  void ended(EarlierPtr earlier);
  EarlierPtr stream_of(const HopSession* session);
  void remove(const SessionId& id);
  void remember(const Route& route);
  bool has_ended(const Route& route) const;  // with this revision or a higher one
  void sweep();

  const Surroundings around_;
  const TableOptions options_;
  std::map<SessionKind, SessionRules> rules_;
  std::map<SessionId, std::unique_ptr<HopSession>> sessions_;
  std::list<std::unique_ptr<HopSession>> closing_;  // their word to the hop behind is still on its way
  std::list<Earlier> earlier_;
  struct Refused {
    MonotonicTime until{};
    Duration length{};
  };
  std::map<crypto::PublicKey, Refused> refused_;  // drivers
  struct Ended {
    SessionId session{};
    std::uint32_t revision = 0;
  };
  std::map<std::pair<SessionKind, crypto::PublicKey>, std::deque<Ended>> ended_;  // by driver
  std::map<SessionKind, Error> paused_;
  std::unique_ptr<TimerHandle> sweep_timer_;
};

}  // namespace neuroshard::pipeline
