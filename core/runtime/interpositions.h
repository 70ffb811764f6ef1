// Replacements for parts of a running node, for programs that test the defences of other nodes
// (tests/support/lying_node.cpp). neuroshardd leaves all of them empty, and no flag or setting fills them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/bytes.h"
#include "core/base/executor.h"
#include "core/base/expected.h"

namespace neuroshard::crypto {
class KeyPair;
}
namespace neuroshard::net {
class PeerCaller;
enum class Method : std::uint16_t;
}  // namespace neuroshard::net
namespace neuroshard::rounds {
class RoundLearner;
}

namespace neuroshard::runtime {

// An empty function changes nothing.
struct Interpositions {
  // The learner that stands between the rounds, which run on `executor`, and `training`. Both outlive it.
  std::function<std::unique_ptr<rounds::RoundLearner>(rounds::RoundLearner& training, Executor& executor)>
      other_learner;
  // The caller by which the rounds reach other members: signs with `key` for `network` and sends by `out`.
  std::function<std::unique_ptr<net::PeerCaller>(net::PeerCaller& out, const crypto::KeyPair& key,
                                                 const Hash256& network)>
      other_caller;
  // The answer to a request for files of this node.
  std::function<Expected<Bytes>(net::Method, Expected<Bytes>)> other_content;
};

}  // namespace neuroshard::runtime
