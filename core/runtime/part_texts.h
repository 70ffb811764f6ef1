// Texts of a network whose members hold parts of the model: this node's part of everybody's texts, and drivers for its own
// (docs/protocol/pipeline.md#texts). The weights are those of the newest round's certified anchors, which all holders of a
// part have. When a new round begins, sessions with the old weights end, and their texts go on with the new ones.
//
// Threads: the host's executor, unless a comment says otherwise. Errors: of a text, to whoever waits for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/lifetime.h"
#include "core/base/rng.h"
#include "core/engine/pipeline_trainer.h"
#include "core/engine/round_trainer.h"
#include "core/pipeline/session_table.h"
#include "core/pipeline/text_driver.h"
#include "core/pipeline/text_stage.h"
#include "core/runtime/part_holders.h"
#include "core/runtime/part_losses.h"

namespace neuroshard::runtime {

// For people.
std::string text_of(const pipeline::Lost& lost);

// The number of the certified weights that a part has, the same at all holders of all parts: rows that are carried keep
// their anchors in a later round. begun: the round in which the part's learner began with its anchor; changed: the one
// whose result has that anchor; newest: the newest with a result. Nothing: the newest anchor is not here yet.
constexpr std::optional<std::uint64_t> round_of_weights(std::uint64_t begun, std::uint64_t changed,
                                                        std::uint64_t newest) {
  if (begun <= changed) return std::nullopt;
  return newest + 1;
}

class PartTexts {
 public:
  static constexpr Duration patience = std::chrono::seconds(30);  // for the logits of a token
  static constexpr Duration weights_kept = std::chrono::minutes(1);

  struct Services {  // all outlive it
    Executor& executor;
    const Clock& clock;
    crypto::Entropy& entropy;
    const crypto::KeyPair& key;
    const PartHolders& holders;
    engine::PipelineTexts& texts;
  };
  using FindAnchor = std::function<std::optional<engine::RoundTrainer::Newest>()>;

  PartTexts(const Services& services, Bytes network, FindAnchor anchor);
  ~PartTexts();

  // The part is ready; the surroundings' services and the table outlive on_gone().
  void on_ready(const engine::PipelinePart& part, const pipeline::Surroundings& around,
                pipeline::SessionTable& sessions);
  void on_gone();
  void tick();

 private:
  struct Text {
    std::unique_ptr<pipeline::TextDriver> driver;  // null: see failed
    engine::PipelineTexts::Answer answer;          // null: nobody waits
    MonotonicTime asked{};
    std::optional<Error> failed;  // why no session was opened, or why it ended
    std::string lost;             // what happened last to a hop since the last answer
  };
  using Scores = engine::TextModel::Scores;
  using Piece = engine::PipelineTexts::Listener::Piece;
  void open_text(std::uint64_t session, std::uint32_t positions, const Scores& scores);
  void extend_text(std::uint64_t session, const Piece& piece, engine::PipelineTexts::Answer answer);
  void close_text(std::uint64_t session);
  void end_texts(const Error& reason);
  void end_what_is_late();
  void follow_round();
  void release_weights();
  void evaluate(engine::PipelineTexts::Losses losses);
  Expected<pipeline::Route> route();
  Expected<pipeline::Route> route_of_text(std::uint32_t positions, const Scores& scores);
  Expected<void> admit(const pipeline::Route& route) const;

  const Services services_;
  const Bytes network_;
  const FindAnchor find_anchor_;
  std::optional<engine::PipelinePart> part_;
  std::optional<pipeline::Surroundings> around_;
  std::unique_ptr<pipeline::TextStage> stage_;
  std::optional<std::uint64_t> round_;  // whose weights the stage has
  std::optional<MonotonicTime>
      used_;  // when a text last had a session; nothing: the weights are not in memory
  std::map<std::uint64_t, Text> texts_;  // by session
  std::unique_ptr<PartLosses> losses_;   // null: none are asked for
  Lifetime lifetime_;
};

}  // namespace neuroshard::runtime
