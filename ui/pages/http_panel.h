// The local HTTP server in the settings: its state and address, its key, and examples to copy. The fields of its
// settings stand above it.
//
// Threads: ui. The key, a secret, is here only while the page is shown, and is read only on request.
#pragma once

#include <QWidget>

#include "core/base/expected.h"
#include "core/node/http_key.h"
#include "core/node/snapshot.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;

namespace neuroshard::ui {

class Bridge;
class Theme;

class HttpPanel final : public QWidget {
  Q_OBJECT
 public:
  HttpPanel(const Theme& theme, Bridge& bridge, QWidget* parent = nullptr);
  void show_state(const node::Snapshot& snapshot);
  // The setting http_port, for the examples of a server that is off.
  void set_port(const QString& port);
  // Asks where the key is kept, for the examples.
  void look();
  void hide_key();

 private:
  enum class For { Field, Clipboard, Example };
  QWidget* build_state(const Theme& theme);
  QWidget* build_key(const Theme& theme);
  QWidget* build_examples(const Theme& theme);
  void ask(node::HttpKeyAction action, For target);
  void take(node::HttpKeyAction action, For target, const Expected<node::HttpKey>& key);
  void toggle_key();
  void renew();
  void remove();
  void show_example();
  QString address() const;

  Bridge& bridge_;
  QLabel* icon_;
  QLabel* state_;
  QLabel* trouble_;
  QPushButton* copy_address_;
  QLineEdit* key_;
  QLabel* key_note_;
  QWidget* key_part_;  // off where the key can't be asked for
  QPushButton* show_;
  QPushButton* remove_;
  QComboBox* example_kind_;
  QPlainTextEdit* example_;
  QString listens_, port_ = QStringLiteral("8000"), model_, key_file_;
  const Theme& theme_;
};

}  // namespace neuroshard::ui
