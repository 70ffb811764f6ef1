// The supervisor of the core with a fake link, a fake launcher and a clock that is moved by hand.
#pragma once

#include <QSignalSpy>
#include <QtTest>
#include <memory>

#include "app/gui/core_supervisor.h"
#include "app/gui/core_words.h"
#include "tests/support/fake_node.h"

namespace neuroshard::gui {

using std::chrono::seconds;

class FakeLink final : public CoreLink {
 public:
  void open(const QString& directory) override { opened << directory; }
  void open_file(const QString& file) override { opened << file; }
  void close() override { ++closed; }
  void ask_to_end(const platform::ProcessIdentity& process) override { asked.push_back(process.pid); }

  void come(std::int64_t pid) {
    node = std::make_shared<testing::FakeNode>();
    Q_EMIT present({node, {pid, 1}});
  }
  void go(CoreAbsence::Kind kind) { Q_EMIT absent({kind, make_error(ErrorCode::Unavailable, "gone"), {}}); }
  void refuse(ErrorCode code, std::int64_t pid) {
    Q_EMIT absent({CoreAbsence::Kind::Refused, make_error(code, "start the installed, newer one"), {pid, 1}});
  }

  QStringList opened;
  int closed = 0;
  std::vector<std::int64_t> asked;
  std::shared_ptr<testing::FakeNode> node;
};

class FakeLauncher final : public CoreLauncher {
 public:
  Expected<void> launch(const LaunchRequest& request) override {
    if (fail) return make_error(ErrorCode::NotFound, "no neuroshardd");
    requests.push_back(request);
    pid_ = next_pid++;
    return {};
  }
  std::optional<std::int64_t> pid() const override { return pid_; }
  void terminate() override { ++terminated; }

  void end(bool crashed, int code, const QString& said = {}) {
    const CoreExit exit{*pid_, crashed, code, said};
    pid_.reset();
    Q_EMIT ended(exit);
  }

  std::vector<LaunchRequest> requests;
  std::int64_t next_pid = 100;
  int terminated = 0;
  bool fail = false;

 private:
  std::optional<std::int64_t> pid_;
};

// A base of the tests' classes.
class SupervisorFixture {
 protected:
  void open() { supervisor_->open({"/data", {}, false}); }
  void start_ours() {
    open();
    link_->go(CoreAbsence::Kind::None);
    link_->come(*launcher_->pid());
  }
  void crash() {
    launcher_->end(true, 0, "boom");
    link_->go(CoreAbsence::Kind::Killed);
  }
  void wait(seconds time) {
    clock_.advance(time);
    supervisor_->tick();
  }
  CorePhase phase() const { return supervisor_->status().phase; }

  // From the beginning; the clock goes on.
  void make() {
    supervisor_.reset();
    link_ = std::make_unique<FakeLink>();
    launcher_ = std::make_unique<FakeLauncher>();
    supervisor_ = std::make_unique<CoreSupervisor>(*link_, *launcher_, clock_);
  }

  ManualClock clock_;
  std::unique_ptr<FakeLink> link_;
  std::unique_ptr<FakeLauncher> launcher_;
  std::unique_ptr<CoreSupervisor> supervisor_;
};

}  // namespace neuroshard::gui
