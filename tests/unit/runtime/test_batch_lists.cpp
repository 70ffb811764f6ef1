// The batch lists of a node's contributions: kept, signed, offered, and dropped when they are old.
#include <QtTest>

#include "core/crypto/hash.h"
#include "core/data/batch_list.h"
#include "core/runtime/batch_lists.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::runtime;

namespace {

constexpr const char* folder = "/node/batches";

class Offers final : public data::PeerSource {
 public:
  Expected<std::vector<data::ManifestClaim>> manifests(Duration, const CancelToken&) override {
    return std::vector<data::ManifestClaim>{};
  }
  void refuted(const data::ManifestClaim&) override {}
  Expected<void> fetch(const data::PeerFile&, const CancelToken&) override { return {}; }
  void offer(const data::PeerFile& file) override { files.push_back(file); }
  void withdraw(const Hash256& sha256) override { withdrawn.push_back(sha256); }
  void offer_manifest(const data::ManifestClaim&, const std::string&) override {}
  // Read once the lists have ended.
  std::vector<data::PeerFile> files;
  std::vector<Hash256> withdrawn;
};

Bytes work_of(std::uint32_t batches) {
  data::BatchWork work{Hash256{1}, 16, 64, {}};
  work.runs.push_back({5, {5, 20}, 3, Hash256{2}, 0, 0, batches, Hash256{3}});
  return data::encode_batch_work(work);
}

struct Bench {
  // The hash for this work; the lists end with the call, as at a stop.
  std::vector<Hash256> keep(const std::vector<Bytes>& works) {
    std::vector<Hash256> hashes;
    std::mutex mutex;
    std::condition_variable answered;
    const auto node = make_thread_executor("node", 256);
    {
      BatchLists lists({files, key, logger, *node, &offers}, folder, Hash256{7});
      for (const Bytes& work : works) {
        const std::size_t before = hashes.size();
        lists.keep(round++, Hash256{8}, work, [&](const Hash256& hash) {
          const std::lock_guard lock(mutex);
          hashes.push_back(hash);
          answered.notify_all();
        });
        std::unique_lock lock(mutex);
        answered.wait(lock, [&] { return hashes.size() > before; });
      }
    }
    return hashes;
  }

  testing::MemoryFileEnv files;
  crypto::KeyPair key = crypto::KeyPair::from_seed(Hash256{1});
  NullLogger logger;
  Offers offers;
  std::uint64_t round = 12;
};

}  // namespace

class TestBatchLists : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_list_is_signed_kept_and_offered() {
    Bench b;
    const std::vector<Hash256> hashes = b.keep({work_of(40)});
    const auto bytes = storage::read_file(b.files, std::string(folder) + "/" + batch_list_name(12, hashes[0]),
                                          data::max_batch_list_bytes);
    QVERIFY(bytes.ok());
    QVERIFY(crypto::sha256(*bytes) == hashes[0]);
    const auto list = data::decode_batch_list(*bytes);
    QVERIFY(list.ok());
    QVERIFY(data::batch_list_holds(*list));
    QVERIFY(list->network == Hash256{7} && list->opening == Hash256{8} && list->round == 12);
    QCOMPARE(list->work.batches(), std::uint64_t{40});
    QCOMPARE(b.offers.files.size(), std::size_t{1});
    QVERIFY(b.offers.files[0].sha256 == hashes[0]);
    (void)b.keep({});  // a restart
    QCOMPARE(b.offers.files.size(), std::size_t{2});
    QVERIFY(b.offers.files[1].sha256 == hashes[0]);
  }

  void the_newest_are_kept() {
    Bench b;
    std::vector<Bytes> works;
    for (std::uint32_t i = 1; i <= kept_batch_lists + 5; ++i) works.push_back(work_of(i));
    const std::vector<Hash256> hashes = b.keep(works);
    const auto entries = b.files.list(folder);
    QVERIFY(entries.ok());
    QCOMPARE(entries->size(), kept_batch_lists);
    QCOMPARE(entries->front().name, batch_list_name(12 + 5, hashes[5]));
    QCOMPARE(entries->back().name, batch_list_name(12 + kept_batch_lists + 4, hashes.back()));
    // The others get no offer of a list that is gone.
    QVERIFY(b.offers.withdrawn == std::vector<Hash256>(hashes.begin(), hashes.begin() + 5));
  }

  void a_list_that_cannot_be_kept_gives_zeros() {
    Bench b;
    QVERIFY(b.keep({Bytes{1, 2, 3}})[0] == Hash256{});
    b.files.set_capacity(10);
    QVERIFY(b.keep({work_of(40)})[0] == Hash256{});
    QVERIFY(b.offers.files.empty());
  }
};

NS_TEST(TestBatchLists)
#include "test_batch_lists.moc"
