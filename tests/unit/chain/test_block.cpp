// Blocks: canonical bytes, a root that covers each section and the opening block, and a compact close section
// that says the same as the vectors in full.
#include <QtTest>

#include "core/chain/detail/close_bytes.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/samples.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using test::key_of;

namespace {

std::vector<BlockBody> bodies() {
  std::vector<BlockBody> all(7);
  all[1] = samples::body_of_a_close();
  all[2].result = samples::result_section();
  all[3].genesis = samples::genesis_section();
  all[4].succession = SuccessionSection{{3, 4}};
  all[5].silent = {2};
  all[6].close = CloseSection{6, {}, {}};
  return all;
}

bool is_read(const BlockBody& body) {
  return decode_body(encode_body(body), samples::opening).ok();
}

// The position of a section's length in an encoded body.
std::size_t offset_of(const Bytes& body, std::size_t section) {
  std::size_t at = 0;
  for (; section > 0; --section) at += 4 + load_le<std::uint32_t>(body.data() + at);
  return at;
}

}  // namespace

class TestChainBlock : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void headers_are_canonical();
  void the_hash_covers_header_and_network();
  void every_body_is_canonical();
  void a_block_is_read_with_its_own_body_only();
  void the_root_covers_the_opening_block();
  void a_compact_close_says_the_same_as_its_vectors();
  void a_close_says_what_is_withheld_at_its_end();
  void a_close_names_nobody_whom_no_vector_lists();
  void lists_ascend_and_are_bounded();
  void the_vectors_of_a_close_list_a_bounded_number();
  void sections_exclude_each_other();
  void a_reserved_section_is_unsupported();
  void a_genesis_has_registrations_only();
  void presence_only();
  void a_large_close_fits();
};

void TestChainBlock::headers_are_canonical() {
  const BlockHeader header = samples::block(samples::body_of_a_close())->header;
  QCOMPARE(encode_header(header).size(), header_bytes);
  QCOMPARE(samples::format_fault(encode_header(header), samples::reencoder(decode_header, encode_header)),
           std::string());
  Bytes newer = encode_header(header);
  newer[4] = 2;
  QVERIFY(decode_header(newer).error().code == ErrorCode::Unsupported);

  BlockHeader genesis = header;
  genesis.height = 0;
  QVERIFY2(!decode_header(encode_header(genesis)).ok(), "a genesis follows a block");
  genesis.previous = {};
  QVERIFY(decode_header(encode_header(genesis)).ok());
  genesis.height = 1;
  QVERIFY(!decode_header(encode_header(genesis)).ok());
}

void TestChainBlock::the_hash_covers_header_and_network() {
  const BlockHeader header = samples::block(samples::body_of_a_close())->header;
  const Hash256 hash = block_hash(header, samples::network);
  QVERIFY(block_hash(header, samples::filled(8)) != hash);
  for (const auto change :
       {+[](BlockHeader& h) { h.height += 1; }, +[](BlockHeader& h) { h.previous[0] ^= 1; },
        +[](BlockHeader& h) { h.time_ms += 1; }, +[](BlockHeader& h) { h.body[0] ^= 1; },
        +[](BlockHeader& h) { h.registry[0] ^= 1; }}) {
    BlockHeader other = header;
    change(other);
    QVERIFY(block_hash(other, samples::network) != hash);
  }
}

void TestChainBlock::every_body_is_canonical() {
  const auto decode = [](ByteSpan bytes) { return decode_body(bytes, samples::opening); };
  std::vector<Hash256> roots;
  for (const BlockBody& body : bodies()) {
    const Bytes bytes = encode_body(body);
    QCOMPARE(samples::format_fault(bytes, samples::reencoder(decode, encode_body)), std::string());
    QVERIFY(*decode(bytes) == body);
    roots.push_back(body_root(body, samples::opening));
  }
  std::sort(roots.begin(), roots.end());
  QVERIFY(std::adjacent_find(roots.begin(), roots.end()) == roots.end());
}

void TestChainBlock::a_block_is_read_with_its_own_body_only() {
  const BlockPtr block = samples::block(samples::body_of_a_close());
  const Bytes bytes = encode_block(*block);
  const auto read = decode_block(bytes, samples::network);
  QVERIFY(read.ok());
  QVERIFY((*read)->header == block->header && (*read)->body == block->body);
  QVERIFY((*read)->hash == block->hash && (*read)->opening == block->opening);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    QVERIFY(!decode_block(ByteSpan(bytes).first(size), samples::network).ok());
  Bytes changed = bytes;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    changed[at] ^= 4;
    const auto other = decode_block(changed, samples::network);
    if (other.ok()) QVERIFY2((*other)->hash != block->hash, "changed bytes have the same hash");
    changed[at] ^= 4;
  }
  const BlockPtr genesis = samples::block(bodies()[3], 0);
  QVERIFY((*decode_block(encode_block(*genesis), samples::network))->body == genesis->body);
}

void TestChainBlock::the_root_covers_the_opening_block() {
  const BlockPtr block = samples::block(samples::body_of_a_close());
  Bytes bytes = encode_block(*block);
  bytes[header_bytes] ^= 1;  // the opening block's hash
  QVERIFY(!decode_block(bytes, samples::network).ok());
  QVERIFY(body_root({}, samples::opening) != body_root({}, samples::filled(51)));
}

void TestChainBlock::a_compact_close_says_the_same_as_its_vectors() {
  BlockBody body;
  body.close = samples::close_section();
  const auto read = decode_body(encode_body(body), samples::opening);
  QVERIFY(read.ok());
  for (std::size_t i = 0; i < body.close->vectors.size(); ++i) {
    const Vector& vector = read->close->vectors[i];
    QVERIFY(encode_vector(vector) == encode_vector(body.close->vectors[i]));
    QVERIFY(
        vector_holds(vector, key_of(static_cast<std::uint8_t>(vector.voter)).public_key(), samples::network));
  }
  // Vectors are of the section's opening block: for another one the same bytes are signed by nobody.
  const auto elsewhere = decode_body(encode_body(body), samples::filled(51));
  QVERIFY(elsewhere.ok());
  QVERIFY(!vector_holds(elsewhere->close->vectors[0], key_of(1).public_key(), samples::network));
}

void TestChainBlock::a_close_says_what_is_withheld_at_its_end() {
  BlockBody body;
  body.close = samples::close_section();
  const std::size_t without = encode_close(*body.close).size();
  body.close->vectors[0].withheld = {{1, 4}, {1, 5}};
  body.close->vectors[2].withheld = {{4, 5}};
  const auto read = decode_body(encode_body(body), samples::opening);
  QVERIFY(read.ok() && *read == body);
  const Bytes section = encode_close(*body.close);
  QCOMPARE(section.size(), without + 4 + 2 * (4 + 4) + 3 * (4 + 8));
  for (std::size_t size = without + 1; size < section.size(); ++size)
    QVERIFY(!decode_close(ByteSpan(section).first(size), samples::opening).ok());
  // No count of nothing, no voter twice, none in another order, and none without a vector.
  const std::size_t first = without + 4, second = first + 4 + 4 + 2 * (4 + 8);
  const auto refused = [&](std::size_t at, std::uint8_t value) {
    Bytes changed = section;
    changed[at] = value;
    return !decode_close(changed, samples::opening).ok();
  };
  QVERIFY(!refused(first, 2));  // voter 2 has a vector, too
  QVERIFY(refused(without, 0) && refused(without, 1) && refused(without, 3));
  QVERIFY(refused(first, 4) && refused(first, 3) && refused(second, 1));
  QVERIFY(refused(first + 4, 0) && refused(first + 4, 1) && refused(first + 4 + 4, 9));
}

void TestChainBlock::a_close_names_nobody_whom_no_vector_lists() {
  BlockBody body;
  body.close = CloseSection{6, {}, {samples::vector(1, {1, 2, 3})}};
  const Bytes bytes = encode_body(body);
  // In the section: round, no contributions, the three numbers, rows, one vector, voter, root, bitmap.
  const std::size_t bitmap = offset_of(bytes, 2) + 4 + 8 + 4 + 4 + 3 * 4 + 4 + 4 + 4 + 32;
  QCOMPARE(int{bytes[bitmap]}, 7);
  Bytes changed = bytes;
  changed[bitmap] = 3;  // the third number is listed by nobody now; the rows' bitmaps keep their size
  changed[bitmap + 1] &= 3;
  changed[bitmap + 2] &= 3;
  QVERIFY(decode_body(bytes, samples::opening).ok());
  QVERIFY(!decode_body(changed, samples::opening).ok());
}

void TestChainBlock::lists_ascend_and_are_bounded() {
  const auto refused = [](auto change) {
    BlockBody body = samples::body_of_a_close();
    change(body);
    return !is_read(body);
  };
  QVERIFY(!refused([](BlockBody&) {}));
  QVERIFY(refused([](BlockBody& b) { std::swap(b.close->contributions[0], b.close->contributions[1]); }));
  QVERIFY(refused([](BlockBody& b) { b.close->contributions[1] = b.close->contributions[0]; }));
  QVERIFY(refused([](BlockBody& b) { std::swap(b.close->vectors[0], b.close->vectors[1]); }));
  QVERIFY2(refused([](BlockBody& b) { b.close->vectors[1] = b.close->vectors[0]; }),
           "a voter has two vectors");
  QVERIFY(refused([](BlockBody& b) { b.close->vectors[1].payloads.pop_back(); }));
  QVERIFY(refused([](BlockBody& b) { b.silent = {5, 2}; }));
  QVERIFY(refused([](BlockBody& b) { b.silent = {2, 2}; }));
  QVERIFY2(refused([](BlockBody& b) { b.statements.push_back(samples::statement(1, Leave{})); }),
           "a node states two things");
  QVERIFY(refused([](BlockBody& b) { b.evidence.push_back(b.evidence[0]); }));
  QVERIFY(refused([](BlockBody& b) {
    b.evidence = {samples::evidence(1), samples::evidence(2)};
    if (b.evidence[0].node < b.evidence[1].node) std::swap(b.evidence[0], b.evidence[1]);
  }));
  QVERIFY(refused([](BlockBody& b) {
    b.statements.clear();
    for (std::size_t i = 0; i <= max_block_statements; ++i) {
      b.statements.push_back(samples::statement(1, Away{}));
      store_le(b.statements.back().node.data(), static_cast<std::uint32_t>(i));
    }
  }));
  QVERIFY(refused([](BlockBody& b) {
    b.close->vectors = {samples::vector(1, {})};
    b.close->vectors[0].payloads.resize(max_rows + 1);
  }));

  BlockBody result;
  result.result = samples::result_section();
  std::swap(result.result->rows[0], result.result->rows[1]);
  QVERIFY(!is_read(result));
}

// A bit of the message would become four bytes of memory.
void TestChainBlock::the_vectors_of_a_close_list_a_bounded_number() {
  const auto is_read_with = [](std::uint32_t vectors) {
    BlockBody body;
    body.close = CloseSection{6, {}, {}};
    Vector vector;
    vector.members.resize(max_members);
    for (std::uint32_t i = 0; i < max_members; ++i) vector.members[i] = i;
    for (vector.voter = 0; vector.voter < vectors; ++vector.voter) body.close->vectors.push_back(vector);
    return is_read(body);
  };
  constexpr std::uint32_t most = max_listed / max_members;
  static_assert(most < max_committee);
  QVERIFY(is_read_with(most));
  QVERIFY(!is_read_with(most + 1));
}

void TestChainBlock::sections_exclude_each_other() {
  BlockBody body = bodies()[1];
  body.result = samples::result_section();
  QVERIFY(!is_read(body));
  for (const std::size_t alone : {3u, 4u}) {
    body = bodies()[alone];
    QVERIFY(is_read(body));
    body.silent = {2};
    QVERIFY(!is_read(body));
  }
}

void TestChainBlock::a_reserved_section_is_unsupported() {
  for (const std::size_t section : {7u, 8u, 9u}) {
    Bytes bytes = encode_body(bodies()[5]);
    const std::size_t at = offset_of(bytes, section);
    bytes[at] = 1;
    bytes.insert(bytes.begin() + static_cast<long>(at) + 4, 0);
    const auto read = decode_body(bytes, samples::opening);
    QVERIFY(!read.ok() && read.error().code == ErrorCode::Unsupported);
  }
}

void TestChainBlock::a_genesis_has_registrations_only() {
  BlockBody body = bodies()[3];
  std::swap(body.genesis->founders[0], body.genesis->founders[1]);
  QVERIFY(!is_read(body));
  body = bodies()[3];
  body.genesis->founders[1] = samples::statement(2, samples::registration(2, false));  // names a block
  QVERIFY(!is_read(body));
  body.genesis->founders = {samples::statement(2, Back{}, BlockReference{})};
  QVERIFY(!is_read(body));
}

void TestChainBlock::presence_only() {
  const std::vector<BlockBody> all = bodies();
  QVERIFY(all[0].empty() && !all[0].is_presence_only());
  for (const std::size_t i : {1u, 2u, 3u, 4u, 6u}) QVERIFY(!all[i].empty() && !all[i].is_presence_only());
  QVERIFY(all[5].is_presence_only());
  BlockBody body;
  body.statements = {samples::statement(1, Away{}), samples::statement(2, Back{})};
  QVERIFY(body.is_presence_only());
  body.statements.push_back(samples::statement(3, Leave{}));
  QVERIFY(!body.is_presence_only());
  body = all[5];
  body.evidence = {samples::evidence()};
  QVERIFY(!body.is_presence_only());
}

void TestChainBlock::a_large_close_fits() {
  std::vector<std::uint32_t> everybody(10'000);
  for (std::uint32_t i = 0; i < everybody.size(); ++i) everybody[i] = 3 * i;
  BlockBody body;
  body.close = CloseSection{6, {}, {}};
  Vector vector;
  vector.opening = samples::opening;
  vector.round = 6;
  vector.members = everybody;
  vector.payloads.assign(1, Bitmap(everybody.size()));
  for (std::uint32_t voter = 0; voter < max_committee; ++voter) {
    vector.voter = voter;
    body.close->vectors.push_back(vector);
  }
  ContributionEntry entry;
  for (const std::uint32_t member : everybody) {
    entry.member = member;
    body.close->contributions.push_back(entry);
  }
  const Bytes bytes = encode_body(body);
  QVERIFY2(bytes.size() <= max_body_bytes, qPrintable(QString::number(bytes.size())));
  const auto read = decode_body(bytes, samples::opening);
  QVERIFY(read.ok() && *read == body);
}

NS_TEST(TestChainBlock)
#include "test_block.moc"
