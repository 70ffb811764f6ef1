// Gives other nodes the files that this node holds, piece by piece. A file is offered by its path and hash.
// Before the server gives a list of its pieces, or a piece, it reads the whole file once. It checks each piece
// against that list before it leaves, so an honest node never sends a wrong one. A file that was lost or
// changed on the disk is no longer offered.
//
// Bounds, beside the user's limits of the line (net/limited_transport.h) and the rates of the methods
// (net/method_table.h): open requests of one caller, of strangers and of all, lists in memory, offered files.
// A large file is hashed part by part, and pieces of others leave in between.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/executor.h"
#include "core/base/log.h"
#include "core/exchange/messages.h"
#include "core/exchange/pieces.h"
#include "core/net/mailbox.h"
#include "core/net/method_table.h"
#include "core/net/peer_ranks.h"
#include "core/net/slot_pool.h"
#include "core/storage/file_env.h"

namespace neuroshard::exchange {

struct ServerLimits {
  // Requests on the disk or waiting for it: 16 MiB of pieces. 21 are kept for known peers.
  net::SlotLimits requests{64, 8, 16, 21, 0};
  std::uint32_t hashed_at_once = 64;  // pieces: 16 MiB
  std::size_t files = 4096;
  std::size_t names = 64;
  std::uint64_t listed_pieces =
      1u << 19;  // hashes kept in memory: 16 MiB; the list unused for longest is dropped
};

struct ServerServices {  // all outlive it
  Executor& executor;    // of the peers
  Executor& disk;        // where files are read; its tasks end before the server's executor does
  const Clock& clock;
  storage::FileEnv& files;
  Logger& logger;
  const net::PeerRanks* ranks = nullptr;  // null: all callers are strangers
};

struct ServerCounts {
  std::uint64_t pieces = 0, bytes = 0;  // given
  std::uint64_t refused = 0;            // too many, or unreadable
};

class ContentServer {
 public:
  using Gone = std::function<void(const Hash256&)>;
  // gone: a file is no longer what it was offered as.  Threads: the executor's, all members.
  ContentServer(ServerServices services, ServerLimits limits, Gone gone = {});
  ~ContentServer();

  // Offers a file, or the part of one that begins at `offset`. False: too many, with a line in the
  // log for the first. A second offer of a hash replaces the place.
  bool offer(const ContentRef& content, std::string path, std::uint64_t offset = 0);
  void withdraw(const Hash256& hash);
  bool holds(const Hash256& hash) const { return files_.count(hash) != 0; }
  // When another node asked for it last, since it is offered.
  std::optional<MonotonicTime> asked(const Hash256& hash) const;
  // The content that this node gives for a name from now on.
  void set_name(const std::string& name, NamedContent named);

  void on_call(const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply);
  const ServerCounts& counts() const { return counts_; }

 private:
  struct File {
    std::uint64_t size = 0;
    ContentPlace place;
    std::optional<MonotonicTime> asked;
    std::shared_ptr<const PieceList> list;  // null: not read yet, or dropped
    std::uint64_t used = 0;
    bool reading = false;
  };
  struct Waiting {
    net::SlotUser from;
    net::Method method{};
    PieceRequest request;
    net::Reply reply;
    bool needs_list = true;  // its answer begins once the list is here
  };

  struct Reading {  // of a list
    Reading(storage::FileEnv& env, const Hash256& of, const File& file)
        : hash(of), size(file.size), place(file.place), hasher(env, file.place, file.size) {}
    const Hash256 hash;
    const std::uint64_t size;
    const ContentPlace place;
    ContentHasher hasher;  // the disk's executor uses it until all is read
  };

  void refuse(net::Fault fault, Error error, const net::Reply& reply);
  void take(std::uint64_t number);
  void read_list(const Hash256& hash);
  void read_on(const std::shared_ptr<Reading>& reading);
  void has_read(const std::shared_ptr<Reading>& reading, const Expected<bool>& all);
  void got_list(const Reading& reading, Expected<std::shared_ptr<const PieceList>> list);
  std::vector<std::uint64_t> waiting_for_list(const Hash256& hash) const;
  void serve(std::uint64_t number, File& file);  // its list is here
  void give_list(std::uint64_t number, File& file);
  void read_piece_of(std::uint64_t number, const File& file);
  void got_piece(std::uint64_t number, const Hash256& hash, Expected<Bytes> bytes);
  void finish(std::uint64_t number, Expected<Bytes> answer);
  void lost(const Hash256& hash, const Error& why);
  void forget_lists();

  ServerServices services_;
  const ServerLimits limits_;
  const Gone gone_;
  std::unordered_map<Hash256, File, net::NodeIdHash> files_;
  std::map<std::string, NamedContent> names_;
  std::map<std::uint64_t, Waiting> waiting_;
  net::SlotPool places_;  // of waiting_
  std::uint64_t next_ = 0, uses_ = 0;
  ServerCounts counts_;
  bool told_full_ = false;
  const std::shared_ptr<net::Mailbox> results_;  // of the disk; none may get lost
};

}  // namespace neuroshard::exchange
