// evaluations.jsonl: what is appended comes back, and nothing that stands in the file does harm.
#include <QtTest>

#include "core/evaluation/record.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::evaluation;
using namespace neuroshard::testing;

namespace {

Record sample(std::uint64_t step) {
  Record r;
  r.at = WallTime(std::chrono::milliseconds(1'700'000'000'123));
  r.checkpoint = "0000000120-1a2b3c4d";
  r.checkpoint_hash = std::string(64, 'a');
  r.step = step;
  r.tokenizer_hash = std::string(64, 'b');
  r.text = "caf\u00e9 \"quoted\".txt";
  r.text_hash = std::string(64, 'c');
  r.text_bytes = 1000;
  r.text_tokens = 300;
  r.window = 256;
  r.stride = 128;
  r.model = {4.25, 2.0625, 61};
  r.baseline = {5.5, 2.75, 40};
  r.baseline_text = "richard-iii.txt";
  r.baseline_text_hash = std::string(64, 'd');
  r.cloze_questions = 100;
  r.cloze_choices = 4;
  r.cloze_seed = 1;
  return r;
}

}  // namespace

class TestRecord : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    disk_ = MemoryFileEnv();
    NS_CHECK(disk_.create_directories("/d").ok());
  }

  void what_is_appended_comes_back() {
    QVERIFY(read_records(disk_, "/d")->newest.empty());
    for (const std::uint64_t step : {1, 2, 3}) QVERIFY(append_record(disk_, "/d", sample(step)).ok());
    const auto records = read_records(disk_, "/d");
    QVERIFY(records.ok());
    QCOMPARE(records->newest.size(), std::size_t{3});
    QCOMPARE(records->newest.front().step, std::uint64_t{3});
    for (const Record& record : records->newest) QCOMPARE(to_json(record), to_json(sample(record.step)));
  }

  void a_torn_line_costs_itself_only() {
    QVERIFY(append_record(disk_, "/d", sample(1)).ok());
    {
      const auto file = disk_.open_append("/d/evaluations.jsonl").value();
      QVERIFY(file->append(as_bytes(to_json(sample(2)).substr(0, 70))).ok());
      QVERIFY(file->close().ok());
    }
    QVERIFY(append_record(disk_, "/d", sample(3)).ok());
    const auto records = read_records(disk_, "/d");
    QCOMPARE(records->newest.size(), std::size_t{2});
    QCOMPARE(records->unreadable, std::uint64_t{1});
    QCOMPARE(records->newest[0].step, std::uint64_t{3});
  }

  void foreign_lines_are_refused() {
    const std::string good = to_json(sample(1));
    QVERIFY(parse_record(good).ok());
    for (std::size_t cut = 0; cut < good.size(); cut += 7) QVERIFY(!parse_record(good.substr(0, cut)).ok());
    std::string other = good;
    other.replace(other.find("\"version\":1"), 11, "\"version\":2");
    QVERIFY(!parse_record(other).ok());
    other = good;
    other.replace(other.find("\"step\":1"), 8, "\"step\":-1");
    QVERIFY(!parse_record(other).ok());
    QVERIFY(!parse_record(std::string(3000, '[')).ok());
    QVERIFY(!parse_record(std::string(5000, ' ')).ok());
  }

  void names_are_cut_between_characters() {
    Record record = sample(1);
    record.text.clear();
    for (int i = 0; i < 150; ++i) record.text += "\u00e9";
    QVERIFY(append_record(disk_, "/d", record).ok());
    const auto back = read_records(disk_, "/d")->newest;
    QCOMPARE(back.size(), std::size_t{1});
    QCOMPARE(back[0].text, record.text.substr(0, max_record_name));
  }

  // A replaced byte takes three.
  void names_that_are_no_text_come_back() {
    Record record = sample(1);
    record.text = std::string(150, '\xff');
    record.baseline_text = std::string(300, '\x80');
    QVERIFY(append_record(disk_, "/d", record).ok());
    const auto records = read_records(disk_, "/d");
    QCOMPARE(records->unreadable, std::uint64_t{0});
    QCOMPARE(records->newest.size(), std::size_t{1});
    std::string replaced;
    while (replaced.size() + 3 <= max_record_name) replaced += "\xEF\xBF\xBD";
    QCOMPARE(records->newest[0].text, replaced);
    QCOMPARE(records->newest[0].baseline_text, replaced);
  }

 private:
  MemoryFileEnv disk_;
};

NS_TEST(TestRecord)
#include "test_record.moc"
