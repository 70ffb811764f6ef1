# Headers that hundreds of units read, parsed once. A target picks one in NeuroshardTargets.cmake; every unit still includes
# what it uses, so it also compiles without (the lint of includes and other compilers see no difference).
set(NS_STD_HEADERS <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <deque> <functional> <map> <memory> <mutex>
  <optional> <set> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>)
# Tests spend their run time in the libraries, not in their own code: -O1 halves the time that the optimiser takes for them.
set(NS_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)

ns_precompiled(ns_pch_core LIBS fmt::fmt HEADERS ${NS_STD_HEADERS} <fmt/format.h>)

if(NS_BUILD_TESTS)
  # Qt6::Test names each target's folders in macros for QFINDTESTDATA, which nothing here uses and which would give every test
  # other definitions than the precompiled header's.
  set_property(TARGET Qt6::Test PROPERTY INTERFACE_COMPILE_DEFINITIONS QT_TESTLIB_LIB)
  # And <QtTest> would hold QCOMPAREs of network types only where this one is defined.
  set_property(TARGET Qt6::Network PROPERTY INTERFACE_COMPILE_DEFINITIONS "")
  ns_precompiled(ns_pch_test LIBS Qt6::Core Qt6::Test fmt::fmt OPTIONS ${NS_TEST_OPTIONS}
    HEADERS ${NS_STD_HEADERS} <fmt/format.h> <nlohmann/json.hpp> <QtTest> <QTemporaryDir>)
endif()
if(NS_BUILD_APP)
  set(NS_WIDGET_HEADERS <QAction> <QApplication> <QBoxLayout> <QComboBox> <QLabel> <QLineEdit> <QMenu> <QPainter> <QPushButton>
    <QScrollArea> <QSettings> <QStyle> <QTableView> <QTimer> <QToolButton> <QWidget>)
  ns_precompiled(ns_pch_ui LIBS Qt6::Widgets HEADERS ${NS_STD_HEADERS} ${NS_WIDGET_HEADERS})
  if(NS_BUILD_TESTS)
    ns_precompiled(ns_pch_ui_test LIBS Qt6::Widgets Qt6::Test fmt::fmt OPTIONS ${NS_TEST_OPTIONS}
      HEADERS ${NS_STD_HEADERS} <fmt/format.h> <nlohmann/json.hpp> ${NS_WIDGET_HEADERS} <QtTest>)
  endif()
endif()
