// A node that follows the size of the network's model: what it writes, and when it starts anew.
#include <QtTest>

#include "core/runtime/chain_settings.h"
#include "core/runtime/own_model_size.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/growing_chain.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::runtime;         // NOLINT
using namespace neuroshard::chain::testing;  // NOLINT

namespace {

config::ConsensusPart profile(std::uint64_t size = 0) {
  config::ConsensusPart consensus = config::builtin_profile("devnet")->consensus;
  consensus.sizes = {{8, 128, 2, 2}};
  return config::at_size(consensus, size);
}

// Before the network's change of size and after it.
struct Grown : ChainFixture {
  static chain::ChainRules growing() {
    chain::ChainRules rules = small_rules();
    rules.sizes = size_needs(profile());
    return rules;
  }
  Grown() : ChainFixture(growing()) {
    const std::vector<std::size_t> nodes = add_nodes(4);
    if (!begin(nodes).ok()) qFatal("no chain");
    before = registry_ptr();
    offer_memory(*this, nodes, {8, 8, 8, 8});
    begin_change_of_size(*this, nodes);
    end_change_of_size(*this);
  }
  chain::RegistryPtr before;
};

struct Errors final : Logger {
  void write(const LogRecord& record) override { count += record.level == LogLevel::Error; }
  int count = 0;
};

struct Node {
  explicit Node(std::uint64_t size) : model(profile(size), {}, "/d", files, logger) {
    if (!files.create_directories("/d").ok()) qFatal("no folder");
  }
  Bytes file() {
    auto bytes = storage::read_file(files, "/d/size", 8);
    return bytes.ok() ? *bytes : Bytes();
  }
  static MonotonicTime at(int seconds) { return MonotonicTime(std::chrono::seconds(seconds)); }
  testing::MemoryFileEnv files;
  Errors logger;
  OwnModelSize model;
};

const Bytes one{'1', '\n'}, zero{'0', '\n'};

}  // namespace

class TestOwnModelSize : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void it_starts_anew_once_it_has_the_anchors() {
    const Grown chain;
    Node node(0);
    rounds::TrainingView training;
    training.holds = true;
    node.model.follow(*chain.before, training, true, Node::at(1));
    QVERIFY(!node.model.has_changed() && node.file().empty());
    training.holds = false;
    training.computes = true;
    node.model.follow(chain.registry(), training, true, Node::at(2));
    node.model.follow(chain.registry(), training, true, Node::at(600));
    QVERIFY(!node.model.has_changed() && node.file().empty());
    training.computes = false;
    training.holds = true;
    node.model.follow(chain.registry(), training, true, Node::at(601));
    QVERIFY(node.model.has_changed());
    QVERIFY(node.file() == one);
  }

  void without_a_computation_it_gets_them_from_others() {
    const Grown chain;
    Node node(0);
    node.model.follow(chain.registry(), {}, true, Node::at(10));
    QVERIFY(!node.model.has_changed());
    node.model.follow(chain.registry(), {}, true, Node::at(12));
    QVERIFY(node.model.has_changed());
    QVERIFY(node.file() == one);
  }

  // A kill may leave a size that nobody certified.
  void the_chain_is_right() {
    const Grown chain;
    Node ahead(1);
    ahead.model.follow(*chain.before, {}, true, Node::at(10));
    ahead.model.follow(*chain.before, {}, true, Node::at(12));
    QVERIFY(ahead.model.has_changed());
    QVERIFY(ahead.file() == zero);
    Node same(1);
    same.model.follow(chain.registry(), {}, true, Node::at(10));
    same.model.follow(chain.registry(), {}, true, Node::at(100));
    QVERIFY(!same.model.has_changed());
  }

  void without_a_history_it_begins_with_the_first_size() {
    Node first(0), larger(1), known(1);
    QVERIFY(first.model.can_begin(false, Node::at(1)) && !first.model.has_changed());
    QVERIFY(known.model.can_begin(true, Node::at(1)) && !known.model.has_changed());
    QVERIFY(!larger.model.can_begin(false, Node::at(1)) && larger.model.has_changed());
    QVERIFY(larger.file() == zero);
  }

  void without_memory_for_the_larger_one_it_waits() {
    const Grown chain;
    Node node(0);
    node.model.follow(chain.registry(), {}, false, Node::at(10));
    node.model.follow(chain.registry(), {}, false, Node::at(20));
    QVERIFY(node.model.waits() && !node.model.has_changed() && node.file().empty());
    // The network has its model again.
    node.model.follow(*chain.before, {}, false, Node::at(30));
    QVERIFY(!node.model.waits() && node.model.has_changed() && node.file().empty());
    // It got the memory meanwhile.
    Node more(0);
    more.model.follow(chain.registry(), {}, false, Node::at(10));
    more.model.follow(chain.registry(), {}, true, Node::at(20));
    more.model.follow(chain.registry(), {}, true, Node::at(22));
    QVERIFY(!more.model.waits() && more.model.has_changed());
    QVERIFY(more.file() == one);
    // It has the larger one already, and can't make it.
    Node large(1), first(0);
    large.model.lacks_memory(Node::at(1));
    QVERIFY(large.model.has_changed());
    QVERIFY(large.file() == zero);
    first.model.lacks_memory(Node::at(1));
    QVERIFY(!first.model.has_changed() && first.file().empty());
  }

  void a_full_disk_lets_it_wait() {
    const Grown chain;
    Node node(0);
    node.files.set_capacity(0);
    rounds::TrainingView training;
    training.holds = true;
    for (int second = 1; second < 31; ++second)
      node.model.follow(chain.registry(), training, true, Node::at(second));
    QVERIFY(!node.model.has_changed());
    QCOMPARE(node.logger.count, 1);  // on a full disk, not one at each look
    node.files.set_capacity(1 << 20);
    node.model.follow(chain.registry(), training, true, Node::at(31));
    QVERIFY(node.model.has_changed());
    // At the beginning as well.
    Node larger(1);
    larger.files.set_capacity(0);
    QVERIFY(!larger.model.can_begin(false, Node::at(1)));
    larger.files.set_capacity(1 << 20);
    larger.model.try_again(Node::at(2));
    QVERIFY(!larger.model.has_changed());
    larger.model.try_again(Node::at(31));
    QVERIFY(larger.model.has_changed());
    QVERIFY(larger.file() == zero);
  }
};

NS_TEST(TestOwnModelSize)
#include "test_own_model_size.moc"
