// A control service over a FakeNode on the real loopback interface, with its files in a temporary folder.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <proto/control.grpc.pb.h>
#include <QTemporaryDir>
#include <atomic>
#include <deque>
#include <functional>
#include <future>

#include "core/base/clock.h"
#include "core/control/control_file.h"
#include "core/control/service.h"
#include "tests/support/fake_node.h"
#include "tests/support/until.h"

namespace neuroshard::test {

namespace wire = ::neuroshard::control::v1;
using testing::until;

// Collects the events of a node.
class Events {
 public:
  explicit Events(node::Node& node)
      : subscription_(node.subscribe([this](const node::Event& event) {
          std::lock_guard lock(mutex_);
          events_.push_back(event);
        })) {}
  template <class Kind>
  std::vector<Kind> all() const {
    std::lock_guard lock(mutex_);
    std::vector<Kind> found;
    for (const node::Event& event : events_)
      if (const auto* kind = std::get_if<Kind>(&event)) found.push_back(*kind);
    return found;
  }
  // The outcome of an accepted command.
  std::optional<node::CommandDone> done(node::CommandId id) const {
    std::optional<node::CommandDone> found;
    until([&] {
      for (const auto& done : all<node::CommandDone>())
        if (done.id == id) found = done;
      return found.has_value();
    });
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<node::Event> events_;
  std::unique_ptr<node::Subscription> subscription_;  // last: ends first
};

struct ControlFixture {
  QTemporaryDir folder;
  SystemClock clock;
  crypto::SystemEntropy entropy;
  std::unique_ptr<storage::FileEnv> files = storage::make_posix_file_env();
  NullLogger logger;
  testing::FakeNode node;
  std::atomic<int> asked_to_end{0};
  std::unique_ptr<control::Server> server;

  std::string runtime() const { return folder.filePath("runtime").toStdString(); }
  std::string data() const { return folder.filePath("d").toStdString(); }

  Expected<void> start(control::ServerLimits limits = {}, control::Version speaks = control::version) {
    control::ServerOptions options;
    options.data_directory = data();
    options.runtime_directory = runtime();
    options.build = "1.2.3";
    options.format = 7;
    options.limits = limits;
    options.speaks = speaks;
    options.on_shutdown = [this] { ++asked_to_end; };
    NS_ASSIGN_OR_RETURN(server, control::start_server(node, {*files, entropy, clock, logger}, options));
    return {};
  }

  control::ConnectOptions options(control::Version speaks = control::version) const {
    control::ConnectOptions connect;
    connect.data_directory = data();
    connect.runtime_directory = runtime();
    connect.program = "test";
    connect.build = "1.2.3";
    connect.speaks = speaks;
    connect.first_retry = std::chrono::milliseconds(20);
    connect.last_retry = std::chrono::milliseconds(50);
    return connect;
  }
  // Connected, or null.
  std::unique_ptr<control::RemoteNode> connect() const {
    auto remote = control::connect(options());
    if (!remote->wait_connected(std::chrono::seconds(20), {}).ok()) return nullptr;
    return remote;
  }

  control::ControlFile file() const {
    const auto found = control::find_core(runtime(), data());
    if (!found.ok()) qFatal("%s", found.error().describe().c_str());
    return *found;
  }

  std::shared_ptr<grpc::Channel> channel() const {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = file().certificate;
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("neuroshard-control");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return grpc::CreateCustomChannel("ipv4:" + file().address, grpc::SslCredentials(tls), arguments);
  }

  // A client without manners, for what RemoteNode never does.
  std::unique_ptr<wire::Control::Stub> raw() const { return wire::Control::NewStub(channel()); }

  // A call by its name with an empty request; waits for the first answer or the end. An empty cookie is none.
  grpc::Status call_without_message(const std::string& method, const std::string& cookie) const {
    const std::shared_ptr<grpc::Channel> to = channel();
    grpc::GenericStub stub(to);
    grpc::CompletionQueue queue;
    const auto wait = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    if (!cookie.empty()) context.AddMetadata("neuroshard-cookie", cookie);
    context.AddMetadata("neuroshard-control", "1.0");
    const auto call = stub.PrepareCall(
        &context, "/" + std::string(wire::Control::service_full_name()) + "/" + method, &queue);
    call->StartCall(nullptr);
    wait();
    const grpc::Slice empty("", 0);
    const grpc::ByteBuffer nothing(&empty, 1);
    grpc::ByteBuffer answer;
    call->WriteLast(nothing, grpc::WriteOptions(), nullptr);
    wait();
    call->Read(&answer, nullptr);
    if (wait()) context.TryCancel();  // a stream has begun
    grpc::Status status;
    call->Finish(&status, nullptr);
    wait();
    queue.Shutdown();
    while (wait()) {
    }
    return status;
  }
  void sign(grpc::ClientContext* context) const {
    context->AddMetadata("neuroshard-cookie", file().cookie);
    context->AddMetadata("neuroshard-control", "1.0");
  }
};

// The answer to a query; waits for it.
template <class T, class Ask>
Expected<T> answer(const Ask& ask) {
  auto promise = std::make_shared<std::promise<Expected<T>>>();
  const auto asked = ask([promise](Expected<T> value) { promise->set_value(std::move(value)); });
  if (!asked.ok()) return asked.error();
  return promise->get_future().get();
}

}  // namespace neuroshard::test
