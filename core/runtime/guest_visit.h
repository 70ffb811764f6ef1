// A guest that fetches contents by their hash from the nodes of a network: its connections, the hash table and a
// thread for the disk.
//
// Threads: the caller's; calls block, and callbacks run on it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/executor.h"
#include "core/exchange/fetch.h"
#include "core/exchange/names.h"
#include "core/runtime/guest.h"

namespace neuroshard::runtime {

// The callbacks of a fetch. Empty ones are skipped.
struct FetchObserver {
  struct File {
    std::string name;
    exchange::FetchReport report;
    std::size_t relayed = 0;  // nodes that were connected through a relay
  };
  NoteFunction note;
  // While a file arrives: its bytes that are here; total 0: unknown.
  std::function<void(const std::string& name, std::uint64_t here, std::uint64_t total)> progress;
  // The fetch of a file is over, with or without success.
  std::function<void(const std::string& name)> ended;
  // The file is complete; after `ended`.
  std::function<void(const File& file)> fetched;
};

// The context of every call of a fetch. The references outlive the call.
struct FetchSession {
  const GuestOptions& guest;
  const RuntimeServices& services;
  CancelToken stop;
  const FetchObserver& observer;
};

class GuestVisit {
 public:
  // The session outlives it. Errors: those of the guest.
  static Expected<std::unique_ptr<GuestVisit>> begin(const FetchSession& session);
  ~GuestVisit();

  const Hash256& network() const { return network_; }
  storage::FileEnv& files() const { return session_.services.files; }
  crypto::Entropy& entropy() const { return session_.services.entropy; }
  // The contents that the nodes give for a name.
  std::vector<exchange::Claim> named(const char* name);
  // Where in the hash table holders of further contents are found; empty: only the nodes that the source knows
  // are asked.
  void set_path(std::string path) { path_ = std::move(path); }
  // Does nothing when the file exists. name: for the observer. Errors: those of exchange::ContentFetch, Cancelled.
  Expected<void> fetch(const exchange::FetchRequest& request, const std::string& name,
                       const exchange::FetchOptions& options = {});

 private:
  struct Outcome;  // filled on the executor, waited for by the caller

  explicit GuestVisit(const FetchSession& session) : session_(session) {}
  std::unique_ptr<exchange::ContentFetch> start_fetch(const exchange::FetchRequest& request,
                                                      const exchange::FetchOptions& options,
                                                      Outcome& outcome);
  void wait_until_done(const exchange::FetchRequest& request, const std::string& name,
                       exchange::ContentFetch& fetch, Outcome& outcome);
  void find(const std::function<void(std::vector<net::Contact>)>& found);

  const FetchSession& session_;
  Hash256 network_{};
  std::unique_ptr<PeerHost> host_;
  std::unique_ptr<GuestPaths> paths_;
  std::string path_;
  std::unique_ptr<GuestTable> table_;  // null: no member of it is known
  std::unique_ptr<Executor> disk_;     // its tasks post to the host's executor, so it ends first
};

}  // namespace neuroshard::runtime
