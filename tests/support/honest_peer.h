// A stranger without bad intent at a node that is attacked: it calls again and again, notes whether and how fast
// it is answered, and fetches the chain for the fuzzer to begin with.
#pragma once

#include <memory>
#include <optional>

#include "core/runtime/guest.h"
#include "tests/support/fuzz_client.h"

namespace neuroshard::test {

struct HonestCounts {
  std::uint64_t calls = 0, failed = 0, connections = 0;
  double worst_ms = 0;
  std::string last_error;
};

// Threads: the caller's, which is not the host's executor.
class HonestPeer {
 public:
  static Expected<std::unique_ptr<HonestPeer>> start(FuzzRun& run, const runtime::RuntimeServices& services,
                                                     const net::Dial& to);
  ~HonestPeer();
  // A ping; connects first where there is no connection.
  void ping();
  // The blocks since the last time.
  void learn_blocks();
  const HonestCounts& counts() const { return counts_; }
  std::uint64_t height() const { return next_height_; }

 private:
  HonestPeer(FuzzRun& run, std::unique_ptr<runtime::PeerHost> host, net::Dial to)
      : run_(run), host_(std::move(host)), to_(std::move(to)) {}
  bool connect();
  Expected<Bytes> call(net::Method method, const Bytes& request);
  void failed(const Error& error);

  FuzzRun& run_;
  const std::unique_ptr<runtime::PeerHost> host_;
  const net::Dial to_;
  std::shared_ptr<net::PeerChannel> channel_;
  HonestCounts counts_;
  std::uint64_t next_height_ = 0;
};

}  // namespace neuroshard::test
