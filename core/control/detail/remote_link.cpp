#include "core/control/detail/remote_link.h"

#include <fmt/format.h>

#include "core/control/detail/call_rules.h"
#include "core/control/detail/convert.h"
#include "core/control/detail/tls_identity.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::control::detail {

namespace {

// As gRPC writes addresses; names are of invitations.
std::string target_of(const std::string& address) {
  const auto endpoint = platform::parse_endpoint(address);
  if (!endpoint.ok()) return "dns:///" + address;
  return (endpoint->ip.is_v4() ? "ipv4:" : "ipv6:") + address;
}

}  // namespace

void RemoteLink::sign(grpc::ClientContext* context) const {
  context->AddMetadata(cookie_key, file.cookie);
  context->AddMetadata(version_key, to_text(speaks));
}

std::shared_ptr<const RemoteLink> open_link(ControlFile file, Version speaks, Duration quiet) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = file.certificate;  // this one and no other
  tls.pem_cert_chain = file.client_certificate;
  tls.pem_private_key = file.client_key;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(certificate_name);
  arguments.SetMaxReceiveMessageSize(max_reply_bytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // A program that only reads updates sends nothing: without pings it never learns that the other computer is
  // gone.
  const auto quiet_ms = std::chrono::duration_cast<std::chrono::milliseconds>(quiet).count();
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(quiet_ms));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(quiet_ms));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  const auto channel =
      grpc::CreateCustomChannel(target_of(file.address), grpc::SslCredentials(tls), arguments);
  return std::make_shared<const RemoteLink>(
      RemoteLink{std::move(file), speaks, v1::Control::NewStub(channel)});
}

Error connect_error(const grpc::Status& status, const ControlFile& file) {
  Error error = to_error(status);
  const std::string& text = status.error_message();
  if (error.code == ErrorCode::Unavailable && (text.find("CERTIFICATE_VERIFY_FAILED") != std::string::npos ||
                                               text.find("andshake failed") != std::string::npos)) {
    return make_error(
        ErrorCode::Denied,
        fmt::format("the program at {} is not the core that control.json names: its certificate differs",
                    file.address));
  }
  if (error.code == ErrorCode::Unavailable && text.find("keepalive") != std::string::npos)
    error.message = "the core does not answer any more";
  return std::move(error).with_context(
      file.process.pid == 0
          ? fmt::format("the core at {}", file.address)
          : fmt::format("the core of {} (process {})", file.data_directory, file.process.pid));
}

gpr_timespec after(std::chrono::seconds limit) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(limit.count(), GPR_TIMESPAN));
}

}  // namespace neuroshard::control::detail
