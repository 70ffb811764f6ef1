#include "core/control/detail/update_reader.h"

namespace neuroshard::control::detail {
namespace {

constexpr std::chrono::seconds status_limit{1};  // the status comes with the end of the stream

}  // namespace

UpdateReader::UpdateReader(const RemoteLink& link, grpc::ClientContext* context,
                           const v1::WatchRequest& request)
    : context_(context), reader_(link.stub->PrepareAsyncWatch(context, request, &queue_)) {
  reader_->StartCall(this);
  wait();  // where the call can't start, the first read fails
}

UpdateReader::~UpdateReader() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool UpdateReader::wait() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

bool UpdateReader::read(v1::Update* update) {
  reader_->Read(update, this);
  return wait();
}

std::optional<grpc::Status> UpdateReader::finish() {
  grpc::Status status;
  reader_->Finish(&status, this);
  void* tag = nullptr;
  bool ok = false;
  if (queue_.AsyncNext(&tag, &ok, after(status_limit)) == grpc::CompletionQueue::GOT_EVENT) return status;
  // Not before: a cancelled call would lose the core's own status.
  context_->TryCancel();
  wait();
  return std::nullopt;
}

}  // namespace neuroshard::control::detail
