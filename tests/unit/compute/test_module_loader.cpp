// Loading a compute module: what is missing, foreign or wrongly named is refused with a word that helps.
// Tests that need the real module stand in tests/unit/model.
#include <QtTest>

#include "core/base/log.h"
#include "core/compute/module.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::compute;

class TestModuleLoader : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_missing_module_is_named() {
    NullLogger logger;
    const Expected<LoadedModule> loaded = load_module("none", ModuleOptions(), logger);
    QVERIFY(!loaded.ok());
    QVERIFY(loaded.error().code == ErrorCode::NotFound);
    QVERIFY(loaded.error().message.find("/lib/neuroshard/compute_none.so") != std::string::npos);
  }

  void a_kind_is_a_plain_word() {
    NullLogger logger;
    for (const char* kind : {"", "../cpu", "CPU", "a/b", "cpu.so"}) {
      const Expected<LoadedModule> loaded = load_module(kind, ModuleOptions(), logger);
      QVERIFY(!loaded.ok());
      QVERIFY(loaded.error().code == ErrorCode::InvalidArgument);
    }
  }

  void a_file_that_is_no_library_is_refused() {
    NullLogger logger;
    QTemporaryFile file;
    QVERIFY(file.open());
    file.write("not a library");
    file.flush();
    const Expected<LoadedModule> loaded = load_module_file(file.fileName().toStdString(), ModuleOptions(),
                                                           logger, module_abi_version, module_build_id());
    QVERIFY(!loaded.ok());
    QVERIFY(loaded.error().code == ErrorCode::Unavailable);
  }

  void a_foreign_library_is_no_module() {
    NullLogger logger;
    const Expected<LoadedModule> loaded = load_module_file("/lib/x86_64-linux-gnu/libm.so.6", ModuleOptions(),
                                                           logger, module_abi_version, module_build_id());
    if (!loaded.ok() && loaded.error().code == ErrorCode::NotFound)
      QSKIP("this system keeps its libraries elsewhere");
    QVERIFY(!loaded.ok());
    QVERIFY(loaded.error().code == ErrorCode::Unsupported);
  }

  void a_status_becomes_the_same_error() {
    Status status;
    status.code = 1 + static_cast<std::int32_t>(ErrorCode::Exhausted);
    std::strcpy(status.message, "too much");
    QVERIFY(to_error(status).code == ErrorCode::Exhausted);
    QCOMPARE(to_error(status).message, std::string("too much"));
    status.code = 9999;
    QVERIFY(to_error(status).code == ErrorCode::Internal);
  }
};

NS_TEST(TestModuleLoader)
#include "test_module_loader.moc"
