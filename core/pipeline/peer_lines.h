// Lines over the node's connections to its peers. A line to the node itself leads to its own sessions.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/base/lifetime.h"
#include "core/net/peer_pool.h"
#include "core/pipeline/session_table.h"

namespace neuroshard::pipeline {

class PeerLines final : public Lines {
 public:
  // Where a node was last; nothing: unknown.
  using FindContact = std::function<std::optional<net::Contact>(const net::NodeId&)>;

  // pool and executor outlive it.  Threads: the executor's.
  PeerLines(net::PeerPool& pool, Executor& executor, const net::NodeId& own, FindContact find);

  // Null: this node has no stage. The table outlives the lines, or is withdrawn.
  void set_own_sessions(SessionTable* table) { own_sessions_ = table; }
  void open(const net::NodeId& peer, Opened done) override;

 private:
  net::PeerPool& pool_;
  Executor& executor_;
  const net::NodeId own_;
  const FindContact find_;
  SessionTable* own_sessions_ = nullptr;
  Lifetime lifetime_;
};

}  // namespace neuroshard::pipeline
