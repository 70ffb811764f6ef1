// The dialog that lists the computers of a wallet and revokes one, driven as a user does. A script stands in for
// neuroshardd and notes how it was called; test_rounds_revoked runs the real one.
#include <QFile>
#include <QLineEdit>
#include <QPointer>
#include <QTableView>
#include <optional>
#include <utility>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/pages/earnings_page.h"
#include "ui/pages/wallet_nodes_dialog.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

namespace {

constexpr int patience = 10'000;
const QString own(64, 'a'), laptop(64, 'b'), gone(64, 'c');

}  // namespace

class TestWalletNodesDialog : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { folder_.emplace(); }
  void cleanup() {
    delete std::exchange(dialog_, nullptr);
    folder_.reset();
  }
  void it_lists_the_computers();
  void one_is_revoked_after_a_question();
  void only_another_computer_can_be_revoked();
  void a_protected_wallet_asks_for_its_passphrase();
  void a_failure_is_told();
  void the_earnings_page_leads_here();
  void without_a_chain_or_a_program_there_is_no_way_here();

 private:
  // Answers "nodes" with this protection, and "revoke" with a block; wrong: with an error.
  QString script(const QString& protection, bool wrong = false) const {
    QFile file(folder_->filePath("program"));
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write("#!/bin/sh\ncd " + folder_->path().toUtf8() +
               "\necho \"$@\" >> calls\nif [ \"$2\" = revoke ]; then cat > input; touch revoked\n");
    file.write(wrong
                   ? "echo '{\"error\":{\"message\":\"no node runs in this data directory\"}}' >&2; exit 1\n"
                   : "echo '{\"node_id\":\"" + laptop.toUtf8() + "\",\"block\":1234}'; exit 0\n");
    file.write("fi\nlaptop='{\"id\":\"" + laptop.toUtf8() +
               "\",\"standing\":\"away\",\"contributions\":1500,\"last_round\":72},'\n"
               "[ -e revoked ] && laptop=\n"
               "echo '{\"height\":1230,\"nodes\":['\"$laptop\"'{\"id\":\"" +
               own.toUtf8() +
               "\",\"standing\":\"voter\",\"contributions\":3,\"last_round\":80}],\"revoked\":[{\"id\":\"" +
               gone.toUtf8() + "\",\"block\":700}],\"protection\":\"" + protection.toUtf8() + "\"}'\n");
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return file.fileName();
  }
  void show(const QString& program) {
    dialog_ = new WalletNodesDialog(program, "/data", own);
    dialog_->setAttribute(Qt::WA_DeleteOnClose, false);
    dialog_->show();
    QTRY_VERIFY_WITH_TIMEOUT(table()->model()->rowCount() > 0, patience);
  }
  QByteArray content(const char* name) const {
    QFile file(folder_->filePath(name));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  }
  template <class W>
  W* part(const char* name) const {
    return dialog_->findChild<W*>(QString::fromLatin1(name));
  }
  QTableView* table() const { return part<QTableView>("wallet_nodes_table"); }
  QPushButton* button() const { return part<QPushButton>("wallet_nodes_revoke"); }
  QString state() const { return part<QLabel>("wallet_nodes_state")->text(); }
  QStringList row(int index) const {
    QStringList cells;
    for (int column = 0; column < table()->model()->columnCount(); ++column)
      cells << table()->model()->index(index, column).data().toString();
    return cells;
  }
  void answer(bool yes) const {
    auto* box = dialog_->findChild<QMessageBox*>("confirm");
    QVERIFY(box != nullptr && box->isVisible());
    QVERIFY2(box->text().contains(laptop.left(12)), qPrintable(box->text()));
    QPointer<QMessageBox> open = box;
    auto* agree = box->findChild<QPushButton*>("confirm_action");
    (yes ? agree : box->button(QMessageBox::Cancel))->click();
    QTRY_VERIFY(open.isNull());
  }

  std::optional<QTemporaryDir> folder_;
  WalletNodesDialog* dialog_ = nullptr;
};

void TestWalletNodesDialog::it_lists_the_computers() {
  show(script("none"));
  QCOMPARE(row(0), (QStringList{"bbbbbbbbbbbb", "1,500", "72", "away"}));
  QCOMPARE(row(1), (QStringList{"aaaaaaaaaaaa (this computer)", "3", "80", "votes"}));
  QCOMPARE(row(2), (QStringList{"cccccccccccc", "—", "—", "revoked in block 700"}));
  QCOMPARE(state(), QString("As of block 1,230."));
  if (const QString folder = qEnvironmentVariable("NS_PICTURES"); !folder.isEmpty())
    QVERIFY(dialog_->grab().save(folder + QStringLiteral("/wallet-nodes.png")));
  QCOMPARE(content("calls"), QByteArray("wallet nodes --json --data-dir /data\n"));
  QVERIFY(!part<QLineEdit>("wallet_nodes_passphrase")->isVisible());
}

void TestWalletNodesDialog::one_is_revoked_after_a_question() {
  show(script("none"));
  table()->selectRow(0);
  button()->click();
  answer(false);
  QTest::qWait(50);
  QVERIFY(!content("calls").contains("revoke"));
  button()->click();
  answer(true);
  QTRY_COMPARE_WITH_TIMEOUT(state(), QString("Block 1,234 revokes the key of computer bbbbbbbbbbbb."),
                            patience);
  QTRY_COMPARE_WITH_TIMEOUT(table()->model()->rowCount(), 2, patience);
  QVERIFY(content("calls").contains("wallet revoke " + laptop.toUtf8() + " --yes --json --data-dir /data\n"));
  QCOMPARE(content("input"), QByteArray());
}

void TestWalletNodesDialog::only_another_computer_can_be_revoked() {
  show(script("none"));
  QVERIFY(!button()->isEnabled());
  for (const int index : {1, 2}) {
    table()->selectRow(index);
    QVERIFY2(!button()->isEnabled(), qPrintable(row(index).first()));
  }
  table()->selectRow(0);
  QVERIFY(button()->isEnabled());
}

void TestWalletNodesDialog::a_protected_wallet_asks_for_its_passphrase() {
  show(script("passphrase"));
  auto* passphrase = part<QLineEdit>("wallet_nodes_passphrase");
  QVERIFY(passphrase->isVisible());
  QCOMPARE(passphrase->echoMode(), QLineEdit::Password);
  table()->selectRow(0);
  QVERIFY(!button()->isEnabled());
  passphrase->setText("four common words");
  button()->click();
  answer(true);
  QTRY_VERIFY_WITH_TIMEOUT(state().contains("1,234"), patience);
  QCOMPARE(content("input"), QByteArray("four common words"));
  QVERIFY(content("calls").contains("--passphrase-file -"));
  QVERIFY(!content("calls").contains("common"));
  QVERIFY(passphrase->text().isEmpty());
}

void TestWalletNodesDialog::a_failure_is_told() {
  show(script("none", true));
  table()->selectRow(0);
  button()->click();
  answer(true);
  QTRY_COMPARE_WITH_TIMEOUT(state(), QString("no node runs in this data directory"), patience);
  QVERIFY(button()->isEnabled());
  delete dialog_;
  dialog_ = new WalletNodesDialog(folder_->filePath("nothing"), {}, own);
  QTRY_VERIFY_WITH_TIMEOUT(!state().isEmpty() && !state().startsWith("Reading"), patience);
}

void TestWalletNodesDialog::the_earnings_page_leads_here() {
  PageFixture fixture;
  fixture.core_program = script("none");
  fixture.node->publish([](node::Snapshot& snapshot) {
    snapshot.identity.node_id = own.toStdString();
    snapshot.identity.wallet_id = "0123456789abcdef";
    snapshot.program.data_directory = "/data";
    snapshot.rounds.chain.genesis = std::string(64, 'd');
  });
  auto& page = fixture.show<EarningsPage>();
  auto* open = page.findChild<QPushButton*>("earnings_computers");
  QVERIFY(open->isVisible());
  open->click();
  auto* opened = page.findChild<QDialog*>("wallet_nodes_dialog");
  QVERIFY(opened != nullptr && opened->isVisible());
  auto* shown = opened->findChild<QTableView*>("wallet_nodes_table");
  QTRY_COMPARE_WITH_TIMEOUT(shown->model()->rowCount(), 3, patience);
}

void TestWalletNodesDialog::without_a_chain_or_a_program_there_is_no_way_here() {
  const auto offered = [&](const std::string& genesis, const QString& program, bool elsewhere) {
    PageFixture fixture;
    fixture.core_program = program;
    fixture.elsewhere = elsewhere;
    fixture.node->publish([&](node::Snapshot& snapshot) {
      snapshot.identity.wallet_id = "0123456789abcdef";
      snapshot.rounds.chain.genesis = genesis;
    });
    return fixture.show<EarningsPage>().findChild<QPushButton*>("earnings_computers")->isVisible();
  };
  const std::string genesis(64, 'd');
  QVERIFY(offered(genesis, "program", false));
  QVERIFY(!offered({}, "program", false));
  QVERIFY(!offered(genesis, {}, false));
  QVERIFY(!offered(genesis, "program", true));
}

NS_UI_TEST(TestWalletNodesDialog)
#include "test_wallet_nodes_dialog.moc"
