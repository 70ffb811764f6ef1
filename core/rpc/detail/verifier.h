// The only check of a TLS handshake: gRPC itself checks nothing of a certificate, because node certificates
// have no authority. Certificates that fail here are refused.
#pragma once

#include <grpcpp/security/tls_certificate_verifier.h>

#include <memory>
#include <mutex>
#include <optional>

#include "core/rpc/detail/shared.h"

namespace neuroshard::rpc::detail {

// The result of the latest handshake of one channel.  Threads: any.
class Verdict {
 public:
  void set(Expected<net::NodeId> result) {
    const std::lock_guard lock(mutex_);
    result_.emplace(std::move(result));
  }
  std::optional<Expected<net::NodeId>> get() const {
    const std::lock_guard lock(mutex_);
    return result_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Expected<net::NodeId>> result_;
};

// pin: nothing = any node that is not banned. verdict: may be null.
std::shared_ptr<grpc::experimental::CertificateVerifier> make_verifier(std::shared_ptr<Shared> shared,
                                                                       std::optional<net::NodeId> pin,
                                                                       std::shared_ptr<Verdict> verdict);

}  // namespace neuroshard::rpc::detail
