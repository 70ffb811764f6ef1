// Messages for people about a block: rows that are carried or taken back, results that were proven wrong, members that
// signed two things.
#include <QtTest>

#include "core/runtime/block_notices.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::runtime;         // NOLINT
using namespace neuroshard::chain::testing;  // NOLINT

namespace {

class Records final : public Logger {
 public:
  void write(const LogRecord& record) override {
    texts.push_back((record.level == LogLevel::Warning ? "! " : "") + record.message);
  }
  std::vector<std::string> texts;
};

// Six members, two of each of three rows.
struct Members {
  Members() {
    for (const std::size_t node : all)
      chain.set_rows(node, chain::RowSet::of({static_cast<std::uint32_t>(node % 3)}));
    if (!chain.begin(all).ok()) qFatal("no genesis");
  }
  net::NodeId id(std::size_t node) const { return crypto::node_id(chain.key(node).public_key()); }
  // withheld: by all that do not hold row 0.
  chain::BlockBody closing(std::optional<std::uint64_t> withheld = std::nullopt) const {
    std::vector<Work> works;
    for (const std::size_t node : all) works.push_back({node});
    chain::BlockBody body;
    body.close = chain.close(works);
    for (chain::Vector& vector : body.close->vectors) {
      const std::size_t node = chain.node_of(vector.voter);
      if (!withheld || node % 3 == 0) continue;
      vector.withheld = {{0, *withheld}};
      sign_vector(vector, chain.key(node), chain.rules().network);
    }
    return body;
  }
  // Appends the block, and tells of it.
  std::vector<std::string> tell(const chain::BlockBody& body) {
    const chain::RegistryPtr before = chain.registry_ptr();
    if (!chain.append(body).ok()) qFatal("no block");
    Records records;
    BlockNotices(records, id(0), name_of).tell_of_rows(*before, chain.registry(), body);
    return records.texts;
  }
  std::vector<std::string> end(bool carried = false) {
    chain::BlockBody body;
    body.result = chain.result();
    if (carried) body.result->rows[0] = chain::carried_row(0);
    return tell(body);
  }
  static std::string name_of(std::uint32_t row) { return "part " + std::to_string(row + 1) + " of 3"; }

  ChainFixture chain{small_rules(chain::VotersMode::Invited, 3)};
  std::vector<std::size_t> all = chain.add_nodes(6);
};

using Texts = std::vector<std::string>;

class TestBlockNotices : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void an_ordinary_round_says_nothing() {
    Members members;
    QVERIFY(members.tell(members.closing()).empty());
    QVERIFY(members.end().empty());
  }

  void a_carried_row_is_named() {
    Members members;
    QVERIFY(members.tell(members.closing()).empty());
    QVERIFY(members.end(true) ==
            Texts{"part 1 of 3: round 1 leaves the anchor as it is: its work goes into the next one"});
  }

  void a_row_that_is_taken_back_is_named_with_the_reason() {
    Members members;
    for (int round = 0; round < 2; ++round) {
      members.tell(members.closing());
      members.end();
    }
    members.tell(members.closing(2));
    members.end();
    const Texts texts = members.tell(members.closing(2));
    QCOMPARE(texts.size(), std::size_t{1});
    const QString text = QString::fromStdString(texts[0]);
    QVERIFY2(text.startsWith("! part 1 of 3: the anchor of round 1 is the newest again"), qPrintable(text));
    QVERIFY2(text.contains("do not give all that it was made of"), qPrintable(text));
  }

  void a_change_of_size_is_told_and_its_end_if_it_was_given_up() {
    chain::ChainRules rules = small_rules();
    rules.sizes = {{2, 2}};
    ChainFixture chain(rules);
    const std::vector<std::size_t> nodes = chain.add_nodes(4);
    QVERIFY(chain.begin(nodes).ok());
    std::vector<chain::Statement> offers;
    for (const std::size_t node : nodes) offers.push_back(chain.statement(node, chain::Offer{8}));
    QVERIFY(chain.append(ChainFixture::body_of(offers)).ok());
    Records records;
    BlockNotices notices(records, {}, [](std::uint32_t) { return std::string(); });
    const auto tell_of = [&](const chain::RegistryPtr& before) {
      records.texts.clear();
      notices.tell_of_size(*before, chain.registry());
      return records.texts;
    };
    chain::RegistryPtr before;
    do {
      before = chain.registry_ptr();
      QVERIFY(chain.round_of(nodes));
    } while (!chain.registry().size().changing && tell_of(before).empty());
    QVERIFY(tell_of(before) ==
            Texts{"the members' memory asks for a larger model: its weights are made of the "
                  "present ones, and nobody trains meanwhile"});
    before = chain.registry_ptr();
    chain::BlockBody body;
    body.result = chain.result();  // carries all rows
    QVERIFY(chain.append(body).ok());
    QCOMPARE(tell_of(before).size(), std::size_t{1});
    QVERIFY(records.texts[0].find("! the larger model was not made, or not agreed on, in time") == 0);
    // Rows that are carried for that are no news of their own.
    records.texts.clear();
    notices.tell_of_rows(*before, chain.registry(), body);
    QVERIFY(records.texts.empty());
  }

  void whoever_attested_a_wrong_result_is_told_to_test_the_machine() {
    const Members members;
    chain::FalseResult wrong;
    wrong.attested.round = 7;
    wrong.attested.result.row = 1;
    const chain::TwoVotes votes;
    Records records;
    const auto key = [&](std::size_t node) { return members.chain.key(node).public_key(); };
    BlockNotices(records, members.id(0), Members::name_of)
        .tell_of_evidence({{key(0), wrong}, {key(1), wrong}, {key(2), votes}, {key(0), votes}});
    QCOMPARE(records.texts.size(), std::size_t{3});
    QVERIFY(records.texts[0].find("! This node attested a wrong result of part 2 of 3 in round 7") == 0);
    QVERIFY(records.texts[0].find("test them") != std::string::npos);
    const std::string other = "! " + to_hex(members.id(1)).substr(0, 12);
    QVERIFY(records.texts[1].find(other + "… attested a wrong result of part 2 of 3 in round 7") == 0);
    QVERIFY(records.texts[2].find("signed two statements") != std::string::npos);
  }
};

}  // namespace

NS_TEST(TestBlockNotices)
#include "test_block_notices.moc"
