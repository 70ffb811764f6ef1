// The split into words: against the GPT-2 pattern in Debian's python3-regex
// (tests/golden/make_pretokenizer_cases.py).
#include <utf8proc.h>

#include <QtTest>
#include <fstream>
#include <sstream>

#include "core/base/rng.h"
#include "core/crypto/hash.h"
#include "core/data/pretokenizer.h"
#include "core/data/unicode_classes.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::data;

namespace {

std::vector<Bytes> split(ByteSpan text) {
  std::vector<Bytes> words;
  for (const std::uint8_t* at = text.begin(); at != text.end();) {
    const std::size_t length = first_word(at, text.end());
    words.emplace_back(at, at + length);
    at += length;
  }
  return words;
}

Bytes join(const std::vector<Bytes>& words) {
  Bytes text;
  for (const Bytes& word : words) text.insert(text.end(), word.begin(), word.end());
  return text;
}

QString shown(const std::vector<Bytes>& words) {
  QString text;
  for (const Bytes& word : words) text += QString::fromStdString(to_hex({word.data(), word.size()})) + ' ';
  return text;
}

void append_utf8(Bytes* text, std::uint32_t code) {
  utf8proc_uint8_t buffer[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), buffer);
  text->insert(text->end(), buffer, buffer + length);
}

}  // namespace

class TestPretokenizer : public QObject {
  Q_OBJECT
 private Q_SLOTS:

  void splits_as_the_gpt2_pattern_does() {
    std::ifstream file(qEnvironmentVariable("NS_SOURCE_DIR").toStdString() +
                       "/tests/golden/pretokenizer_cases.txt");
    QVERIFY2(file.is_open(), "tests/golden/pretokenizer_cases.txt is missing");
    int cases = 0;
    for (std::string line; std::getline(file, line); ++cases) {
      std::istringstream fields(line);
      std::vector<Bytes> expected;
      for (std::string field; fields >> field;) expected.push_back(*from_hex(field));
      const Bytes text = join(expected);
      QCOMPARE(shown(split({text.data(), text.size()})), shown(expected));
    }
    QVERIFY(cases > 400);
  }

  // The class of every code point, as one hash; the oracle is python3-regex 0.1.20221031 (\p{L}, \p{N}, \s).
  void knows_the_class_of_every_character() {
    if (std::string_view(utf8proc_unicode_version()) != "15.0.0")
      QSKIP("the golden hash is for Unicode 15.0.0");
    Bytes classes;
    for (std::uint32_t code = 0; code < 0x110000; ++code) {
      if (code >= 0xD800 && code <= 0xDFFF) {
        classes.push_back(0);
        continue;
      }
      Bytes text;
      append_utf8(&text, code);
      const Character character = read_character(text.data(), text.data() + text.size());
      if (character.length != text.size())
        QFAIL(qPrintable(QString("U+%1 has a wrong length").arg(code, 0, 16)));
      classes.push_back(static_cast<std::uint8_t>(character.kind));
    }
    QCOMPARE(to_hex(crypto::sha256({classes.data(), classes.size()})),
             std::string("e4cd6671ceba047f4d99fd3acc6a7c9d4395ffd373f11295628c80d136a38d16"));
  }

  void takes_each_bad_byte_as_a_character_of_its_own() {
    const std::vector<Bytes> bad = {{0x80},                    // continuation without a start
                                    {0xC3},                    // cut off
                                    {0xC0, 0xAF},              // overlong
                                    {0xE0, 0x80, 0xAF},        // overlong
                                    {0xED, 0xA0, 0x80},        // surrogate
                                    {0xF4, 0x90, 0x80, 0x80},  // beyond U+10FFFF
                                    {0xF0, 0x9F, 0x98},        // cut off
                                    {0xFF}};
    for (const Bytes& bytes : bad) {
      for (std::size_t at = 0; at < bytes.size(); ++at) {
        const Character character = read_character(bytes.data() + at, bytes.data() + bytes.size());
        QCOMPARE(character.length, std::uint8_t(1));
        QVERIFY(character.kind == CharacterClass::Other);
      }
      Bytes text = {'a'};
      text.insert(text.end(), bytes.begin(), bytes.end());
      text.push_back('b');
      QCOMPARE(shown(split({text.data(), text.size()})), shown({{'a'}, bytes, {'b'}}));
    }
  }

  void covers_any_bytes_without_gaps() {
    const std::uint64_t seed = 20260102;
    Rng rng(seed);
    for (int round = 0; round < 2000; ++round) {
      Bytes text(rng.below(60));
      for (auto& byte : text) byte = static_cast<std::uint8_t>(rng.below(256));
      const auto words = split({text.data(), text.size()});
      for (const Bytes& word : words) QVERIFY(!word.empty());
      QVERIFY2(join(words) == text, qPrintable(QString("seed %1 round %2").arg(seed).arg(round)));
    }
  }

  void cuts_only_where_words_stay_the_same() {
    const std::uint64_t seed = 20260103;
    Rng rng(seed);
    const std::string alphabet = "ab1!' \n\t\xC3\xA9\xE2\x80\x83\xFF";
    int cuts = 0;
    for (int round = 0; round < 5000; ++round) {
      Bytes text(1 + rng.below(40));
      for (auto& byte : text) byte = static_cast<std::uint8_t>(alphabet[rng.below(alphabet.size())]);
      const ByteSpan whole{text.data(), text.size()};
      const std::size_t cut = find_word_cut(whole, rng.below(text.size()));
      if (cut > 0) ++cuts;
      auto words = split(whole.first(cut));
      for (Bytes& word : split(whole.subspan(cut))) words.push_back(std::move(word));
      QVERIFY2(words == split(whole), qPrintable(QString("seed %1 round %2").arg(seed).arg(round)));
    }
    QVERIFY(cuts > 1000);
    const Bytes solid(1000, 'x');
    QCOMPARE(find_word_cut({solid.data(), solid.size()}, 500), std::size_t(0));
    QCOMPARE(find_word_cut({solid.data(), solid.size()}, 1000), std::size_t(1000));
  }
};

NS_TEST(TestPretokenizer)
#include "test_pretokenizer.moc"
