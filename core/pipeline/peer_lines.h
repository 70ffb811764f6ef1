// Lines over the node's connections to its peers, opened at a pace that they allow. An attempt that is given up gives its turn
// back: all sessions share the pace. A line to the node itself leads to its own sessions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/base/lifetime.h"
#include "core/net/mailbox.h"
#include "core/net/peer_pool.h"
#include "core/pipeline/opening_pace.h"
#include "core/pipeline/session_table.h"

namespace neuroshard::pipeline {

class PeerLines final : public Lines {
 public:
  // Where a node was last; nothing: unknown.
  using FindContact = std::function<std::optional<net::Contact>(const net::NodeId&)>;

  // pool, executor and clock outlive it.  Threads: the executor's.
  PeerLines(net::PeerPool& pool, Executor& executor, const Clock& clock, const net::NodeId& own,
            FindContact find);
  ~PeerLines() override;

  // Null: this node has no stage. The table outlives the lines, or is withdrawn.
  void set_own_sessions(SessionTable* table) { own_sessions_ = table; }
  std::unique_ptr<TimerHandle> open(const net::NodeId& peer, Opened done) override;

 private:
  class Turn;
  struct Waiting {
    net::NodeId peer{};
    std::unique_ptr<TimerHandle> timer;
  };
  void give_up(std::uint64_t number);
  void connect(const net::NodeId& peer, Opened done);
  void open_own(Opened done);

  net::PeerPool& pool_;
  Executor& executor_;
  const Clock& clock_;
  const net::NodeId own_;
  const FindContact find_;
  SessionTable* own_sessions_ = nullptr;
  const std::shared_ptr<net::Mailbox> results_;  // a full executor must lose none
  OpeningPace pace_;
  std::map<std::uint64_t, Waiting> waiting_;  // for their turn, by number
  std::uint64_t next_number_ = 0;
  Lifetime lifetime_;
};

}  // namespace neuroshard::pipeline
