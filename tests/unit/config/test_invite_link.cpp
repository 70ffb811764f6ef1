// Invitations: what is put in comes out, whatever is broken is refused with the reason, and what a file may
// not say a link may not say either.
#include <QtTest>

#include "core/base/base64url.h"
#include "core/config/invite_link.h"
#include "core/crypto/hash.h"
#include "tests/support/test_main.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::config;  // NOLINT

class TestInviteLink : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void base64url_is_that_of_the_rfc();
  void a_builtin_network_is_named_by_its_id();
  void a_profile_of_ones_own_travels_whole();
  void a_published_profile_keeps_its_signature();
  void every_lost_piece_is_noticed();
  void every_changed_character_is_noticed();
  void other_texts_are_refused_data();
  void other_texts_are_refused();
  void what_a_file_may_not_say_a_link_may_not_say();
  void bounds_are_kept();
  void trust_and_voucher_travel();
  void links_without_trust_are_of_the_first_version();
  void sizes_travel_in_the_third_version();
  void a_voucher_has_to_be_signed_for_this_network();
  void hostile_trust_is_refused();
  void who_made_it_with_another_version_is_told();
};

namespace {

InviteLink village() {
  auto profile = builtin_profile("devnet");
  if (!profile.ok()) qFatal("no devnet");
  profile->consensus.name = "village";
  profile->consensus.hidden = 256;
  profile->directory.bootstrap = {"host.example.org:29000"};
  profile->directory.trackers = {"192.0.2.1:28765", "[2001:db8::1]:28765"};
  profile->directory.manifest_url = "https://example.org/manifest.json";
  return {*profile, {{Hash256{1, 2, 3}, "203.0.113.9:9000"}, {std::nullopt, "peer.example.org:9001"}}};
}

std::string link_of(const InviteLink& invite) {
  const auto text = format_invite_link(invite);
  if (!text.ok()) qFatal("%s", text.error().describe().c_str());
  return *text;
}

constexpr Hash256 secret{9, 9};

InviteLink of_a_chain() {
  InviteLink invite = village();
  invite.trust.genesis = Hash256{11};
  invite.trust.recent = chain::BlockReference{300, Hash256{12}};
  invite.trust.founder_wallet = Hash256{13};
  chain::HeldVoucher held;
  held.secret = secret;
  held.voucher.issuer = crypto::KeyPair::from_seed(Hash256{8}).public_key();
  held.voucher.key = crypto::KeyPair::from_seed(secret).public_key();
  held.voucher.serial = 3;
  held.voucher.expires_ms = 1'790'000'000'000;
  chain::sign_voucher(held.voucher, crypto::KeyPair::from_seed(Hash256{8}),
                      network_id(invite.profile.consensus));
  invite.voucher = held;
  return invite;
}

// A link with this content, its checksum right.
std::string sealed(Bytes content, std::uint8_t version = 1) {
  const Hash256 sum = crypto::sha256(content);
  Bytes whole{version, sum[0], sum[1], sum[2], sum[3]};
  whole.insert(whole.end(), content.begin(), content.end());
  return "neuroshard:join?to=" + to_base64url(whole);
}

Bytes content_of(const std::string& link) {
  const auto bytes =
      from_base64url(std::string_view(link).substr(std::string_view("neuroshard:join?to=").size()));
  if (!bytes.ok()) qFatal("not base64url");
  return Bytes(bytes->begin() + 5, bytes->end());
}

}  // namespace

void TestInviteLink::base64url_is_that_of_the_rfc() {
  // RFC 4648 §10, without padding; and the two characters in which base64url differs.
  const std::pair<const char*, const char*> known[] = {
      {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
      {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff", "-_8"}};
  for (const auto& [plain, text] : known) {
    QCOMPARE(to_base64url(as_bytes(plain)), std::string(text));
    QCOMPARE(std::string(as_text(*from_base64url(text))), std::string(plain));
  }
  for (const char* wrong : {"Z", "Zh", "Zm9", "Zg==", "Zm+v", "Zm/v", "Zm v"})
    QVERIFY2(!from_base64url(wrong).ok(), wrong);
}

void TestInviteLink::a_builtin_network_is_named_by_its_id() {
  const InviteLink invite{*builtin_profile("mainnet"), {{std::nullopt, "203.0.113.9:9000"}}};
  const std::string link = link_of(invite);
  QVERIFY2(link.size() < 110, "so that its QR code is small");
  for (const std::string& text : {link, "  " + link + "\r\n", "NeuroShard://" + link.substr(11)}) {
    const auto read = parse_invite_link(text);
    QVERIFY2(read.ok(), read.ok() ? "" : read.error().describe().c_str());
    QCOMPARE(format_network_profile(read->profile), format_network_profile(invite.profile));
    QVERIFY(read->peers == invite.peers);
  }
}

void TestInviteLink::a_profile_of_ones_own_travels_whole() {
  const InviteLink invite = village();
  const std::string link = link_of(invite);
  QVERIFY2(link.size() < 600, "a QR code of it is still read by a phone");
  const auto read = parse_invite_link(link);
  QVERIFY2(read.ok(), read.ok() ? "" : read.error().describe().c_str());
  QCOMPARE(format_network_profile(read->profile), format_network_profile(invite.profile));
  QVERIFY(read->peers == invite.peers);
  QCOMPARE(to_text(read->peers[0]), to_hex(Hash256{1, 2, 3}) + "@203.0.113.9:9000");
  QVERIFY(*parse_invited_peer(to_text(read->peers[0])) == read->peers[0]);
  QCOMPARE(link_of(*read), link);
}

void TestInviteLink::a_published_profile_keeps_its_signature() {
  const auto key = crypto::KeyPair::from_seed(Hash256{7});
  InviteLink invite = village();
  invite.profile.consensus.publisher_key = to_hex(key.public_key());
  sign_directory(invite.profile, key);
  const auto read = parse_invite_link(link_of(invite));
  QVERIFY(read.ok() && read->profile.directory.signature == invite.profile.directory.signature);
  // Somebody puts an address of his own into it.
  invite.profile.directory.bootstrap = {"evil.example.org:1"};
  const auto forged = parse_invite_link(link_of(invite));
  QVERIFY(!forged.ok());
  QCOMPARE(forged.error().code, ErrorCode::Denied);
}

void TestInviteLink::every_lost_piece_is_noticed() {
  const std::string link = link_of(village());
  for (std::size_t length = 0; length < link.size(); ++length)
    QVERIFY2(!parse_invite_link(link.substr(0, length)).ok(), std::to_string(length).c_str());
  const auto cut = parse_invite_link(link.substr(0, link.size() / 2));
  QCOMPARE(cut.error().code, ErrorCode::Corrupt);
  QVERIFY(cut.error().message.find("copy the whole link") != std::string::npos);
}

void TestInviteLink::every_changed_character_is_noticed() {
  const std::string link = link_of(village());
  for (std::size_t at = std::string_view("neuroshard:join?to=").size(); at < link.size(); ++at) {
    std::string changed = link;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    QVERIFY2(!parse_invite_link(changed).ok(), std::to_string(at).c_str());
  }
}

void TestInviteLink::other_texts_are_refused_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<QString>("says");
  QTest::newRow("nothing") << ""
                           << "not an invitation";
  QTest::newRow("another scheme") << "https://example.org/"
                                  << "not an invitation";
  QTest::newRow("another verb") << "neuroshard:attach?file=/c.json"
                                << "not an invitation to a network";
  QTest::newRow("too long") << "neuroshard:join?to=" + QString(100'000, 'A') << "too long";
  QTest::newRow("no base64") << "neuroshard:join?to=%41%41"
                             << "not complete";
  QTest::newRow("nothing in it") << "neuroshard:join?to="
                                 << "not complete";
}

void TestInviteLink::other_texts_are_refused() {
  QFETCH(QString, text);
  QFETCH(QString, says);
  const auto read = parse_invite_link(text.toStdString());
  QVERIFY(!read.ok());
  QVERIFY2(QString::fromStdString(read.error().message).contains(says), read.error().message.c_str());
}

void TestInviteLink::what_a_file_may_not_say_a_link_may_not_say() {
  const auto refused = [](const InviteLink& invite, const char* says) {
    const auto read = parse_invite_link(link_of(invite));
    if (read.ok()) return false;
    if (read.error().message.find(says) != std::string::npos) return true;
    qWarning("%s", read.error().message.c_str());
    return false;
  };
  InviteLink invite = village();
  invite.profile.consensus.name = "mainnet";
  QVERIFY2(refused(invite, "built-in"), "the name of a built-in network with other constants");
  invite = village();
  invite.profile.consensus.layers = 1'000'000'000;
  QVERIFY(refused(invite, "layers"));
  invite = village();
  invite.profile.consensus.name = "a\x01\xff b";
  QVERIFY(refused(invite, "name"));
  invite = village();
  invite.profile.directory.bootstrap = {"two words:1"};
  QVERIFY(refused(invite, "bootstrap"));
}

void TestInviteLink::bounds_are_kept() {
  InviteLink invite = village();
  invite.peers.assign(max_invited_peers + 1, {std::nullopt, "192.0.2.1:1"});
  QCOMPARE(format_invite_link(invite).error().code, ErrorCode::Exhausted);
  invite.peers = {{std::nullopt, "no port"}};
  QCOMPARE(format_invite_link(invite).error().code, ErrorCode::InvalidArgument);
  invite = village();
  invite.profile.directory.bootstrap.assign(200, "a-rather-long-name.example.org:9000");
  const auto large = format_invite_link(invite);
  QCOMPARE(large.error().code, ErrorCode::Exhausted);
  QVERIFY(large.error().message.find("fewer peers") != std::string::npos);
  // A foreign writer that keeps no bound: more peers than are taken, a length beyond the end, bytes after it.
  Bytes content = content_of(link_of({*builtin_profile("solo"), {}}));
  Bytes more = content;
  more.back() = 100;
  QVERIFY(parse_invite_link(sealed(more)).error().message.find("at most 8") != std::string::npos);
  Bytes beyond = content;
  beyond.back() = 1;
  for (const int byte : {0, 0xff, 0xff, 0xff, 0xff, 0x0f}) beyond.push_back(static_cast<std::uint8_t>(byte));
  QCOMPARE(parse_invite_link(sealed(beyond)).error().code, ErrorCode::Corrupt);
  Bytes after = content;
  after.push_back(0);
  QCOMPARE(parse_invite_link(sealed(after)).error().code, ErrorCode::Corrupt);
  QVERIFY(parse_invite_link(sealed(content)).ok());
  QVERIFY(!parse_invited_peer("host:0").ok() && !parse_invited_peer("xyz@host:1").ok());
}

void TestInviteLink::trust_and_voucher_travel() {
  InviteLink invite = of_a_chain();
  for (const bool voucher : {true, false}) {
    if (!voucher) invite.voucher.reset();
    const std::string link = link_of(invite);
    QVERIFY2(link.size() < 1000, "a QR code of it is still read by a phone");
    const auto read = parse_invite_link(link);
    QVERIFY2(read.ok(), read.ok() ? "" : read.error().describe().c_str());
    QCOMPARE(format_network_profile(read->profile), format_network_profile(invite.profile));
    QVERIFY(read->peers == invite.peers);
    QVERIFY(read->trust.genesis == invite.trust.genesis && read->trust.recent == invite.trust.recent);
    QVERIFY(read->trust.founder_wallet == invite.trust.founder_wallet);
    QCOMPARE(read->voucher.has_value(), voucher);
    if (voucher)
      QVERIFY(read->voucher->voucher == invite.voucher->voucher && read->voucher->secret == secret);
    QCOMPARE(link_of(*read), link);
  }
}

void TestInviteLink::links_without_trust_are_of_the_first_version() {
  const auto version = [](const InviteLink& invite) {
    return from_base64url(std::string_view(link_of(invite)).substr(19, 4)).value()[0];
  };
  InviteLink invite = village();
  QCOMPARE(int{version(invite)}, 1);
  invite.trust.founder_wallet = Hash256{4};
  QCOMPARE(int{version(invite)}, 2);
  invite = village();
  invite.profile.consensus.founders = {to_hex(Hash256{5})};
  QCOMPARE(int{version(invite)}, 2);
  QVERIFY(parse_invite_link(link_of(invite))->profile.consensus.founders ==
          invite.profile.consensus.founders);
  // Of a program before the second version.
  const auto old = parse_invite_link(
      "neuroshard:join?to=AUObGOoAlGR9uZoWibmpX7_fWdR7hvzBdFYkRH50EvRIzq7wyzEBABAyMDMuMC4xMTMuOTo5MDAw");
  QVERIFY(old.ok() && old->profile.consensus.name == "mainnet" && old->trust.is_open() && !old->voucher);
}

void TestInviteLink::sizes_travel_in_the_third_version() {
  for (InviteLink invite : {village(), of_a_chain()}) {
    invite.voucher.reset();  // it is of the network without sizes
    invite.profile.consensus.sizes = {{6, 256, 4, 12}, {8, 512, 300, 1 << 18}};
    const std::string link = link_of(invite);
    QCOMPARE(int{from_base64url(std::string_view(link).substr(19, 4)).value()[0]}, 3);
    const auto read = parse_invite_link(link);
    QVERIFY2(read.ok(), read.ok() ? "" : read.error().describe().c_str());
    QVERIFY(read->profile.consensus.sizes == invite.profile.consensus.sizes);
    QCOMPARE(format_network_profile(read->profile), format_network_profile(invite.profile));
    QVERIFY(read->trust.recent == invite.trust.recent && read->peers == invite.peers);
    QCOMPARE(link_of(*read), link);
    // The size that the inviting node's model has is not in it.
    invite.profile.consensus.size = 2;
    QCOMPARE(link_of(invite), link);
    const Bytes content = content_of(link);
    for (std::size_t length = 0; length < content.size(); ++length) {
      const Bytes torn(content.begin(), content.begin() + static_cast<long>(length));
      QVERIFY2(!parse_invite_link(sealed(torn, 3)).ok(), std::to_string(length).c_str());
    }
    QVERIFY(!parse_invite_link(sealed(content, 2)).ok());
  }
  InviteLink invite = village();
  invite.peers.clear();
  invite.profile.consensus.sizes = {{6, 256, 4, 12}};
  Bytes content = content_of(link_of(invite));
  // From the end: voucher, founder wallet, recent, genesis, peers, the size with its width of two bytes, the count.
  const std::size_t count = content.size() - 5 - 5 - 1;
  QCOMPARE(int{content[count]}, 1);
  content[count] = 65;
  QVERIFY(parse_invite_link(sealed(content, 3)).error().message.find("65 sizes") != std::string::npos);
  content[count] = 1;
  content[count + 4] = 0;  // of a member
  QVERIFY(parse_invite_link(sealed(content, 3)).error().message.find("'sizes'") != std::string::npos);
  std::vector<ModelGrowth> many;
  for (std::uint64_t i = 0; i < max_profile_sizes; ++i) many.push_back({5 + i, 256, 1 << 18, 1 << 18});
  invite.profile.consensus.sizes = many;
  QVERIFY2(parse_invite_link(link_of(invite)).ok(), "all that a profile may have has room");
}

void TestInviteLink::a_voucher_has_to_be_signed_for_this_network() {
  const auto refused = [](const InviteLink& invite) {
    const auto read = parse_invite_link(link_of(invite));
    return !read.ok() && read.error().code == ErrorCode::Denied &&
           read.error().message.find("right to vote") != std::string::npos;
  };
  QVERIFY(!refused(of_a_chain()));
  InviteLink invite = of_a_chain();
  invite.profile.consensus.hidden = 512;  // another network
  QVERIFY(refused(invite));
  invite = of_a_chain();
  invite.voucher->secret = Hash256{99};  // another key
  QVERIFY(refused(invite));
  invite = of_a_chain();
  ++invite.voucher->voucher.serial;
  QVERIFY(refused(invite));
  invite = of_a_chain();
  ++invite.voucher->voucher.expires_ms;
  QVERIFY(refused(invite));
}

void TestInviteLink::hostile_trust_is_refused() {
  const Bytes content = content_of(link_of(of_a_chain()));
  for (std::size_t length = 0; length < content.size(); ++length)
    QVERIFY2(
        !parse_invite_link(sealed(Bytes(content.begin(), content.begin() + static_cast<long>(length)), 2))
             .ok(),
        std::to_string(length).c_str());
  QVERIFY(parse_invite_link(sealed(content, 2)).ok());
  Bytes after = content;
  after.push_back(0);
  QCOMPARE(parse_invite_link(sealed(after, 2)).error().code, ErrorCode::Corrupt);
  QVERIFY2(!parse_invite_link(sealed(content, 1)).ok(), "the first version has no trust");
  // A flag that is neither 0 nor 1; from the end: voucher without its flag.
  const std::size_t flag = content.size() - (32 + 1 + 6 + 64 + 32) - 1;
  QCOMPARE(int{content[flag]}, 1);
  Bytes other = content;
  other[flag] = 2;
  QCOMPARE(parse_invite_link(sealed(other, 2)).error().code, ErrorCode::Corrupt);
  // More founders than are taken. Solo has no peers, so its counts are easy to find.
  InviteLink founded = village();
  founded.peers.clear();
  founded.profile.consensus.founders = {to_hex(Hash256{5})};
  Bytes many = content_of(link_of(founded));
  // From the end: voucher, founder wallet, recent, genesis, peers, genesis of the profile, the founder, the count.
  const std::size_t count = many.size() - 6 - 32 - 1;
  QCOMPARE(int{many[count]}, 1);
  many[count] = 65;
  QVERIFY(parse_invite_link(sealed(many, 2)).error().message.find("65 founders") != std::string::npos);
  InviteLink torn = of_a_chain();
  torn.profile.directory.genesis = Hash256{77};
  QVERIFY(parse_invite_link(link_of(torn)).error().message.find("different first blocks") !=
          std::string::npos);
}

void TestInviteLink::who_made_it_with_another_version_is_told() {
  const Bytes content = content_of(link_of(village()));
  QCOMPARE(parse_invite_link(sealed(content, 4)).error().code, ErrorCode::Unsupported);
  Bytes unknown(34, 9);  // the id of a network that is not built in
  unknown.front() = 0;
  unknown.back() = 0;
  const auto other = parse_invite_link(sealed(unknown));
  QCOMPARE(other.error().code, ErrorCode::Unsupported);
  QVERIFY(other.error().message.find("version of the inviting node") != std::string::npos);
  Bytes fields = content;
  fields[1 + 1 + 7] = 99;  // form, length of "village", its letters; the number of constants
  const auto constants = parse_invite_link(sealed(fields));
  QCOMPARE(constants.error().code, ErrorCode::Unsupported);
  QVERIFY(constants.error().message.find("99 constants") != std::string::npos);
}

NS_TEST(TestInviteLink)
#include "test_invite_link.moc"
