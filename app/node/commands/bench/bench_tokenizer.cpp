// Encoding text and learning merges, beside memcpy and beside the textbook form of BPE.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "app/node/commands/bench/bench_row.h"
#include "core/base/rng.h"
#include "core/data/encoder.h"
#include "core/data/merge_learning.h"
#include "core/data/pretokenizer.h"

namespace neuroshard::app {
namespace {

constexpr std::size_t generated_bytes = 8u << 20;
constexpr std::size_t naive_bytes = 256u << 10;         // the textbook path is slow
constexpr std::uint64_t max_text_bytes = 256ull << 20;  // of a file given by --text
constexpr std::uint32_t vocab_size = 4096;              // of the profile solo

struct Sample {
  std::string text;
  std::string name;
};

Expected<Sample> load_sample(BenchContext& context) {
  if (context.text_file.empty())
    return Sample{generated_prose(generated_bytes), "generated words, Zipf's distribution"};
  NS_ASSIGN_OR_RETURN(const Bytes file, storage::read_file(context.files, context.text_file, max_text_bytes));
  if (file.empty())
    return make_error(ErrorCode::InvalidArgument, context.text_file + " is empty; give a file with text");
  return Sample{std::string(as_text({file.data(), file.size()})), context.text_file};
}

Expected<data::Tokenizer> learn(const std::string& text) {
  data::CountedText counted;
  counted.words.add_text(as_bytes(text));
  return data::learn_merges(data::Tokenizer(), counted, {vocab_size, 2});
}

// The textbook form of BPE: per word, look up every pair in a hash map, merge the lowest, start again.
class TextbookEncoder {
 public:
  explicit TextbookEncoder(const data::Tokenizer& tokenizer) {
    for (std::size_t i = 0; i < tokenizer.merges().size(); ++i) {
      const data::Merge merge = tokenizer.merges()[i];
      ids_[key(merge.left, merge.right)] = static_cast<data::TokenId>(data::first_merge_token + i);
    }
  }
  std::vector<data::TokenId> encode(ByteSpan text) const {
    std::vector<data::TokenId> all;
    for (const std::uint8_t* at = text.begin(); at != text.end();) {
      const std::size_t length = data::first_word(at, text.end());
      std::vector<data::TokenId> word;
      for (std::size_t i = 0; i < length; ++i) word.push_back(data::first_byte_token + at[i]);
      while (merge_lowest(&word)) {
      }
      all.insert(all.end(), word.begin(), word.end());
      at += length;
    }
    return all;
  }

 private:
  static std::uint64_t key(data::TokenId left, data::TokenId right) {
    return std::uint64_t{left} << 32 | right;
  }
  bool merge_lowest(std::vector<data::TokenId>* word) const {
    data::TokenId lowest = data::Tokenizer::no_merge;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < word->size(); ++i) {
      const auto found = ids_.find(key((*word)[i], (*word)[i + 1]));
      if (found != ids_.end() && found->second < lowest) {
        lowest = found->second;
        place = i;
      }
    }
    if (lowest == data::Tokenizer::no_merge) return false;
    (*word)[place] = lowest;
    word->erase(word->begin() + static_cast<std::ptrdiff_t>(place) + 1);
    return true;
  }
  std::unordered_map<std::uint64_t, data::TokenId> ids_;
};

std::string make_word(Rng* rng, std::size_t rank) {
  static constexpr std::string_view starts[] = {"b", "c", "d", "f", "g", "h", "l",  "m",
                                                "n", "p", "r", "s", "t", "w", "th", "st"};
  static constexpr std::string_view middles[] = {"a", "e", "i", "o", "u", "ea", "ou"};
  static constexpr std::string_view ends[] = {"", "", "n", "r", "s", "t", "l", "nd", "ng"};
  const std::size_t syllables = rank < 60 ? 1 : rank < 2000 ? 1 + rng->below(2) : 2 + rng->below(3);
  std::string word;
  for (std::size_t i = 0; i < syllables; ++i) {
    word += starts[rng->below(std::size(starts))];
    word += middles[rng->below(std::size(middles))];
    word += ends[rng->below(std::size(ends))];
  }
  return word;
}

}  // namespace

std::string generated_prose(std::size_t bytes) {
  constexpr std::size_t distinct_words = 50'000;  // far more than an encoder's cache holds
  Rng rng(1);
  std::vector<std::string> words;
  std::vector<double> cumulative;
  double sum = 0;
  for (std::size_t rank = 0; rank < distinct_words; ++rank) {
    words.push_back(make_word(&rng, rank));
    cumulative.push_back(sum +=
                         1.0 / (static_cast<double>(rank) + 2.7));  // Zipf's law as Mandelbrot refined it
  }
  std::string text;
  text.reserve(bytes + 64);
  while (text.size() < bytes) {
    const auto length = 4 + rng.below(20);
    for (std::uint64_t i = 0; i < length; ++i) {
      const auto at =
          std::lower_bound(cumulative.begin(), cumulative.end(), rng.uniform() * sum) - cumulative.begin();
      std::string word = words[std::min<std::size_t>(static_cast<std::size_t>(at), distinct_words - 1)];
      if (i == 0) word[0] = static_cast<char>(word[0] - 'a' + 'A');
      if (rng.below(100) == 0) word = std::to_string(rng.below(3000));
      if (rng.below(50) == 0) word += "'s";
      if (rng.below(12) == 0) word += ',';
      text += i == 0 ? "" : " ";
      text += word;
    }
    text += rng.below(5) == 0 ? ".\n\n" : ". ";
  }
  text.resize(bytes);
  return text;
}

Expected<BenchReport> bench_tokenizer(BenchContext& context) {
  NS_ASSIGN_OR_RETURN(const Sample sample, load_sample(context));
  NS_ASSIGN_OR_RETURN(data::Tokenizer learned, learn(sample.text));
  const auto tokenizer = std::make_shared<const data::Tokenizer>(std::move(learned));
  data::Encoder encoder(tokenizer);
  const TextbookEncoder textbook(*tokenizer);
  const ByteSpan text = as_bytes(sample.text);
  const ByteSpan start = text.first(data::find_word_cut(text, naive_bytes));
  if (encoder.encode(start) != textbook.encode(start)) {
    return make_error(
        ErrorCode::Internal,
        "the encoder and its reference implementation disagree; please report it and attach the text");
  }
  std::vector<data::TokenId> ids;
  const std::vector<Contender> contenders = {{"encode",
                                              [&]() -> Expected<double> {
                                                ids.clear();
                                                encoder.encode(text, &ids);
                                                return static_cast<double>(text.size());
                                              }},
                                             {"textbook", [&]() -> Expected<double> {
                                                ids = textbook.encode(start);
                                                return static_cast<double>(start.size());
                                              }}};
  BenchReport report;
  report.unit = {"MB/s", 1e6};
  report.yardstick_unit = {"GB/s", 1e9};
  NS_ASSIGN_OR_RETURN(report.result, run_interleaved(context.clock, memcpy_yardstick(), contenders,
                                                     context.rounds, context.stop));
  report.targets = {{"encode", false, 20, 60}};
  const auto tokens = encoder.encode(text).size();
  report.notes = {{"text", sample.name},
                  {"text_bytes", std::to_string(text.size())},
                  {"vocabulary", std::to_string(tokenizer->vocab_size())},
                  {"bytes_per_token",
                   fmt::format("{:.2f}", static_cast<double>(text.size()) / static_cast<double>(tokens))},
                  {"threads", "1"}};
  return report;
}

Expected<BenchReport> bench_merge_learning(BenchContext& context) {
  NS_ASSIGN_OR_RETURN(const Sample sample, load_sample(context));
  std::uint32_t learned = 0;
  const std::vector<Contender> contenders = {
      {"count",
       [&]() -> Expected<double> {
         data::WordCounts words;
         words.add_text(as_bytes(sample.text));
         return words.distinct() == 0 ? 0.0 : static_cast<double>(sample.text.size());
       }},
      {"count+learn", [&]() -> Expected<double> {
         NS_ASSIGN_OR_RETURN(const data::Tokenizer tokenizer, learn(sample.text));
         learned = tokenizer.vocab_size();
         return static_cast<double>(sample.text.size());
       }}};
  BenchReport report;
  report.unit = {"MB/s", 1e6};
  report.yardstick_unit = {"GB/s", 1e9};
  NS_ASSIGN_OR_RETURN(report.result, run_interleaved(context.clock, memcpy_yardstick(), contenders,
                                                     context.rounds, context.stop));
  report.notes = {{"text", sample.name},
                  {"text_bytes", std::to_string(sample.text.size())},
                  {"vocabulary", std::to_string(learned)},
                  {"threads", "1"}};
  return report;
}

}  // namespace neuroshard::app
