// The answering end: checks the certificate, the hello and the limits of each call, and then reads it.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/rpc/detail/shared.h"

namespace neuroshard::rpc::detail {

// The calls, streams and bytes that are held now, by peer.  Threads: any.
class Places {
 public:
  explicit Places(const RpcLimits& limits) : limits_(limits) {}
  enum class Kind : std::uint8_t { Call, Stream };
  // False: all places, or this peer's, are taken.
  bool take(const net::NodeId& peer, Kind kind);
  void give_back(const net::NodeId& peer, Kind kind);
  bool hold(std::size_t bytes);
  void release(std::size_t bytes);

 private:
  struct Taken {
    std::size_t calls = 0, streams = 0;
  };
  const RpcLimits limits_;
  std::mutex mutex_;
  Taken all_;
  std::unordered_map<net::NodeId, Taken, net::NodeIdHash> peers_;
  std::size_t held_ = 0;
};

class Answerer final : public grpc::CallbackGenericService {
 public:
  explicit Answerer(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)), places_(std::make_shared<Places>(shared_->options.limits)) {}

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
  Expected<net::Caller> admit(const grpc::GenericCallbackServerContext& context, bool any_hello);

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<Places> places_;
};

}  // namespace neuroshard::rpc::detail
