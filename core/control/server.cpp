// The control service of a core: its listeners, keys and files. The calls: detail/control_service.h.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>

#include "core/base/executor.h"
#include "core/control/control_file.h"
#include "core/control/detail/call_rules.h"
#include "core/control/detail/control_service.h"
#include "core/control/detail/tls_identity.h"
#include "core/control/remote_access.h"
#include "core/platform/file/private_directory.h"
#include "core/platform/socket/bounded_listener.h"

namespace neuroshard::control {
namespace {

constexpr std::size_t cookie_bytes = 32;
constexpr std::size_t memory_for_calls = 64u << 20;  // of gRPC, all connections together
constexpr int handshake_ms = 5'000;                  // a silent connection gives its place back
constexpr int idle_ms = 30'000;                      // as one that asks nothing
constexpr int keepalive_ms = 20'000;                 // between two pings of a connection that has a call
constexpr int keepalive_answer_ms = 10'000;
constexpr int client_ping_ms = 5'000;  // least time between two pings of a program to which nothing is sent
constexpr int calls_per_connection = 32;
constexpr int spare_threads = 8;  // that wait for calls, or refuse them
constexpr std::chrono::milliseconds last_calls{2'000};
constexpr Duration file_period = std::chrono::hours(1);  // between two looks for control.json

std::string make_cookie(crypto::Entropy& entropy) {
  std::array<std::uint8_t, cookie_bytes> bytes{};
  entropy.fill({bytes.data(), bytes.size()});
  return to_hex({bytes.data(), bytes.size()});
}

// A port that connections come in by, and the thread that hands them to gRPC.
class Door {
 public:
  ~Door() { close(); }
  void close() {
    if (listener_) listener_->stop();
    gate_.reset();
  }

  Expected<void> open(const platform::Endpoint& at, platform::ConnectionBounds bounds) {
    NS_ASSIGN_OR_RETURN(listener_, platform::BoundedListener::open(at, bounds));
    return {};
  }
  // clients: the certificate that programs must show; empty: they show none.
  void add_to(grpc::ServerBuilder& builder, const std::string& key, const std::string& certificate,
              const std::string& clients = {}) {
    grpc::SslServerCredentialsOptions tls(clients.empty()
                                              ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                              : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_key_cert_pairs.push_back({key, certificate});
    tls.pem_root_certs = clients;
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::SslServerCredentials(tls));
  }
  void serve() {
    gate_ = make_thread_executor("ns-control", 1);
    const bool posted = gate_->post([this] {
      listener_->serve([this](int descriptor) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
        connection.fd = descriptor;
        acceptor_->HandleNewConnection(&connection);
      });
    });
    NS_CHECK(posted);
  }
  void stop() {
    if (listener_) listener_->stop();
  }
  platform::Endpoint endpoint() const { return listener_->endpoint(); }

 private:
  std::unique_ptr<platform::BoundedListener> listener_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<Executor> gate_;
};

class ControlServer final : public Server {
 public:
  ControlServer(node::Node& node, ServerServices services, ServerOptions options)
      : services_(services),
        options_(std::move(options)),
        cookies_(make_cookie(services.entropy), options_.data_directory, services.clock),
        calls_(detail::make_control_calls(node, services.logger, cookies_, options_)) {}

  ~ControlServer() override {
    if (!path_.empty()) static_cast<void>(services_.files.remove_file(path_).ok());
    calls_.stop();
    local_.stop();
    remote_.stop();
    if (server_)
      server_->Shutdown(std::chrono::system_clock::time_point(services_.clock.wall_now() + last_calls));
    local_.close();
    remote_.close();
  }

  std::string address() const override { return platform::to_text(local_.endpoint()); }
  std::string remote_address() const override {
    return remote_open_ ? platform::to_text(remote_.endpoint()) : std::string();
  }

  void keep_file() override {
    const MonotonicTime now = services_.clock.monotonic_now();
    if (path_.empty() || now - file_seen_ < file_period) return;
    file_seen_ = now;
    const auto present = services_.files.has_name(path_);
    if (!present.ok() || *present) return;
    if (const auto written = put_file(path_); !written.ok()) {
      services_.logger.warning("control", "commands can't find this node: " + written.error().describe());
    } else {
      services_.logger.info("control", path_ + " was removed and is written again");
    }
  }

  Expected<void> start(const node::Node& node) {
    detail::prepare_grpc();
    NS_RETURN_IF_ERROR(platform::make_private_directory(options_.runtime_directory));
    (void)services_.files.remove_leftovers(options_.runtime_directory, storage::LeftoverScope::Folder);
    NS_ASSIGN_OR_RETURN(const detail::TlsIdentity identity, detail::make_tls_identity());
    NS_RETURN_IF_ERROR(local_.open({platform::IpAddress::v4(127, 0, 0, 1), 0},
                                   {options_.limits.connections, options_.limits.connections}));
    const std::optional<RemoteAccess> access = open_remote();
    grpc::ServerBuilder builder;
    local_.add_to(builder, identity.key, identity.certificate);
    if (access) remote_.add_to(builder, access->key, access->certificate, access->client_certificate);
    build(builder);
    if (!server_) return make_error(ErrorCode::Internal, "gRPC can't start the control service");
    local_.serve();
    if (access) remote_.serve();
    remote_open_ = access.has_value();
    return write_file(identity, access, node);
  }

 private:
  // A remote port that can't be opened is no reason to be without the local one.
  std::optional<RemoteAccess> open_remote() {
    auto access = load_remote_access(options_.data_directory);
    if (access.ok() && (!*access || valid_invitations(**access) == 0)) return std::nullopt;
    Expected<void> opened =
        access.ok()
            ? remote_.open((*access)->listen, {options_.limits.connections, options_.limits.remote_group})
            : Expected<void>(access.error());
    if (!opened.ok()) {
      services_.logger.warning("control",
                               "other machines can't control this node: " + opened.error().describe());
      return std::nullopt;
    }
    services_.logger.info("control",
                          fmt::format("{} invited program(s) may control this node at {}",
                                      valid_invitations(**access), platform::to_text(remote_.endpoint())));
    return std::move(*access);
  }

  std::size_t valid_invitations(const RemoteAccess& access) const {
    const WallTime now = services_.clock.wall_now();
    return static_cast<std::size_t>(
        std::count_if(access.invitations.begin(), access.invitations.end(),
                      [now](const Invitation& entry) { return !entry.expired(now); }));
  }

  void build(grpc::ServerBuilder& builder) {
    const ServerLimits& limits = options_.limits;
    const auto threads =
        static_cast<int>(limits.watchers + limits.calls + limits.invited_watchers + limits.invited_calls) +
        spare_threads;
    grpc::ResourceQuota quota("control");
    quota.Resize(memory_for_calls).SetMaxThreads(threads);
    builder.RegisterService(calls_.service.get());
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(detail::max_request_bytes);
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, detail::max_metadata_bytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, calls_per_connection);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, handshake_ms);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, idle_ms);
    // A watcher whose process is stopped loses its place.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive_answer_ms);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, client_ping_ms);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE,
                               0);  // windows stay small: a slow reader gets the latest
    server_ = builder.BuildAndStart();
  }

  Expected<void> write_file(const detail::TlsIdentity& identity, const std::optional<RemoteAccess>& access,
                            const node::Node& node) {
    ControlFile file;
    file.process = platform::own_process();
    file.started = node.snapshot()->program.started;
    file.address = address();
    file.certificate = identity.certificate;
    file.cookie = cookies_.local();
    file.data_directory = options_.data_directory;
    if (access) {
      file.remote_address = platform::to_text(access->listen);
      file.remote_certificate = access->certificate;
    }
    file_text_ = format_control_file(file);
    const std::string path = control_file_path(options_.runtime_directory, options_.data_directory);
    NS_RETURN_IF_ERROR(put_file(path));
    path_ = path;
    file_seen_ = services_.clock.monotonic_now();
    return {};
  }

  Expected<void> put_file(const std::string& path) {
    NS_RETURN_IF_ERROR(platform::make_private_directory(options_.runtime_directory));
    return storage::write_file_atomic(services_.files, path, as_bytes(file_text_));
  }

  ServerServices services_;
  const ServerOptions options_;
  const detail::Cookies cookies_;
  std::string path_;  // of control.json, once it is written
  std::string file_text_;
  MonotonicTime file_seen_{};
  detail::ControlCalls calls_;
  Door local_, remote_;
  bool remote_open_ = false;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Expected<std::unique_ptr<Server>> start_server(node::Node& node, ServerServices services,
                                               ServerOptions options) {
  auto server = std::make_unique<ControlServer>(node, services, std::move(options));
  NS_RETURN_IF_ERROR(server->start(node));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace neuroshard::control
