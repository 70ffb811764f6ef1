#include "core/evaluation/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "core/compute/module.h"
#include "core/train/evaluate.h"

namespace neuroshard::evaluation {
namespace {

constexpr std::uint32_t windows_at_once = 8;
constexpr std::int32_t no_target = -1;

// The windows of a stream as batches for train::evaluate(): several whole ones at a time, the last one with what is left.
class Windows {
 public:
  Windows(Span<const data::TokenId> stream, const Options& options) : stream_(stream), options_(options) {}

  std::uint64_t count() const {
    const std::size_t targets = stream_.size() - 1;
    if (targets <= options_.window) return 1;
    return 1 + (targets - options_.window + options_.stride - 1) / options_.stride;
  }

  train::BatchView next() {
    tokens_.clear();
    targets_.clear();
    train::BatchView batch;
    while (begin_ < count() && batch.sequences < windows_at_once) {
      const std::size_t at = static_cast<std::size_t>(begin_) * options_.stride;
      const auto length =
          static_cast<std::uint32_t>(std::min<std::size_t>(options_.window, stream_.size() - 1 - at));
      if (batch.sequences > 0 && length != batch.length) break;
      batch.length = length;
      for (std::size_t i = at; i < at + length; ++i) {
        tokens_.push_back(static_cast<std::int32_t>(stream_[i]));
        targets_.push_back(i + 1 > scored_ ? static_cast<std::int32_t>(stream_[i + 1]) : no_target);
      }
      scored_ = at + length;
      ++batch.sequences;
      ++begin_;
    }
    batch.tokens = tokens_.data();
    batch.targets = targets_.data();
    return batch;
  }

 private:
  const Span<const data::TokenId> stream_;
  const Options& options_;
  std::uint64_t begin_ = 0;  // windows handed out
  std::size_t scored_ = 0;   // the last position of the stream that was predicted
  std::vector<std::int32_t> tokens_, targets_;
};

class Meter {
 public:
  Meter(const Progress& progress, std::uint64_t total) : progress_(progress), total_(total) {}
  void add(std::uint64_t passes) {
    done_ += passes;
    if (progress_) progress_(done_, total_);
  }

 private:
  const Progress& progress_;
  std::uint64_t total_, done_ = 0;
};

Expected<double> model_nats(compute::Stage& stage, Windows& windows, Meter& meter,
                            const CancelToken& cancel) {
  std::uint32_t handed_out = 0;
  const auto source = [&]() -> Expected<train::EvaluationPart> {
    if (handed_out > 0) meter.add(handed_out);
    train::EvaluationPart part{windows.next(), 0};
    handed_out = part.batch.sequences;
    return part;
  };
  NS_ASSIGN_OR_RETURN(const train::Evaluation found, train::evaluate(stage, source, windows_at_once, cancel));
  return found.loss * static_cast<double>(found.target_tokens);
}

double baseline_nats(const NGram& baseline, Span<const data::TokenId> stream) {
  double sum = 0;
  for (std::size_t i = 1; i < stream.size(); ++i) sum -= baseline.log_probability(stream.first(i), stream[i]);
  return sum;
}

// One question as tokens: the passage, then each choice.
struct Tokens {
  std::vector<data::TokenId> passage;
  std::vector<std::vector<data::TokenId>> choices;
};

Expected<double> model_choice(compute::Stage& stage, const Tokens& tokens, std::size_t choice) {
  std::vector<std::int32_t> input(tokens.passage.begin(), tokens.passage.end()), targets;
  targets.assign(input.size() - 1, no_target);
  for (const data::TokenId token : tokens.choices[choice]) {
    targets.push_back(static_cast<std::int32_t>(token));
    input.push_back(static_cast<std::int32_t>(token));
  }
  input.pop_back();
  compute::MicroBatch batch;
  batch.batch = 1;
  batch.sequence = static_cast<std::uint32_t>(input.size());
  batch.tokens = input.data();
  batch.targets = targets.data();
  compute::ForwardMetrics metrics;
  const compute::Status status = stage.evaluate(batch, nullptr, &metrics);
  if (!status.ok()) return compute::to_error(status);
  if (!std::isfinite(metrics.loss_sum))
    return make_error(ErrorCode::Corrupt, "The loss is not a finite number: the model has diverged.");
  return metrics.loss_sum;
}

double baseline_choice(const NGram& baseline, const Tokens& tokens, std::size_t choice) {
  std::vector<data::TokenId> before = tokens.passage;
  double sum = 0;
  for (const data::TokenId token : tokens.choices[choice]) {
    sum -= baseline.log_probability({before.data(), before.size()}, token);
    before.push_back(token);
  }
  return sum;
}

// The least loss; of equal ones the first.
std::size_t best_of(const std::vector<double>& losses) {
  return static_cast<std::size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin());
}

Expected<void> answer(compute::Stage& stage, const NGram& baseline, const Tokens& tokens, std::uint32_t right,
                      Result* result) {
  std::vector<double> of_model, of_baseline;
  for (std::size_t i = 0; i < tokens.choices.size(); ++i) {
    NS_ASSIGN_OR_RETURN(const double nats, model_choice(stage, tokens, i));
    of_model.push_back(nats);
    of_baseline.push_back(baseline_choice(baseline, tokens, i));
  }
  if (best_of(of_model) == right) ++result->model.cloze_right;
  if (best_of(of_baseline) == right) ++result->baseline.cloze_right;
  return {};
}

Expected<void> answer_all(compute::Stage& stage, const NGram& baseline, data::Encoder& encoder, ByteSpan text,
                          const std::vector<ClozeQuestion>& questions, std::uint32_t window, Meter& meter,
                          const CancelToken& cancel, Result* result) {
  for (const ClozeQuestion& question : questions) {
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "The evaluation was stopped.");
    Tokens tokens;
    tokens.passage = stream_of(encoder, text.subspan(question.begin, question.end - question.begin));
    std::size_t longest = 1;
    for (const std::string& choice : question.choices) {
      tokens.choices.push_back(encoder.encode(as_bytes(choice)));
      longest = std::max(longest, tokens.choices.back().size());
    }
    // The newest part that fits with each choice.
    const std::size_t room = window > longest ? window - longest : 1;
    if (tokens.passage.size() > room)
      tokens.passage.erase(tokens.passage.begin(), tokens.passage.end() - static_cast<std::ptrdiff_t>(room));
    NS_RETURN_IF_ERROR(answer(stage, baseline, tokens, question.right, result));
    meter.add(tokens.choices.size());
  }
  return {};
}

Expected<void> check(ByteSpan text, const Options& options) {
  if (text.empty()) return make_error(ErrorCode::InvalidArgument, "the text is empty");
  if (text.size() > max_text_bytes)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the text has more than {} MiB; give a part of it", max_text_bytes >> 20));
  if (options.stride < 1 || options.stride > options.window)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the stride is 1 to {} tokens, not {}", options.window, options.stride));
  return {};
}

}  // namespace

double Result::bits_per_byte(const Score& score) const {
  return score.nats / std::log(2.0) / static_cast<double>(bytes);
}

std::vector<data::TokenId> stream_of(data::Encoder& encoder, ByteSpan text) {
  std::vector<data::TokenId> stream{data::eos_token};
  encoder.encode(text, &stream);
  return stream;
}

Expected<Result> evaluate(compute::Stage& stage, const NGram& baseline, data::Encoder& encoder, ByteSpan text,
                          const Options& options, const Progress& progress, const CancelToken& cancel) {
  NS_RETURN_IF_ERROR(check(text, options));
  const std::vector<data::TokenId> stream = stream_of(encoder, text);
  const std::vector<ClozeQuestion> questions = make_cloze(text, options.questions, options.seed);
  Result result;
  result.bytes = text.size();
  result.tokens = stream.size() - 1;
  result.questions = static_cast<std::uint32_t>(questions.size());
  Windows windows({stream.data(), stream.size()}, options);
  Meter meter(progress, windows.count() + questions.size() * cloze_choices);
  NS_ASSIGN_OR_RETURN(result.model.nats, model_nats(stage, windows, meter, cancel));
  result.baseline.nats = baseline_nats(baseline, {stream.data(), stream.size()});
  NS_RETURN_IF_ERROR(
      answer_all(stage, baseline, encoder, text, questions, options.window, meter, cancel, &result));
  return result;
}

}  // namespace neuroshard::evaluation
