// tokenizer.json: canonical bytes, strict reading, append-only growth.
#include <QtTest>

#include "core/base/rng.h"
#include "core/crypto/hash.h"
#include "core/data/tokenizer.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::data;

namespace {

Tokenizer small() {
  return Tokenizer::from_merges({{114, 111}, {266, 42}, {267, 267}},
                                {{"user", 12}, {"\xC3\xA9t\xC3\xA9 \"x\"", 34}})
      .value();
}

const std::string small_file =
    "{\"vocab_size\":269,\"next_merge_id\":269,"
    "\"merges\":{\"114_111\":266,\"266_42\":267,\"267_267\":268},"
    "\"merge_to_tokens\":{\"266\":[114,111],\"267\":[266,42],\"268\":[267,267]},"
    "\"sources_contributed\":{\"user\":12,\"\\u00e9t\\u00e9 \\\"x\\\"\":34}}\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) qFatal("the test's text has no %s", from.c_str());
  return text.replace(at, from.size(), to);
}

std::string whole(const std::string& merges, const std::string& back, int vocab_size) {
  const std::string n = std::to_string(vocab_size);
  return "{\"vocab_size\":" + n + ",\"next_merge_id\":" + n + ",\"merges\":{" + merges +
         "},\"merge_to_tokens\":{" + back + "},\"sources_contributed\":{}}";
}

}  // namespace

class TestTokenizerFile : public QObject {
  Q_OBJECT
 private Q_SLOTS:

  void writes_canonical_bytes() {
    const Bytes file = small().to_json();
    QCOMPARE(QString::fromUtf8(reinterpret_cast<const char*>(file.data()), int(file.size())),
             QString::fromStdString(small_file));
    QVERIFY(small().hash() == crypto::sha256(as_bytes(small_file)));
  }

  void reads_what_it_writes() {
    const auto tokenizer = parse_tokenizer(as_bytes(small_file));
    QVERIFY2(tokenizer.ok(), tokenizer.ok() ? "" : tokenizer.error().describe().c_str());
    QCOMPARE(tokenizer->vocab_size(), 269u);
    QVERIFY(tokenizer->merges()[2] == (Merge{267, 267}));
    QVERIFY(tokenizer->sources() == small().sources());
    QCOMPARE(as_text(tokenizer->token_bytes(268)), std::string_view("he he "));
    QVERIFY(tokenizer->hash() == small().hash());
    const Bytes empty = Tokenizer().to_json();
    QCOMPARE(parse_tokenizer({empty.data(), empty.size()})->vocab_size(), 266u);
  }

  // Another program may lay the file out differently: the tokenizer and its hash are the same.
  void reads_any_layout() {
    const std::string other =
        "{ \"sources_contributed\": {\"\xC3\xA9t\xC3\xA9 \\\"x\\\"\": 34, \"user\": 12},\n"
        "\"merge_to_tokens\": {\"268\": [267, 267], \"267\": [266, 42], \"266\": [114, 111]},"
        "\"merges\": {\"267_267\": 268, \"266_42\": 267, \"114_111\": 266}, \"next_merge_id\": 269, "
        "\"vocab_size\": 269 }";
    const auto tokenizer = parse_tokenizer(as_bytes(other));
    QVERIFY2(tokenizer.ok(), tokenizer.ok() ? "" : tokenizer.error().describe().c_str());
    QVERIFY(tokenizer->hash() == small().hash());
  }

  void refuses_bad_files_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("word");  // must be in the message
    const auto row = [](const char* name, const std::string& file, const char* word) {
      QTest::newRow(name) << QString::fromStdString(file) << word;
    };
    row("empty", "", "JSON");
    row("no JSON", "hello", "JSON");
    row("cut off", small_file.substr(0, 100), "JSON");
    row("more behind", small_file + "{}", "JSON");
    row("a list", "[]", "list");
    row("a number", "5", "number");
    row("missing field", replaced(small_file, "\"next_merge_id\":269,", ""), "lacks the field next_merge_id");
    row("unknown field", replaced(small_file, "vocab_size", "vocab_sizes"), "unknown field");
    row("field twice", replaced(small_file, "next_merge_id", "vocab_size"), "twice");
    row("wrong size", replaced(small_file, "269", "270"), "vocab_size 270");
    row("wrong next", replaced(small_file, "next_merge_id\":269", "next_merge_id\":268"),
        "next_merge_id 268");
    row("negative", replaced(small_file, "269", "-1"), "negative");
    row("fraction", replaced(small_file, "269", "269.0"), "fraction");
    row("huge number", replaced(small_file, "269", "99999999999999999999999"), "fraction");
    row("text for number", replaced(small_file, "269", "\"269\""), "text");
    row("null", replaced(small_file, "269", "null"), "null");
    row("object for number", replaced(small_file, "269", "{}"), "object");
    row("number for object",
        replaced(small_file, "\"merge_to_tokens\":{\"266\":[114,111],\"267\":[266,42],\"268\":[267,267]}",
                 "\"merge_to_tokens\":3"),
        "object belongs");
    row("gap in ids", whole("\"20_30\":266,\"30_40\":268", "\"266\":[20,30],\"268\":[30,40]", 269),
        "without a gap");
    row("id twice", whole("\"20_30\":266,\"30_40\":266", "\"266\":[20,30]", 268), "two merges");
    row("pair twice", whole("\"20_30\":266,\"20_30\":267", "\"266\":[20,30],\"267\":[20,30]", 268),
        "repeats");
    row("refers to itself", whole("\"266_20\":266", "\"266\":[266,20]", 267), "after it");
    row("refers to later", whole("\"267_20\":266,\"20_30\":267", "\"266\":[267,20],\"267\":[20,30]", 268),
        "after it");
    row("special token", whole("\"1_20\":266", "\"266\":[1,20]", 267), "pair of ordinary tokens");
    row("impossible id", whole("\"20_30\":99999999", "\"266\":[20,30]", 267), "impossible id");
    row("byte id", whole("\"20_30\":265", "\"266\":[20,30]", 267), "impossible id");
    row("leading zero", whole("\"020_30\":266", "\"266\":[20,30]", 267), "pair of ordinary tokens");
    row("no underscore", whole("\"2030\":266", "\"266\":[20,30]", 267), "a_b");
    row("sign", whole("\"+20_30\":266", "\"266\":[20,30]", 267), "pair of ordinary tokens");
    row("other expansion", whole("\"20_30\":266", "\"266\":[20,31]", 267), "differ from merges");
    row("missing expansion", whole("\"20_30\":266", "", 267), "differ from merges");
    row("extra expansion", whole("\"20_30\":266", "\"266\":[20,30],\"267\":[20,31]", 267),
        "differ from merges");
    row("long pair", whole("\"20_30\":266", "\"266\":[20,30,40]", 267), "bad pair");
    row("short pair", whole("\"20_30\":266", "\"266\":[20]", 267), "bad pair");
    row("nested pair", whole("\"20_30\":266", "\"266\":[[20,30]]", 267), "list");
    row("source twice", replaced(small_file, "\"user\":12", "\"user\":12,\"user\":12"), "source twice");
    row("source name control", replaced(small_file, "\"user\":12", "\"a\\nb\":12"), "control");
    row("source name long", replaced(small_file, "\"user\":12", "\"" + std::string(500, 'x') + "\":12"),
        "too long");
    row("source name empty", replaced(small_file, "\"user\":12", "\"\":12"), "name");
    row("deep", std::string(100'000, '['), "list");
    row("deep objects", "{\"merges\":{\"20_30\":{", "object");
  }
  void refuses_bad_files() {
    QFETCH(QString, file);
    QFETCH(QString, word);
    const QByteArray bytes = file.toUtf8();
    const auto tokenizer =
        parse_tokenizer(as_bytes(std::string_view(bytes.data(), std::size_t(bytes.size()))));
    QVERIFY(!tokenizer.ok());
    QVERIFY(tokenizer.error().code == ErrorCode::Corrupt);
    const QString message = QString::fromStdString(tokenizer.error().message);
    QVERIFY2(message.contains(word), qPrintable(message));
  }

  // Each merge doubles the last: without a bound, a file of 60 merges would stand for 2^60 bytes.
  void bounds_what_a_token_stands_for() {
    std::vector<Merge> merges = {{20, 20}};
    for (TokenId id = 266; merges.size() < 12; ++id) merges.push_back({id, id});
    QCOMPARE(Tokenizer::from_merges(merges, {})->token_bytes(277).size(), std::size_t(4096));
    merges.push_back({277, 277});
    const auto tokenizer = Tokenizer::from_merges(merges, {});
    QVERIFY(!tokenizer.ok());
    QVERIFY(tokenizer.error().message.find("4096 bytes") != std::string::npos);
  }

  void bounds_the_whole_vocabulary() {
    std::vector<Merge> merges = {{20, 20}};
    for (TokenId id = 266; merges.size() < 11; ++id) merges.push_back({id, id});  // 276: 2048 bytes
    for (TokenId a = 10; a < 266; ++a) merges.push_back({276, a});
    for (TokenId id = 277; merges.size() < 40'000; ++id) merges.push_back({id, 10 + id % 256});
    const auto tokenizer = Tokenizer::from_merges(merges, {});
    QVERIFY(!tokenizer.ok());
    QVERIFY(tokenizer.error().message.find("too large") != std::string::npos);
  }

  void survives_damage_anywhere() {
    const std::uint64_t seed = 20260105;
    Rng rng(seed);
    for (int round = 0; round < 20'000; ++round) {
      std::string file = small_file;
      const auto changes = 1 + rng.below(3);
      for (std::uint64_t i = 0; i < changes; ++i)
        file[rng.below(file.size())] = static_cast<char>(rng.below(256));
      const auto tokenizer = parse_tokenizer(as_bytes(file));
      if (!tokenizer.ok()) continue;
      const Bytes again = tokenizer->to_json();  // what is accepted is a whole tokenizer
      QVERIFY2(parse_tokenizer({again.data(), again.size()}).ok(),
               qPrintable(QString("seed %1 round %2").arg(seed).arg(round)));
    }
  }

  void accepts_only_growth() {
    const Tokenizer local = small();
    const Tokenizer grown = Tokenizer::from_merges({{114, 111}, {266, 42}, {267, 267}, {20, 30}}, {}).value();
    const Tokenizer other = Tokenizer::from_merges({{114, 111}, {266, 43}, {267, 267}, {20, 30}}, {}).value();
    QVERIFY(local.is_prefix_of(local));
    QVERIFY(Tokenizer().is_prefix_of(local));
    QVERIFY(local.is_prefix_of(grown));
    QVERIFY(!grown.is_prefix_of(local));
    QVERIFY(!local.is_prefix_of(other));
    QVERIFY(check_growth(local, grown).ok());
    QVERIFY(check_growth(local, other).error().code == ErrorCode::Denied);
    QVERIFY(check_growth(local, Tokenizer()).error().code == ErrorCode::Denied);
  }
};

NS_TEST(TestTokenizerFile)
#include "test_tokenizer_file.moc"
