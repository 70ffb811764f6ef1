// The set-up assistant with a machine and a neuroshardd that the test makes up: its ways through, its
// refusals, and what it never does with a secret.
#include <QApplication>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRadioButton>
#include <QTimer>
#include <QtTest>

#include "tests/support/test_main.h"
#include "ui/wizard/setup_dialog.h"
#include "ui/wizard/setup_pages.h"

using namespace neuroshard::ui;  // NOLINT

namespace {

const char* const twelve = "one two three four five six seven eight nine ten eleven twelve";

class FakeServices final : public SetupServices {
 public:
  QString default_folder() const override { return "/home-of-somebody/neuroshard"; }
  QString sample_text() const override { return sample; }
  MachineInfo machine() const override { return {8, 16ull << 30}; }
  void look_at(QObject*, const QString&, std::function<void(const FolderInfo&)> then) override {
    then(folder);
  }
  void run(QObject*, const QStringList& arguments, const QByteArray& input,
           std::function<void(CommandOutcome)> then) override {
    calls << arguments;
    inputs << input;
    if (fail.contains(arguments.first())) return then({77, {}, error_of(arguments)});
    if (arguments.value(1) == "create")
      return then(
          {0, R"({"wallet_id":"26870dc7719c62a5"})", QByteArray("\nThe 12 words:\n\n  ") + words + "\n\n"});
    then({0, R"({"wallet_id":"aaaabbbbccccdddd"})", {}});
  }

  FolderInfo folder{true, {}, 50ull << 30, false, false, {}};
  QString sample;
  QByteArray words = twelve;  // of a new wallet
  QList<QStringList> calls;
  QList<QByteArray> inputs;
  QStringList fail;
  QByteArray problem = "no permission";

 private:
  // As neuroshardd writes it.
  QByteArray error_of(const QStringList& arguments) const {
    if (!arguments.contains("--json")) return "neuroshardd: error: " + problem + '\n';
    return R"({"error":{"code":"denied","message":")" + problem + R"(","context":""}})" + '\n';
  }
};

}  // namespace

class TestSetup : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void from_nothing_to_the_start();
  void a_wallet_is_restored_without_its_secret_in_arguments();
  void wrong_words_are_told();
  void the_command_for_the_words_names_the_folder();
  void a_path_is_one_word_of_a_shell();
  void another_folder_gets_a_wallet_of_its_own();
  void a_folder_that_cannot_be_used_stops_here();
  void a_failure_of_neuroshardd_is_shown_in_its_words();
  void a_failure_in_plain_words_is_shown_without_their_beginning();
  void run_again_keeps_what_is_there();
  void limits_of_another_folder_are_chosen_anew();
  void the_first_start_offers_the_sample_text();
  void own_text_goes_before_the_sample();
  void the_sample_of_a_deleted_program_is_the_sample();
  void data_that_is_there_is_not_mixed_with_the_sample();
  void before_it_joins_only_wallet_and_limits_are_asked_for();
  void an_invitation_can_be_proposed();
  void presets_fit_the_machine();

 private:
  template <class Widget>
  Widget* get(const char* name) {
    return dialog_->findChild<Widget*>(name);
  }
  void next() { QTest::mouseClick(get<QPushButton>("setupNext"), Qt::LeftButton); }
  void back() { QTest::mouseClick(get<QPushButton>("setupBack"), Qt::LeftButton); }
  void start(SetupDraft draft = {}) {
    dialog_ = std::make_unique<SetupDialog>(services_, draft);
    dialog_->show();
  }
  // From the folder with a wallet in it to the last page.
  void go_to_the_text(SetupDraft draft = {}) {
    services_.folder.wallet_id = "26870dc7719c62a5";
    services_.sample = "/usr/share";
    start(std::move(draft));
    for (int page = 0; page < 4; ++page) next();
  }
  QString problem() {
    for (auto* label : dialog_->findChildren<QLabel*>("setupProblem")) {
      if (label->isVisible()) return label->text();
    }
    return {};
  }

  FakeServices services_;
  std::unique_ptr<SetupDialog> dialog_;
};

void TestSetup::init() {
  services_ = {};
}

void TestSetup::from_nothing_to_the_start() {
  start();
  next();
  QCOMPARE(get<QLineEdit>("setupFolder")->text(), services_.default_folder());
  QVERIFY(get<QLabel>("setupSpace")->text().contains("50"));
  next();
  QVERIFY(get<QRadioButton>("setupCreate")->isChecked());
  next();
  QCOMPARE(services_.calls.last(),
           (QStringList{"wallet", "create", "--data-dir", services_.default_folder(), "--json"}));
  QVERIFY(get<QLabel>("setupWord12")->text().endsWith("twelve"));
  QCOMPARE(get<QLabel>("setupStep")->text(), QString("Step 3 of 5"));  // still the identity
  next();
  const QStringList words = QString(twelve).split(' ');
  auto* first = get<QLineEdit>("setupAnswer1");
  auto* second = get<QLineEdit>("setupAnswer2");
  QVERIFY(first->property("word").toInt() < 6 && second->property("word").toInt() >= 6);
  first->setText(words[first->property("word").toInt()]);
  second->setText("another");
  next();
  QVERIFY(problem().contains("does not match"));
  second->setText(' ' + words[second->property("word").toInt()].toUpper() + ' ');
  next();
  QVERIFY(dialog_->draft().words.isEmpty());  // not kept once they are confirmed
  QCOMPARE(get<QLabel>("setupStep")->text(), QString("Step 4 of 5"));
  get<QRadioButton>("setupLight")->setChecked(true);
  next();
  QCOMPARE(services_.calls.last(), (QStringList{"settings", "set", "memory_limit", "4096MiB", "--data-dir",
                                                services_.default_folder()}));
  QCOMPARE(services_.calls[services_.calls.size() - 2].mid(0, 4),
           (QStringList{"settings", "set", "cpu_threads", "2"}));
  get<QLineEdit>("setupText")->setText("/no/such/folder");
  next();
  QVERIFY(problem().contains("/no/such/folder"));
  get<QLineEdit>("setupText")->clear();
  // With others: by an invitation, and nothing else is taken for one.
  QVERIFY(!get<QLineEdit>("setupInvitation")->isEnabled());
  get<QRadioButton>("setupJoin")->setChecked(true);
  QVERIFY(!get<QPushButton>("setupNext")->isEnabled());
  get<QLineEdit>("setupInvitation")->setText("https://example.org/join");
  next();
  QVERIFY(problem().contains("not an invitation"));
  get<QLineEdit>("setupInvitation")->setText(" neuroshard:join?to=AX-_9 ");
  next();
  QCOMPARE(dialog_->result(), static_cast<int>(QDialog::Accepted));
  QCOMPARE(dialog_->draft().folder, services_.default_folder());
  QCOMPARE(dialog_->draft().invitation, QString("neuroshard:join?to=AX-_9"));
}

void TestSetup::a_wallet_is_restored_without_its_secret_in_arguments() {
  start();
  next();
  next();
  get<QRadioButton>("setupRestore")->setChecked(true);
  QVERIFY(!get<QPushButton>("setupNext")->isEnabled());
  get<QPlainTextEdit>("setupSecret")->setPlainText(QString("  ") + twelve + "\n");
  next();
  QCOMPARE(services_.calls.size(), 1);
  QVERIFY(services_.calls[0].contains("restore"));
  QVERIFY(!services_.calls[0].join(' ').contains("three"));
  QCOMPARE(services_.inputs[0], QByteArray(twelve) + '\n');
  QVERIFY(get<QPlainTextEdit>("setupSecret")->toPlainText().isEmpty());
  QVERIFY(get<QRadioButton>("setupBalanced")->isVisible());  // no words to write down: they are known
}

void TestSetup::wrong_words_are_told() {
  start();
  next();
  next();
  get<QRadioButton>("setupRestore")->setChecked(true);
  get<QPlainTextEdit>("setupSecret")->setPlainText("only three words");
  next();
  QVERIFY(services_.calls.isEmpty());
  QVERIFY(problem().contains("12 words"));
  services_.fail << "wallet";
  services_.problem = "word 3 is not in the list";
  get<QPlainTextEdit>("setupSecret")->setPlainText(twelve);
  next();
  QCOMPARE(problem(), QString("word 3 is not in the list"));
}

void TestSetup::the_command_for_the_words_names_the_folder() {
  const QString command = "“neuroshardd wallet backup --words --data-dir '/my data'”";
  SetupDraft draft;
  draft.folder = "/my data";
  services_.words = "no words at all";
  start(draft);
  for (int page = 0; page < 3; ++page) next();
  QVERIFY2(problem().contains(command), qPrintable(problem()));
  // The words are on the screen, and the user leaves.
  services_.words = twelve;
  start(draft);
  for (int page = 0; page < 3; ++page) next();
  QVERIFY(get<QLabel>("setupWord1")->isVisible());
  QString asked;
  QTimer hand;
  connect(&hand, &QTimer::timeout, &hand, [&] {
    auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    if (box == nullptr) return;
    hand.stop();
    asked = box->text();
    QTest::keyClick(box, Qt::Key_Escape);
  });
  hand.start(10);
  static_cast<QDialog*>(dialog_.get())->reject();
  QVERIFY2(asked.contains(command), qPrintable(asked));
  QVERIFY(dialog_->isVisible());
}

void TestSetup::a_path_is_one_word_of_a_shell() {
  QCOMPARE(shell_word("/srv/data/neuro-shard_2"), QString("/srv/data/neuro-shard_2"));
  QCOMPARE(shell_word("/a's $b"), QString(R"('/a'\''s $b')"));
  QCOMPARE(shell_word("/a;b"), QString("'/a;b'"));
}

void TestSetup::another_folder_gets_a_wallet_of_its_own() {
  start();
  for (int page = 0; page < 3; ++page) next();
  QVERIFY(get<QLabel>("setupWord1")->isVisible());
  back();
  QVERIFY(get<QRadioButton>("setupKeep")->isChecked());  // in the same folder the wallet is there
  back();
  get<QLineEdit>("setupFolder")->setText("/another");
  next();
  QVERIFY(get<QRadioButton>("setupCreate")->isVisible() && get<QRadioButton>("setupCreate")->isChecked());
  QVERIFY(!get<QRadioButton>("setupKeep")->isVisible());
  QVERIFY(dialog_->draft().words.isEmpty());
  next();
  QCOMPARE(services_.calls.last(), (QStringList{"wallet", "create", "--data-dir", "/another", "--json"}));
  QVERIFY(get<QLabel>("setupWord1")->isVisible());
}

void TestSetup::a_folder_that_cannot_be_used_stops_here() {
  services_.folder = {false, "That disk is read-only.", 0, false, false, {}};
  start();
  next();
  QVERIFY(!get<QPushButton>("setupNext")->isEnabled());
  QCOMPARE(problem(), QString("That disk is read-only."));
  get<QLineEdit>("setupFolder")->setText("relative/path");
  QVERIFY(!get<QPushButton>("setupNext")->isEnabled());
  services_.folder.usable = true;
  get<QLineEdit>("setupFolder")->setText("/another");
  QVERIFY(get<QPushButton>("setupNext")->isEnabled());
}

void TestSetup::a_failure_of_neuroshardd_is_shown_in_its_words() {
  services_.fail << "wallet";
  start();
  next();
  next();
  next();
  QCOMPARE(problem(), QString("no permission"));
  QVERIFY(get<QPushButton>("setupNext")->isEnabled());  // it can be tried again
  services_.fail.clear();
  next();
  QVERIFY(get<QLabel>("setupWord1")->isVisible());
}

// The limits are set without --json.
void TestSetup::a_failure_in_plain_words_is_shown_without_their_beginning() {
  services_.folder.wallet_id = "26870dc7719c62a5";
  services_.fail << "settings";
  start();
  for (int page = 0; page < 4; ++page) next();
  QCOMPARE(problem(), QString("no permission"));
}

void TestSetup::run_again_keeps_what_is_there() {
  services_.folder = {true, {}, 50ull << 30, true, false, "26870dc7719c62a5"};
  SetupDraft draft;
  draft.folder = "/data";
  draft.again = true;
  draft.text_folder = "/usr";
  start(draft);
  next();
  QCOMPARE(get<QLineEdit>("setupFolder")->text(), QString("/data"));
  next();
  QVERIFY(get<QRadioButton>("setupKeep")->isChecked());
  QVERIFY(get<QRadioButton>("setupKeep")->text().contains("26870dc7719c62a5"));
  next();
  QVERIFY(get<QRadioButton>("setupLimitsKeep")->isChecked());
  next();
  QCOMPARE(get<QLineEdit>("setupText")->text(), QString("/usr"));
  next();
  QCOMPARE(dialog_->result(), static_cast<int>(QDialog::Accepted));
  QVERIFY(services_.calls.isEmpty());  // nothing was touched
}

void TestSetup::limits_of_another_folder_are_chosen_anew() {
  services_.folder = {true, {}, 50ull << 30, true, false, "26870dc7719c62a5"};
  SetupDraft draft;
  draft.folder = "/data";
  draft.again = true;
  start(draft);
  for (int page = 0; page < 3; ++page) next();
  QVERIFY(get<QRadioButton>("setupLimitsKeep")->isChecked());
  back();
  back();
  services_.folder.has_data = false;
  get<QLineEdit>("setupFolder")->setText("/another");
  next();
  next();
  QVERIFY(get<QRadioButton>("setupBalanced")->isVisible());
  QVERIFY(!get<QRadioButton>("setupLimitsKeep")->isVisible());
  QVERIFY(get<QRadioButton>("setupBalanced")->isChecked());
  next();
  QCOMPARE(services_.calls.last().mid(4), (QStringList{"--data-dir", "/another"}));
}

void TestSetup::the_first_start_offers_the_sample_text() {
  go_to_the_text();
  QVERIFY(get<QRadioButton>("setupSample")->isVisible());
  QVERIFY(get<QRadioButton>("setupSample")->isChecked());
  next();
  QCOMPARE(dialog_->result(), static_cast<int>(QDialog::Accepted));
  QCOMPARE(dialog_->draft().text_folder, QString("/usr/share"));
}

void TestSetup::own_text_goes_before_the_sample() {
  go_to_the_text();
  get<QLineEdit>("setupText")->setText("/usr");
  QVERIFY(!get<QRadioButton>("setupSample")->isChecked());
  next();
  QCOMPARE(dialog_->draft().text_folder, QString("/usr"));
  // The sample again, although a folder is written there.
  SetupDraft draft;
  draft.again = true;
  draft.text_folder = "/usr/share";
  go_to_the_text(draft);
  QVERIFY(get<QRadioButton>("setupSample")->isChecked());
  QVERIFY(get<QLineEdit>("setupText")->text().isEmpty());
  // Without one that is installed there is nothing to offer.
  services_.sample.clear();
  start();
  QVERIFY(get<QRadioButton>("setupSample")->isHidden());
}

void TestSetup::the_sample_of_a_deleted_program_is_the_sample() {
  SetupDraft draft;
  draft.again = true;
  for (const QString& folder : QStringList{"neuroshard", "neuroshardd"}) {
    draft.text_folder = "/no/such/program/share/" + folder + "/sample-text";
    go_to_the_text(draft);
    QVERIFY(get<QRadioButton>("setupSample")->isChecked());
    QVERIFY(get<QLineEdit>("setupText")->text().isEmpty());
    next();
    QCOMPARE(dialog_->draft().text_folder, QString("/usr/share"));
  }
}

void TestSetup::data_that_is_there_is_not_mixed_with_the_sample() {
  services_.folder.has_data = true;
  go_to_the_text();
  QVERIFY(!get<QRadioButton>("setupSample")->isChecked());
  next();
  QVERIFY(dialog_->draft().text_folder.isEmpty());
}

void TestSetup::before_it_joins_only_wallet_and_limits_are_asked_for() {
  SetupDraft draft;
  draft.folder = "/data-village";
  draft.folder_info = services_.folder;
  draft.joining = true;
  start(draft);
  QCOMPARE(get<QLabel>("setupStep")->text(), QString("Step 1 of 2"));
  QVERIFY(get<QRadioButton>("setupCreate")->isVisible());
  QVERIFY(!get<QPushButton>("setupBack")->isEnabled());
  next();
  QCOMPARE(services_.calls.last(),
           (QStringList{"wallet", "create", "--data-dir", "/data-village", "--json"}));
  QVERIFY(get<QLabel>("setupWord1")->isVisible());
  next();
  const QStringList words = QString(twelve).split(' ');
  for (const char* name : {"setupAnswer1", "setupAnswer2"})
    get<QLineEdit>(name)->setText(words[get<QLineEdit>(name)->property("word").toInt()]);
  next();
  QCOMPARE(get<QLabel>("setupStep")->text(), QString("Step 2 of 2"));
  QCOMPARE(get<QPushButton>("setupNext")->text(), QString("Join"));
  next();
  QCOMPARE(dialog_->result(), static_cast<int>(QDialog::Accepted));
  QCOMPARE(services_.calls.last().mid(4), (QStringList{"--data-dir", "/data-village"}));
}

void TestSetup::an_invitation_can_be_proposed() {
  go_to_the_text();
  dialog_->propose("neuroshard:join?to=AX-_9");
  QVERIFY(get<QRadioButton>("setupJoin")->isChecked());
  QCOMPARE(get<QLineEdit>("setupInvitation")->text(), QString("neuroshard:join?to=AX-_9"));
  next();
  QCOMPARE(dialog_->draft().invitation, QString("neuroshard:join?to=AX-_9"));
}

void TestSetup::presets_fit_the_machine() {
  using Settings = std::vector<std::pair<QString, QString>>;
  const MachineInfo small{1, 2ull << 30};
  QCOMPARE(preset_settings(LimitsPreset::Light, small),
           (Settings{{"cpu_threads", "1"}, {"memory_limit", "1024MiB"}}));
  const MachineInfo large{16, 32ull << 30};
  QCOMPARE(preset_settings(LimitsPreset::Balanced, large),
           (Settings{{"cpu_threads", "8"}, {"memory_limit", "16384MiB"}}));
  QCOMPARE(preset_settings(LimitsPreset::Max, large)[0].second, QString("0"));  // all of them
  QVERIFY(preset_settings(LimitsPreset::Keep, large).empty());
}

NS_UI_TEST(TestSetup)
#include "test_setup.moc"
