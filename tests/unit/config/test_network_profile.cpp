// Network profiles: the constants of docs/protocol/networks.md, ids that never change by accident, and a
// parser that takes nothing for granted.
#include <QtTest>

#include "core/chain/rules.h"
#include "core/config/network_profile.h"
#include "core/crypto/hash.h"
#include "tests/support/test_main.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::config;  // NOLINT

class TestNetworkProfile : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void network_ids_are_pinned_data();
  void network_ids_are_pinned();
  void shapes_of_the_table_data();
  void shapes_of_the_table();
  void json_round_trip();
  void any_changed_constant_is_another_network();
  void bad_files_are_refused_data();
  void bad_files_are_refused();
  void every_truncation_is_refused();
  void bad_constants_name_the_field_data();
  void bad_constants_name_the_field();
  void codecs_and_what_goes_with_them();
  void the_outer_step_has_to_be_possible();
  void dense_model_is_legal();
  void rounds_know_their_kinds();
  void founders_are_part_of_the_network();
  void bad_founders_are_named_data();
  void bad_founders_are_named();
  void a_first_block_is_no_part_of_the_network();
  void addresses_are_signed();
  void mainnet_says_that_nobody_operates_it();
  void a_network_without_addresses_says_how_nodes_meet();
  void unknown_names_list_the_known();
};

namespace {

NetworkProfile profile(const char* name) {
  auto result = builtin_profile(name);
  if (!result.ok()) qFatal("no profile %s", name);
  return *result;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) qFatal("%s is not in the text", from.c_str());
  return text.replace(at, from.size(), to);
}

}  // namespace

void TestNetworkProfile::network_ids_are_pinned_data() {
  // From a Python program that writes the canonical text from docs/protocol/networks.md and hashes it.
  QTest::addColumn<QString>("id");
  QTest::newRow("mainnet") << "94647db99a1689b9a95fbfdf59d47b86fcc1745624447e7412f448ceaef0cb31";
  QTest::newRow("testnet") << "0faff494177e8a176838b71471f735e33cd80b430b513768449d14cd904d0c06";
  QTest::newRow("devnet") << "aeffa63bc07832fc8f6f1c1a5c31cb8ee6c28b0e916f09b5e5f4ae9b86fa4992";
  QTest::newRow("solo") << "de08e35d036f27fb7de9ac7355b66d3012b1ef12ef8a3c5a4bf5404066823ca7";
}

void TestNetworkProfile::network_ids_are_pinned() {
  QFETCH(QString, id);
  QCOMPARE(QString::fromStdString(to_hex(network_id(profile(QTest::currentDataTag()).consensus))), id);
}

void TestNetworkProfile::shapes_of_the_table_data() {
  QTest::addColumn<QList<int>>("shape");  // layers hidden head_dim heads kv ffn experts k vocab sequence
  QTest::newRow("mainnet") << QList<int>{8, 512, 128, 4, 1, 2048, 8, 2, 32768, 512};
  QTest::newRow("testnet") << QList<int>{8, 256, 64, 4, 1, 1024, 8, 2, 8192, 256};
  QTest::newRow("devnet") << QList<int>{4, 128, 32, 4, 1, 256, 8, 2, 1024, 128};
  QTest::newRow("solo") << QList<int>{6, 256, 64, 4, 1, 512, 8, 2, 4096, 256};
}

void TestNetworkProfile::shapes_of_the_table() {
  QFETCH(QList<int>, shape);
  const ConsensusPart consensus = profile(QTest::currentDataTag()).consensus;
  QVERIFY(validate(consensus).ok());
  const compute::ModelShape s = model_shape(consensus);
  const QList<std::uint32_t> actual{s.layers, s.hidden,  s.head_dim,          s.heads, s.kv_heads,
                                    s.ffn,    s.experts, s.experts_per_token, s.vocab, s.sequence};
  for (int i = 0; i < shape.size(); ++i) QCOMPARE(actual[i], static_cast<std::uint32_t>(shape[i]));
}

void TestNetworkProfile::json_round_trip() {
  for (const char* name : builtin_profile_names()) {
    const std::string text = format_network_profile(profile(name));
    const auto parsed = parse_network_profile(as_bytes(text));
    QVERIFY2(parsed.ok(), parsed.ok() ? "" : parsed.error().describe().c_str());
    QCOMPARE(format_network_profile(*parsed), text);
    QCOMPARE(network_id(parsed->consensus), network_id(profile(name).consensus));
  }
}

void TestNetworkProfile::any_changed_constant_is_another_network() {
  const ConsensusPart solo = profile("solo").consensus;
  for (const ConsensusField& field : consensus_fields()) {
    ConsensusPart changed = solo;
    changed.*field.member += 1;
    QVERIFY2(network_id(changed) != network_id(solo), field.key);
  }
  // A constant that came later is written where it is not the usual one only: older networks keep their id.
  ConsensusPart small = solo;
  QVERIFY(canonical_text(small).find("group_members") == std::string::npos);
  small.group_members = 3;
  QVERIFY(canonical_text(small).find("\ngroup_members=3\n") != std::string::npos);
  NetworkProfile laboratory = profile("solo");
  laboratory.consensus = small;
  laboratory.consensus.name = "laboratory";
  const auto read = parse_network_profile(as_bytes(format_network_profile(laboratory)));
  QVERIFY2(read.ok() && read->consensus.group_members == 3, read.ok() ? "" : read.error().message.c_str());
  // A constant of words is written as its word.
  laboratory.consensus = profile("devnet").consensus;
  laboratory.consensus.name = "laboratory";
  laboratory.consensus.voters = 2;
  QVERIFY(canonical_text(laboratory.consensus).find("\nvoters=open\nblock_time_s=5\n") != std::string::npos);
  const std::string written = format_network_profile(laboratory);
  QVERIFY2(written.find("\"voters\": \"open\"") != std::string::npos, written.c_str());
  const auto open = parse_network_profile(as_bytes(written));
  QVERIFY2(open.ok() && open->consensus.voters == 2, written.c_str());
  NetworkProfile moved = profile("solo");
  moved.directory.http_port = 1234;
  QVERIFY2(network_id(moved.consensus) == network_id(solo), "an address is not part of the id");
}

void TestNetworkProfile::bad_files_are_refused_data() {
  QTest::addColumn<QString>("from");
  QTest::addColumn<QString>("to");
  QTest::addColumn<QString>("says");
  QTest::newRow("unknown field") << "\"layers\": 6"
                                 << "\"layers\": 6, \"colour\": 1"
                                 << "colour";
  QTest::newRow("missing field") << "\"layers\": 6,"
                                 << ""
                                 << "layers";
  QTest::newRow("doubled field") << "\"layers\": 6"
                                 << "\"layers\": 6, \"layers\": 6"
                                 << "twice";
  QTest::newRow("text for a number") << "\"layers\": 6"
                                     << "\"layers\": \"6\""
                                     << "layers";
  QTest::newRow("negative") << "\"layers\": 6"
                            << "\"layers\": -6"
                            << "layers";
  QTest::newRow("fraction") << "\"layers\": 6"
                            << "\"layers\": 6.5"
                            << "layers";
  QTest::newRow("huge") << "\"layers\": 6"
                        << "\"layers\": 18446744073709551615"
                        << "layers";
  QTest::newRow("other constants under a built-in name") << "\"layers\": 6"
                                                         << "\"layers\": 7"
                                                         << "name";
  QTest::newRow("id of another network") << "de08e35d"
                                         << "0e08e35d"
                                         << "network_id";
  QTest::newRow("newer format") << "\"format\": 1"
                                << "\"format\": 2"
                                << "format 2";
  QTest::newRow("port") << "\"http_port\": 8000"
                        << "\"http_port\": 80000"
                        << "http_port";
  QTest::newRow("address with a line break") << "\"bootstrap\": []"
                                             << "\"bootstrap\": [\"a\\nb:1\"]"
                                             << "bootstrap";
  QTest::newRow("deep") << "\"bootstrap\": []"
                        << "\"bootstrap\": [[[[[[[[]]]]]]]]"
                        << "deep";
}

void TestNetworkProfile::bad_files_are_refused() {
  QFETCH(QString, from);
  QFETCH(QString, to);
  QFETCH(QString, says);
  const std::string text =
      replaced(format_network_profile(profile("solo")), from.toStdString(), to.toStdString());
  const auto parsed = parse_network_profile(as_bytes(text));
  QVERIFY(!parsed.ok());
  QVERIFY2(QString::fromStdString(parsed.error().message).contains(says), parsed.error().message.c_str());
}

void TestNetworkProfile::every_truncation_is_refused() {
  const std::string text = format_network_profile(profile("devnet"));
  for (std::size_t length = 0; length + 2 < text.size(); ++length) {
    QVERIFY(!parse_network_profile(as_bytes(std::string_view(text).substr(0, length))).ok());
  }
  QCOMPARE(parse_network_profile(Bytes(max_profile_bytes + 1, ' ')).error().code, ErrorCode::Exhausted);
}

void TestNetworkProfile::bad_constants_name_the_field_data() {
  QTest::addColumn<QString>("key");
  QTest::addColumn<qulonglong>("value");
  QTest::newRow("hidden no multiple of head_dim") << "hidden" << 250ULL;
  QTest::newRow("ffn no whole number") << "ffn_percent" << 333ULL;
  QTest::newRow("more chosen than there are") << "experts_per_token" << 9ULL;
  QTest::newRow("batch no multiple of sequence") << "batch_tokens" << 4097ULL;
  QTest::newRow("no layers") << "layers" << 0ULL;
  QTest::newRow("odd head") << "head_dim" << 1ULL;
  QTest::newRow("vocabulary smaller than the bytes") << "vocab" << 100ULL;
  QTest::newRow("rate above 1") << "peak_learning_rate_nano" << 2'000'000'000ULL;
}

void TestNetworkProfile::codecs_and_what_goes_with_them() {
  for (const char* codec : {"fp32", "fp16", "int8", "int4"}) {
    ConsensusPart consensus = profile("devnet").consensus;
    consensus.codec = codec;
    QVERIFY(validate(consensus).ok());
    QVERIFY(!is_sparse(consensus));
  }
  ConsensusPart sparse = profile("devnet").consensus;
  sparse.codec = "topk";
  QVERIFY(is_sparse(sparse));
  QVERIFY(validate(sparse).error().message.find("outer_momentum_nano") != std::string::npos);
  sparse.outer_momentum_nano = 0;
  QVERIFY(validate(sparse).ok());
  // For comparisons only; and what is none.
  for (const char* codec : {"seed-topk", "int16", ""}) {
    sparse.codec = codec;
    QVERIFY(validate(sparse).error().message.find("codec") != std::string::npos);
  }
}

void TestNetworkProfile::the_outer_step_has_to_be_possible() {
  ConsensusPart consensus = profile("devnet").consensus;
  for (const std::uint64_t rate : {0ULL, 2'000'000'001ULL, 3'000'000'000ULL}) {
    consensus.outer_learning_rate_nano = rate;
    const auto refused = validate(consensus);
    QVERIFY(!refused.ok() && refused.error().message.find("outer_learning_rate_nano") != std::string::npos);
  }
  for (const std::uint64_t rate : {1ULL, 2'000'000'000ULL}) {
    consensus.outer_learning_rate_nano = rate;
    QVERIFY(validate(consensus).ok());
  }
  for (const std::uint64_t momentum : {999'999'971ULL, 999'999'990ULL}) {
    consensus.outer_momentum_nano = momentum;
    const auto refused = validate(consensus);
    QVERIFY(!refused.ok() && refused.error().message.find("outer_momentum_nano") != std::string::npos);
  }
  consensus.outer_momentum_nano = 999'999'970;
  QVERIFY(validate(consensus).ok());
  QVERIFY(validate(profile("solo").consensus).ok());  // without an outer loop both are 0
}

void TestNetworkProfile::bad_constants_name_the_field() {
  QFETCH(QString, key);
  QFETCH(qulonglong, value);
  ConsensusPart consensus = profile("solo").consensus;
  bool found = false;
  for (const ConsensusField& field : consensus_fields()) {
    if (key != field.key) continue;
    consensus.*field.member = value;
    found = true;
  }
  QVERIFY(found);
  const auto result = validate(consensus);
  QVERIFY(!result.ok());
  QCOMPARE(result.error().code, ErrorCode::InvalidArgument);
  QVERIFY2(QString::fromStdString(result.error().message).contains(key), result.error().message.c_str());
}

void TestNetworkProfile::dense_model_is_legal() {
  ConsensusPart consensus = profile("solo").consensus;
  consensus.name = "dense";
  consensus.experts = consensus.experts_per_token = 1;
  consensus.ffn_percent = 150;
  QVERIFY(validate(consensus).ok());
  QCOMPARE(model_shape(consensus).ffn, 384u);
}

void TestNetworkProfile::rounds_know_their_kinds() {
  ConsensusPart consensus = profile("devnet").consensus;
  consensus.name = "club";
  consensus.layers = 64;
  for (const char* known : {"plain", "delayed-1", "fragments=2", "fragments=16", "parts=2", "parts=64"}) {
    consensus.sync = known;
    QVERIFY(validate(consensus).ok());
  }
  for (const char* unknown : {"delayed-2", "fragments", "fragments=", "fragments=1", "fragments=17",
                              "fragments=04", "fragments=2 ", "parts", "parts=1", "parts=65", "parts=03"}) {
    consensus.sync = unknown;
    const auto refused = validate(consensus);
    QVERIFY2(!refused.ok() && refused.error().message.find("fragments=P") != std::string::npos, unknown);
  }
  // Each part has a layer.
  consensus.layers = 4;
  consensus.sync = "parts=4";
  QVERIFY(validate(consensus).ok());
  consensus.sync = "parts=5";
  QVERIFY(validate(consensus).error().message.find("5 parts") != std::string::npos);
  consensus.sync = "parts=4";
  consensus.voters = static_cast<std::uint64_t>(chain::VotersMode::Open);
  QVERIFY(validate(consensus).error().message.find("gradients of strangers") != std::string::npos);
  consensus.voters = static_cast<std::uint64_t>(chain::VotersMode::Invited);
  // Each fragment's round has an end of its own.
  consensus.sync = "fragments=8";
  consensus.inner_steps = 8;
  QVERIFY(validate(consensus).ok());
  consensus.inner_steps = 7;
  QVERIFY(validate(consensus).error().message.find("8 fragments") != std::string::npos);
  consensus.sync = "plain";
  consensus.router_bias_gamma_nano = 1'000'000;
  QVERIFY(validate(consensus).error().message.find("router_bias_gamma_nano") != std::string::npos);
}

void TestNetworkProfile::founders_are_part_of_the_network() {
  NetworkProfile club = profile("devnet");
  club.consensus.name = "club";
  const Hash256 without = network_id(club.consensus);
  QVERIFY(canonical_text(club.consensus).find("founders=") == std::string::npos);
  QVERIFY(format_network_profile(club).find("\"founders\"") == std::string::npos);
  const std::string first(64, 'a'), second(64, 'b');
  club.consensus.founders = {first, second};
  const std::string text = canonical_text(club.consensus), last = "\nfounders=" + first + "," + second + "\n";
  QVERIFY2(text.size() > last.size() && text.substr(text.size() - last.size()) == last, text.c_str());
  QVERIFY(network_id(club.consensus) != without);
  const auto read = parse_network_profile(as_bytes(format_network_profile(club)));
  QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
  QVERIFY(read->consensus.founders == club.consensus.founders);
  QCOMPARE(founder_keys(read->consensus).size(), std::size_t{2});
  QCOMPARE(to_hex(founder_keys(read->consensus)[1]), second);
  club.consensus.founders.clear();
  club.consensus.voters = static_cast<std::uint64_t>(chain::VotersMode::Founders);
  QVERIFY(validate(club.consensus).error().message.find("at least one wallet") != std::string::npos);
  club.consensus.founders = {first};
  QVERIFY(validate(club.consensus).ok());
  ConsensusPart alone = profile("solo").consensus;
  alone.founders = {first};
  QVERIFY2(!validate(alone).ok(), "founders of a network without rounds");
  const std::string empty =
      replaced(format_network_profile(profile("devnet")), "\"codec\"", "\"founders\": [], \"codec\"");
  QVERIFY(parse_network_profile(as_bytes(empty)).error().message.find("founders") != std::string::npos);
}

void TestNetworkProfile::bad_founders_are_named_data() {
  QTest::addColumn<QStringList>("founders");
  QTest::addColumn<QString>("says");
  const QString a(64, 'a'), b(64, 'b');
  QTest::newRow("twice") << QStringList{a, a} << "twice";
  QTest::newRow("descending") << QStringList{b, a} << "ascending";
  QTest::newRow("upper case") << QStringList{QString(64, 'A')} << "AAAA";
  QTest::newRow("short") << QStringList{a.left(63)} << "64 lower-case";
  QTest::newRow("no hex") << QStringList{QString(64, 'x')} << "xxxx";
  QTest::newRow("more than one a line") << QStringList{a + "," + b} << "64 lower-case";
  QStringList many;
  for (int i = 0; i < 65; ++i) many << QString("%1").arg(i, 64, 10, QChar('0'));
  QTest::newRow("many") << many << "at most 64";
}

void TestNetworkProfile::bad_founders_are_named() {
  QFETCH(QStringList, founders);
  QFETCH(QString, says);
  ConsensusPart consensus = profile("devnet").consensus;
  for (const QString& founder : founders) consensus.founders.push_back(founder.toStdString());
  const auto result = validate(consensus);
  QVERIFY(!result.ok());
  QVERIFY2(result.error().message.find("'founders'") != std::string::npos, result.error().message.c_str());
  QVERIFY2(QString::fromStdString(result.error().message).contains(says), result.error().message.c_str());
}

void TestNetworkProfile::a_first_block_is_no_part_of_the_network() {
  const crypto::KeyPair publisher = crypto::KeyPair::from_seed(crypto::sha256(as_bytes("publisher")));
  NetworkProfile club = profile("devnet");
  club.consensus.name = "club";
  club.consensus.publisher_key = to_hex(publisher.public_key());
  const Hash256 id = network_id(club.consensus);
  sign_directory(club, publisher);
  const std::string before = format_network_profile(club);
  club.directory.genesis = Hash256{3};
  QVERIFY(network_id(club.consensus) == id);
  QCOMPARE(parse_network_profile(as_bytes(format_network_profile(club))).error().code, ErrorCode::Denied);
  sign_directory(club, publisher);
  const std::string text = format_network_profile(club);
  const auto read = parse_network_profile(as_bytes(text));
  QVERIFY(read.ok() && read->directory.genesis == club.directory.genesis);
  QVERIFY(parse_network_profile(as_bytes(before)).ok());
  const std::string upper = replaced(text, "\"genesis\": \"03", "\"genesis\": \"0X");
  QVERIFY(parse_network_profile(as_bytes(upper)).error().message.find("genesis") != std::string::npos);
}

void TestNetworkProfile::addresses_are_signed() {
  const crypto::KeyPair publisher =
      crypto::KeyPair::from_seed(crypto::sha256(as_bytes("publisher of a test")));
  NetworkProfile club = profile("devnet");
  club.consensus.name = "club";
  club.consensus.publisher_key = to_hex(publisher.public_key());
  club.directory.bootstrap = {"example.org:29000"};
  QCOMPARE(parse_network_profile(as_bytes(format_network_profile(club))).error().code, ErrorCode::Denied);
  sign_directory(club, publisher);
  const std::string text = format_network_profile(club);
  QVERIFY(parse_network_profile(as_bytes(text)).ok());
  const std::string forged = replaced(text, "example.org", "evil.invalid");
  QCOMPARE(parse_network_profile(as_bytes(forged)).error().code, ErrorCode::Denied);
  const std::string replayed = replaced(text, "\"sequence\": 0", "\"sequence\": 9");
  QCOMPARE(parse_network_profile(as_bytes(replayed)).error().code, ErrorCode::Denied);
}

void TestNetworkProfile::mainnet_says_that_nobody_operates_it() {
  QVERIFY(network_notice(profile("mainnet")).find("no bootstrap") != std::string::npos);
  QVERIFY(addresses_notice(profile("mainnet")).empty());
  QVERIFY(network_notice(profile("solo")).empty());
  QVERIFY(network_notice(profile("devnet")).empty());
}

void TestNetworkProfile::a_network_without_addresses_says_how_nodes_meet() {
  NetworkProfile village = profile("devnet");
  village.consensus.name = "village";
  QVERIFY(addresses_notice(village).empty());
  village.directory.bootstrap.clear();
  QVERIFY(addresses_notice(village).find("--peer") != std::string::npos);
  QVERIFY(addresses_notice(village).find("mainline_rendezvous") != std::string::npos);
  QVERIFY(network_notice(village).empty());
  village.directory.trackers = {"example.org:28765"};
  QVERIFY(addresses_notice(village).empty());
  QVERIFY(addresses_notice(profile("solo")).empty());
}

void TestNetworkProfile::unknown_names_list_the_known() {
  const auto files = storage::make_posix_file_env();
  const auto unknown = load_network_profile(*files, "solitude");
  QCOMPARE(unknown.error().code, ErrorCode::NotFound);
  QVERIFY(unknown.error().message.find("solo") != std::string::npos);
  const auto missing = load_network_profile(*files, "./no-such-profile.json");
  QCOMPARE(missing.error().code, ErrorCode::NotFound);
  QVERIFY(missing.error().describe().find("no-such-profile.json") != std::string::npos);
}

NS_TEST(TestNetworkProfile)
#include "test_network_profile.moc"
