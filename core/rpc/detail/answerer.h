// The answering end: checks the certificate, the hello and the limits of each call, and then reads it.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <memory>

#include "core/rpc/detail/shared.h"

namespace neuroshard::rpc::detail {

// The places of calls and streams, and the bytes of requests.  Threads: any.
struct Places {
  explicit Places(const RpcLimits& limits)
      : arriving(limits.arriving),
        calls(limits.calls),
        streams(limits.streams),
        held_bytes(limits.held_bytes) {}
  net::SlotPool arriving, calls, streams, held_bytes;
};

// The places of requests that did not arrive in time. They are kept for a while, so that one who sends slowly has
// ever fewer of them.
class LatePlaces;

class Answerer final : public grpc::CallbackGenericService {
 public:
  explicit Answerer(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)), places_(std::make_shared<Places>(shared_->options.limits)) {
    begin_late();
  }

 private:
  void begin_late();
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
  Expected<net::Caller> admit(const grpc::GenericCallbackServerContext& context, bool any_hello);

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<Places> places_;
  std::shared_ptr<LatePlaces> late_;
};

}  // namespace neuroshard::rpc::detail
