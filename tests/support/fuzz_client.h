// One identity of a fuzzer on a real network: a key of its own, a connection with TLS and hello, and changed
// messages in its calls and streams, several at a time, until the node refuses it or it has said enough.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "core/base/lifetime.h"
#include "core/runtime/guest.h"
#include "tests/support/message_file.h"
#include "tests/support/message_source.h"

namespace neuroshard::test {

struct ClientCounts {
  std::uint64_t calls = 0, answers = 0, errors = 0;
};

// Shared by all identities.  Threads: any, with the mutex held.
struct FuzzRun {
  FuzzRun(const Hash256& network, std::uint64_t seed) : pool(network), rng(seed), mutator(rng) {}
  std::mutex mutex;
  std::condition_variable identity_ended;
  MessagePool pool;
  Rng rng;
  Mutator mutator;
  // A member's identity, which signs now and then; the connections are a stranger's all the same.
  std::optional<crypto::KeyPair> member;
  std::optional<std::uint32_t> member_number;
  std::unique_ptr<MessageFileWriter> trace;
  std::map<MessageKind, ClientCounts> counts;
  std::map<std::string, std::uint64_t> errors;  // by their code
  std::uint64_t identities = 0, refused_connections = 0, denied = 0, streams = 0;
};

class FuzzClient {
 public:
  struct Options {
    net::Dial to;
    std::size_t window = 8;   // calls at a time
    std::size_t calls = 200;  // then another identity takes over
    bool valid_only = false;  // messages of its own, of these methods, without a change
    std::vector<net::Method> methods;
    std::optional<platform::Endpoint> own_endpoint;  // that its records name
    std::vector<Message> replay;                     // sent in order instead of anything else
  };
  // Errors: those of PeerHost::start. The run outlives it.
  static Expected<std::unique_ptr<FuzzClient>> start(FuzzRun& run, const runtime::RuntimeServices& services,
                                                     Options options);
  ~FuzzClient();
  bool has_ended() const { return ended_; }

 private:
  FuzzClient(FuzzRun& run, std::unique_ptr<runtime::PeerHost> host, Options options);
  bool connect();
  std::optional<Message> next();
  std::optional<Message> next_locked();
  void pump();
  void send(Message message);
  void say_in_stream(const Message& message);
  void end();
  void got(const MessageKind& kind, const Expected<Bytes>& answer);

  FuzzRun& run_;
  const Options options_;
  const std::unique_ptr<runtime::PeerHost> host_;
  SignedChanges own_changes_;
  std::optional<SignedChanges> member_changes_;
  // The host's executor's, all below.
  std::shared_ptr<net::PeerChannel> channel_;
  std::deque<std::shared_ptr<net::PeerStream>> streams_;
  std::deque<Message> own_;
  std::size_t open_ = 0, sent_ = 0;
  std::atomic<bool> ended_ = false;
  Lifetime lifetime_;
};

}  // namespace neuroshard::test
