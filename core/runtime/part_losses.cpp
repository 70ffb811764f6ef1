#include "core/runtime/part_losses.h"

#include <utility>

#include "core/net/mailbox.h"
#include "core/runtime/part_texts.h"

namespace neuroshard::runtime {

PartLosses::PartLosses(const pipeline::Surroundings& surroundings, const crypto::KeyPair& key, Bytes network,
                       pipeline::Route route, decltype(pipeline::LeadEvents::holders) holders,
                       engine::PipelineTexts::Losses losses, std::function<void()> on_over)
    : around_(surroundings),
      losses_(std::move(losses)),
      on_over_(std::move(on_over)),
      moved_(surroundings.clock.monotonic_now()) {
  pipeline::DriverEvents events;
  events.next = [this] { return next(); };
  events.finished = [this](std::uint64_t, const pipeline::Sums& sums) { finished(sums); };
  events.lead.holders = std::move(holders);
  events.lead.lost = [this](const pipeline::Lost& lost) { lost_ = text_of(lost); };
  driver_ = std::make_unique<pipeline::Driver>(around_, key, std::move(network), std::move(route),
                                               std::move(events));
  driver_->start();
}

std::optional<pipeline::MicroBatchText> PartLosses::next() {
  if (sent_ == losses_.pieces.size()) return std::nullopt;
  return losses_.pieces[sent_++];
}

void PartLosses::finished(const pipeline::Sums& sums) {
  sums_.add(sums);
  lost_.clear();  // another node is there by now
  moved_ = around_.clock.monotonic_now();
  if (++done_ == losses_.pieces.size()) answer(sums_);
}

// Later, as the driver goes on after its call, and also when the executor is full: this object may be gone by then.
void PartLosses::answer(Expected<pipeline::Sums> with) {
  if (!losses_.done) return;
  const auto answers = std::make_shared<net::Mailbox>(around_.executor);
  answers->put([this, life = lifetime_.token(), done = std::exchange(losses_.done, nullptr),
                with = std::move(with), on_over = on_over_] {
    done(with);
    if (life.alive()) on_over();
  });
}

void PartLosses::end(const Error& reason) {
  answer(reason);
}

void PartLosses::tick() {
  if (around_.clock.monotonic_now() - moved_ < patience) return;
  end(make_error(ErrorCode::Unavailable,
                 lost_.empty() ? std::string("the holders of the model's parts do not answer") : lost_));
}

}  // namespace neuroshard::runtime
