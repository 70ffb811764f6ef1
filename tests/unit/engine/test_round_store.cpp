// A node's part of a round and the outer state on the disk: both come back as they were, damage is found, and a
// torn write loses nothing.
#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>
#include <future>

#include "core/engine/round_store.h"
#include "core/engine/state_file.h"
#include "tests/support/pump_executor.h"
#include "tests/support/stored.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/no_sync_file_env.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::engine;  // NOLINT
using Record = rounds::RoundStore::Record;

namespace {

rounds::Anchor state_of(float first) {
  std::vector<float> weights;
  for (int i = 0; i < 1000; ++i) weights.push_back(first + static_cast<float>(i));
  return rounds::state_in_memory(weights, std::vector<float>(1000, first / 3),
                                 std::vector<float>{first, -first});
}
bool same(const rounds::OuterState& a, const rounds::OuterState& b) {
  return a.counts.weights == b.counts.weights && a.counts.bias == b.counts.bias &&
         test::bytes_of(a.bytes) == test::bytes_of(b.bytes);
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
  std::string state() const { return path() + "/state"; }
  bool write_state(std::uint64_t round, float first) {
    return files->create_directories(path()).ok() &&
           write_state_file(*files, state(), {round, state_of(first), {}}).ok();
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
      QVERIFY(files->load(Record::Vector).error().code == ErrorCode::NotFound);
      for (int i = 1; i <= 3; ++i) {
        files->save(Record::Vector, in_memory(Bytes(static_cast<std::size_t>(i), 9)),
                    [&done, i](Expected<void> saved) {
                      if (saved.ok()) done.push_back(i);
                    });
      }
      files->save(Record::Contribution, in_memory({1, 2, 3}), [](Expected<void>) {});
      files->save(Record::Learners, in_memory({5}), [](Expected<void>) {});
      QVERIFY(b.node.run_until([&] { return done.size() == 3; }));
    }
    QVERIFY((done == std::vector<int>{1, 2, 3}));
    const auto files = b.open();
    QVERIFY(test::bytes_of(files->load(Record::Vector).value()) == Bytes(3, 9));
    QVERIFY((test::bytes_of(files->load(Record::Contribution).value()) == Bytes{1, 2, 3}));
    QVERIFY((test::bytes_of(files->load(Record::Learners).value()) == Bytes{5}));
  }

  void a_state_comes_back_bit_for_bit() {
    Bench b;
    QVERIFY(read_state_file(*b.files, b.state(), 1000, 2).error().code == ErrorCode::NotFound);
    QVERIFY(b.write_state(41, 0.1f));
    QVERIFY(b.write_state(42, 0.3f));
    const auto known = read_state_file(*b.files, b.state(), 1000, 2);
    QVERIFY2(known.ok(), known.ok() ? "" : known.error().describe().c_str());
    QCOMPARE(known->round, std::uint64_t{42});
    QVERIFY(same(*known->state, *state_of(0.3f)));
    QVERIFY(!b.files->exists(b.state() + ".new"));
  }

  void a_damaged_state_is_not_used() {
    for (const qint64 at : {2, 9, 20, 50, 5000, 8060}) {
      Bench b;
      QVERIFY(b.write_state(3, 1));
      QVERIFY(read_state_file(*b.files, b.state(), 1000, 2).ok());
      b.change_a_byte("state", at);
      const auto known = read_state_file(*b.files, b.state(), 1000, 2);
      const ErrorCode wanted = at == 20 ? ErrorCode::InvalidArgument : ErrorCode::Corrupt;
      QVERIFY(!known.ok() && known.error().code == wanted);
      QVERIFY(QString::fromStdString(known.error().message).contains("fetches the state from other members"));
    }
    Bench b;
    QVERIFY(b.write_state(3, 1));
    const auto code = [&](std::uint64_t values) {
      return read_state_file(*b.files, b.state(), values, 2).error().code;
    };
    QVERIFY(code(1001) == ErrorCode::InvalidArgument);  // another model
    for (const qint64 size : {900, 5}) {
      QVERIFY(QFile::resize(QString::fromStdString(b.state()), size));
      QVERIFY(code(1000) == ErrorCode::Corrupt);
    }
  }

  void a_half_written_state_leaves_the_old_one() {
    Bench b;
    QVERIFY(b.write_state(3, 1));
    QFile half(QString::fromStdString(b.state() + ".new"));  // as a kill leaves it
    QVERIFY(half.open(QIODevice::WriteOnly) && half.write("NSRSTATE") == 8);
    half.close();
    QCOMPARE(read_state_file(*b.files, b.state(), 1000, 2).value().round, std::uint64_t{3});
    QVERIFY(b.write_state(4, 2));
    QCOMPARE(read_state_file(*b.files, b.state(), 1000, 2).value().round, std::uint64_t{4});
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

  // Each of them ends, also where the first one takes long.
  void more_computations_than_the_queue_holds_are_all_run() {
    constexpr int all = 1000;
    testing::PumpExecutor node;
    RoundThread work(node);
    std::promise<void> go;
    const std::shared_future<void> begins = go.get_future().share();
    std::atomic<int> run{0};
    std::vector<int> order;
    for (int i = 0; i < all; ++i) {
      work.run(
          [&run, begins] {
            begins.wait();
            ++run;
          },
          [&order, i] { order.push_back(i); });
    }
    go.set_value();
    QVERIFY(node.run_until([&] { return order.size() == std::size_t{all}; }));
    QVERIFY(std::is_sorted(order.begin(), order.end()));
    QCOMPARE(run.load(), all);
  }
};

NS_TEST(TestRoundStore)
#include "test_round_store.moc"
