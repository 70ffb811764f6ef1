#include "tests/support/honest_peer.h"

#include "core/chain/messages.h"
#include "tests/support/stranger_host.h"

namespace neuroshard::test {
namespace {

constexpr Duration patience = std::chrono::seconds(5);
constexpr std::size_t most_answer = 1u << 20;

}  // namespace

Expected<std::unique_ptr<HonestPeer>> HonestPeer::start(FuzzRun& run,
                                                        const runtime::RuntimeServices& services,
                                                        const net::Dial& to) {
  NS_ASSIGN_OR_RETURN(auto started, start_stranger_host(run.pool.network(), services));
  return std::unique_ptr<HonestPeer>(new HonestPeer(run, std::move(started), to));
}

HonestPeer::~HonestPeer() {
  host_->run([this] { channel_.reset(); });
}

void HonestPeer::failed(const Error& error) {
  ++counts_.failed;
  counts_.last_error = error.describe();
  host_->run([this] { channel_.reset(); });
}

bool HonestPeer::connect() {
  if (channel_) return true;
  ++counts_.connections;
  const auto channel = runtime::wait_for<Expected<std::shared_ptr<net::PeerChannel>>>(
      *host_, [&](auto done) { host_->transport().connect(to_, net::connect_deadline, std::move(done)); });
  if (!channel.ok()) {
    failed(channel.error());
    return false;
  }
  host_->run([&] { channel_ = *channel; });
  return true;
}

Expected<Bytes> HonestPeer::call(net::Method method, const Bytes& request) {
  ++counts_.calls;
  if (!connect()) return make_error(ErrorCode::Unavailable, counts_.last_error);
  const MonotonicTime began = host_->clock().monotonic_now();
  auto answer = runtime::wait_for<Expected<Bytes>>(*host_, [&](auto done) {
    channel_->call(method, request, net::call_deadline(patience, request.size(), most_answer),
                   std::move(done));
  });
  const double ms = to_seconds(host_->clock().monotonic_now() - began) * 1e3;
  counts_.worst_ms = std::max(counts_.worst_ms, ms);
  if (!answer.ok()) failed(answer.error());
  return answer;
}

void HonestPeer::ping() {
  const Bytes word(8, 1);
  const auto answer = call(net::Method::Ping, word);
  if (answer.ok() && *answer != word)
    failed(make_error(ErrorCode::Corrupt, "another answer than was asked for"));
}

void HonestPeer::learn_blocks() {
  const auto answer = call(net::Method::ChainBlocks, chain::encode_blocks_request(next_height_));
  if (!answer.ok()) return;
  const auto blocks = chain::decode_blocks_answer(*answer);
  if (!blocks.ok()) return failed(blocks.error());
  const std::lock_guard lock(run_.mutex);
  for (const ByteSpan bytes : blocks->blocks) {
    const auto block = chain::decode_certified(bytes, run_.pool.network());
    if (!block.ok()) return;
    run_.pool.learn_block(*block);
    next_height_ = block->block->header.height + 1;
  }
}

}  // namespace neuroshard::test
