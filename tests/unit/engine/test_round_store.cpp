// The state of outer rounds on the disk: it comes back as it was, damage is found, and a torn write loses
// nothing.
#include <QTemporaryDir>
#include <QtTest>

#include "core/engine/round_store.h"
#include "tests/support/pump_executor.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/no_sync_file_env.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::engine;  // NOLINT
using Record = rounds::RoundStore::Record;

namespace {

rounds::Anchor state_of(float first) {
  auto state = std::make_shared<rounds::OuterState>();
  for (int i = 0; i < 1000; ++i) state->weights.push_back(first + static_cast<float>(i));
  state->momentum.assign(1000, first / 3);
  state->bias = {first, -first};
  return state;
}
rounds::RoundCertificate of_round(std::uint64_t round) {
  static const crypto::KeyPair key = crypto::KeyPair::from_seed(Hash256{5});
  rounds::RoundCertificate certificate;
  certificate.body = rounds::genesis_body({}, Hash256{1}, {key.public_key()});
  if (round == 0) return certificate;
  certificate.body.round = round;
  certificate.body.contributors = {{0, 5, 100, Hash256{2}}};
  certificate.signatures = {{0, crypto::Signature{3}}};
  return certificate;
}
bool same(const rounds::OuterState& a, const rounds::OuterState& b) {
  return a.weights == b.weights && a.momentum == b.momentum && a.bias == b.bias;
}

struct Bench {
  QTemporaryDir folder;
  std::unique_ptr<storage::FileEnv> files = std::make_unique<testing::NoSyncFileEnv>();
  NullLogger logger;
  testing::PumpExecutor node;
  std::string path() const { return folder.filePath("rounds").toStdString(); }
  std::unique_ptr<RoundFiles> open() {
    return std::move(RoundFiles::open(*files, path(), logger, node).value());
  }
  void change_a_byte(const char* name, qint64 at) const {
    QFile file(folder.filePath(QString("rounds/") + name));
    QVERIFY(file.open(QIODevice::ReadWrite));
    QVERIFY(file.seek(at));
    char byte = 0;
    QVERIFY(file.peek(&byte, 1) == 1);
    byte = static_cast<char>(byte ^ 0x10);
    QVERIFY(file.write(&byte, 1) == 1);
  }
};

}  // namespace

class TestRoundStore : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void records_come_back_in_the_order_of_calls() {
    Bench b;
    std::vector<int> done;
    {
      const auto files = b.open();
      QVERIFY(files->load(Record::Votes).error().code == ErrorCode::NotFound);
      for (int i = 1; i <= 3; ++i) {
        files->save(Record::Votes, Bytes(static_cast<std::size_t>(i), 9), [&done, i](Expected<void> saved) {
          if (saved.ok()) done.push_back(i);
        });
      }
      files->save(Record::Chain, Bytes{1, 2, 3}, [](Expected<void>) {});
      files->save(Record::Learner, Bytes{5}, [](Expected<void>) {});
      files->save(Record::Payload, Bytes{7, 7}, [](Expected<void>) {});
      QVERIFY(b.node.run_until([&] { return done.size() == 3; }));
    }
    QVERIFY((done == std::vector<int>{1, 2, 3}));
    const auto files = b.open();
    QVERIFY(files->load(Record::Votes).value() == Bytes(3, 9));
    QVERIFY((files->load(Record::Chain).value() == Bytes{1, 2, 3}));
    QVERIFY(files->load(Record::Learner).value() == Bytes{5});
    QVERIFY((files->load(Record::Payload).value() == Bytes{7, 7}));
  }

  void the_state_comes_back_bit_for_bit() {
    Bench b;
    QVERIFY(b.open()->load_state(1000, 2).error().code == ErrorCode::NotFound);
    b.open()->save_state(of_round(41), state_of(0.1f));
    b.open()->save_state(of_round(42), state_of(0.3f));  // waits for the disk when it goes
    const auto known = b.open()->load_state(1000, 2);
    QVERIFY2(known.ok(), known.ok() ? "" : known.error().describe().c_str());
    QCOMPARE(known->round, std::uint64_t{42});
    QVERIFY(same(*known->state, *state_of(0.3f)));
    QVERIFY(*known->certificate == of_round(42));
    QVERIFY(!b.files->exists(b.path() + "/state.new"));
    b.open()->save_state(of_round(0), state_of(1));  // the beginning, which nobody signs
    QVERIFY(*b.open()->load_state(1000, 2).value().certificate == of_round(0));
  }

  void of_many_states_the_newest_is_kept() {
    Bench b;
    {
      const auto files = b.open();
      for (int r = 1; r <= 50; ++r)
        files->save_state(of_round(static_cast<std::uint64_t>(r)), state_of(static_cast<float>(r)));
    }
    QCOMPARE(b.open()->load_state(1000, 2).value().round, std::uint64_t{50});
  }

  void a_damaged_state_is_not_used() {
    for (const qint64 at : {2, 9, 20, 50, 5000, 8060}) {
      Bench b;
      b.open()->save_state(of_round(3), state_of(1));
      QVERIFY(b.open()->load_state(1000, 2).ok());
      b.change_a_byte("state", at);
      const auto known = b.open()->load_state(1000, 2);
      QVERIFY(!known.ok() && known.error().code == ErrorCode::Corrupt);
      QVERIFY(QString::fromStdString(known.error().message).contains("fetches the state from other members"));
    }
    Bench b;
    b.open()->save_state(of_round(3), state_of(1));
    QVERIFY(b.open()->load_state(1001, 2).error().code == ErrorCode::Corrupt);  // another model
    QVERIFY(QFile::resize(QString::fromStdString(b.path() + "/state"), 900));
    QVERIFY(b.open()->load_state(1000, 2).error().code == ErrorCode::Corrupt);
    QVERIFY(QFile::resize(QString::fromStdString(b.path() + "/state"), 5));
    QVERIFY(b.open()->load_state(1000, 2).error().code == ErrorCode::Corrupt);
  }

  void a_half_written_state_leaves_the_old_one() {
    Bench b;
    b.open()->save_state(of_round(3), state_of(1));
    QFile half(QString::fromStdString(b.path() + "/state.new"));  // as a kill leaves it
    QVERIFY(half.open(QIODevice::WriteOnly) && half.write("NSRSTATE") == 8);
    half.close();
    QCOMPARE(b.open()->load_state(1000, 2).value().round, std::uint64_t{3});
    b.open()->save_state(of_round(4), state_of(2));
    QCOMPARE(b.open()->load_state(1000, 2).value().round, std::uint64_t{4});
  }

  void computations_run_in_order_beside_the_node() {
    testing::PumpExecutor node;
    RoundThread work(node);
    std::vector<int> order;
    const auto here = std::this_thread::get_id();
    std::atomic<int> elsewhere{0};
    for (int i = 0; i < 3; ++i) {
      work.run([&] { elsewhere += std::this_thread::get_id() != here ? 1 : 0; },
               [&order, i] { order.push_back(i); });
    }
    QVERIFY(order.empty());
    QVERIFY(node.run_until([&] { return order.size() == 3; }));
    QVERIFY((order == std::vector<int>{0, 1, 2}));
    QCOMPARE(elsewhere.load(), 3);
  }
};

NS_TEST(TestRoundStore)
#include "test_round_store.moc"
