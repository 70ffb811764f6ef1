#include "core/engine/round_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/crypto/hash.h"

namespace neuroshard::engine {
namespace {

// The largest file; the caller checks the content.
constexpr std::uint64_t longest_votes = std::uint64_t{8} << 20;
constexpr std::uint64_t longest_chain = std::uint64_t{256} << 20;
constexpr std::uint64_t longest_link = std::uint64_t{8} << 20;
constexpr std::uint64_t longest_payload = std::uint64_t{64} << 30;
constexpr std::size_t queue = 256;
constexpr std::string_view state_magic = "NSRSTATE";
constexpr std::size_t state_head = 8 + 4 * 8;
constexpr std::size_t piece = 1u << 20;

Span<const float> part(const rounds::OuterState& state, int which) {
  return which == 0 ? state.weights : which == 1 ? state.momentum : state.bias;
}

Error damaged(const std::string& path, std::string_view what) {
  return make_error(
      ErrorCode::Corrupt,
      fmt::format("{} {}: the node does not use it and fetches the state from other members", path, what));
}

}  // namespace

RoundFiles::RoundFiles(storage::FileEnv& files, std::string folder, Logger& logger, Executor& node)
    : files_(files),
      folder_(std::move(folder)),
      logger_(logger),
      node_(std::make_shared<net::Mailbox>(node)),
      disk_(make_thread_executor("ns-rounds-disk", queue)) {}

RoundFiles::~RoundFiles() = default;

Expected<std::unique_ptr<RoundFiles>> RoundFiles::open(storage::FileEnv& files, std::string folder,
                                                       Logger& logger, Executor& node) {
  NS_RETURN_IF_ERROR(files.create_directories(folder));
  return std::unique_ptr<RoundFiles>(new RoundFiles(files, std::move(folder), logger, node));
}

std::string RoundFiles::path(Record record) const {
  switch (record) {
    case Record::Votes: return folder_ + "/votes";
    case Record::Chain: return folder_ + "/chain";
    case Record::Learner: return folder_ + "/learner";
    case Record::Payload: break;
  }
  return folder_ + "/payload";
}

Expected<Bytes> RoundFiles::load(Record record) {
  if (!files_.exists(path(record))) return make_error(ErrorCode::NotFound, "nothing is saved yet");
  return storage::read_file(files_, path(record),
                            record == Record::Votes   ? longest_votes
                            : record == Record::Chain ? longest_chain
                                                      : longest_payload);
}

void RoundFiles::save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) {
  auto shared = std::make_shared<const Bytes>(std::move(bytes));
  if (disk_->post([this, to = path(record), shared, done] { write(to, *shared, done); })) return;
  node_->put([done] { done(make_error(ErrorCode::Busy, "the disk is too slow for the rounds' votes")); });
}

// The disk thread.
void RoundFiles::write(const std::string& to, const Bytes& bytes,
                       const std::function<void(Expected<void>)>& done) {
  node_->put([done, written = storage::write_file_atomic(files_, to, bytes)] { done(written); });
}

Expected<rounds::KnownState> RoundFiles::load_state(std::uint64_t values, std::uint64_t bias) {
  const std::string from = state_path();
  if (!files_.exists(from)) return make_error(ErrorCode::NotFound, "no state is saved yet");
  NS_ASSIGN_OR_RETURN(const auto file, files_.open_read(from));
  Bytes head(state_head);
  if (file->size() < state_head) return damaged(from, "ends early");
  NS_RETURN_IF_ERROR(file->read_at(0, head));
  if (as_text(ByteSpan(head).first(state_magic.size())) != state_magic)
    return damaged(from, "is not a state of rounds");
  rounds::KnownState known;
  known.round = load_le<std::uint64_t>(head.data() + 8);
  // Checks the sizes of this model first; allocates nothing for another one.
  const auto certificate_bytes = load_le<std::uint64_t>(head.data() + 32);
  if (load_le<std::uint64_t>(head.data() + 16) != values ||
      load_le<std::uint64_t>(head.data() + 24) != bias || certificate_bytes > longest_link ||
      file->size() != state_head + (2 * values + bias) * sizeof(float) + certificate_bytes + sizeof(Hash256))
    return damaged(from, "belongs to another model or is incomplete");
  auto state = std::make_shared<rounds::OuterState>();
  state->weights.resize(static_cast<std::size_t>(values));
  state->momentum.resize(static_cast<std::size_t>(values));
  state->bias.resize(static_cast<std::size_t>(bias));
  crypto::Sha256 hash;
  hash.update(head);
  std::uint64_t at = state_head;
  for (std::vector<float>* all : {&state->weights, &state->momentum, &state->bias}) {
    const MutableByteSpan target(reinterpret_cast<std::uint8_t*>(all->data()), all->size() * sizeof(float));
    NS_RETURN_IF_ERROR(file->read_at(at, target));
    hash.update(target);
    at += target.size();
  }
  Bytes certificate(static_cast<std::size_t>(certificate_bytes));
  NS_RETURN_IF_ERROR(file->read_at(at, certificate));
  hash.update(certificate);
  at += certificate_bytes;
  Hash256 kept{};
  NS_RETURN_IF_ERROR(file->read_at(at, {kept.data(), kept.size()}));
  if (hash.finish() != kept) return damaged(from, "is damaged");
  NS_ASSIGN_OR_RETURN(known.certificate, rounds::decode_link(certificate));
  known.state = std::move(state);
  return known;
}

Expected<void> RoundFiles::write_state(const rounds::KnownState& known) {
  const rounds::OuterState& state = *known.state;
  const std::string to = state_path(), fresh = to + ".new";
  const Bytes certificate = rounds::encode_link(*known.certificate);
  Bytes head(state_magic.begin(), state_magic.end());
  append_le(head, known.round);
  append_le(head, static_cast<std::uint64_t>(state.weights.size()));
  append_le(head, static_cast<std::uint64_t>(state.bias.size()));
  append_le(head, static_cast<std::uint64_t>(certificate.size()));
  storage::LargeFile size;
  size.bytes = head.size() + certificate.size() + sizeof(Hash256) +
               (state.weights.size() + state.momentum.size() + state.bias.size()) * sizeof(float);
  NS_ASSIGN_OR_RETURN(const auto file, files_.open_write_large(fresh, size));
  crypto::Sha256 hash;
  const auto append = [&](ByteSpan bytes) -> Expected<void> {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      const ByteSpan next = bytes.subspan(at, std::min(piece, bytes.size() - at));
      hash.update(next);
      NS_RETURN_IF_ERROR(file->append(next));
    }
    return {};
  };
  NS_RETURN_IF_ERROR(append(head));
  for (int which = 0; which < 3; ++which) NS_RETURN_IF_ERROR(append(as_bytes(part(state, which))));
  NS_RETURN_IF_ERROR(append(certificate));
  const Hash256 end = hash.finish();
  NS_RETURN_IF_ERROR(file->append({end.data(), end.size()}));
  NS_RETURN_IF_ERROR(file->sync());
  NS_RETURN_IF_ERROR(file->close());
  NS_RETURN_IF_ERROR(files_.rename(fresh, to));
  return files_.sync_directory(folder_);
}

void RoundFiles::save_state(rounds::RoundLink certificate, rounds::Anchor state) {
  std::lock_guard lock(mutex_);
  const std::uint64_t round = certificate.certificate.body.round;
  waiting_ = rounds::KnownState{round, std::move(state), std::move(certificate)};
  const bool posted = disk_->post([this] {
    std::optional<rounds::KnownState> known;
    {
      std::lock_guard inner(mutex_);
      known.swap(waiting_);
    }
    if (!known) return;  // an earlier task has written it
    const auto written = write_state(*known);
    if (!written.ok())
      logger_.warning("rounds", fmt::format("the state of round {} was not saved for a restart: {}",
                                            known->round, written.error().describe()));
  });
  if (!posted) logger_.warning("rounds", "the disk is too slow: a round's state is saved later");
}

RoundThread::RoundThread(Executor& node)
    : node_(std::make_shared<net::Mailbox>(node)), thread_(make_thread_executor("ns-rounds", queue)) {}

void RoundThread::run(std::function<void()> job, std::function<void()> done) {
  // The node has few computations at a time. If the queue is ever full, the node gets no result of this
  // computation.
  static_cast<void>(thread_->post([this, job = std::move(job), done = std::move(done)] {
    job();
    node_->put(done);
  }));
}

}  // namespace neuroshard::engine
