// The speed of generation with a checkpoint's weights, one measurement a line of standard input, so that another program
// can be measured in between (tests/long.sh generation-speed):
//   generation_probe CHECKPOINT_FOLDER fp32|bf16 THREADS
//   {"do": "stream", "texts": n, "context": n, "tokens": n}  n tokens each of so many texts at once, after a prompt
//   {"do": "prompt", "tokens": n}                            a prompt, up to the first token
//   {"do": "read"}                                           the memory's reading speed
// Each answer is a line {"seconds": s, "bytes": b}; the first line says {"weight_bytes": b}, what one token reads.
#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/compute/sampling.h"
#include "core/engine/checkpoint_model.h"

using namespace neuroshard;
using nlohmann::json;

namespace {

constexpr std::uint32_t piece = 256;  // of a prompt, as the generator reads it
constexpr std::uint32_t reserve = 64;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Probe {
 public:
  Probe(compute::StagePtr stage, compute::ModelShape shape, unsigned threads)
      : stage_(std::move(stage)), shape_(shape), threads_(threads) {}

  Expected<json> answer(const json& request) {
    const std::string what = request.value("do", "");
    if (what == "read") return read();
    if (what == "prompt") return prompt(request.value("tokens", 1u));
    if (what == "stream")
      return stream(request.value("texts", 1u), request.value("context", 1u), request.value("tokens", 1u));
    return make_error(ErrorCode::InvalidArgument, "no measurement is called " + what);
  }

 private:
  struct Text {
    std::int32_t next = 0;
    std::vector<float> logits;
    Rng rng{1};
  };

  static Expected<void> checked(const compute::Status& status) {
    if (status.ok()) return {};
    return compute::to_error(status);
  }
  // No two prompts alike.
  std::vector<std::int32_t> tokens_of(std::uint32_t count, std::uint32_t number) const {
    Rng rng(number + 1);
    std::vector<std::int32_t> tokens;
    for (std::uint32_t i = 0; i < count; ++i)
      tokens.push_back(static_cast<std::int32_t>(rng.below(shape_.vocab)));
    return tokens;
  }
  Expected<void> read_prompt(std::uint32_t count, std::uint32_t number, Text& text) {
    const std::vector<std::int32_t> tokens = tokens_of(count, number);
    text.logits.resize(shape_.vocab);
    NS_RETURN_IF_ERROR(checked(stage_->open_session(number, count + reserve + 512)));
    for (std::uint32_t at = 0; at < count; at += piece) {
      compute::SessionPart part;
      part.session = number;
      part.n = std::min(piece, count - at);
      part.tokens = tokens.data() + at;
      part.logits = at + part.n == count ? text.logits.data() : nullptr;
      NS_RETURN_IF_ERROR(checked(stage_->extend_sessions(1, &part)));
    }
    return sample(text);
  }
  static Expected<void> sample(Text& text) {
    compute::SamplingOptions options;
    options.temperature = 0;
    NS_ASSIGN_OR_RETURN(text.next,
                        compute::sample_token({text.logits.data(), text.logits.size()}, options, text.rng));
    return {};
  }
  Expected<json> prompt(std::uint32_t count) {
    Text text;
    const double begin = now();
    NS_RETURN_IF_ERROR(read_prompt(count, 0, text));
    const double seconds = now() - begin;
    stage_->close_session(0);
    return json{{"seconds", seconds}, {"tokens", count}};
  }
  Expected<json> stream(std::uint32_t texts, std::uint32_t context, std::uint32_t count) {
    std::vector<Text> all(texts);
    for (std::uint32_t i = 0; i < texts; ++i) NS_RETURN_IF_ERROR(read_prompt(context, i, all[i]));
    const double begin = now();
    for (std::uint32_t step = 0; step < count; ++step) {
      std::vector<compute::SessionPart> parts(texts);
      for (std::uint32_t i = 0; i < texts; ++i) {
        parts[i].session = i;
        parts[i].n = 1;
        parts[i].tokens = &all[i].next;
        parts[i].logits = all[i].logits.data();
      }
      NS_RETURN_IF_ERROR(checked(stage_->extend_sessions(texts, parts.data())));
      for (Text& text : all) NS_RETURN_IF_ERROR(sample(text));
    }
    const double seconds = now() - begin;
    for (std::uint32_t i = 0; i < texts; ++i) stage_->close_session(i);
    return json{{"seconds", seconds}, {"tokens", std::uint64_t{texts} * count}};
  }
  // Every thread adds up a part of the parameters, which no cache holds.
  Expected<json> read() {
    std::uint64_t bytes = 0;
    std::vector<std::uint64_t> sums(threads_);
    const double begin = now();
    std::vector<std::thread> workers;
    for (unsigned worker = 0; worker < threads_; ++worker) {
      workers.emplace_back([this, worker, &sums] {
        std::uint64_t sums_of_line[16] = {};  // independent, so that the processor waits for the memory only
        for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
          const compute::SlotBuffers slot = stage_->slot(i);
          const auto* words = reinterpret_cast<const std::uint64_t*>(slot.parameters);
          const std::uint64_t lines = slot.count / 32;  // of 16 words
          for (std::uint64_t line = lines * worker / threads_; line < lines * (worker + 1) / threads_; ++line)
            for (std::uint64_t word = 0; word < 16; ++word) sums_of_line[word] += words[16 * line + word];
        }
        sums[worker] = std::accumulate(std::begin(sums_of_line), std::end(sums_of_line), std::uint64_t{0});
      });
    }
    for (std::thread& worker : workers) worker.join();
    const double seconds = now() - begin;
    for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) bytes += stage_->slot(i).count * sizeof(float);
    return json{{"seconds", seconds},
                {"bytes", bytes},
                {"sum", std::accumulate(sums.begin(), sums.end(), std::uint64_t{0})}};
  }

  compute::StagePtr stage_;
  compute::ModelShape shape_;
  unsigned threads_;
};

Expected<void> serve(const std::string& folder, const std::string& precision, unsigned threads) {
  const auto files = storage::make_posix_file_env();
  NS_ASSIGN_OR_RETURN(const checkpoint::Entry entry, checkpoint::open_folder(*files, folder));
  engine::CheckpointModelOptions options;
  compute::ModuleOptions& module = options.module;
  module.threads = threads;
  precision.copy(module.precision, sizeof module.precision - 1);
  module.precision[std::min(precision.size(), sizeof module.precision - 1)] = 0;
  NullLogger logger;
  NS_ASSIGN_OR_RETURN(compute::StagePtr stage, engine::open_checkpoint_model(*files, logger, entry, options));
  const compute::ModelShape shape = entry.manifest.architecture;
  const std::uint64_t read = compute::active_parameter_count(shape) * (precision == "bf16" ? 2 : 4);
  std::cout << json{{"weight_bytes", read}, {"parameters", compute::model_parameter_count(shape)}}
            << std::endl;
  Probe probe(std::move(stage), shape, threads);
  for (std::string line; std::getline(std::cin, line);) {
    const json request = json::parse(line, nullptr, false);
    if (!request.is_object()) return make_error(ErrorCode::InvalidArgument, "not a JSON object: " + line);
    NS_ASSIGN_OR_RETURN(const json answer, probe.answer(request));
    std::cout << answer << std::endl;
  }
  return {};
}

}  // namespace

int main(int count, char** words) {
  const int threads = count == 4 ? std::atoi(words[3]) : 0;
  if (threads < 1) return std::cerr << "generation_probe CHECKPOINT_FOLDER fp32|bf16 THREADS\n", 64;
  const Expected<void> served = serve(words[1], words[2], static_cast<unsigned>(threads));
  if (!served.ok()) return std::cerr << served.error().describe() << "\n", 1;
  return 0;
}
