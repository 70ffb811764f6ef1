// Learning merges: the same as the definition, whatever the threads; growth keeps what was there.
#include <QtTest>
#include <fstream>
#include <set>

#include "core/data/encoder.h"
#include "core/data/merge_learning.h"
#include "tests/support/test_main.h"
#include "tests/unit/data/tokenizer_support.h"

using namespace neuroshard;
using namespace neuroshard::data;
using namespace neuroshard::data::test;

namespace {

class Texts final : public TextSource {
 public:
  Texts(std::string name, std::vector<Bytes> texts) : name_(std::move(name)), texts_(std::move(texts)) {}
  std::string name() const override { return name_; }
  Expected<bool> next(Bytes* text) override {
    if (at_ == fail_at) return make_error(ErrorCode::Io, "the disk is gone");
    if (at_ == texts_.size()) return false;
    *text = texts_[at_++];
    return true;
  }
  std::size_t fail_at = SIZE_MAX;

 private:
  std::string name_;
  std::vector<Bytes> texts_;
  std::size_t at_ = 0;
};

Expected<CountedText> count(std::vector<Texts> sources, unsigned threads, const CancelToken& cancel = {}) {
  std::vector<TextSource*> pointers;
  for (Texts& source : sources) pointers.push_back(&source);
  return count_words({pointers.data(), pointers.size()}, threads, {}, cancel);
}

CountedText counted(const std::vector<Bytes>& texts) {
  return count({Texts("test", texts)}, 1).value();
}

std::vector<Merge> merges_of(const Tokenizer& tokenizer) {
  return {tokenizer.merges().begin(), tokenizer.merges().end()};
}

}  // namespace

class TestMergeLearning : public QObject {
  Q_OBJECT
 private Q_SLOTS:

  void learns_as_the_definition_says() {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const std::vector<Bytes> texts = {random_prose(seed, 3000), random_prose(seed + 100, 3000)};
      const auto tokenizer = learn_merges(Tokenizer(), counted(texts), {500, 2});
      QVERIFY(tokenizer.ok());
      QVERIFY2(merges_of(*tokenizer) == learn_slowly(texts, {}, 500),
               qPrintable(QString("seed %1").arg(seed)));
    }
  }

  // Runs of one letter are where overlapping pairs are easily counted wrongly.
  void learns_from_runs_as_the_definition_says() {
    Rng rng(20260106);
    for (int round = 0; round < 60; ++round) {
      Bytes text(1 + rng.below(150));
      for (auto& byte : text) byte = static_cast<std::uint8_t>("aaab "[rng.below(5)]);
      const auto tokenizer = learn_merges(Tokenizer(), counted({text}), {300, 2});
      QVERIFY2(merges_of(*tokenizer) == learn_slowly({text}, {}, 300),
               qPrintable(QString("round %1").arg(round)));
    }
  }

  // Other programs know a token by its bytes (docs/decisions/052). Grown tokenizers, too: the second text has other counts.
  void no_two_tokens_spell_the_same() {
    Rng rng(20261126);
    for (int round = 0; round < 20; ++round) {
      Bytes texts[2] = {Bytes(1000), Bytes(1000)};
      for (Bytes& text : texts)
        for (auto& byte : text) byte = static_cast<std::uint8_t>("aaabbc "[rng.below(7)]);
      const auto first = learn_merges(Tokenizer(), counted({texts[0]}), {400, 2});
      const auto grown = learn_merges(*first, counted({texts[1]}), {600, 2});
      QVERIFY(grown->vocab_size() > first->vocab_size());
      std::set<std::string> spelled;
      for (TokenId id = first_byte_token; id < grown->vocab_size(); ++id)
        QVERIFY(spelled.insert(std::string(as_text(grown->token_bytes(id)))).second);
    }
  }

  void stops_when_nothing_is_frequent() {
    const std::string text = "abc abd xyz";
    const auto tokenizer = learn_merges(Tokenizer(), counted({Bytes(text.begin(), text.end())}), {4096, 2});
    QVERIFY(tokenizer->vocab_size() == 267);  // "ab" occurs twice, in "abc" and, as " ab", in " abd"
    QCOMPARE(as_text(tokenizer->token_bytes(266)), std::string_view("ab"));
    QCOMPARE(learn_merges(Tokenizer(), CountedText{}, {4096, 2})->vocab_size(), 266u);
  }

  void grows_without_touching_old_merges() {
    const std::vector<Bytes> first = {random_prose(1, 3000)};
    const std::vector<Bytes> second = {random_prose(2, 3000)};
    const auto local = learn_merges(Tokenizer(), counted(first), {350, 2});
    const auto grown = learn_merges(*local, count({Texts("more", second)}, 1).value(), {410, 2});
    QVERIFY(grown.ok());
    QCOMPARE(grown->vocab_size(), 410u);
    QVERIFY(local->is_prefix_of(*grown));
    QVERIFY(merges_of(*grown) == learn_slowly(second, merges_of(*local), 410));
    QVERIFY(grown->sources() == (SourceBytes{{"test", 3000}, {"more", 3000}}));
    QVERIFY(!learn_merges(*grown, counted(first), {300, 2}).ok());  // never fewer than there are
    QVERIFY(learn_merges(*grown, counted(first), {max_vocabulary + 1, 2}).error().code ==
            ErrorCode::InvalidArgument);
  }

  void does_not_depend_on_the_number_of_threads() {
    std::vector<Bytes> texts;
    for (std::uint64_t i = 0; i < 40; ++i) texts.push_back(random_prose(i, 300'000));
    std::vector<Hash256> hashes;
    for (const unsigned threads : {1u, 2u, 5u}) {
      auto text = count({Texts("a", texts), Texts("b", {random_prose(99, 5000)})}, threads);
      QVERIFY(text.ok());
      QCOMPARE(text->bytes, std::uint64_t(40 * 300'000 + 5000));
      hashes.push_back(learn_merges(Tokenizer(), *text, {1000, 2})->hash());
    }
    QVERIFY(hashes[0] == hashes[1]);
    QVERIFY(hashes[0] == hashes[2]);
  }

  void keeps_the_frequent_words_when_there_are_too_many() {
    WordCounts counts(1000);
    for (int i = 0; i < 50'000; ++i) {
      const std::string rare =
          " w" + std::string(1, char('a' + i % 26)) + std::string(1, char('a' + i / 26 % 26)) +
          std::string(1, char('a' + i / 676 % 26)) + std::string(1, char('a' + i / 17576 % 26));
      counts.add_text(as_bytes(std::string_view(rare)));
      counts.add_text(as_bytes(std::string_view(" often")));
      QVERIFY(counts.distinct() <= 1000);
    }
    QCOMPARE(counts.count(as_bytes(std::string_view(" often"))), std::uint64_t(50'000));
  }

  void leaves_out_words_that_are_no_language() {
    const Bytes key(max_learned_word_bytes + 1, 'k');
    QCOMPARE(counted({key}).words.distinct(), std::size_t(0));
    const Bytes longest(max_learned_word_bytes, 'k');
    QCOMPARE(counted({longest}).words.distinct(), std::size_t(1));
  }

  void reports_errors_and_cancels() {
    Texts broken("library", {random_prose(1, 100), random_prose(2, 100)});
    broken.fail_at = 1;
    for (const unsigned threads : {1u, 3u}) {
      const auto result = count({broken}, threads);
      QVERIFY(!result.ok());
      QVERIFY(result.error().describe().find("library") != std::string::npos);
    }
    CancelSource cancel;
    cancel.cancel();
    QVERIFY(count({Texts("a", {random_prose(1, 100)})}, 2, cancel.token()).error().code ==
            ErrorCode::Cancelled);
    QVERIFY(learn_merges(Tokenizer(), counted({random_prose(1, 9000)}), {400, 2}, {}, cancel.token())
                .error()
                .code == ErrorCode::Cancelled);
  }

  void reports_progress() {
    std::vector<std::uint32_t> seen;
    const auto tokenizer = learn_merges(Tokenizer(), counted({random_prose(1, 9000)}), {466, 2},
                                        [&](std::uint32_t done, std::uint32_t wanted) {
                                          QCOMPARE(wanted, 200u);
                                          seen.push_back(done);
                                        });
    QVERIFY(std::is_sorted(seen.begin(), seen.end()));
    QVERIFY(seen.size() >= 4);
    QCOMPARE(seen.back(), tokenizer->vocab_size() - 266);
  }

  void compresses_real_text() {
    std::ifstream file(qEnvironmentVariable("NS_SHARED_DATA").toStdString() + "/tinyshakespeare.txt",
                       std::ios::binary);
    if (!file.is_open()) QSKIP("tinyshakespeare.txt is not on this machine");
    const std::string all((std::istreambuf_iterator<char>(file)), {});
    const Bytes text(all.begin(), all.end());
    auto tokenizer = learn_merges(Tokenizer(), counted({text}), {4096, 2});
    QCOMPARE(tokenizer->vocab_size(), 4096u);
    Encoder encoder(std::make_shared<const Tokenizer>(std::move(tokenizer).value()));
    const auto ids = encoder.encode({text.data(), text.size()});
    QVERIFY(*encoder.tokenizer().decode(Span<const TokenId>(ids.data(), ids.size())) == text);
    QVERIFY2(ids.size() * 3 < text.size(),
             qPrintable(QString::number(ids.size())));  // over three bytes a token
  }
};

NS_TEST(TestMergeLearning)
#include "test_merge_learning.moc"
