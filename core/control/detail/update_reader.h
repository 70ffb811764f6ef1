// The stream of a core's updates, read by one thread. gRPC's blocking reader has no limit: after a message
// that does not parse, it waits for the end of a stream that the core does not end.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>

#include "core/control/detail/remote_link.h"

namespace neuroshard::control::detail {

// Threads: one. Others may cancel the context, which ends every wait.
class UpdateReader {
 public:
  // Starts the call. The context outlives the reader.
  UpdateReader(const RemoteLink& link, grpc::ClientContext* context, const v1::WatchRequest& request);
  ~UpdateReader();
  UpdateReader(const UpdateReader&) = delete;
  UpdateReader& operator=(const UpdateReader&) = delete;

  // Blocks. False: the stream has ended, or a message does not parse.
  bool read(v1::Update* update);
  // Once, after read() returned false: the status with which the core ended the stream. Nothing if the core
  // did not end it; the call is cancelled then.
  std::optional<grpc::Status> finish();

 private:
  bool wait();  // for the one operation that is under way

  grpc::ClientContext* const context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::Update>> reader_;  // uses the queue
};

}  // namespace neuroshard::control::detail
