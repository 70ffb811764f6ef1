// The set-up assistant in the hands of a test. A failed step returns false; the test says where.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QRadioButton>
#include <QtTest>

#include "core/crypto/wallet_secret.h"
#include "tests/gui/support/patience.h"
#include "ui/window/main_window.h"
#include "ui/wizard/setup_dialog.h"

namespace neuroshard::test {

class Assistant {
 public:
  // Both outlive it.
  Assistant(ui::MainWindow& window, const Patience& patience) : window_(window), patience_(patience) {}

  ui::SetupDialog* dialog() const { return window_.findChild<ui::SetupDialog*>(); }
  template <class Widget>
  Widget* get(const QString& name) const {
    return dialog() == nullptr ? nullptr : dialog()->findChild<Widget*>(name);
  }
  template <class Widget>
  bool shows(const QString& name) const {
    return QTest::qWaitFor(
        [&] {
          const auto* widget = get<Widget>(name);
          return widget != nullptr && widget->isVisible();
        },
        patience_.left_ms());
  }
  bool closes() const {
    return QTest::qWaitFor([&] { return dialog() == nullptr; }, patience_.left_ms());
  }
  bool next() const {
    const auto ready = [&] {
      const auto* button = get<QPushButton>("setupNext");
      return button != nullptr && button->isEnabled();
    };
    if (!QTest::qWaitFor(ready, patience_.left_ms())) return false;
    QTest::mouseClick(get<QPushButton>("setupNext"), Qt::LeftButton);
    return true;
  }
  // From the page of the identity to that of the limits: a new wallet, whose words are typed back.
  bool make_wallet() {
    if (!shows<QRadioButton>("setupCreate") || !next() || !shows<QLabel>("setupWord1")) return false;
    words_.clear();
    for (int i = 1; i <= 12; ++i)
      words_ << get<QLabel>(QString("setupWord%1").arg(i))->text().section(' ', -1);
    if (!next() || !shows<QLineEdit>("setupAnswer1")) return false;
    for (const char* name : {"setupAnswer1", "setupAnswer2"}) {
      auto* answer = get<QLineEdit>(name);
      answer->setText(words_.value(answer->property("word").toInt()));
    }
    return next() && shows<QRadioButton>("setupLight");
  }
  // Of the words that were typed back; empty: there are none.
  std::string wallet_id() const {
    const auto secret = crypto::WalletSecret::parse(words_.join(' ').toStdString());
    return secret.ok() ? crypto::wallet_id(secret->key().public_key()) : std::string();
  }

 private:
  ui::MainWindow& window_;
  const Patience& patience_;
  QStringList words_;
};

}  // namespace neuroshard::test
