// Gives peers what they lack: blocks, and the registry of the newest block. Stateless but for one encoded
// registry, which newcomers fetch in pieces.
//
// Threads: the executor's. Errors: InvalidArgument, NotFound; they travel to the caller.
#pragma once

#include <utility>

#include "core/chain/history.h"
#include "core/chain/store.h"
#include "core/net/method_table.h"

namespace neuroshard::chain {

class ChainServer {
 public:
  explicit ChainServer(ChainStore& store) : store_(store) {}
  // Of a node of the chain.
  static bool handles(net::Method method);
  // history: null before the node has one. Requests and answers: messages.h.
  Expected<Bytes> blocks(const History* history, ByteSpan request) const;
  Expected<Bytes> registry(const History* history, ByteSpan request);

 private:
  ChainStore& store_;
  std::pair<Hash256, Bytes> encoded_;  // block hash, its registry
};

}  // namespace neuroshard::chain
