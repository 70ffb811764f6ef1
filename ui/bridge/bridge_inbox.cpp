#include "ui/bridge/bridge_inbox.h"

#include <algorithm>
#include <string>

namespace neuroshard::ui {
namespace {

bool is_outcome(const node::Event& event) {
  return std::holds_alternative<node::CommandDone>(event);
}

// The snapshot says the same.
bool in_snapshot(const node::Event& event) {
  return std::holds_alternative<node::StepFinished>(event) || std::holds_alternative<node::Prepared>(event) ||
         std::holds_alternative<node::ActivityProgress>(event);
}

const std::string* alert_key(const node::Event& event) {
  if (const auto* raised = std::get_if<node::AlertRaised>(&event)) return &raised->alert.key;
  if (const auto* cleared = std::get_if<node::AlertCleared>(&event)) return &cleared->key;
  return nullptr;
}

// Whether `later` replaces all of `earlier`.
bool replaces(const node::Event& later, const node::Event& earlier) {
  if (const std::string* key = alert_key(later)) {
    const std::string* other = alert_key(earlier);
    return other != nullptr && *other == *key;
  }
  if (later.index() != earlier.index()) return false;
  if (const auto* progress = std::get_if<node::CommandProgress>(&later))
    return std::get<node::CommandProgress>(earlier).id == progress->id;
  if (const auto* changed = std::get_if<node::SettingChanged>(&later))
    return std::get<node::SettingChanged>(earlier).name == changed->name;
  return true;
}

}  // namespace

void BridgeInbox::put(const node::Event& event) {
  if (in_snapshot(event)) return;
  std::lock_guard lock(mutex_);
  if (const auto* done = std::get_if<node::CommandDone>(&event)) {
    if (wanted(done->id)) waiting_.push_back(event);
    return;
  }
  if (const auto* progress = std::get_if<node::CommandProgress>(&event)) {
    if (!wanted(progress->id)) return;
  }
  const auto same = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&event](const node::Event& earlier) { return replaces(event, earlier); });
  if (same != waiting_.end()) {
    waiting_.erase(same);
  } else if (waiting_.size() >= max_waiting) {
    const auto oldest =
        std::find_if(waiting_.begin(), waiting_.end(), [](const auto& e) { return !is_outcome(e); });
    if (oldest != waiting_.end()) waiting_.erase(oldest);
  }
  waiting_.push_back(event);
}

std::vector<node::Event> BridgeInbox::take() {
  std::lock_guard lock(mutex_);
  std::vector<node::Event> taken;
  taken.swap(waiting_);
  for (const node::Event& event : taken) {
    if (const auto* done = std::get_if<node::CommandDone>(&event)) open_.erase(done->id);
  }
  return taken;
}

void BridgeInbox::begin_call() {
  std::lock_guard lock(mutex_);
  calling_ = true;
}

void BridgeInbox::end_call(std::optional<node::CommandId> accepted) {
  std::lock_guard lock(mutex_);
  calling_ = false;
  if (accepted) open_.insert(*accepted);
  // Outcomes for other commands arrived in the meantime.
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(),
                                [this](const node::Event& event) {
                                  const auto* done = std::get_if<node::CommandDone>(&event);
                                  return done != nullptr && open_.count(done->id) == 0;
                                }),
                 waiting_.end());
}

std::size_t BridgeInbox::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_.size();
}

}  // namespace neuroshard::ui
