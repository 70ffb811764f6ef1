// Registers a test class with the program of its folder. The last lines of a test source are
//
//   NS_TEST(TestTokenBucket)             // NS_UI_TEST for classes that make windows
//   #include "test_token_bucket.moc"
//
// and the program (test_main.cpp) runs the class that its first argument names; the rest goes to Qt Test:
//
//   build/release/tests/unit_net TestTokenBucket a_new_rate_counts_from_now_on
//
// ctest has one entry per class, so each class has a process of its own. Names of classes are unique within a
// folder; everything else in a test source stands in an anonymous namespace. Threads: registration happens
// before main(), nothing is shared after.
#pragma once

#include <QtTest>
#ifdef QT_WIDGETS_LIB
#include <QApplication>
#endif

namespace neuroshard::test {

using RunClass = int (*)(int argc, char** argv);

// Adds a class under its name. Two classes with one name end the program.
struct Registration {
  Registration(const char* name, RunClass run);
};

template <typename Test, typename Application>
int run_class(int argc, char** argv) {
  Application application(argc, argv);
  application.setAttribute(Qt::AA_Use96Dpi, true);
  Test test;
  return QTest::qExec(&test, argc, argv);
}

}  // namespace neuroshard::test

#define NS_TEST(Class)                                               \
  static const neuroshard::test::Registration ns_registered_##Class( \
      #Class, &neuroshard::test::run_class<Class, QCoreApplication>);
#define NS_UI_TEST(Class)                                            \
  static const neuroshard::test::Registration ns_registered_##Class( \
      #Class, &neuroshard::test::run_class<Class, QApplication>);
