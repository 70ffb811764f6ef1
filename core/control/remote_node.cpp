// RemoteNode: one thread that connects, follows, and connects again; commands and queries are calls of their
// own whose answers come on gRPC's threads.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include <proto/control.grpc.pb.h>
#include "core/base/executor.h"
#include "core/control/control_file.h"
#include "core/control/detail/call_rules.h"
#include "core/control/detail/convert.h"
#include "core/control/detail/tls_identity.h"
#include "core/node/subscribers.h"

namespace neuroshard::control {
namespace {

namespace wire = detail::wire;
using grpc::ClientContext;

constexpr std::chrono::seconds hello_limit{5};
constexpr std::chrono::seconds query_limit{60};  // questions are answered between two training steps
constexpr std::size_t open_commands = 16;        // as the server's places for calls

// A connection to one core, with what every call of it must carry.
struct Link {
  ControlFile file;
  Version speaks;
  std::unique_ptr<wire::Control::Stub> stub;

  void sign(ClientContext* context) const {
    context->AddMetadata(detail::cookie_key, file.cookie);
    context->AddMetadata(detail::version_key, detail::to_text(speaks));
  }
};

std::shared_ptr<const Link> open_link(ControlFile file, Version speaks) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = file.certificate;  // this one and no other
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(detail::certificate_name);
  arguments.SetMaxReceiveMessageSize(detail::max_reply_bytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto channel =
      grpc::CreateCustomChannel("ipv4:" + file.address, grpc::SslCredentials(tls), arguments);
  return std::make_shared<const Link>(Link{std::move(file), speaks, wire::Control::NewStub(channel)});
}

// gRPC's words for a handshake that failed, as a person's.
Error connect_error(const grpc::Status& status, const ControlFile& file) {
  Error error = detail::to_error(status);
  const std::string& text = status.error_message();
  if (error.code == ErrorCode::Unavailable && (text.find("CERTIFICATE_VERIFY_FAILED") != std::string::npos ||
                                               text.find("andshake failed") != std::string::npos)) {
    return make_error(ErrorCode::Denied,
                      fmt::format("the program at {} is not the core that control.json names: "
                                  "its certificate is another one",
                                  file.address));
  }
  return std::move(error).with_context(
      fmt::format("the core of {} (process {})", file.data_directory, file.process.pid));
}

bool is_final(ErrorCode code) {
  return code == ErrorCode::Denied || code == ErrorCode::Unsupported || code == ErrorCode::Corrupt;
}

class RemoteNodeImpl final : public RemoteNode {
 public:
  explicit RemoteNodeImpl(ConnectOptions options)
      : options_(std::move(options)),
        published_(std::make_shared<const node::Snapshot>()),
        worker_(make_thread_executor("ns-remote", 1)) {
    detail::prepare_grpc();
    const bool posted = worker_->post([this] { run(); });
    NS_CHECK(posted);
  }

  ~RemoteNodeImpl() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      for (const auto& [context, call] : contexts_) context->TryCancel();
    }
    changed_.notify_all();
    worker_.reset();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return calls_ == 0; });
  }

  std::shared_ptr<const node::Snapshot> snapshot() const override {
    std::lock_guard lock(mutex_);
    return published_;
  }
  std::unique_ptr<node::Subscription> subscribe(node::EventHandler on_event) override {
    return subscribers_->add(std::move(on_event));
  }
  LinkView link() const override {
    std::lock_guard lock(mutex_);
    return view_;
  }
  std::unique_ptr<node::Subscription> watch_link(std::function<void()> on_change) override {
    return link_watchers_->add([on_change = std::move(on_change)](const node::Event&) { on_change(); });
  }

  Expected<void> wait_connected(Duration limit, const CancelToken& stop) override {
    constexpr Duration look = std::chrono::milliseconds(50);
    std::unique_lock lock(mutex_);
    for (Duration waited{0};; waited += look) {
      const bool settled = changed_.wait_for(lock, look, [this] {
        return view_.state == LinkState::Connected || view_.state == LinkState::Refused;
      });
      if (settled && view_.state == LinkState::Connected) return {};
      if (settled) return *view_.error;
      if (stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped while connecting to the core");
      if (waited < limit) continue;
      return view_.error ? *view_.error : make_error(ErrorCode::Timeout, "the core does not answer");
    }
  }

  Expected<node::CommandId> start_training(const node::TrainingPlan& plan) override {
    return command([&](wire::CommandRequest* request) {
      request->mutable_start_training()->set_text_path(plan.text_path);
      request->mutable_start_training()->set_steps(plan.steps);
      request->mutable_start_training()->set_until_step(plan.until_step);
    });
  }
  Expected<node::CommandId> stop_training() override {
    return command([](wire::CommandRequest* request) { request->mutable_stop_training(); });
  }
  Expected<node::CommandId> set_contributing(bool on) override {
    return command([on](wire::CommandRequest* request) { request->mutable_set_contributing()->set_on(on); });
  }
  Expected<node::CommandId> snooze(std::chrono::seconds duration) override {
    if (duration.count() < 1)
      return make_error(ErrorCode::InvalidArgument, "a snooze lasts at least a second");
    return command([duration](wire::CommandRequest* request) {
      request->mutable_snooze()->set_seconds(static_cast<std::uint64_t>(duration.count()));
    });
  }
  Expected<node::CommandId> finish() override {
    return command([](wire::CommandRequest* request) { request->mutable_finish(); });
  }
  Expected<node::CommandId> save_checkpoint() override {
    return command([](wire::CommandRequest* request) { request->mutable_save_checkpoint(); });
  }
  Expected<node::CommandId> set_setting(const std::string& name, const std::string& value) override {
    return command([&](wire::CommandRequest* request) {
      request->mutable_set_setting()->set_name(name);
      request->mutable_set_setting()->set_value(value);
    });
  }
  Expected<node::CommandId> request_shutdown() override {
    return command([](wire::CommandRequest* request) { request->mutable_shutdown(); });
  }

  Expected<void> query_series(const node::SeriesQuery& query, node::Reply<node::Series> reply) override {
    wire::SeriesQuery request;
    request.set_name(query.name);
    request.set_from_step(query.from_step);
    request.set_to_step(query.to_step);
    request.set_buckets(static_cast<std::uint32_t>(query.buckets));
    return ask<wire::SeriesReply>(request, std::move(reply), &wire::Control::Stub::async::QuerySeries);
  }
  Expected<void> query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) override {
    wire::LogQuery request;
    request.set_after(query.after);
    request.set_limit(static_cast<std::uint32_t>(query.limit));
    request.set_least(static_cast<std::uint32_t>(query.least));
    return ask<wire::LogPage>(request, std::move(reply), &wire::Control::Stub::async::QueryLogs);
  }
  Expected<void> query_checkpoints(const node::CheckpointQuery& query,
                                   node::Reply<node::CheckpointPage> reply) override {
    wire::CheckpointQuery request;
    request.set_after(query.after);
    request.set_limit(static_cast<std::uint32_t>(query.limit));
    return ask<wire::CheckpointPage>(request, std::move(reply),
                                     &wire::Control::Stub::async::QueryCheckpoints);
  }
  Expected<void> query_settings(node::Reply<std::vector<node::SettingEntry>> reply) override {
    return ask<wire::SettingList>(wire::SettingsQuery(), std::move(reply),
                                  &wire::Control::Stub::async::QuerySettings);
  }

 private:
  // One call under way, kept alive by contexts_.
  template <class Request, class Message>
  struct Call {
    std::shared_ptr<const Link> link;
    ClientContext context;
    Request request;
    Message reply;
  };

  void run();               // worker: until destruction
  Expected<void> follow();  // worker: one connection; why it ended
  Expected<void> greet(const Link& link);
  Expected<void> watch(const std::shared_ptr<const Link>& link);
  void on_update(wire::Update* update, const std::shared_ptr<const Link>& link);
  void set_link(LinkState state, std::optional<Error> error);
  void publish(node::Snapshot snapshot);

  // Counts a call and makes it cancellable; false when the node ends.
  // The last reference to a channel must not go on a thread of gRPC's callbacks (it would join itself): calls
  // that are over are kept in spent_ and released by whoever comes next.
  bool enter(ClientContext* context, std::shared_ptr<void> call = nullptr) {
    std::vector<std::shared_ptr<void>> spent;  // released outside the lock
    std::lock_guard lock(mutex_);
    if (stopping_) return false;
    spent.swap(spent_);
    contexts_[context] = std::move(call);
    ++calls_;
    return true;
  }
  void leave(ClientContext* context) {
    std::lock_guard lock(mutex_);
    const auto at = contexts_.find(context);
    if (at->second) spent_.push_back(std::move(at->second));
    contexts_.erase(at);
    --calls_;
    changed_.notify_all();  // under the lock: the destructor may be waiting to take everything away
  }

  Expected<std::shared_ptr<const Link>> current_link() const {
    std::lock_guard lock(mutex_);
    if (link_) return link_;
    return make_error(ErrorCode::Unavailable,
                      view_.error ? view_.error->describe() : "the connection to the core is not there yet");
  }

  template <class Fill>
  Expected<node::CommandId> command(const Fill& fill) {
    NS_ASSIGN_OR_RETURN(const auto link, current_link());
    auto call = std::make_shared<Call<wire::CommandRequest, wire::CommandReply>>();
    call->link = link;
    fill(&call->request);
    if (call->request.ByteSizeLong() > static_cast<std::size_t>(detail::max_request_bytes) / 2)
      return make_error(ErrorCode::InvalidArgument, "the command is too long");
    link->sign(&call->context);
    node::CommandId id = 0;
    {
      std::lock_guard lock(mutex_);
      if (open_commands_ >= open_commands)
        return make_error(ErrorCode::Busy, "too many commands are under way; try again in a moment");
      ++open_commands_;
      id = next_command_++;
    }
    if (!enter(&call->context, call)) {
      std::lock_guard lock(mutex_);
      --open_commands_;
      return make_error(ErrorCode::Cancelled, "the connection is being closed");
    }
    link->stub->async()->Command(
        &call->context, &call->request, &call->reply,
        [this, raw = call.get(), id](const grpc::Status& status) { on_done(*raw, id, status); });
    return id;
  }

  void on_done(Call<wire::CommandRequest, wire::CommandReply>& call, node::CommandId id,
               const grpc::Status& status) {
    node::CommandDone done{id, std::nullopt};
    if (status.ok()) {
      // So that the snapshot is never older than the outcome.
      if (call.reply.has_snapshot()) publish(detail::decode(call.reply.snapshot()));
    } else {
      done.error = detail::to_error(status);
      if (status.error_details().empty())
        done.error->message += "; it is not known whether the command was done";
    }
    {
      std::lock_guard lock(mutex_);
      --open_commands_;
    }
    subscribers_->emit(done);
    leave(&call.context);
  }

  template <class Message, class T, class Request>
  Expected<void> ask(const Request& request, node::Reply<T> reply,
                     void (wire::Control::Stub::async::*method)(ClientContext*, const Request*, Message*,
                                                                std::function<void(grpc::Status)>)) {
    NS_ASSIGN_OR_RETURN(const auto link, current_link());
    auto call = std::make_shared<Call<Request, Message>>();
    call->link = link;
    call->request = request;
    link->sign(&call->context);
    call->context.set_deadline(after(query_limit));
    if (!enter(&call->context, call))
      return make_error(ErrorCode::Cancelled, "the connection is being closed");
    (link->stub->async()->*method)(
        &call->context, &call->request, &call->reply,
        [this, raw = call.get(), reply = std::move(reply)](const grpc::Status& status) {
          if (status.ok()) {
            reply(detail::decode(raw->reply));
          } else {
            reply(detail::to_error(status));
          }
          leave(&raw->context);
        });
    return {};
  }

  // Deadlines of gRPC are points of time; it keeps its own clock for them.
  static gpr_timespec after(std::chrono::seconds limit) {
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(limit.count(), GPR_TIMESPAN));
  }

  const ConnectOptions options_;
  std::shared_ptr<node::Subscribers> subscribers_ = std::make_shared<node::Subscribers>();
  std::shared_ptr<node::Subscribers> link_watchers_ = std::make_shared<node::Subscribers>();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const node::Snapshot> published_;
  LinkView view_;
  std::shared_ptr<const Link> link_;                          // null unless connected
  std::map<ClientContext*, std::shared_ptr<void>> contexts_;  // of calls under way, with what owns them
  std::vector<std::shared_ptr<void>> spent_;
  std::size_t calls_ = 0, open_commands_ = 0;
  node::CommandId next_command_ = 1;
  bool stopping_ = false;

  wire::Snapshot whole_;  // worker: the stream's, with fields that this build does not know

  std::unique_ptr<Executor> worker_;  // last: joined first
};

void RemoteNodeImpl::run() {
  Duration retry = options_.first_retry;
  while (true) {
    const Expected<void> ended = follow();
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    if (view_.state == LinkState::Connected) retry = options_.first_retry;
    lock.unlock();
    const Error error =
        ended.ok() ? make_error(ErrorCode::Unavailable, "the core has stopped") : ended.error();
    set_link(is_final(error.code) ? LinkState::Refused : LinkState::Lost, error);
    lock.lock();
    if (changed_.wait_for(lock, retry, [this] { return stopping_; })) return;
    retry = std::min(retry * 2, options_.last_retry);
  }
}

Expected<void> RemoteNodeImpl::follow() {
  auto file = find_core(options_.runtime_directory, options_.data_directory);
  if (!file.ok()) {
    if (file.error().code != ErrorCode::NotFound) return std::move(file).error();
    return make_error(ErrorCode::Unavailable, "no core runs on " + options_.data_directory);
  }
  const auto link = open_link(std::move(*file), options_.speaks);
  NS_RETURN_IF_ERROR(greet(*link));
  return watch(link);
}

Expected<void> RemoteNodeImpl::greet(const Link& link) {
  ClientContext context;
  link.sign(&context);
  context.set_deadline(after(hello_limit));
  wire::HelloRequest request;
  request.mutable_control()->set_major(options_.speaks.major);
  request.mutable_control()->set_minor(options_.speaks.minor);
  request.set_build(options_.build);
  request.set_program(options_.program);
  wire::HelloReply reply;
  if (!enter(&context)) return make_error(ErrorCode::Cancelled, "the connection is being closed");
  const grpc::Status status = link.stub->Hello(&context, request, &reply);
  leave(&context);
  if (!status.ok()) return connect_error(status, link.file);
  const Version core{reply.control().major(), reply.control().minor()};
  if (core.major != options_.speaks.major) return detail::wrong_version(core, options_.speaks);
  std::lock_guard lock(mutex_);
  view_.control = core;
  view_.build = reply.build();
  view_.format = reply.format();
  view_.pid = reply.pid();
  view_.capabilities.assign(reply.capabilities().begin(), reply.capabilities().end());
  return {};
}

Expected<void> RemoteNodeImpl::watch(const std::shared_ptr<const Link>& link) {
  ClientContext context;
  link->sign(&context);
  wire::WatchRequest request;
  request.set_events(true);
  if (!enter(&context)) return make_error(ErrorCode::Cancelled, "the connection is being closed");
  whole_.Clear();
  const auto reader = link->stub->Watch(&context, request);
  wire::Update update;
  while (reader->Read(&update)) on_update(&update, link);
  const grpc::Status status = reader->Finish();
  leave(&context);
  if (status.ok()) return {};
  return connect_error(status, link->file);
}

void RemoteNodeImpl::on_update(wire::Update* update, const std::shared_ptr<const Link>& link) {
  if (update->has_event()) {
    if (const auto event = detail::decode(update->event())) subscribers_->emit(*event);
    return;
  }
  if (!update->has_snapshot()) return;
  if (update->snapshot().full()) whole_.Clear();
  const bool first = !whole_.has_training();
  detail::merge(std::move(*update->mutable_snapshot()), &whole_);
  if (!first) return publish(detail::decode(whole_));
  auto snapshot = std::make_shared<const node::Snapshot>(detail::decode(whole_));
  {
    // Whatever its version: another core's count from the beginning.
    std::lock_guard lock(mutex_);
    published_ = std::move(snapshot);
    link_ = link;
  }
  set_link(LinkState::Connected, std::nullopt);
}

// The newest wins: an answer's snapshot may be ahead of the stream.
void RemoteNodeImpl::publish(node::Snapshot snapshot) {
  auto next = std::make_shared<const node::Snapshot>(std::move(snapshot));
  std::lock_guard lock(mutex_);
  if (next->version >= published_->version) published_ = std::move(next);
}

void RemoteNodeImpl::set_link(LinkState state, std::optional<Error> error) {
  {
    std::lock_guard lock(mutex_);
    view_.state = state;
    view_.error = std::move(error);
    if (state != LinkState::Connected) link_.reset();
  }
  changed_.notify_all();
  link_watchers_->emit(node::StateChanged{});
}

}  // namespace

std::unique_ptr<RemoteNode> connect(ConnectOptions options) {
  return std::make_unique<RemoteNodeImpl>(std::move(options));
}

}  // namespace neuroshard::control
