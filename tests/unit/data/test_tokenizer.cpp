// Encoding and decoding: round trips of any bytes, the same tokens as the definition of BPE, bounded time.
#include <QtTest>
#include <thread>

#include "core/data/encoder.h"
#include "core/data/merge_learning.h"
#include "tests/support/test_main.h"
#include "tests/unit/data/tokenizer_support.h"

using namespace neuroshard;
using namespace neuroshard::data;
using namespace neuroshard::data::test;

namespace {

std::shared_ptr<const Tokenizer> learned(std::uint32_t vocab_size) {
  CountedText text;
  const Bytes prose = random_prose(7, 60'000);
  text.words.add_text({prose.data(), prose.size()});
  auto tokenizer = learn_merges(Tokenizer(), text, {vocab_size, 2});
  return std::make_shared<const Tokenizer>(std::move(tokenizer).value());
}

ByteSpan span(const Bytes& bytes) {
  return {bytes.data(), bytes.size()};
}
Span<const TokenId> span(const std::vector<TokenId>& ids) {
  return {ids.data(), ids.size()};
}

}  // namespace

class TestTokenizer : public QObject {
  Q_OBJECT
  std::shared_ptr<const Tokenizer> tokenizer_ = learned(800);

 private Q_SLOTS:

  void works_with_bytes_alone() {
    auto bytes_only = std::make_shared<const Tokenizer>();
    QCOMPARE(bytes_only->vocab_size(), 266u);
    Encoder encoder(bytes_only);
    const std::string text = "Hi there\n";
    std::vector<TokenId> expected;
    for (const char c : text) expected.push_back(10u + static_cast<std::uint8_t>(c));
    QVERIFY(encoder.encode(as_bytes(text)) == expected);
    QVERIFY(encoder.encode({}).empty());
  }

  void returns_any_bytes_unchanged() {
    const std::uint64_t seed = 20260104;
    Rng rng(seed);
    Encoder encoder(tokenizer_);
    for (int round = 0; round < 3000; ++round) {
      // A third pure noise, a third noise over few values (long runs), a third prose.
      Bytes text(rng.below(200));
      const auto values = round % 3 == 0 ? 256 : 1 + rng.below(5);
      for (auto& byte : text) byte = static_cast<std::uint8_t>(97 * rng.below(values));
      if (round % 3 == 2) text = random_prose(rng.next(), text.size());
      const auto ids = encoder.encode(span(text));
      const auto back = tokenizer_->decode(span(ids));
      QVERIFY(back.ok());
      QVERIFY2(*back == text, qPrintable(QString("seed %1 round %2").arg(seed).arg(round)));
    }
  }

  void encodes_as_the_definition_says() {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const Bytes text = random_prose(seed, 8'000);
      Encoder encoder(tokenizer_);
      const auto expected = encode_slowly(*tokenizer_, span(text));
      QVERIFY(encoder.encode(span(text)) == expected);
      QVERIFY(encoder.encode(span(text)) == expected);  // now from the cache
      QVERIFY(expected.size() < text.size() / 2);       // the merges do something
    }
  }

  // Lengths around the limits of the cache (24), of scanning (48) and beyond.
  void encodes_words_of_every_length_alike() {
    Encoder encoder(tokenizer_);
    Rng rng(11);
    const std::string letters = "therainsoab";
    for (std::size_t length = 1; length <= 130; ++length) {
      for (int variant = 0; variant < 4; ++variant) {
        Bytes word(length, 'a');
        if (variant > 0) {
          for (auto& byte : word) byte = static_cast<std::uint8_t>(letters[rng.below(letters.size())]);
        }
        QVERIFY2(encoder.encode(span(word)) == encode_slowly(*tokenizer_, span(word)),
                 qPrintable(QString::number(length)));
      }
    }
  }

  void tells_words_with_trailing_zeros_apart() {
    Encoder encoder(tokenizer_);
    for (std::size_t zeros = 1; zeros < 30; ++zeros) {
      Bytes text = {'!'};
      text.insert(text.end(), zeros, 0);
      QCOMPARE(encoder.encode(span(text)).size(), zeros + 1);
    }
  }

  void takes_one_huge_word_in_reasonable_time() {
    Encoder encoder(tokenizer_);
    const Bytes text(3'000'000, 'a');  // quadratic work would take hours
    const auto ids = encoder.encode(span(text));
    QVERIFY(ids.size() < text.size() / 2);
    QVERIFY(*tokenizer_->decode(span(ids)) == text);
  }

  void encodes_in_pieces_as_in_one() {
    const Bytes text = random_prose(5, 50'000);
    Encoder encoder(tokenizer_);
    std::vector<TokenId> pieces;
    for (ByteSpan rest = span(text); !rest.empty();) {
      const std::size_t cut = find_word_cut(rest, 777);
      QVERIFY(cut > 0);
      encoder.encode(rest.first(cut), &pieces);
      rest = rest.subspan(cut);
    }
    QVERIFY(pieces == encoder.encode(span(text)));
  }

  void serves_several_threads() {
    const Bytes text = random_prose(9, 100'000);
    const auto expected = Encoder(tokenizer_).encode(span(text));
    std::vector<std::vector<TokenId>> results(4);
    std::vector<std::thread> threads;
    for (auto& result : results) {
      threads.emplace_back([&, this] { Encoder(tokenizer_).encode(span(text), &result); });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& result : results) QVERIFY(result == expected);
  }

  void decodes_special_tokens_to_nothing() {
    const std::vector<TokenId> ids = {bos_token, 10 + 'h', pad_token, unknown_token, 9, 10 + 'i', eos_token};
    QVERIFY(*tokenizer_->decode(span(ids)) == (Bytes{'h', 'i'}));
    const std::vector<std::int64_t> shard_ids = {1, 10 + 'h', 10 + 'i', 2};
    Bytes text;
    QVERIFY(tokenizer_->decode(Span<const std::int64_t>(shard_ids.data(), shard_ids.size()), &text).ok());
    QVERIFY(text == (Bytes{'h', 'i'}));
  }

  void refuses_tokens_outside_the_vocabulary() {
    const std::vector<TokenId> beyond = {tokenizer_->vocab_size()};
    const auto result = tokenizer_->decode(span(beyond));
    QVERIFY(!result.ok());
    QVERIFY(result.error().code == ErrorCode::InvalidArgument);
    QVERIFY(result.error().message.find(std::to_string(tokenizer_->vocab_size())) != std::string::npos);
    for (const std::int64_t id : {std::int64_t(-1), std::int64_t(1) << 40, INT64_MIN, INT64_MAX}) {
      Bytes text;
      QVERIFY(!tokenizer_->decode(Span<const std::int64_t>(&id, 1), &text).ok());
    }
  }
};

NS_TEST(TestTokenizer)
#include "test_tokenizer.moc"
