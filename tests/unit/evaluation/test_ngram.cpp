// The n-gram baseline against Python that follows the definition with exact fractions, and as a distribution.
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <cmath>

#include "core/base/rng.h"
#include "core/evaluation/ngram.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::evaluation;

namespace {

using Tokens = std::vector<data::TokenId>;

constexpr std::uint32_t vocabulary = 12;

// Skewed, so that entries of one, two and many occurrences exist.
Tokens sample(std::size_t count) {
  Rng rng(5);
  Tokens tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<data::TokenId>(rng.below(1 + rng.below(vocabulary - 2))));
  return tokens;
}

NGram learn(const Tokens& tokens) {
  return NGram::learn({tokens.data(), tokens.size()}, vocabulary).value();
}

double ask(const NGram& model, const Tokens& before, data::TokenId token) {
  return model.log_probability({before.data(), before.size()}, token);
}

}  // namespace

class TestNGram : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void agrees_with_the_definition() {
    if (!QFile::exists("/usr/bin/python3")) QSKIP("python3 is not installed");
    const Tokens tokens = sample(120);
    const NGram model = learn(tokens);
    QJsonArray text, queries;
    std::vector<double> ours;
    for (const data::TokenId token : tokens) text.append(static_cast<int>(token));
    const std::vector<Tokens> histories = {{}, {0}, {3}, {11}, {0, 1}, {2, 0}, {11, 0}, {0, 11}, {5, 1, 0}};
    for (const Tokens& before : histories) {
      QJsonArray list;
      for (const data::TokenId token : before) list.append(static_cast<int>(token));
      for (data::TokenId token = 0; token < vocabulary; ++token) {
        queries.append(QJsonObject{{"before", list}, {"token", static_cast<int>(token)}});
        ours.push_back(ask(model, before, token));
      }
    }
    QTemporaryDir folder;
    QFile request(folder.filePath("request.json"));
    QVERIFY(request.open(QIODevice::WriteOnly));
    request.write(
        QJsonDocument(
            QJsonObject{{"vocabulary", static_cast<int>(vocabulary)}, {"tokens", text}, {"queries", queries}})
            .toJson());
    request.close();
    QProcess python;
    python.start("/usr/bin/python3", {qEnvironmentVariable("NS_SOURCE_DIR") + "/tests/golden/ngram_oracle.py",
                                      request.fileName()});
    QVERIFY(python.waitForFinished(30'000));
    QVERIFY2(python.exitCode() == 0, python.readAllStandardError().constData());
    const QList<QByteArray> theirs = python.readAllStandardOutput().trimmed().split('\n');
    QCOMPARE(theirs.size(), static_cast<int>(ours.size()));
    for (int i = 0; i < theirs.size(); ++i)
      QVERIFY2(std::abs(theirs[i].toDouble() - ours[static_cast<std::size_t>(i)]) < 1e-12,
               qPrintable(QStringLiteral("%1: %2 %3")
                              .arg(i)
                              .arg(theirs[i].toDouble())
                              .arg(ours[static_cast<std::size_t>(i)])));
  }

  void probabilities_add_up_to_one() {
    const NGram model = learn(sample(500));
    for (const Tokens& before :
         {Tokens{}, Tokens{1}, Tokens{11}, Tokens{0, 0}, Tokens{4, 2}, Tokens{11, 11}}) {
      double sum = 0;
      for (data::TokenId token = 0; token < vocabulary; ++token) sum += std::exp(ask(model, before, token));
      QVERIFY(std::abs(sum - 1) < 1e-12);
    }
  }

  void the_shortest_texts_are_learned() {
    for (const Tokens& tokens : {Tokens{3}, Tokens{3, 4}, Tokens{3, 4, 3}}) {
      const NGram model = learn(tokens);
      QVERIFY(std::isfinite(ask(model, {3, 4}, 5)));
    }
    QVERIFY(std::abs(ask(learn({3}), {}, 7) + std::log(vocabulary)) < 1e-12);
  }

  void what_can_not_be_learned_is_refused() {
    QCOMPARE(NGram::learn({}, vocabulary).error().code, ErrorCode::InvalidArgument);
    const Tokens outside{1, vocabulary};
    QCOMPARE(NGram::learn({outside.data(), outside.size()}, vocabulary).error().code,
             ErrorCode::InvalidArgument);
  }
};

NS_TEST(TestNGram)
#include "test_ngram.moc"
