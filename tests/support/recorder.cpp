#include "tests/support/recorder.h"

#include "tests/support/message_file.h"

namespace neuroshard::test {
namespace {

class Recorder final : public net::PeerCaller {
 public:
  Recorder(net::PeerCaller& out, const std::string& file) : out_(out), file_(file) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    file_.write(method, request);
    out_.call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  net::PeerCaller& out_;
  MessageFileWriter file_;
};

}  // namespace

std::unique_ptr<net::PeerCaller> make_recorder(net::PeerCaller& out, const std::string& file) {
  return std::make_unique<Recorder>(out, file);
}

}  // namespace neuroshard::test
