// An independent strict reader (tests/golden/check_safetensors.py) sees in our files what we put there, and
// the file that was written by format version 1 of old opens for ever.
#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "core/crypto/hash.h"
#include "core/tensor/safetensors.h"
#include "tests/support/buffer_source.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::tensor;

class TestSafetensorsOracle : public QObject {
  Q_OBJECT

  static QString source_path(const char* path) { return qEnvironmentVariable("NS_SOURCE_DIR") + "/" + path; }

  static Bytes sample(std::vector<TensorSpec>& specs) {
    specs = {{"model.embed_tokens.weight", DType::F32, {5, 4}}, {"lm_head.weight", DType::BF16, {3}}};
    Bytes data(86);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i);
    auto writer = SafetensorsWriter::plan(specs, {{"format", "pt"}}).value();
    Bytes file;
    const SafetensorsWriter::Sink sink = [&](ByteSpan bytes) -> Expected<void> {
      file.insert(file.end(), bytes.begin(), bytes.end());
      return {};
    };
    NS_CHECK(writer.begin(sink).ok() && writer.append(data, sink).ok() && writer.finish().ok());
    return file;
  }

 private Q_SLOTS:
  void python_reads_ours() {
    if (!QFile::exists("/usr/bin/python3")) QSKIP("python3 is not installed");
    QTemporaryDir folder;
    std::vector<TensorSpec> specs;
    const Bytes file = sample(specs);
    const QString path = folder.filePath("ours.safetensors");
    std::ofstream(path.toStdString(), std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    QProcess python;
    python.start("/usr/bin/python3", {source_path("tests/golden/check_safetensors.py"), path});
    QVERIFY(python.waitForFinished(20'000));
    QVERIFY2(python.exitCode() == 0, python.readAllStandardError().constData());
    const QJsonObject seen = QJsonDocument::fromJson(python.readAllStandardOutput()).object();
    QCOMPARE(seen["metadata"].toObject()["format"].toString(), QString("pt"));
    const auto header = parse_safetensors_header(file, file.size()).value();
    QCOMPARE(seen["tensors"].toObject().size(), 2);
    for (const TensorEntry& entry : header.tensors) {
      const QJsonObject tensor =
          seen["tensors"].toObject()[QString::fromStdString(entry.spec.name)].toObject();
      QCOMPARE(tensor["dtype"].toString().toStdString(), std::string(to_string(entry.spec.type)));
      const ByteSpan bytes = ByteSpan(file).subspan(
          static_cast<std::size_t>(header.data_offset + entry.begin), static_cast<std::size_t>(entry.bytes));
      QCOMPARE(tensor["sha256"].toString().toStdString(), to_hex(crypto::sha256(bytes)));
    }
  }

  void bytes_never_change() {
    std::vector<TensorSpec> specs;
    const Bytes now = sample(specs);
    QFile fixture(source_path("tests/golden/formats/safetensors-v1.safetensors"));
    QVERIFY(fixture.open(QIODevice::ReadOnly));
    const QByteArray then = fixture.readAll();
    QCOMPARE(QByteArray(reinterpret_cast<const char*>(now.data()), static_cast<int>(now.size())), then);
  }
};

NS_TEST(TestSafetensorsOracle)
#include "test_safetensors_oracle.moc"
