// The dialling end: connections, their calls and streams.
#pragma once

#include <grpcpp/security/tls_certificate_provider.h>

#include <memory>

#include "core/rpc/detail/shared.h"

namespace neuroshard::rpc::detail {

using Provider = std::shared_ptr<grpc::experimental::CertificateProviderInterface>;

void dial(const std::shared_ptr<Shared>& shared, const Provider& provider, const net::Dial& to,
          Duration deadline, net::PeerTransport::Connected done);

}  // namespace neuroshard::rpc::detail
