// The computers that work for the wallet of this node, and the revocation of one that was stolen or lost. `neuroshardd
// wallet` does the work, in a process of its own: it has the wallet, and the core has not.
#pragma once

#include <QDialog>

#include "ui/pages/program_run.h"

class QLabel;
class QLineEdit;
class QPushButton;
class QStandardItemModel;

namespace neuroshard::ui {

class TableView;

// Threads: ui.
class WalletNodesDialog final : public QDialog {
  Q_OBJECT
 public:
  // program: neuroshardd. own_node: the id of this computer's node.
  WalletNodesDialog(const QString& program, QString data_directory, QString own_node,
                    QWidget* parent = nullptr);

 private:
  QWidget* make_passphrase();
  QStringList words(const QStringList& command) const;
  void list();
  void listed(const QJsonObject& said);
  void add_row(const QJsonObject& node, const QString& standing, bool revocable);
  QString selected() const;  // id of a node that can be revoked; empty: none
  void update_action();
  void ask();
  void revoke(const QString& node);
  void revoked(const QJsonObject& said);
  void failed(const QString& why);

  const QString directory_, own_node_;
  ProgramRun listing_, revoking_;
  bool locked_ = false;  // a passphrase is needed
  QString told_;         // of the last revocation, kept while the list is read again
  TableView* table_;
  QStandardItemModel* rows_;
  QWidget* passphrase_row_;
  QLineEdit* passphrase_;
  QLabel* state_;
  QPushButton* revoke_;
};

}  // namespace neuroshard::ui
