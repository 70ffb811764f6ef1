// `.pt` shards: our files against Python's torch in both directions, and what is refused with which words.
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "core/base/rng.h"
#include "core/crypto/hash.h"
#include "core/data/detail/pickle_tensor.h"
#include "core/data/pt_file.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::data;

namespace {

constexpr std::uint64_t limit = 1'000'000;

std::vector<std::int32_t> numbers(std::size_t count) {
  std::vector<std::int32_t> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<std::int32_t>(i * 7 % 4096);
  return result;
}

// SHA-256 of the values as little-endian int64: what the oracle prints.
std::string fingerprint(const std::vector<std::int32_t>& tokens) {
  Bytes bytes;
  for (const std::int32_t token : tokens) append_le(bytes, static_cast<std::int64_t>(token));
  return to_hex(crypto::sha256(bytes));
}

Bytes read_all(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return {};
  const QByteArray content = file.readAll();
  return Bytes(content.begin(), content.end());
}

// Runs the oracle over a folder; the exit code is 77 when this machine's Python has no torch.
QJsonObject run_oracle(const QString& folder, int* exit_code) {
  QProcess python;
  python.start("/usr/bin/python3",
               {qEnvironmentVariable("NS_SOURCE_DIR") + "/tests/golden/check_pt.py", "both", folder});
  if (!python.waitForFinished(50'000)) python.kill();
  *exit_code = python.error() == QProcess::FailedToStart ? 77 : python.exitCode();
  if (*exit_code != 0 && *exit_code != 77) qWarning() << python.readAllStandardError();
  return QJsonDocument::fromJson(python.readAllStandardOutput()).object();
}

}  // namespace

class TestPtFile : public QObject {
  Q_OBJECT

 private:
  static constexpr std::size_t our_sizes[] = {0, 1, 1000, 70'000};
  static QString our_name(std::size_t count) { return QString("ours_%1.pt").arg(count); }
  QTemporaryDir folder_;
  QJsonObject oracle_;
  int oracle_code_ = 77;

 private Q_SLOTS:
  // One run of Python for all tests: loading torch takes seconds.
  void initTestCase() {
    for (const std::size_t count : our_sizes) {
      const Bytes bytes = encode_pt(numbers(count)).value();
      QFile file(folder_.filePath(our_name(count)));
      QVERIFY(file.open(QIODevice::WriteOnly));
      file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<qint64>(bytes.size()));
    }
    oracle_ = run_oracle(folder_.path(), &oracle_code_);
  }

  void writes_what_it_reads() {
    for (const std::size_t count : {0u, 1u, 255u, 256u, 65'536u, 300'000u}) {
      const auto tokens = numbers(count);
      const auto file = encode_pt(tokens);
      QVERIFY(file.ok());
      const auto back = decode_pt(*file, limit);
      QVERIFY2(back.ok(), back.ok() ? "" : back.error().describe().c_str());
      QVERIFY(*back == tokens);
      QVERIFY2(*encode_pt(tokens) == *file, "equal tokens must give equal bytes");
    }
  }

  void python_reads_our_files() {
    if (oracle_code_ == 77) QSKIP("python3-torch is not installed: nothing to compare with");
    QCOMPARE(oracle_code_, 0);
    for (const std::size_t count : our_sizes) {
      const QJsonObject seen = oracle_["ours"].toObject()[our_name(count)].toObject();
      QCOMPARE(seen["dtype"].toString(), QString("torch.int64"));
      QCOMPARE(seen["dimensions"].toInt(), 1);
      QCOMPARE(seen["items"].toInt(), static_cast<int>(count));
      QCOMPARE(seen["sha256"].toString().toStdString(), fingerprint(numbers(count)));
    }
  }

  void reads_and_refuses_what_python_writes() {
    if (oracle_code_ == 77) QSKIP("python3-torch is not installed: nothing to compare with");
    QCOMPARE(oracle_code_, 0);
    const QJsonObject expected = oracle_["theirs"].toObject();
    const QTemporaryDir& folder = folder_;
    const auto decode = [&](const char* name) { return decode_pt(read_all(folder.filePath(name)), limit); };
    for (const char* name : {"int64.pt", "int32.pt"}) {
      const auto tokens = decode(name);
      QVERIFY2(tokens.ok(), tokens.ok() ? "" : tokens.error().describe().c_str());
      QCOMPARE(fingerprint(*tokens), expected["sha256"].toString().toStdString());
    }
    QCOMPARE(decode("empty.pt").value().size(), std::size_t{0});
    const std::vector<std::int32_t> view = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
    QVERIFY(decode("view.pt").value() == view);
    QCOMPARE(decode("large.pt").value().back(), 299'999);

    const auto refused = [&](const char* name, ErrorCode error, const char* word) {
      const auto result = decode(name);
      QVERIFY2(!result.ok(), name);
      QVERIFY2(result.error().code == error && result.error().message.find(word) != std::string::npos,
               (std::string(name) + ": " + result.error().describe()).c_str());
    };
    refused("float.pt", ErrorCode::Unsupported, "torch.FloatStorage");
    refused("two_dimensions.pt", ErrorCode::Unsupported, "2 dimensions");
    refused("strided.pt", ErrorCode::Unsupported, "strided");
    refused("dictionary.pt", ErrorCode::Unsupported, "dictionary");
    refused("list.pt", ErrorCode::Unsupported, "list");
    refused("state.pt", ErrorCode::Unsupported, "one 1-D tensor");
    refused("number.pt", ErrorCode::Unsupported, "other than a tensor");
    refused("module.pt", ErrorCode::Unsupported, "torch.nn.modules.linear.Linear");
    refused("command.pt", ErrorCode::Unsupported, "posix.system");
    refused("negative.pt", ErrorCode::Corrupt, "-1");
    refused("huge_value.pt", ErrorCode::Corrupt, "1099511627776");
    refused("protocol4.pt", ErrorCode::Unsupported, "protocol 4");
    refused("legacy.pt", ErrorCode::Corrupt, "zip");
    refused("deflated.pt", ErrorCode::Unsupported, "compressed");
    QVERIFY2(!QFile::exists(folder.filePath("executed")), "a pickle was executed");
  }

  void a_file_can_not_claim_more_than_it_holds() {
    const Bytes file = encode_pt(numbers(1000)).value();
    const auto result = decode_pt(file, 999);
    QVERIFY(!result.ok());
    QVERIFY(result.error().code == ErrorCode::Exhausted);
    // A description of 2^31 - 1 tokens over an archive that has 1,000.
    Bytes lie = file;
    const Bytes honest = data::detail::write_tensor_pickle(1000);
    const auto at = std::search(lie.begin(), lie.end(), honest.begin(), honest.end());
    QVERIFY(at != lie.end());
    const Bytes other = data::detail::write_tensor_pickle(1001);
    std::copy(other.begin(), other.end(), at);
    QVERIFY(!decode_pt(lie, limit).ok());
  }

  void damaged_files_are_errors_not_crashes() {
    const Bytes file = encode_pt(numbers(200)).value();
    for (std::size_t size = 0; size < file.size(); size += 7) {
      QVERIFY(!decode_pt(ByteSpan(file.data(), size), limit).ok());
    }
    Rng rng(5);
    int accepted_changes = 0;
    for (int i = 0; i < 3000; ++i) {
      Bytes damaged = file;
      const std::size_t at = static_cast<std::size_t>(rng.below(damaged.size()));
      damaged[at] = static_cast<std::uint8_t>(rng.next());
      const auto result = decode_pt(damaged, limit);
      if (result.ok() && *result != numbers(200)) ++accepted_changes;
    }
    QCOMPARE(accepted_changes, 0);  // every value is under the archive's checksum
  }

  void pickles_of_rubbish_end_with_an_error() {
    Rng rng(11);
    const Bytes good = data::detail::write_tensor_pickle(5);
    QVERIFY(data::detail::read_tensor_pickle(good).ok());
    for (int i = 0; i < 20'000; ++i) {
      Bytes bytes = good;
      for (std::uint64_t n = rng.below(4) + 1; n > 0; --n) {
        bytes[static_cast<std::size_t>(rng.below(bytes.size()))] = static_cast<std::uint8_t>(rng.next());
      }
      (void)data::detail::read_tensor_pickle(bytes);
    }
    // A tuple of a tuple of a tuple … must not nest without end.
    Bytes deep = {0x80, 2, ')'};
    for (int i = 0; i < 60'000; ++i) deep.push_back(0x85);
    QVERIFY(!data::detail::read_tensor_pickle(deep).ok());
  }
};

NS_TEST(TestPtFile)
#include "test_pt_file.moc"
