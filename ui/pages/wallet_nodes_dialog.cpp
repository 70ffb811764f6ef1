#include "ui/pages/wallet_nodes_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QItemSelectionModel>
#include <QJsonArray>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QStandardItemModel>
#include <QVBoxLayout>

#include "ui/pages/confirm.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/table_view.h"

namespace neuroshard::ui {
namespace {

constexpr int short_id = 12, id_role = Qt::UserRole + 1, revocable_role = Qt::UserRole + 2;

QString standing_text(const QString& standing) {
  if (standing == QLatin1String("voter")) return WalletNodesDialog::tr("votes");
  if (standing == QLatin1String("candidate")) return WalletNodesDialog::tr("candidate");
  return WalletNodesDialog::tr("away");
}

// A count or height; none: a dash.
QString number(const QJsonValue& value) {
  return value.isDouble() ? Format::integer(static_cast<std::uint64_t>(value.toInteger())) : Format::dash();
}

QStandardItem* cell(const QString& text, bool right = false) {
  auto* item = new QStandardItem(text);
  item->setEditable(false);
  if (right) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  return item;
}

}  // namespace

WalletNodesDialog::WalletNodesDialog(const QString& program, QString data_directory, QString own_node,
                                     QWidget* parent)
    : QDialog(parent),
      directory_(std::move(data_directory)),
      own_node_(std::move(own_node)),
      listing_(program),
      revoking_(program) {
  setObjectName(QStringLiteral("wallet_nodes_dialog"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("Computers of this wallet"));
  resize(680, 460);
  auto* column = new QVBoxLayout(this);
  column->setSpacing(2 * grid_step);
  column->addWidget(make_paragraph(
      tr("These computers work for your wallet in this network. Revoke the key of one that was stolen or "
         "lost: from the next block on it has no vote, and its work does not count."),
      nullptr, this));
  table_ = new TableView(tr("Computers of this wallet"), this);
  table_->setObjectName(QStringLiteral("wallet_nodes_table"));
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  rows_ = new QStandardItemModel(this);
  rows_->setHorizontalHeaderLabels({tr("Computer"), tr("Contributions"), tr("Last round"), tr("Standing")});
  table_->setModel(rows_);
  column->addWidget(table_, 1);
  passphrase_row_ = make_passphrase();
  column->addWidget(passphrase_row_);
  state_ = make_paragraph({}, "muted", this);
  state_->setObjectName(QStringLiteral("wallet_nodes_state"));
  state_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  column->addWidget(state_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  revoke_ = buttons->addButton(tr("Revoke …"), QDialogButtonBox::ActionRole);
  revoke_->setObjectName(QStringLiteral("wallet_nodes_revoke"));
  revoke_->setProperty("role", QStringLiteral("danger"));
  connect(revoke_, &QPushButton::clicked, this, &WalletNodesDialog::ask);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  column->addWidget(buttons);
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this,
          &WalletNodesDialog::update_action);
  connect(&listing_, &ProgramRun::done, this, &WalletNodesDialog::listed);
  connect(&listing_, &ProgramRun::failed, this, &WalletNodesDialog::failed);
  connect(&revoking_, &ProgramRun::done, this, &WalletNodesDialog::revoked);
  connect(&revoking_, &ProgramRun::failed, this, &WalletNodesDialog::failed);
  update_action();
  list();
}

QWidget* WalletNodesDialog::make_passphrase() {
  auto* row = new QWidget(this);
  auto* form = new QFormLayout(row);
  form->setContentsMargins(0, 0, 0, 0);
  passphrase_ = new QLineEdit(row);
  passphrase_->setObjectName(QStringLiteral("wallet_nodes_passphrase"));
  passphrase_->setEchoMode(QLineEdit::Password);
  form->addRow(tr("Passphrase of the wallet"), passphrase_);
  connect(passphrase_, &QLineEdit::textChanged, this, &WalletNodesDialog::update_action);
  row->hide();
  return row;
}

QStringList WalletNodesDialog::words(const QStringList& command) const {
  QStringList all = QStringList{QStringLiteral("wallet")} + command + QStringList{QStringLiteral("--json")};
  if (!directory_.isEmpty()) all << QStringLiteral("--data-dir") << directory_;
  return all;
}

void WalletNodesDialog::list() {
  if (told_.isEmpty()) state_->setText(tr("Reading the newest block …"));
  listing_.start(words({QStringLiteral("nodes")}));
}

void WalletNodesDialog::listed(const QJsonObject& said) {
  rows_->setRowCount(0);
  for (const QJsonValue& node : said["nodes"].toArray())
    add_row(node.toObject(), standing_text(node["standing"].toString()), node["id"].toString() != own_node_);
  for (const QJsonValue& node : said["revoked"].toArray())
    add_row(node.toObject(), tr("revoked in block %1").arg(number(node["block"])), false);
  if (rows_->rowCount() == 0) table_->set_empty_text(tr("No computer works for this wallet yet."));
  table_->resizeColumnsToContents();
  locked_ = said["protection"].toString() == QLatin1String("passphrase");
  passphrase_row_->setVisible(locked_);
  state_->setText(told_.isEmpty() ? tr("As of block %1.").arg(number(said["height"])) : told_);
  update_action();
}

void WalletNodesDialog::add_row(const QJsonObject& node, const QString& standing, bool revocable) {
  const QString id = node["id"].toString();
  const bool is_own = id == own_node_;
  auto* name = cell(is_own ? tr("%1 (this computer)").arg(id.left(short_id)) : id.left(short_id));
  name->setData(id, id_role);
  name->setData(revocable, revocable_role);
  name->setToolTip(is_own ? tr("%1\nRevoke it on another computer that has the wallet.").arg(id) : id);
  rows_->appendRow({name, cell(number(node["contributions"]), true), cell(number(node["last_round"]), true),
                    cell(standing)});
}

QString WalletNodesDialog::selected() const {
  const QModelIndexList rows = table_->selectionModel()->selectedRows();
  if (rows.isEmpty() || !rows.first().data(revocable_role).toBool()) return {};
  return rows.first().data(id_role).toString();
}

void WalletNodesDialog::update_action() {
  const bool can_sign = !locked_ || !passphrase_->text().isEmpty();
  revoke_->setEnabled(can_sign && !revoking_.running() && !selected().isEmpty());
}

void WalletNodesDialog::ask() {
  const QString node = selected();
  if (node.isEmpty()) return;
  const Question question{tr("Revoke the key of computer %1?").arg(node.left(short_id)),
                          tr("From the next block on this key has no vote, and its work does not count. This "
                             "can't be taken back. "
                             "The machine can work for the wallet again only with a new data directory."),
                          tr("Revoke"), true};
  confirm(this, question, [this, node] { revoke(node); });
}

void WalletNodesDialog::revoke(const QString& node) {
  QStringList command{QStringLiteral("revoke"), node, QStringLiteral("--yes")};
  if (locked_) command << QStringLiteral("--passphrase-file") << QStringLiteral("-");
  QByteArray passphrase = locked_ ? passphrase_->text().toUtf8() : QByteArray();
  state_->setText(tr("Waiting for the block that has the revocation. Keep this window open until then."));
  revoking_.start(words(command), passphrase);
  passphrase.fill('\0');
  update_action();
}

void WalletNodesDialog::revoked(const QJsonObject& said) {
  passphrase_->clear();
  told_ = tr("Block %1 revokes the key of computer %2.")
              .arg(number(said["block"]), said["node_id"].toString().left(short_id));
  state_->setText(told_);
  list();
}

void WalletNodesDialog::failed(const QString& why) {
  state_->setText(why);
  update_action();
}

}  // namespace neuroshard::ui
