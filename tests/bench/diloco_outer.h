// The rounds of the study of low-communication training: deltas through a codec, the outer step, and anchors that
// come to the workers. Header only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/rng.h"
#include "core/base/spool.h"
#include "core/outer/aggregate.h"
#include "core/outer/codec.h"
#include "core/outer/error_feedback.h"
#include "core/outer/outer_optimizer.h"
#include "core/rounds/fragments.h"
#include "core/rounds/sync.h"
#include "tests/bench/diloco_worker.h"

namespace neuroshard::bench {

// The outer side: anchor and momentum, and what each worker's codec keeps back; of each fragment.
class Outer {
 public:
  Outer(const Flags& flags, const rounds::SyncChoice& sync, outer::Codec codec, const Worker& first)
      : flags_(flags),
        codec_(codec),
        delay_(sync.each == rounds::RoundSync::Plain ? 0 : flags.delay),
        momentum_(first.parameters(), 0.0f),
        luck_(flags.seed * 1000 + 999) {
    first.copy_weights(anchor_);
    for (const rounds::Fragment& fragment :
         rounds::cut_fragments(anchor_.size(), sync.fragments, flags.period)) {
      parts_.push_back({fragment, {}, {}, {}, {}});
      parts_.back().tokens.resize(flags.workers);
      for (std::uint32_t i = 0; i < flags.workers; ++i)
        parts_.back().feedback.emplace_back(fragment.count, static_cast<float>(flags.beta), spool_);
    }
  }

  const std::vector<float>& anchor() const { return anchor_; }
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  std::uint64_t payload_values() const { return payload_values_; }
  std::uint32_t rounds() const { return rounds_; }  // of the last fragment
  std::uint64_t dropped() const { return dropped_; }

  // After each step: rounds that end with it, and anchors that come.
  Expected<void> stepped(std::uint32_t step, std::vector<std::unique_ptr<Worker>>& workers) {
    for (Part& part : parts_) {
      const std::uint32_t first = part.fragment.first_steps;
      if (step >= first && (step - first) % flags_.period == 0)
        NS_RETURN_IF_ERROR(boundary(part, (step - first) / flags_.period + 1, workers));
      if (step >= first + delay_ && (step - first - delay_) % flags_.period == 0) arrive(part, workers);
    }
    return {};
  }

 private:
  struct Part {
    rounds::Fragment fragment;
    std::vector<std::vector<float>> sent;     // each worker's weights that its delta was made of
    std::vector<std::vector<float>> carried;  // each worker's delta that goes along onto the next anchor
    std::vector<std::uint64_t> tokens;        // of each worker, that are in anchors
    std::vector<outer::ErrorFeedback> feedback;
  };

  Expected<void> boundary(Part& part, std::uint32_t number, std::vector<std::unique_ptr<Worker>>& workers) {
    const std::size_t first = part.fragment.first, count = part.fragment.count;
    std::vector<std::vector<float>> deltas(workers.size());
    std::vector<outer::Contribution> contributions;
    std::vector<float> weights, aggregate(count);
    part.sent.assign(workers.size(), {});
    part.carried.assign(workers.size(), {});
    for (std::size_t i = 0; i < workers.size(); ++i) {
      workers[i]->copy_weights(weights);
      const auto own = weights.begin() + static_cast<std::ptrdiff_t>(first);
      part.sent[i].assign(own, own + static_cast<std::ptrdiff_t>(count));
      std::vector<float>& delta = deltas[i] = part.sent[i];
      for (std::size_t p = 0; p < count; ++p) delta[p] = anchor_[first + p] - delta[p];
      const bool dropped = flags_.drop > 0 && luck_.uniform() < flags_.drop;
      const bool carried = dropped && flags_.carry;
      if (carried) part.carried[i] = delta;
      const std::uint64_t tokens = workers[i]->tokens() - part.tokens[i];
      if (!carried) part.tokens[i] = workers[i]->tokens();
      NS_RETURN_IF_ERROR(through_codec(part.feedback[i], number, dropped, delta));
      if (dropped) {
        ++dropped_;
        continue;
      }
      Hash256 id{};
      id[0] = static_cast<std::uint8_t>(i);
      contributions.push_back({id, tokens, {delta.data(), delta.size()}});
    }
    if (&part == &parts_.back()) ++rounds_;
    if (contributions.empty()) return {};  // no step, and the momentum stays
    outer::AggregationOptions options;
    options.choice = outer::RuleChoice{outer::Rule::WeightedMean, false, false};
    options.f = 0;
    NS_ASSIGN_OR_RETURN(const outer::AggregateReport report,
                        outer::aggregate(options, {contributions.data(), contributions.size()},
                                         std::uint64_t{1} << 40, {aggregate.data(), count}));
    if (report.counted != contributions.size())
      return make_error(ErrorCode::Corrupt, "a delta does not count: the run has diverged");
    return outer::outer_step({static_cast<float>(flags_.outer_lr), static_cast<float>(flags_.outer_mu)},
                             {aggregate.data(), count}, {momentum_.data() + first, count},
                             {anchor_.data() + first, count});
  }

  void arrive(Part& part, std::vector<std::unique_ptr<Worker>>& workers) {
    const auto mix = static_cast<float>(flags_.mix);
    std::vector<float> weights;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      workers[i]->copy_weights(weights);
      for (std::size_t p = 0; p < part.fragment.count; ++p) {
        float& own = weights[part.fragment.first + p];
        const float anchor = anchor_[part.fragment.first + p];
        if (!part.carried[i].empty()) own -= part.carried[i][p];
        own = mix > 0 ? mix * own + (1 - mix) * anchor : anchor - (part.sent[i][p] - own);
      }
      workers[i]->set_weights(weights);
    }
  }

  // dropped: sent, and back in the feedback where there is one.
  Expected<void> through_codec(outer::ErrorFeedback& feedback, std::uint32_t round, bool dropped,
                               std::vector<float>& delta) {
    outer::CodecOptions options{codec_, flags_.k};
    const bool sparse = codec_ == outer::Codec::TopK || codec_ == outer::Codec::SeedTopK;
    if (sparse && round <= flags_.dense_rounds) options.codec = outer::Codec::Int8;
    const Span<const float> values(delta.data(), delta.size());
    Bytes payload;
    if (sparse) {
      NS_ASSIGN_OR_RETURN(const ByteSourcePtr sent, feedback.encode(options, outer::values_of(values)));
      if (dropped) NS_RETURN_IF_ERROR(feedback.roll_back(options, sent));
      NS_ASSIGN_OR_RETURN(payload, read_all(*sent));
    } else {
      NS_ASSIGN_OR_RETURN(payload, outer::encode(options, values));
    }
    payload_bytes_ += payload.size();
    payload_values_ += delta.size();
    return outer::decode(options, payload, {delta.data(), delta.size()});
  }

  const Flags& flags_;
  const outer::Codec codec_;
  const std::uint32_t delay_;
  MemorySpool spool_;
  std::vector<float> anchor_, momentum_;
  std::vector<Part> parts_;
  Rng luck_;
  std::uint64_t payload_bytes_ = 0, payload_values_ = 0, dropped_ = 0;
  std::uint32_t rounds_ = 0;
};

}  // namespace neuroshard::bench
