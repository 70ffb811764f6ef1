#include "core/runtime/sleep_notice.h"

#include <algorithm>
#include <utility>

namespace neuroshard::runtime {
namespace {

using platform::SleepEvent;
using platform::SleepEventKind;

// Some computers allow more, but nobody wants to wait so long for a lid to close.
constexpr Duration longest_wait = std::chrono::seconds(10);

}  // namespace

SleepNotice::SleepNotice(std::unique_ptr<platform::SleepWatch> watch, Presence& presence,
                         std::function<void()> save, const Clock& clock, Logger& logger)
    : watch_(std::move(watch)), presence_(presence), save_(std::move(save)), clock_(clock), logger_(logger) {}

void SleepNotice::poll() {
  while (const auto event = watch_->poll()) {
    switch (event->kind) {
      case SleepEventKind::Suspending:
      case SleepEventKind::ShuttingDown: prepare(*event); break;
      case SleepEventKind::Resumed:
      case SleepEventKind::ShutdownCancelled: come_back(*event); break;
    }
  }
  if (!announced_ || !*announced_) return;
  announced_.reset();
  watch_->release();
}

void SleepNotice::prepare(const SleepEvent& event) {
  logger_.info("power", event.kind == SleepEventKind::Suspending
                            ? "this computer suspends: the node tells the other members that it is away"
                            : "this computer shuts down: the node tells the other members that it is away");
  announced_ = std::make_shared<std::atomic<bool>>(false);
  presence_.announce_away(std::min(event.deadline, clock_.monotonic_now() + longest_wait),
                          [announced = announced_] { *announced = true; });
  save_();
}

void SleepNotice::come_back(const SleepEvent& event) {
  logger_.info("power", event.kind == SleepEventKind::Resumed
                            ? "this computer has resumed: the node tells the other members that it is back"
                            : "the shutdown of this computer is cancelled: the node tells the other members "
                              "that it is back");
  announced_.reset();
  presence_.announce_back();
}

}  // namespace neuroshard::runtime
