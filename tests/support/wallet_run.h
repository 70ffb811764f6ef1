// The wallet commands of real neuroshardd processes, and what their tests look for: words, tokens, modes.
// Header only; needs Qt.
#pragma once

#include <sys/stat.h>

#include <QDirIterator>
#include <QFile>
#include <QRegularExpression>
#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/wallet_secret.h"
#include "tests/support/process.h"

namespace neuroshard::test {

// One wallet in its three forms; computed by tests/golden/make_key_files.py.
inline constexpr auto fixed_words =
    "abandon amount liar amount expire adjust cage candy arch gather drum buyer";
inline constexpr auto fixed_token = "3779b041fab425e9c0fd55846b2a03e9a388fb12784067bd8ebdb464c2574a05";
inline constexpr auto fixed_id = "de190c57762f5a2f";
// An environment without the desktop's keychain.
inline constexpr auto no_desktop = "DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent";

inline ProcessResult wallet(const QStringList& arguments, const QString& directory,
                            const QByteArray& input = {}, const QStringList& environment = {}) {
  return NodeProcess(QStringList{"wallet"} + arguments + QStringList{"--data-dir", directory}, environment,
                     {}, input)
      .finish();
}

// Every line of twelve lower-case words.
inline QList<QByteArray> phrases_in(const QByteArray& text) {
  static const QRegularExpression pattern("^ *([a-z]{3,8}(?: [a-z]{3,8}){11})$",
                                          QRegularExpression::MultilineOption);
  QList<QByteArray> phrases;
  for (auto match = pattern.globalMatch(QString::fromUtf8(text)); match.hasNext();)
    phrases << match.next().captured(1).toUtf8();
  return phrases;
}

inline QByteArray text_of(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<qsizetype>(bytes.size())};
}

// Whatever gives the wallet of these words, which are right, away. The raw entropy is what an open keystore
// holds.
inline QList<QByteArray> secrets_of(const QByteArray& words, bool with_entropy) {
  const auto secret = crypto::WalletSecret::parse(words.toStdString());
  NS_CHECK(secret.ok());
  QList<QByteArray> secrets{words, words.split(' ').mid(0, 3).join(' '), words.split(' ').mid(9).join(' '),
                            text_of(secret->token().bytes()), text_of(secret->token().bytes()).toHex()};
  if (with_entropy)
    secrets << text_of(secret->entropy()->bytes()) << text_of(secret->entropy()->bytes()).toHex();
  return secrets;
}

inline bool any_in(const QList<QByteArray>& secrets, const QByteArray& text) {
  return std::any_of(secrets.begin(), secrets.end(),
                     [&text](const QByteArray& secret) { return text.contains(secret); });
}

inline QByteArray content_of(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

// The names of files below the folder that hold one of the secrets.
inline QStringList files_with(const QList<QByteArray>& secrets, const QString& folder, int* looked_at) {
  QStringList found;
  QDirIterator files(folder, QDir::Files | QDir::Hidden, QDirIterator::Subdirectories);
  for (*looked_at = 0; files.hasNext(); ++*looked_at) {
    const QString path = files.next();
    if (any_in(secrets, content_of(path))) found << path;
  }
  return found;
}

inline int mode_of(const QString& path) {
  struct stat info {};
  return ::stat(path.toLocal8Bit().constData(), &info) == 0 ? static_cast<int>(info.st_mode & 07777) : -1;
}

inline QJsonObject shown(const QString& directory) {
  return json_lines(wallet({"show", "--json"}, directory).out).value(0);
}

inline QByteArray keystore_in(const QString& directory) {
  return content_of(directory + "/wallet.keystore");
}

// A wallet of known words.
inline bool make_fixed(const QString& directory) {
  return wallet({"restore", "--from", "-"}, directory, fixed_words).ok();
}

}  // namespace neuroshard::test
