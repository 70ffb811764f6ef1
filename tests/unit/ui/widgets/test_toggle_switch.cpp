// The switch as a screen reader meets it: its name, role and state, and a press that counts as a click.
#include <QAccessible>
#include <QSignalSpy>
#include <QtTest>

#include "tests/support/test_main.h"
#include "ui/theme/theme.h"
#include "ui/widgets/toggle_switch.h"

using namespace neuroshard::ui;  // NOLINT

class TestToggleSwitch : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void is_told_as_a_check_box();
  void a_press_through_the_accessible_interface_is_a_click();
  void one_that_is_off_limits_offers_no_press();

 private:
  const Theme theme_{std::make_unique<DesktopSchemeSource>()};
};

void TestToggleSwitch::is_told_as_a_check_box() {
  ToggleSwitch named(theme_, "Contribute"), told(theme_, {});
  told.setAccessibleName("Follow");
  told.setChecked(true);
  const auto* first = QAccessible::queryAccessibleInterface(&named);
  const auto* second = QAccessible::queryAccessibleInterface(&told);
  QVERIFY(first != nullptr && second != nullptr);
  QCOMPARE(first->role(), QAccessible::CheckBox);
  QCOMPARE(first->text(QAccessible::Name), QString("Contribute"));
  QCOMPARE(second->text(QAccessible::Name), QString("Follow"));
  QVERIFY(first->state().checkable && !first->state().checked);
  QVERIFY(second->state().checked);
}

void TestToggleSwitch::a_press_through_the_accessible_interface_is_a_click() {
  ToggleSwitch toggle(theme_, "Contribute");
  QSignalSpy clicked(&toggle, &QAbstractButton::clicked);
  auto* interface = QAccessible::queryAccessibleInterface(&toggle);
  QVERIFY(interface != nullptr && interface->actionInterface() != nullptr);
  const QStringList names = interface->actionInterface()->actionNames();
  QVERIFY2(names.contains(QAccessibleActionInterface::toggleAction()), qPrintable(names.join(' ')));
  interface->actionInterface()->doAction(QAccessibleActionInterface::toggleAction());
  QCOMPARE(clicked.count(), 1);
  QCOMPARE(clicked[0][0].toBool(), true);
  QVERIFY(toggle.isChecked());
}

void TestToggleSwitch::one_that_is_off_limits_offers_no_press() {
  ToggleSwitch toggle(theme_, "Contribute");
  toggle.setEnabled(false);
  QSignalSpy clicked(&toggle, &QAbstractButton::clicked);
  auto* actions = QAccessible::queryAccessibleInterface(&toggle)->actionInterface();
  QVERIFY(!actions->actionNames().contains(QAccessibleActionInterface::toggleAction()));
  actions->doAction(QAccessibleActionInterface::toggleAction());
  QCOMPARE(clicked.count(), 0);
  QVERIFY(!toggle.isChecked());
}

NS_UI_TEST(TestToggleSwitch)
#include "test_toggle_switch.moc"
