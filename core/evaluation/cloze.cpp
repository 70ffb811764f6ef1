#include "core/evaluation/cloze.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/rng.h"
#include "core/data/pretokenizer.h"

namespace neuroshard::evaluation {
namespace {

struct Candidate {
  std::size_t begin = 0, word = 0, end = 0;  // of the passage, of the word
};

bool letter(std::uint8_t byte) {
  return byte >= 0x80 || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

bool is_word(ByteSpan piece) {
  return piece.size() > min_cloze_letters && piece[0] == ' ' &&
         std::all_of(piece.begin() + 1, piece.end(), letter);
}

class Words {
 public:
  explicit Words(ByteSpan text) {
    std::vector<std::size_t> begins;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = data::first_word(text.data() + at, text.data() + text.size());
      if (is_word(text.subspan(at, length))) {
        by_length_[length].insert(std::string(as_text(text.subspan(at, length))));
        if (begins.size() >= min_cloze_words)
          found_.push_back(
              {begins[begins.size() - std::min(begins.size(), max_cloze_words)], at, at + length});
      }
      begins.push_back(at);
      at += length;
    }
    std::erase_if(found_, [this](const Candidate& one) {
      return by_length_.at(one.end - one.word).size() < cloze_choices;
    });
  }

  std::vector<Candidate> take_candidates() { return std::move(found_); }
  // All of this length, sorted.
  std::vector<std::string> of_length(std::size_t length) const {
    const auto& words = by_length_.at(length);
    return {words.begin(), words.end()};
  }

 private:
  std::vector<Candidate> found_;
  std::map<std::size_t, std::set<std::string>> by_length_;
};

// The first `count` of a random order.
template <class T>
void shuffle_first(std::vector<T>& items, std::size_t count, Rng& rng) {
  for (std::size_t i = 0; i < std::min(count, items.size()); ++i)
    std::swap(items[i], items[i + static_cast<std::size_t>(rng.below(items.size() - i))]);
}

}  // namespace

std::vector<ClozeQuestion> make_cloze(ByteSpan text, std::size_t count, std::uint64_t seed) {
  if (count == 0) return {};
  Words words(text);
  Rng rng(seed);
  std::vector<Candidate> chosen = words.take_candidates();
  shuffle_first(chosen, count, rng);
  if (chosen.size() > count) chosen.resize(count);
  std::sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) { return a.word < b.word; });
  std::map<std::size_t, std::vector<std::string>> lists;
  std::vector<ClozeQuestion> questions;
  for (const Candidate& one : chosen) {
    const std::string answer(as_text(text.subspan(one.word, one.end - one.word)));
    auto& list = lists[answer.size()];
    if (list.empty()) list = words.of_length(answer.size());
    std::vector<std::string> others = list;
    others.erase(std::lower_bound(others.begin(), others.end(), answer));
    shuffle_first(others, cloze_choices - 1, rng);
    ClozeQuestion question{one.begin, one.word, {}, static_cast<std::uint32_t>(rng.below(cloze_choices))};
    question.choices.assign(others.begin(), others.begin() + (cloze_choices - 1));
    question.choices.insert(question.choices.begin() + question.right, answer);
    questions.push_back(std::move(question));
  }
  return questions;
}

}  // namespace neuroshard::evaluation
