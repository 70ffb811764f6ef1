// The calls of one RemoteNode that are under way: each can be cancelled, and the node ends after the last
// one.
//
// A call enters before it starts and leaves when its last callback is done. The registry keeps the object
// that owns the call. When the call leaves, the registry sets that object aside and the next enter() releases
// it: the last reference to a gRPC channel must not end on a thread of gRPC's callbacks, which would then
// join itself.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace neuroshard::control::detail {

// Threads: any.
class RemoteCalls {
 public:
  // False after close(): the call must not start.
  bool enter(grpc::ClientContext* context, std::shared_ptr<void> call = nullptr);
  // The last use of the call: afterwards the call, and the node, may be gone.
  void leave(grpc::ClientContext* context);
  // Refuses further calls and cancels those under way.
  void close();
  // Blocks until no call is under way; after close().
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  std::map<grpc::ClientContext*, std::shared_ptr<void>> under_way_;  // with the owner of each call
  std::vector<std::shared_ptr<void>> spent_;
  bool closed_ = false;
};

}  // namespace neuroshard::control::detail
