// A session that asks the holders of all parts for the loss of a text (pipeline::Route::asks_for_losses).
//
// Threads: the host's executor.
#pragma once

#include <memory>
#include <string>

#include "core/base/lifetime.h"
#include "core/engine/pipeline_texts.h"
#include "core/pipeline/driver.h"

namespace neuroshard::runtime {

class PartLosses {
 public:
  static constexpr Duration patience = std::chrono::seconds(30);  // with a piece
  static constexpr std::uint32_t window = 2;                      // pieces under way

  // route: as of Driver. on_over: all is answered; it may destroy this object. key outlives it.
  PartLosses(const pipeline::Surroundings& surroundings, const crypto::KeyPair& key, Bytes network,
             pipeline::Route route, decltype(pipeline::LeadEvents::holders) holders,
             engine::PipelineTexts::Losses losses, std::function<void()> on_over);
  ~PartLosses() { driver_->close(); }

  // The answer is this error, unless there is one.
  void end(const Error& reason);
  void tick();

 private:
  std::optional<pipeline::MicroBatchText> next();
  void finished(const pipeline::Sums& sums);
  void answer(Expected<pipeline::Sums> with);

  const pipeline::Surroundings around_;
  engine::PipelineTexts::Losses losses_;
  const std::function<void()> on_over_;
  std::size_t sent_ = 0, done_ = 0;  // pieces
  pipeline::Sums sums_;
  MonotonicTime moved_{};
  std::string lost_;  // what happened last to a hop since the last result
  std::unique_ptr<pipeline::Driver> driver_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::runtime
