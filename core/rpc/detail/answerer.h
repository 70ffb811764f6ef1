// The answering end: checks the certificate, the hello and the limits of each call, and then reads it.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <memory>

#include "core/rpc/detail/shared.h"

namespace neuroshard::rpc::detail {

// The places of calls and streams, and the bytes of requests and answers.  Threads: any.
struct Places {
  explicit Places(const RpcLimits& limits)
      : arriving(limits.arriving),
        calls(limits.calls),
        streams(limits.streams),
        held_bytes(limits.held_bytes),
        leaving(limits.leaving) {}
  net::SlotPool arriving, calls, streams, held_bytes, leaving;
};

// The places of requests that did not arrive in time. They are kept for a while, so that one who sends slowly has
// ever fewer of them.
class LatePlaces;

class Answerer final : public grpc::CallbackGenericService {
 public:
  explicit Answerer(std::shared_ptr<Shared> shared);
  // Call it every second.  Threads: any.
  void sweep(MonotonicTime now);

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
  // By the connection's certificate.
  Expected<net::NodeId> id_of(const grpc::GenericCallbackServerContext& context);
  // The hello, the address and the method.
  Expected<void> admit(const grpc::GenericCallbackServerContext& context, const net::Caller& caller);

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<Places> places_;
  const std::shared_ptr<LatePlaces> late_;
};

}  // namespace neuroshard::rpc::detail
