#include "core/engine/round_store.h"

#include "core/base/log.h"
#include "core/storage/file_spool.h"

namespace neuroshard::engine {
namespace {

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
    case Record::Vector: return folder_ + "/vector";
    case Record::Contribution: return folder_ + "/contribution";
    case Record::Learners: break;
  }
  return folder_ + "/learners";
}

Expected<ByteSourcePtr> RoundFiles::load(Record record) {
  if (!files_.exists(path(record))) return make_error(ErrorCode::NotFound, "nothing is saved yet");
  return storage::open_bytes(files_, path(record));
}

void RoundFiles::save(Record record, ByteSourcePtr bytes, std::function<void(Expected<void>)> done) {
  if (disk_->post([this, to = path(record), bytes = std::move(bytes), done] { write(to, *bytes, done); }))
    return;
  node_->put([done] { done(make_error(ErrorCode::Busy, "the disk is too slow for the rounds' files")); });
}

// The disk thread.
void RoundFiles::write(const std::string& to, const ByteSource& bytes,
                       const std::function<void(Expected<void>)>& done) {
  node_->put([done, written = storage::copy_to_file(files_, to, bytes)] { done(written); });
}

RoundThread::RoundThread(Executor& node)
    : node_(std::make_shared<net::Mailbox>(node)), thread_(make_thread_executor("ns-rounds", queue)) {}

void RoundThread::run(std::function<void()> job, std::function<void()> done) {
  waiting_.emplace_back(std::move(job), std::move(done));
  pump();
}

void RoundThread::close() {
  lifetime_.end();
  waiting_.clear();
}

// Each one that ends makes room for another.
void RoundThread::pump() {
  while (!waiting_.empty() && under_way_ < queue) {
    ++under_way_;
    static_cast<void>(thread_->post([this, life = lifetime_.token(), next = std::move(waiting_.front())] {
      next.first();
      node_->put([this, life, done = next.second] {
        if (life.alive()) --under_way_;
        done();
        if (life.alive()) pump();
      });
    }));
    waiting_.pop_front();
  }
}

}  // namespace neuroshard::engine
