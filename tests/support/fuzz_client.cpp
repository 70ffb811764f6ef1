#include "tests/support/fuzz_client.h"

#include <algorithm>

#include "tests/support/stranger_host.h"

namespace neuroshard::test {
namespace {

constexpr Duration patience = std::chrono::seconds(10);
constexpr std::size_t most_answer = 1u << 20;
constexpr std::size_t most_streams = 4;
constexpr std::uint64_t calls_of_a_stream = 50;  // one in so many messages goes through a stream

}  // namespace

Expected<std::unique_ptr<FuzzClient>> FuzzClient::start(FuzzRun& run,
                                                        const runtime::RuntimeServices& services,
                                                        Options options) {
  NS_ASSIGN_OR_RETURN(auto started, start_stranger_host(run.pool.network(), services));
  std::unique_ptr<FuzzClient> client(new FuzzClient(run, std::move(started), std::move(options)));
  if (client->connect()) client->host_->run([&] { client->pump(); });
  return client;
}

FuzzClient::FuzzClient(FuzzRun& run, std::unique_ptr<runtime::PeerHost> host, Options options)
    : run_(run),
      options_(std::move(options)),
      host_(std::move(host)),
      own_changes_(run.pool, run.mutator, host_->key(), host_->clock()) {
  const std::lock_guard lock(run_.mutex);
  ++run_.identities;
  if (run_.member)
    member_changes_.emplace(run.pool, run.mutator, *run_.member, host_->clock(), run_.member_number);
  if (options_.own_endpoint) own_changes_.set_endpoint(*options_.own_endpoint);
  own_.assign(options_.replay.begin(), options_.replay.end());
}

FuzzClient::~FuzzClient() {
  host_->run([this] {
    lifetime_.end();
    streams_.clear();
    channel_.reset();
  });
}

bool FuzzClient::connect() {
  const auto channel = runtime::wait_for<Expected<std::shared_ptr<net::PeerChannel>>>(*host_, [&](auto done) {
    host_->transport().connect(options_.to, net::connect_deadline, std::move(done));
  });
  if (!channel.ok()) {
    const std::lock_guard lock(run_.mutex);
    ++run_.refused_connections;
    end();
    return false;
  }
  host_->run([&] { channel_ = *channel; });
  return true;
}

std::optional<Message> FuzzClient::next() {
  const std::lock_guard lock(run_.mutex);
  auto message = next_locked();
  if (!message) return message;
  ++run_.counts[kind_of(message->method, message->request)].calls;
  if (run_.trace) run_.trace->write(message->method, message->request);
  return message;
}

// Of the methods that it has been given, valid messages of its own; else changed ones of the pool.
std::optional<Message> FuzzClient::next_locked() {
  const bool replays = !options_.replay.empty();
  if (options_.valid_only && own_.empty()) {
    for (Message& message : own_changes_.own_messages())
      if (std::find(options_.methods.begin(), options_.methods.end(), message.method) !=
          options_.methods.end())
        own_.push_back(std::move(message));
  }
  if (options_.valid_only || replays) {
    if (own_.empty()) return std::nullopt;
    Message message = std::move(own_.front());
    own_.pop_front();
    return message;
  }
  if (sent_ == 0)
    for (const Message& message : own_changes_.own_messages())
      run_.pool.learn(message.method, message.request);
  SignedChanges& changes = member_changes_ && run_.mutator.one_in(2) ? *member_changes_ : own_changes_;
  return MessageSource(run_.pool, run_.mutator, changes).next().message;
}

void FuzzClient::pump() {
  while (!ended_ && open_ < options_.window) {
    if (sent_ >= options_.calls) {
      if (open_ == 0) end();
      return;
    }
    auto message = next();
    if (!message) return end();
    ++sent_;
    if (sent_ % calls_of_a_stream == 0) say_in_stream(*message);
    send(std::move(*message));
  }
}

void FuzzClient::end() {
  ended_ = true;
  run_.identity_ended.notify_all();
}

void FuzzClient::send(Message message) {
  ++open_;
  const MessageKind kind = kind_of(message.method, message.request);
  const Duration deadline = net::call_deadline(patience, message.request.size(), most_answer);
  channel_->call(message.method, std::move(message.request), deadline,
                 [this, life = lifetime_.token(), kind](const Expected<Bytes>& answer) {
                   if (!life.alive()) return;
                   --open_;
                   got(kind, answer);
                   pump();
                 });
}

void FuzzClient::got(const MessageKind& kind, const Expected<Bytes>& answer) {
  const std::lock_guard lock(run_.mutex);
  ClientCounts& counts = run_.counts[kind];
  ++(answer.ok() ? counts.answers : counts.errors);
  if (answer.ok()) return;
  ++run_.errors[std::string(to_string(answer.error().code))];
  const bool is_banned =
      answer.error().code == ErrorCode::Denied && answer.error().message.find("banned") != std::string::npos;
  if (is_banned) ++run_.denied;
  if (is_banned || answer.error().code == ErrorCode::Unavailable) end();
}

// Written, and then broken off or finished; one more is read meanwhile.
void FuzzClient::say_in_stream(const Message& message) {
  if (streams_.size() == most_streams) streams_.pop_front();
  {
    const std::lock_guard lock(run_.mutex);
    ++run_.streams;
  }
  const std::shared_ptr<net::PeerStream> stream = channel_->open(message.method, std::chrono::seconds(3));
  streams_.push_back(stream);
  stream->read([](const Expected<std::optional<ByteChain>>&) {});
  if (message.request.empty()) return stream->finish();
  const bool breaks_off = message.request.size() % 2 == 0;
  stream->write(message.request, [weak = std::weak_ptr(stream), breaks_off](const Expected<void>& written) {
    const auto open = weak.lock();
    if (!open || !written.ok()) return;
    if (breaks_off) return open->break_off(make_error(ErrorCode::Cancelled, "enough"));
    open->finish();
  });
}

}  // namespace neuroshard::test
