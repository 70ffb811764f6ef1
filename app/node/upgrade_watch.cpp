#include "app/node/upgrade_watch.h"

namespace neuroshard::app {

UpgradeWatch::UpgradeWatch(platform::ProgramFile file, node::Node& node)
    : file_(std::move(file)), node_(node), executor_(make_thread_executor("ns-upgrade", 2)) {
  // On the thread that handles its timers, like all later looks.
  static_cast<void>(executor_->post([this] { look(); }));
}

void UpgradeWatch::look() {
  if (file_.replaced()) {
    has_asked_ = true;  // before the node can end
    if (!node_.request_shutdown().ok()) has_asked_ = false;
    return;
  }
  timer_ = executor_->post_after(period, [this] { look(); });
}

}  // namespace neuroshard::app
