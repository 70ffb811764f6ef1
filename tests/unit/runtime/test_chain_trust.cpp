// A node keeps the anchors of the invitation that it followed, and says why it does not follow other chains.
#include <QtTest>

#include "core/runtime/chain_trust.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::runtime;  // NOLINT

class TestChainTrust : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void a_node_without_an_invitation_trusts_the_profile();
  void an_invitation_outlives_a_power_cut();
  void a_later_link_replaces_the_parts_that_it_has();
  void a_link_with_another_first_block_is_refused();
  void a_file_that_cant_be_read_is_no_open_start();
  void a_link_to_another_network_is_refused();
  void a_network_without_founders_vouches_on_its_lan();
  void chains_of_peers_are_judged_data();
  void chains_of_peers_are_judged();

 private:
  ChainTrust read() const {
    auto trust = ChainTrust::read(files_, "/d", profile_);
    if (!trust.ok()) qFatal("%s", trust.error().describe().c_str());
    return *trust;
  }
  config::InviteLink link(std::optional<Hash256> genesis) const {
    config::InviteLink link{profile_, {{std::nullopt, "192.0.2.1:9000"}}, {}, {}};
    link.trust.genesis = genesis;
    return link;
  }
  chain::HeldVoucher voucher(std::uint32_t serial) const {
    chain::HeldVoucher held;
    const auto issuer = crypto::KeyPair::from_seed(Hash256{1});
    held.secret = Hash256{2};
    held.voucher.issuer = issuer.public_key();
    held.voucher.key = crypto::KeyPair::from_seed(held.secret).public_key();
    held.voucher.serial = serial;
    held.voucher.expires_ms = 5;
    chain::sign_voucher(held.voucher, issuer, config::network_id(profile_.consensus));
    return held;
  }

  mutable testing::MemoryFileEnv files_;
  config::NetworkProfile profile_;
};

void TestChainTrust::init() {
  files_ = testing::MemoryFileEnv();
  QVERIFY(files_.create_directories("/d").ok() && files_.sync_directory("/").ok());
  profile_ = *config::builtin_profile("devnet");
  profile_.consensus.name = "village";
}

void TestChainTrust::a_node_without_an_invitation_trusts_the_profile() {
  QVERIFY(read().anchor().is_open() && !read().voucher());
  QVERIFY(keep_invitation(files_, "/d", link(std::nullopt)).ok());
  QVERIFY2(!files_.exists("/d/invitation"), "a link that says nothing is not kept");
  profile_.directory.genesis = Hash256{7};
  QVERIFY(read().anchor().genesis == Hash256{7});
}

void TestChainTrust::an_invitation_outlives_a_power_cut() {
  config::InviteLink invite = link(Hash256{3});
  invite.trust.recent = chain::BlockReference{90, Hash256{4}};
  invite.voucher = voucher(1);
  QVERIFY(keep_invitation(files_, "/d", invite).ok());
  files_.power_cut(testing::PowerCut::OnlySynced);
  chain::ChainOptions options;
  read().fill(options);
  QVERIFY(options.trust.genesis == Hash256{3});
  QVERIFY(options.trust.recent == invite.trust.recent);
  QVERIFY(options.voucher && options.voucher->voucher == invite.voucher->voucher);
  QVERIFY(options.voucher->secret == Hash256{2});
}

void TestChainTrust::a_later_link_replaces_the_parts_that_it_has() {
  config::InviteLink first = link(std::nullopt);
  first.trust.founder_wallet = Hash256{8};
  QVERIFY(keep_invitation(files_, "/d", first).ok());
  QVERIFY(read().anchor().founder_wallet == Hash256{8});
  config::InviteLink second = link(Hash256{3});
  second.voucher = voucher(1);
  QVERIFY(keep_invitation(files_, "/d", second).ok());
  QVERIFY2(!read().anchor().founder_wallet, "the first block says who founded the chain");
  QVERIFY(read().anchor().genesis == Hash256{3});
  config::InviteLink third = link(Hash256{3});
  third.trust.recent = chain::BlockReference{90, Hash256{4}};
  QVERIFY(keep_invitation(files_, "/d", third).ok());
  QVERIFY(read().anchor().recent == third.trust.recent);
  QVERIFY2(read().voucher() && read().voucher()->voucher.serial == 1,
           "a link without a vote takes none away");
  config::InviteLink fourth = link(std::nullopt);
  fourth.voucher = voucher(2);
  QVERIFY(keep_invitation(files_, "/d", fourth).ok());
  QVERIFY(read().anchor().genesis == Hash256{3} && read().voucher()->voucher.serial == 2);
}

void TestChainTrust::a_link_with_another_first_block_is_refused() {
  QVERIFY(keep_invitation(files_, "/d", link(Hash256{3})).ok());
  const auto refused = keep_invitation(files_, "/d", link(Hash256{4}));
  QCOMPARE(refused.error().code, ErrorCode::InvalidArgument);
  QVERIFY(refused.error().message.find("/d/invitation") != std::string::npos);
  QVERIFY(read().anchor().genesis == Hash256{3});
}

void TestChainTrust::a_file_that_cant_be_read_is_no_open_start() {
  QVERIFY(storage::write_file_atomic(files_, "/d/invitation", as_bytes("neuroshard:join?to=AAAA")).ok());
  const auto damaged = ChainTrust::read(files_, "/d", profile_);
  QVERIFY(!damaged.ok());
  QVERIFY2(damaged.error().describe().find("/d/invitation") != std::string::npos,
           damaged.error().describe().c_str());
  // The person follows the invitation again.
  QVERIFY(keep_invitation(files_, "/d", link(Hash256{3})).ok());
  QVERIFY(read().anchor().genesis == Hash256{3});
}

void TestChainTrust::a_link_to_another_network_is_refused() {
  QVERIFY(keep_invitation(files_, "/d", link(Hash256{3})).ok());
  profile_.consensus.name = "town";
  const auto other = ChainTrust::read(files_, "/d", profile_);
  QVERIFY(!other.ok() && other.error().message.find("another network") != std::string::npos);
}

void TestChainTrust::a_network_without_founders_vouches_on_its_lan() {
  chain::ChainOptions options;
  read().fill(options);
  QVERIFY(options.vouch_on_lan);
  profile_.consensus.founders = {to_hex(Hash256{5})};
  read().fill(options);
  QVERIFY(!options.vouch_on_lan);
  chain::ChainView view;
  QVERIFY(read().waits_for_founder(view, Hash256{6}) && !read().waits_for_founder(view, Hash256{5}));
  view.peers.histories[Hash256{3}] = 1;
  QVERIFY(!read().waits_for_founder(view, Hash256{6}));
}

void TestChainTrust::chains_of_peers_are_judged_data() {
  QTest::addColumn<int>("invited_to");
  QTest::addColumn<int>("own");
  QTest::addColumn<int>("peers");
  QTest::addColumn<QString>("refused");
  QTest::addColumn<QString>("says");
  QTest::newRow("nobody answers yet") << 3 << 0 << 0 << ""
                                      << "";
  QTest::newRow("the invited chain") << 3 << 3 << 3 << ""
                                     << "";
  QTest::newRow("on the way") << 3 << 0 << 3 << ""
                              << "";
  QTest::newRow("another chain") << 3 << 0 << 4 << ""
                                 << "joins no chain";
  QTest::newRow("it already follows another one") << 3 << 4 << 4 << ""
                                                  << "another data directory";
  QTest::newRow("a wrong recent block") << 3 << 0 << 3 << "the chain ends early"
                                        << "ends early";
  QTest::newRow("a wrong founder") << 0 << 0 << 3 << "not the expected founder"
                                   << "expected founder";
  QTest::newRow("a peer that lied before") << 0 << 3 << 3 << "not the expected founder"
                                           << "";
  QTest::newRow("no invitation") << 0 << 3 << 4 << ""
                                 << "";
}

void TestChainTrust::chains_of_peers_are_judged() {
  QFETCH(int, invited_to);
  QFETCH(int, own);
  QFETCH(int, peers);
  QFETCH(QString, refused);
  QFETCH(QString, says);
  const auto hash = [](int number) { return Hash256{static_cast<std::uint8_t>(number)}; };
  if (invited_to != 0) QVERIFY(keep_invitation(files_, "/d", link(hash(invited_to))).ok());
  chain::ChainView view;
  view.genesis = hash(own);
  if (peers != 0) view.peers.histories[hash(peers)] = 2;
  view.peers.refused = refused.toStdString();
  const std::string trouble = read().trouble(view);
  QCOMPARE(trouble.empty(), says.isEmpty());
  QVERIFY2(QString::fromStdString(trouble).contains(says), trouble.c_str());
}

NS_TEST(TestChainTrust)
#include "test_chain_trust.moc"
