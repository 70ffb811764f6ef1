#include "core/control/detail/remote_session.h"

#include "core/control/detail/call_rules.h"
#include "core/control/detail/update_reader.h"

namespace neuroshard::control::detail {
namespace {

constexpr std::chrono::seconds hello_limit{5};

bool is_final(ErrorCode code) {
  return code == ErrorCode::Denied || code == ErrorCode::Unsupported || code == ErrorCode::Corrupt;
}

}  // namespace

RemoteSession::RemoteSession(ConnectOptions options)
    : options_(std::move(options)),
      published_(std::make_shared<const node::Snapshot>()),
      worker_(make_thread_executor("ns-remote", 1)) {
  prepare_grpc();
  const bool posted = worker_->post([this] { run(); });
  NS_CHECK(posted);
}

RemoteSession::~RemoteSession() {
  close();
}

void RemoteSession::close() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  calls_.close();
  worker_.reset();
  calls_.wait();
}

std::shared_ptr<const node::Snapshot> RemoteSession::snapshot() const {
  std::lock_guard lock(mutex_);
  return published_;
}

LinkView RemoteSession::view() const {
  std::lock_guard lock(mutex_);
  return view_;
}

std::unique_ptr<node::Subscription> RemoteSession::watch_view(std::function<void()> on_change) {
  return view_watchers_->add([on_change = std::move(on_change)](const node::Event&) { on_change(); });
}

Expected<std::shared_ptr<const RemoteLink>> RemoteSession::link() const {
  std::lock_guard lock(mutex_);
  if (link_) return link_;
  return make_error(ErrorCode::Unavailable,
                    view_.error ? view_.error->describe() : "there is no connection to the core yet");
}

void RemoteSession::run() {
  Duration retry = options_.first_retry;
  while (true) {
    const Expected<void> ended = follow();
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    if (view_.state == LinkState::Connected) retry = options_.first_retry;
    lock.unlock();
    const Error error =
        ended.ok() ? make_error(ErrorCode::Unavailable, "the core has stopped") : ended.error();
    set_view(is_final(error.code) ? LinkState::Refused : LinkState::Lost, error);
    lock.lock();
    if (changed_.wait_for(lock, retry, [this] { return stopping_; })) return;
    retry = std::min(retry * 2, options_.last_retry);
  }
}

Expected<void> RemoteSession::follow() {
  auto file = options_.control_file.empty() ? find_core(options_.runtime_directory, options_.data_directory)
                                            : read_control_file(options_.control_file);
  if (!file.ok()) {
    if (file.error().code != ErrorCode::NotFound) return std::move(file).error();
    return make_error(ErrorCode::Unavailable, "no core runs on " + options_.data_directory);
  }
  const auto link = open_link(std::move(*file), options_.speaks, options_.quiet);
  NS_RETURN_IF_ERROR(greet(*link));
  return watch(link);
}

Expected<void> RemoteSession::greet(const RemoteLink& link) {
  grpc::ClientContext context;
  link.sign(&context);
  context.set_deadline(after(hello_limit));
  v1::HelloRequest request;
  request.mutable_control()->set_major(options_.speaks.major);
  request.mutable_control()->set_minor(options_.speaks.minor);
  request.set_build(options_.build);
  request.set_program(options_.program);
  v1::HelloReply reply;
  if (!calls_.enter(&context)) return make_error(ErrorCode::Cancelled, "the connection is being closed");
  const grpc::Status status = link.stub->Hello(&context, request, &reply);
  calls_.leave(&context);
  if (!status.ok()) return connect_error(status, link.file);
  const Version core{reply.control().major(), reply.control().minor()};
  if (core.major != options_.speaks.major) return wrong_version(core, options_.speaks);
  std::lock_guard lock(mutex_);
  view_.control = core;
  view_.build = reply.build();
  view_.format = reply.format();
  view_.pid = reply.pid();
  view_.capabilities.assign(reply.capabilities().begin(), reply.capabilities().end());
  return {};
}

Expected<void> RemoteSession::watch(const std::shared_ptr<const RemoteLink>& link) {
  grpc::ClientContext context;
  link->sign(&context);
  v1::WatchRequest request;
  request.set_events(true);
  if (!calls_.enter(&context)) return make_error(ErrorCode::Cancelled, "the connection is being closed");
  whole_.Clear();
  UpdateReader reader(*link, &context, request);
  v1::Update update;
  while (reader.read(&update)) on_update(&update, link);
  const std::optional<grpc::Status> status = reader.finish();
  calls_.leave(&context);
  if (!status)
    return connect_error(
        {grpc::StatusCode::UNAVAILABLE, "the core sent a message that this program can't read"}, link->file);
  if (status->ok()) return {};
  return connect_error(*status, link->file);
}

void RemoteSession::on_update(v1::Update* update, const std::shared_ptr<const RemoteLink>& link) {
  if (update->has_event()) {
    if (const auto event = decode(update->event())) subscribers_->emit(*event);
    return;
  }
  if (!update->has_snapshot()) return;
  if (update->snapshot().full()) whole_.Clear();
  const bool first = !whole_.has_training();
  merge(std::move(*update->mutable_snapshot()), &whole_);
  if (!first) return publish(decode(whole_));
  auto snapshot = std::make_shared<const node::Snapshot>(decode(whole_));
  {
    // Its version is not compared: another core counts from the beginning.
    std::lock_guard lock(mutex_);
    published_ = std::move(snapshot);
    link_ = link;
  }
  set_view(LinkState::Connected, std::nullopt);
}

void RemoteSession::publish(node::Snapshot snapshot) {
  auto next = std::make_shared<const node::Snapshot>(std::move(snapshot));
  std::lock_guard lock(mutex_);
  if (next->version >= published_->version) published_ = std::move(next);
}

void RemoteSession::set_view(LinkState state, std::optional<Error> error) {
  {
    std::lock_guard lock(mutex_);
    view_.state = state;
    view_.error = std::move(error);
    if (state != LinkState::Connected) link_.reset();
  }
  changed_.notify_all();
  view_watchers_->emit(node::StateChanged{});
}

}  // namespace neuroshard::control::detail
