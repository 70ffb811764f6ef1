#include "core/nat/relay_role.h"

#include "core/base/check.h"

namespace neuroshard::nat {

Expected<std::unique_ptr<RelayRole>> RelayRole::start(const RelayLimits& limits, const Clock& clock,
                                                      crypto::Entropy& entropy) {
  NS_ASSIGN_OR_RETURN(platform::Wake wake, platform::Wake::make());
  return std::unique_ptr<RelayRole>(
      new RelayRole(RelayServer::make(limits, clock, entropy), std::move(wake)));
}

RelayRole::RelayRole(std::unique_ptr<RelayServer> server, platform::Wake wake)
    : server_(std::move(server)), wake_(std::move(wake)), thread_(make_thread_executor("ns-relay", 1)) {
  const bool posted = thread_->post([this] { work(); });
  NS_CHECK(posted);
}

RelayRole::~RelayRole() {
  stop_ = true;
  wake_.set();
  thread_.reset();
}

void RelayRole::take(int descriptor) {
  platform::TcpSocket socket = platform::TcpSocket::adopt(descriptor);
  const auto from = socket.remote();
  if (!from.ok()) return;  // gone already
  server_->adopt(std::move(socket), *from);
  wake_.set();
}

Expected<RelayTicket> RelayRole::reserve(const Hash256& callee, const platform::IpAddress& from) {
  return server_->reserve(callee, from);
}

void RelayRole::work() {
  // No check is needed while it waits: the deadlines of connections end the wait.
  constexpr Duration longest = std::chrono::minutes(10);
  while (!stop_) {
    (void)server_->step(longest, wake_.descriptor());
    wake_.clear();
  }
}

}  // namespace neuroshard::nat
