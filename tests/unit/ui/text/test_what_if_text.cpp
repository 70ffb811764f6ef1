// Changes that would follow in the network, in sentences.
#include <QtTest>

#include "tests/support/test_main.h"
#include "ui/text/translation.h"
#include "ui/text/what_if_text.h"

using namespace neuroshard;
using neuroshard::ui::install_translation;
using neuroshard::ui::WhatIfWords;

namespace {

constexpr node::WhatIfQuery offers{8'500'000'000}, leaves{};

QString said(const node::WhatIfQuery& query, const node::WhatIf& answer) {
  return WhatIfWords::answer(query, answer).replace(QChar(0x00a0), QLatin1Char(' '));
}

// The model may change, and has a next size.
node::WhatIf sized() {
  node::WhatIf answer;
  answer.counts = true;
  node::NetworkMemoryView& now = answer.now.memory;
  now.members = 4;
  now.offered_bytes = 10'000'000'000;
  now.tier = "Nano";
  now.can_change = true;
  now.results_needed = 4;
  now.present = {6, 128, 1'000'000, 500'000'000, 4};
  now.next = node::NetworkMemoryView::Model{8, 256, 2'000'000, 1'000'000'000, 3};
  answer.then = answer.now;
  answer.then.memory.offered_bytes = 16'500'000'000;
  return answer;
}

}  // namespace

class TestUiWhatIfText : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    QLocale::setDefault(QLocale(QLocale::English, QLocale::UnitedKingdom));
    install_translation(*qApp, QStringLiteral("en"));
  }

  void a_model_that_grows_stays_and_shrinks() {
    node::WhatIf answer = sized();
    answer.then.asks = node::SizeChange::Up;
    QCOMPARE(said(offers, answer),
             QStringLiteral("All members would offer 16.5 GB instead of 10.0 GB. After 4 rounds in a row "
                            "with that memory the model would grow to 8 layers of width 256."));
    answer.then.asks = node::SizeChange::None;
    answer.then.lacking_bytes = 1'500'000'000;
    answer.then.lacking_members = 1;
    answer.then.memory.tier = "Micro";
    QCOMPARE(said(offers, answer),
             QStringLiteral(
                 "All members would offer 16.5 GB instead of 10.0 GB. The tier would be Micro. The model "
                 "would stay as it is. The next one needs 1.5 GB more, and room at 1 more member."));
    answer.then.memory.tier = "Nano";
    answer.then.memory.offered_bytes = 10'000'000'000;
    answer.then.lacking_members = 0;
    QCOMPARE(said(offers, answer), QStringLiteral("All members would offer 10.0 GB, as now. The model would "
                                                  "stay as it is. The next one needs 1.5 GB more."));
    answer.then.memory.offered_bytes = 9'000'000'000;
    answer.then.lacking_bytes = 0;
    answer.then.lacking_members = 2;
    answer.then.asks = node::SizeChange::Down;
    QCOMPARE(
        said(offers, answer),
        QStringLiteral("All members would offer 9.0 GB instead of 10.0 GB. After 4 rounds in a row with that "
                       "memory the model would shrink. The present one needs room at 2 more members."));
    QVERIFY(said(leaves, answer).endsWith(QStringLiteral("still counts for seven days.")));
    answer.then.asks = node::SizeChange::None;
    answer.then.memory.next.reset();
    QVERIFY(said(offers, answer).endsWith(QStringLiteral("there is no larger one.")));
  }

  void a_model_that_keeps_its_size() {
    node::WhatIf answer = sized();
    answer.now.memory.can_change = answer.then.memory.can_change = false;
    answer.then.lacking_members = 1;
    QVERIFY(said(offers, answer)
                .endsWith(QStringLiteral("Enough members would have room for the same model as now. The next "
                                         "one needs room at 1 more member.")));
    answer.then.memory.possible = node::NetworkMemoryView::Model{8, 256, 2'000'000, 1'000'000'000, 3};
    QVERIFY(said(offers, answer)
                .endsWith(QStringLiteral("Enough members would have room for 8 layers of width 256.")));
    answer.counts = false;
    QCOMPARE(said(offers, answer),
             QStringLiteral(
                 "The other members do not count this computer's memory: it has no vote yet, or is away."));
  }

  void leaving_tells_of_the_part_and_of_votes() {
    node::WhatIf answer = sized();
    answer.then.memory.offered_bytes = 8'000'000'000;
    const QString model = QStringLiteral(
        "Without this computer, the other members offer 8.0 GB. The model would stay as it is.");
    QCOMPARE(said(leaves, answer), model);
    const auto part = [&](std::uint32_t nodes, std::uint32_t wallets, std::uint32_t from, bool waits) {
      answer.part = node::PartWithout{2, 3, nodes, wallets, from, waits};
      return said(leaves, answer).mid(model.size() + 1);
    };
    QCOMPARE(
        part(0, 0, 0, true),
        QStringLiteral(
            "Nobody else has the weights of part 2: training would wait until one of its holders is back."));
    QCOMPARE(part(0, 0, 1, false),
             QStringLiteral("Nobody would hold part 2, and a computer with part 1 would move to it."));
    QCOMPARE(part(1, 1, 3, false),
             QStringLiteral("Part 2 would have 1 computer left, and one with part 3 would move to it."));
    QVERIFY(part(0, 0, 0, false).contains(QStringLiteral("no other computer can be spared")));
    QCOMPARE(part(2, 1, 0, false), QStringLiteral("Part 2 would have 2 computers left, all of one owner."));
    QCOMPARE(part(3, 2, 0, false), QStringLiteral("Part 2 would have 3 computers left."));
    answer.part.reset();
    answer.votes = node::VotesWithout{48, 36, false, 0, 0};
    QCOMPARE(said(leaves, answer), model);
    answer.votes = node::VotesWithout{36, 24, false, 1, 0};
    QVERIFY(said(leaves, answer).endsWith(QStringLiteral("the others would go on after some minutes.")));
    answer.votes = node::VotesWithout{24, 12, false, 1, 1};
    QVERIFY(said(leaves, answer).contains(QStringLiteral("1 vote would be missing, and the network")));
    answer.votes->nobody = true;
    answer.then.memory.members = 0;
    answer.then.memory.offered_bytes = 0;
    QCOMPARE(said(leaves, answer),
             QStringLiteral("Without this computer, the other members offer 0.0 GB. Nobody else has a vote, "
                            "so the network would stand still."));
  }
};

NS_UI_TEST(TestUiWhatIfText)
#include "test_what_if_text.moc"
