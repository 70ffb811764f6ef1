#include "core/node/subscribers.h"

namespace neuroshard::node {

// Outlives the node safely: it only knows the registry, and that weakly.
class Subscribers::Handle final : public Subscription {
 public:
  Handle(std::weak_ptr<Subscribers> owner, std::uint64_t id) : owner_(std::move(owner)), id_(id) {}
  ~Handle() override {
    if (const auto owner = owner_.lock()) owner->remove(id_);
  }

 private:
  std::weak_ptr<Subscribers> owner_;
  std::uint64_t id_;
};

std::unique_ptr<Subscription> Subscribers::add(EventHandler handler) {
  std::lock_guard lock(mutex_);
  const std::uint64_t id = next_id_++;
  handlers_.emplace(id, std::move(handler));
  return std::make_unique<Handle>(weak_from_this(), id);
}

void Subscribers::emit(const Event& event) {
  std::lock_guard lock(mutex_);
  for (const auto& [id, handler] : handlers_) handler(event);
}

void Subscribers::remove(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  handlers_.erase(id);
}

}  // namespace neuroshard::node
