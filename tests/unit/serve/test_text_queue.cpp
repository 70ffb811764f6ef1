// The order of texts where several clients wait.
#include <QtTest>

#include "core/serve/text_queue.h"
#include "tests/support/fake_node.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT
using namespace neuroshard::serve;

namespace {
constexpr std::size_t most_running = 3;
}

class TestTextQueue : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    tasks_.clear();
    node_ = std::make_unique<testing::FakeNode>();
    node_->hold_commands();
    queue_ = std::make_unique<TextQueue>(
        *node_, [this](std::function<void()> task) { tasks_.push_back(std::move(task)); }, most_running);
  }
  void cleanup() {
    queue_.reset();
    node_.reset();
  }

  void a_single_client_leaves_one_place() {
    for (int i = 0; i < 5; ++i) add("a", "a" + std::to_string(i));
    run();
    QCOMPARE(queue_->running(), most_running - 1);
    QCOMPARE(queue_->waiting(), 5 - (most_running - 1));
    add("b", "b0");
    run();
    QCOMPARE(queue_->running(), most_running);
    QCOMPARE(node_->commands().back(), std::string("generate b0"));
  }

  void places_go_to_the_clients_in_turn() {
    for (int i = 0; i < 4; ++i) add("a", "a" + std::to_string(i));
    run();
    for (int i = 0; i < 2; ++i) add("b", "b" + std::to_string(i));
    for (int i = 0; i < 2; ++i) add("c", "c" + std::to_string(i));
    run();  // b0 has the last place
    std::vector<std::string> order;
    while (queue_->running() > 0) {
      node_->finish(node_->held("generate"), node::CommandResult(node::GenerateResult{}));
      run();
      order = node_->commands();
    }
    QStringList told;
    for (const std::string& one : order) told << QString::fromStdString(one);
    QCOMPARE(told.size(), qsizetype{8});
    // After a, a, b: c has had nothing yet, then whoever has fewest running and waited longest.
    QCOMPARE(told[3], QStringLiteral("generate c0"));
    QVERIFY2(told.indexOf("generate b1") < told.indexOf("generate a3"), qPrintable(told.join(", ")));
    QCOMPARE(QSet<QString>(told.begin(), told.end()).size(), qsizetype{8});
  }

  void a_cancelled_text_gives_its_place() {
    const std::uint64_t first = add("a", "a0");
    add("a", "a1");
    add("a", "a2");
    run();
    QCOMPARE(node_->commands().size(), std::size_t{2});
    queue_->cancel(first);
    run();
    QCOMPARE(node_->commands().back(), std::string("generate a2"));
    QVERIFY(!queue_->is_full());
  }

 private:
  std::uint64_t add(const std::string& client, const std::string& prompt) {
    node::GenerateRequest request;
    request.prompt = prompt;
    return queue_->add(client, request, {[](const node::TextPiece&) {}, [](const auto&) {}});
  }
  void run() {
    while (!tasks_.empty()) {
      auto tasks = std::exchange(tasks_, {});
      for (const auto& task : tasks) task();
    }
  }
  std::vector<std::function<void()>> tasks_;
  std::unique_ptr<testing::FakeNode> node_;
  std::unique_ptr<TextQueue> queue_;
};

NS_TEST(TestTextQueue)
#include "test_text_queue.moc"
