#include "core/engine/detail/disk_reader.h"

namespace neuroshard::engine::detail {
namespace {

constexpr std::size_t queue = 64;

}  // namespace

DiskReader::DiskReader(Executor& core, CommandQueue& commands)
    : core_(core), commands_(commands), thread_(make_thread_executor("ns-reader", queue)) {}

Expected<void> DiskReader::ask(std::function<void()> question) {
  NS_RETURN_IF_ERROR(commands_.check_open());
  return read(std::move(question));
}

Expected<void> DiskReader::read(std::function<void()> question) {
  if (thread_->post(std::move(question))) return {};
  return make_error(ErrorCode::Busy, "too many queries are waiting; try again in a moment");
}

}  // namespace neuroshard::engine::detail
