#include "core/engine/round_store.h"

#include <fmt/format.h>

#include "core/engine/state_file.h"

namespace neuroshard::engine {
namespace {

// The largest file; the caller checks the content.
constexpr std::uint64_t longest_votes = std::uint64_t{8} << 20;
constexpr std::uint64_t longest_chain = std::uint64_t{256} << 20;
constexpr std::uint64_t longest_payload = std::uint64_t{64} << 30;
constexpr std::size_t queue = 256;
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
  NS_ASSIGN_OR_RETURN(StateFile file, read_state_file(files_, state_path(), values, bias));
  rounds::KnownState known{file.round, std::move(file.state), std::nullopt};
  NS_ASSIGN_OR_RETURN(known.certificate, rounds::decode_link(file.certificate));
  return known;
}

Expected<void> RoundFiles::write_state(const rounds::KnownState& known) {
  NS_RETURN_IF_ERROR(write_state_file(files_, state_path(),
                                      {known.round, known.state, rounds::encode_link(*known.certificate)}));
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
