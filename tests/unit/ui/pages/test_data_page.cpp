// The page of data, and trying the tokenizer.
#include <QClipboard>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QTableView>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/pages/data_page.h"
#include "ui/pages/token_view.h"
#include "ui/widgets/empty_state.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestDataPage : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup() { fixture_.reset(); }
  void without_text_it_says_what_to_do();
  void shows_what_the_core_knows();
  void unknown_is_a_dash();
  void a_failure_is_told();
  void text_becomes_tokens();
  void too_long_a_text_is_refused_in_words();

 private:
  QString text(const char* name) const { return fixture_->find<QLabel>(name)->text(); }
  std::unique_ptr<PageFixture> fixture_;
};

void TestDataPage::init() {
  fixture_ = std::make_unique<PageFixture>();
  node::DataView& data = fixture_->node->data;
  data.source = "/books";
  data.train_tokens = 1'240'000;
  data.held_out_tokens = 62'000;
  data.text_bytes = 5u << 20;
  data.cache_bytes = 3u << 20;
  data.cache_limit_bytes = 12u << 20;
  data.tokens_seen = 2'480'000;
  data.epochs = 2;
  data.vocabulary = 8192;
  data.merges = 7926;
  data.tokenizer_hash = "0123456789abcdef0123";
  data.bytes_per_token = 4.03;
  data.shards = {{0, "shard-0", "cached", 1'000'000, 2u << 20, true, "aa"}};
  data.shard_count = 3;
}

void TestDataPage::without_text_it_says_what_to_do() {
  fixture_->node->data = {};
  fixture_->show<DataPage>();
  auto* empty = fixture_->page->findChild<EmptyState*>();
  QTRY_VERIFY(!fixture_->node->queries().empty());
  QVERIFY(empty->isVisible());
}

void TestDataPage::shows_what_the_core_knows() {
  fixture_->show<DataPage>();
  QTRY_COMPARE(text("data_source"), QStringLiteral("/books"));
  QCOMPARE(text("data_training"), QStringLiteral("1.24\u00a0M tokens"));
  QCOMPARE(text("data_manifest"), QStringLiteral("local text"));
  QVERIFY(text("data_epochs").startsWith(QStringLiteral("2")));
  QCOMPARE(text("data_cache"), QStringLiteral("3.00\u00a0MiB of 12.0\u00a0MiB allowed"));
  QCOMPARE(fixture_->page->findChild<QProgressBar*>()->value(), 250);
  QCOMPARE(text("tokenizer_vocabulary"), QStringLiteral("8,192"));
  QCOMPARE(fixture_->find<QTableView>("shard_table")->model()->rowCount(), 1);
  // Between two answers the snapshot counts on.
  fixture_->publish([](node::Snapshot& s) {
    s.training.last_step.emplace();
    s.training.last_step->tokens = 3'000'000;
  });
  QCOMPARE(text("data_seen"), QStringLiteral("3.00\u00a0M tokens"));
}

void TestDataPage::unknown_is_a_dash() {
  fixture_->node->data = {};
  fixture_->node->data.source = "/books";
  fixture_->show<DataPage>();
  QTRY_COMPARE(text("data_source"), QStringLiteral("/books"));
  QCOMPARE(text("data_training"), QStringLiteral("—"));
  QCOMPARE(text("data_epochs"), QStringLiteral("—"));
  QCOMPARE(text("tokenizer_vocabulary"), QStringLiteral("—"));
  QCOMPARE(text("tokenizer_bytes"), QStringLiteral("—"));
}

void TestDataPage::a_failure_is_told() {
  fixture_->node->fail_queries(make_error(ErrorCode::Io, "the manifest can't be read; check the disk"));
  fixture_->show<DataPage>();
  const auto told = [this] {
    for (QLabel* label : fixture_->page->findChildren<QLabel*>())
      if (label->isVisible() && label->text().contains(QStringLiteral("check the disk"))) return true;
    return false;
  };
  QTRY_VERIFY(told());
}

void TestDataPage::text_becomes_tokens() {
  fixture_->show<DataPage>();
  QTRY_COMPARE(text("data_source"), QStringLiteral("/books"));
  auto* input = fixture_->find<QPlainTextEdit>("tokenizer_input");
  input->setFocus();
  QTest::keyClicks(input, QStringLiteral("abc"));
  auto* view = fixture_->page->findChild<TokenView*>();
  QTRY_COMPARE(view->count(), 3);  // the fake core makes one token of each byte
  QVERIFY(text("tokenizer_summary").startsWith(QStringLiteral("3 tokens for 3 characters")));
  fixture_->click("tokenizer_copy");
  QCOMPARE(QGuiApplication::clipboard()->text(), QStringLiteral("97 98 99"));
  input->clear();
  QTRY_COMPARE(view->count(), 0);
}

void TestDataPage::too_long_a_text_is_refused_in_words() {
  fixture_->show<DataPage>();
  QTRY_COMPARE(text("data_source"), QStringLiteral("/books"));
  fixture_->find<QPlainTextEdit>("tokenizer_input")->setPlainText(QString(5000, u'a'));
  QTRY_VERIFY(text("tokenizer_summary").contains(QStringLiteral("at most 4.00\u00a0KiB")));
  const auto asked = fixture_->node->queries();
  QCOMPARE(std::count(asked.begin(), asked.end(), "tokens"), 0);
}

NS_UI_TEST(TestDataPage)
#include "test_data_page.moc"
