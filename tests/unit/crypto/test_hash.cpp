// SHA-256 and Merkle roots against values of Python's hashlib.
#include <QtTest>

#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::crypto;

class TestHash : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void sha256_of_known_texts();
  void streaming_equals_whole_at_every_cut();
  void merkle_roots_match_rfc_6962();
  void a_node_is_not_a_leaf();
  void each_leaf_has_a_path_to_the_root();
};

namespace {

std::string hex(const Hash256& hash) {
  return to_hex(hash);
}

}  // namespace

void TestHash::sha256_of_known_texts() {
  QCOMPARE(hex(sha256({})), std::string("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
  QCOMPARE(hex(sha256(as_bytes("abc"))),
           std::string("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
}

void TestHash::streaming_equals_whole_at_every_cut() {
  Bytes data(200);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i * 7);
  const Hash256 whole = sha256(data);
  for (std::size_t cut = 0; cut <= data.size(); ++cut) {
    const ByteSpan view(data);
    QCOMPARE(Sha256().update(view.first(cut)).update(view.subspan(cut)).finish(), whole);
  }
}

void TestHash::merkle_roots_match_rfc_6962() {
  // Python: the recursive definition of RFC 6962 over the one-byte chunks 0, 1, …
  const char* expected[] = {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                            "a20bf9a7cc2dc8a08f5f415a71b19f6ac427bab54d24eec868b5d3103449953a",
                            "3b6cccd7e3e023ff393006f030315ee7ad9eb111b022b41fba7e5b7a3973f688",
                            "9bcd51240af4005168f033121ba85be5a6ed4f0e6a5fac262066729b8fbfdecb",
                            "b855b42d6c30f5b087e05266783fbd6e394f7b926013ccaa67700a8b0c5a596f",
                            "bb36e7d3d4cee5720cbd323d02fab15962e2ba1dadf5f8fc6eeef4fd6ad056a8",
                            "3560191803028444b232018ac047fdb561c09c23a7a6876c85e08b5e4d48e9f3"};
  const Bytes data = {0, 1, 2, 3, 4, 5, 6};
  for (std::size_t n = 0; n <= data.size(); ++n) {
    QCOMPARE(hex(merkle_root(ByteSpan(data).first(n), 1)), std::string(expected[n]));
  }
  // The last chunk may be short, and cutting elsewhere gives another root.
  QCOMPARE(merkle_root(data, 100), merkle_leaf(data));
  QVERIFY(merkle_root(data, 2) != merkle_root(data, 3));
}

void TestHash::a_node_is_not_a_leaf() {
  const Hash256 left = merkle_leaf(as_bytes("a"));
  const Hash256 right = merkle_leaf(as_bytes("b"));
  Bytes forged(left.begin(), left.end());
  forged.insert(forged.end(), right.begin(), right.end());
  const std::vector<Hash256> leaves = {left, right};
  QVERIFY(merkle_leaf(forged) != merkle_root(leaves));
}

void TestHash::each_leaf_has_a_path_to_the_root() {
  for (std::size_t count = 1; count <= 33; ++count) {
    std::vector<Hash256> leaves;
    for (std::size_t i = 0; i < count; ++i)
      leaves.push_back(merkle_leaf(Bytes{static_cast<std::uint8_t>(i)}));
    const MerkleTree tree(leaves);
    QCOMPARE(tree.root(), merkle_root(leaves));
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<Hash256> path = tree.path(i);
      QCOMPARE(merkle_root_of_path(leaves[i], i, count, path), std::optional(tree.root()));
      // Another leaf, another place, another path.
      QVERIFY(merkle_root_of_path(merkle_leaf({}), i, count, path) != tree.root());
      for (std::size_t other = 0; other <= count; ++other)
        if (other != i) QVERIFY(merkle_root_of_path(leaves[i], other, count, path) != tree.root());
      path.push_back(leaves[i]);
      QVERIFY(!merkle_root_of_path(leaves[i], i, count, path));
      path.resize(path.size() - 1);
      if (path.empty()) continue;
      path.pop_back();
      QVERIFY(!merkle_root_of_path(leaves[i], i, count, path));
    }
  }
}

NS_TEST(TestHash)
#include "test_hash.moc"
