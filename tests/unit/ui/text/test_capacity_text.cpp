// The memory that a network's members offer, in words.
#include <QtTest>
#include <utility>

#include "tests/support/test_main.h"
#include "ui/text/capacity_text.h"
#include "ui/text/translation.h"

using namespace neuroshard;
using neuroshard::ui::CapacityWords;
using neuroshard::ui::install_translation;

namespace {

QString plain(QString text) {
  return text.replace(QChar(0x00a0), QLatin1Char(' '));
}
QString models(const node::NetworkMemoryView& memory) {
  return plain(CapacityWords::models(memory));
}

// Four members; nothing lacks.
node::NetworkMemoryView sized() {
  node::NetworkMemoryView memory;
  memory.members = memory.known = 4;
  memory.offered_bytes = 6'000'000'000;
  memory.can_change = true;
  memory.results_needed = 4;
  memory.present = {2, 128, 1'000'000, 500'000'000, 4, 0, 4, 6'000'000'000, 100, 0};
  memory.next = {4, 128, 2'000'000, 1'000'000'000, 3, 5'500'000'000, 4, 6'000'000'000, 75, 75};
  return memory;
}
const QString next_model = QStringLiteral(
    "The next model, 4 layers of width 128 (2.00 M parameters), needs 1.0 GB of each member and, with a "
    "reserve, 5.5 GB of all: ");

}  // namespace

class TestCapacityText : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    QLocale::setDefault(QLocale(QLocale::English, QLocale::UnitedKingdom));
    install_translation(*qApp, QStringLiteral("en"));
  }

  void members_have_their_plural() {
    node::NetworkMemoryView memory;
    memory.members = memory.known = memory.present.with_room = 1;
    QCOMPARE(CapacityWords::members(memory), QStringLiteral("1 member"));
    QCOMPARE(CapacityWords::with_room(memory), QStringLiteral("offered by 1 of 1 member"));
    memory.members = 4;
    QCOMPARE(CapacityWords::members(memory), QStringLiteral("said by 1 of 4 members"));
    QCOMPARE(CapacityWords::with_room(memory), QStringLiteral("offered by 1 of 4 members"));
    memory.can_change = true;
    memory.present.members = 5;  // one is away
    QCOMPARE(CapacityWords::with_room(memory), QStringLiteral("offered by 1 of 5 members"));
  }

  void a_model_that_keeps_its_size() {
    node::NetworkMemoryView memory;
    memory.members = memory.known = 4;
    memory.needs_room = 3;
    QCOMPARE(models(memory), QStringLiteral("There is no larger model for this network."));
    memory.next = {4, 128, 2'000'000, 1'000'000'000, 1};
    QCOMPARE(models(memory),
             QStringLiteral("The next larger model has 4 layers of width 128 (2.00 M parameters) and needs "
                            "1.0 GB of each member. 1 of 4 offers that, and 3 would have to."));
    QVERIFY(CapacityWords::rule(memory).contains(QStringLiteral("keeps its size")));
  }

  void what_lacks_for_the_next_model() {
    node::NetworkMemoryView memory = sized();
    memory.next->offered_bytes = 3'000'000'000;
    memory.own_bytes = 600'000'000;
    QCOMPARE(
        models(memory),
        next_model +
            QStringLiteral("3 of 4 have room, 3.0 GB are offered. This computer offers 0.4 GB less than each "
                           "member needs."));
    memory.own_bytes = 0;
    memory.next->with_room = 1;
    memory.next->room_percent = 25;
    QCOMPARE(models(memory),
             next_model + QStringLiteral("1 of 4 has room, 3.0 GB are offered. Those with room have 25 % of "
                                         "the votes, and 75 % are needed."));
    QCOMPARE(
        CapacityWords::rule(memory),
        QStringLiteral(
            "The model changes by itself after 4 rounds in a row with enough memory for a larger one, or too "
            "little for this one."));
    memory.next.reset();
    QCOMPARE(models(memory), QStringLiteral("This is the largest model of the network's profile."));
  }

  void a_larger_model_comes() {
    node::NetworkMemoryView memory = sized();
    const QString enough = next_model + QStringLiteral("3 of 4 have room, 6.0 GB are offered.");
    QCOMPARE(models(memory),
             enough + QStringLiteral(" The network changes to it after 4 rounds with enough memory."));
    memory.asked = node::SizeChange::Up;
    memory.results = 2;
    QCOMPARE(
        models(memory),
        QStringLiteral("The network changes to a larger model after 2 more rounds with enough memory. ") +
            enough);
    memory.results = 3;
    QVERIFY(models(memory).startsWith(
        QStringLiteral("The network changes to a larger model after 1 more round with")));
    memory.results = 4;
    memory.changing = true;
    QCOMPARE(
        models(memory),
        QStringLiteral("The network is changing to a larger model, and its nodes start anew with it. The "
                       "new model has 4 layers of width 128 (2.00 M parameters)."));
  }

  void a_smaller_model_comes() {
    node::NetworkMemoryView memory = sized();
    memory.present = {2, 128, 1'000'000, 500'000'000, 1, 7'000'000'000, 5, 3'000'000'000, 20, 50};
    memory.next->offered_bytes = 3'000'000'000;
    const QString why = QStringLiteral(
        " with too little memory. The present model needs 0.5 GB of each member and 7.0 GB of all: 1 of 5 "
        "has room, 3.0 "
        "GB are offered. Those with room have 20 % of the votes, and 50 % are needed. Members that are away "
        "count for seven "
        "days.");
    QCOMPARE(models(memory), QStringLiteral("The network changes to a smaller model after 4 rounds") + why);
    memory.asked = node::SizeChange::Down;
    memory.results = 1;
    QCOMPARE(models(memory),
             QStringLiteral("The network changes to a smaller model after 3 more rounds") + why);
    memory.smaller = node::NetworkMemoryView::Model{2, 64, 300'000, 200'000'000, 4};
    QVERIFY2(models(memory).contains(QStringLiteral("with too little memory. The smaller one has 2 layers of "
                                                    "width 64 (300 k parameters) and needs 0.2 GB of "
                                                    "each member. The present model needs 0.5 GB")),
             qPrintable(models(memory)));
    memory.changing = true;
    QVERIFY2(
        models(memory).endsWith(QStringLiteral("The new model has 2 layers of width 64 (300 k parameters).")),
        qPrintable(models(memory)));
    memory.smaller.reset();
    QCOMPARE(models(memory),
             QStringLiteral("The network is changing to a smaller model, and its nodes start anew with it."));
  }

  // The chain prefers the larger one, whose memory the active members offer.
  void enough_for_a_larger_one_is_enough() {
    node::NetworkMemoryView memory = sized();
    memory.present.needs_percent = 50;
    memory.present.room_percent = 40;
    QVERIFY(models(memory).startsWith(next_model));
  }
};

NS_TEST(TestCapacityText)
#include "test_capacity_text.moc"
