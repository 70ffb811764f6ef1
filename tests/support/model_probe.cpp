// Tokens and log-probabilities of a checkpoint's model, for comparison with other programs (tests/long.sh llama-cpp):
//   model_probe CHECKPOINT_FOLDER TOKENIZER.json REQUEST.json ANSWER.json
// REQUEST: {"texts": [text], "tokens": [[id]], "full": n, "logits": n}.  ANSWER: {"ids": [[id]] of the texts, "scores": [[natural logarithm of the
// probability of token i + 1]] of the tokens, "full": [[all of them at the first n positions of each list, flat]],
// "logits": [[the logits at the first n positions, flat]]}.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/base/log.h"
#include "core/data/encoder.h"
#include "core/engine/checkpoint_model.h"

using namespace neuroshard;
using nlohmann::json;

namespace {

std::vector<double> log_softmax(const float* logits, std::size_t count) {
  const double top = *std::max_element(logits, logits + count);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += std::exp(logits[i] - top);
  std::vector<double> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = logits[i] - top - std::log(sum);
  return result;
}

Expected<void> score(compute::Stage& stage, std::uint32_t vocab, const std::vector<std::int32_t>& tokens,
                     std::size_t full, std::size_t raw, json* answer) {
  compute::MicroBatch batch;
  batch.batch = 1;
  batch.sequence = static_cast<std::uint32_t>(tokens.size());
  batch.tokens = tokens.data();
  std::vector<float> logits(tokens.size() * vocab);
  const compute::Status status = stage.logits(batch, logits.data());
  if (!status.ok()) return compute::to_error(status);
  std::vector<double> scores, all;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::vector<double> row = log_softmax(logits.data() + i * vocab, vocab);
    if (i + 1 < tokens.size()) scores.push_back(row[static_cast<std::size_t>(tokens[i + 1])]);
    if (i < full) all.insert(all.end(), row.begin(), row.end());
  }
  (*answer)["scores"].push_back(scores);
  (*answer)["full"].push_back(all);
  logits.resize(std::min(raw, tokens.size()) * vocab);
  (*answer)["logits"].push_back(logits);
  return {};
}

Expected<json> answer_to(const json& request, const std::string& folder, const std::string& tokenizer_path) {
  const auto files = storage::make_posix_file_env();
  NS_ASSIGN_OR_RETURN(const checkpoint::Entry entry, checkpoint::open_folder(*files, folder));
  NS_ASSIGN_OR_RETURN(const Bytes file,
                      storage::read_file(*files, tokenizer_path, data::max_tokenizer_file_bytes));
  NS_ASSIGN_OR_RETURN(data::Tokenizer tokenizer, data::parse_tokenizer(file));
  data::Encoder encoder(std::make_shared<const data::Tokenizer>(std::move(tokenizer)));
  json answer = {
      {"ids", json::array()}, {"scores", json::array()}, {"full", json::array()}, {"logits", json::array()}};
  for (const json& text : request["texts"])
    answer["ids"].push_back(encoder.encode(as_bytes(text.get_ref<const std::string&>())));
  NullLogger logger;
  NS_ASSIGN_OR_RETURN(const compute::StagePtr stage, engine::open_checkpoint_model(*files, logger, entry));
  for (const json& tokens : request["tokens"]) {
    NS_RETURN_IF_ERROR(score(*stage, entry.manifest.architecture.vocab,
                             tokens.get<std::vector<std::int32_t>>(), request["full"].get<std::size_t>(),
                             request.value("logits", std::size_t{0}), &answer));
  }
  return answer;
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return std::cerr << "model_probe CHECKPOINT_FOLDER TOKENIZER REQUEST ANSWER\n", 64;
  std::ifstream file(words[3], std::ios::binary);
  const json request = json::parse(std::string(std::istreambuf_iterator<char>(file), {}), nullptr, false);
  if (request.is_discarded()) return std::cerr << words[3] << " is not JSON\n", 1;
  const Expected<json> answer = answer_to(request, words[1], words[2]);
  if (!answer.ok()) return std::cerr << answer.error().describe() << "\n", 1;
  std::ofstream(words[4]) << answer->dump() << "\n";
  return 0;
}
