// The learning-rate schedule against values that an independent Python program computed.
#include <QtTest>
#include <cmath>

#include "core/train/schedule.h"
#include "tests/support/test_main.h"

namespace train = neuroshard::train;

class TestSchedule : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void golden_values();
  void rewarm();
  void bad_settings_are_named();
};

void TestSchedule::golden_values() {
  struct Golden {
    double peak;
    std::uint64_t warmup, decay, step;
    double rate;
  };
  const Golden golden[] = {
      {0.0001, 1000, 50000, 0, 0.0},
      {0.0001, 1000, 50000, 1, 1e-07},
      {0.0001, 1000, 50000, 500, 5e-05},
      {0.0001, 1000, 50000, 1000, 0.0001},
      {0.0001, 1000, 50000, 10000, 9.271396472013283e-05},
      {0.0001, 1000, 50000, 25000, 5.64423209907245e-05},
      {0.0001, 1000, 50000, 25500, 5.5e-05},
      {0.0001, 1000, 50000, 49999, 1.0000000092489007e-05},
      {0.0001, 1000, 50000, 50000, 1e-05},
      {0.0001, 1000, 50000, 1000000000, 1e-05},
      {0.0006, 100, 5000, 1, 6e-06},
      {0.0006, 100, 5000, 99, 0.000594},
      {0.0006, 100, 5000, 1000, 0.000556283788320797},
      {0.0006, 100, 5000, 2550, 0.00033},
      {0.0006, 100, 5000, 4999, 6.00000554934006e-05},
      {0.0006, 100, 5000, 5000, 6e-05},
      {0.001, 0, 10, 0, 0.001},
      {0.001, 0, 10, 1, 0.0009779754323328191},
      {0.001, 0, 10, 9, 0.00012202456766718092},
      {0.001, 50, 50, 49, 0.00098},
      {0.001, 50, 50, 50, 0.0001},
  };
  for (const Golden& g : golden) {
    const double rate = train::learning_rate({g.peak, g.warmup, g.decay, 0.1}, g.step);
    QVERIFY2(std::abs(rate - g.rate) <= 1e-12 * g.peak,
             qPrintable(QString("step %1: %2").arg(g.step).arg(rate)));
  }
}

void TestSchedule::rewarm() {
  QCOMPARE(train::rewarm_factor(0), 1.0);
  QCOMPARE(train::rewarm_factor(1), 0.05);
  QCOMPARE(train::rewarm_factor(10), 0.5);
  QCOMPARE(train::rewarm_factor(19), 0.95);
  QCOMPARE(train::rewarm_factor(20), 1.0);
  QCOMPARE(train::rewarm_factor(1000), 1.0);
}

void TestSchedule::bad_settings_are_named() {
  QVERIFY(train::validate({1e-4, 1000, 50000, 0.1}).ok());
  QVERIFY(train::validate({0, 1000, 50000, 0.1}).error().message.find("peak") != std::string::npos);
  QVERIFY(train::validate({std::nan(""), 1000, 50000, 0.1}).error().message.find("peak") !=
          std::string::npos);
  QVERIFY(train::validate({1e-4, 1000, 50000, 1.5}).error().message.find("floor") != std::string::npos);
}

NS_TEST(TestSchedule)
#include "test_schedule.moc"
