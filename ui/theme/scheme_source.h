// Whether the desktop wants light or dark, and when it changes its mind.
#pragma once

#include <QObject>
#include <QVariant>

class QDBusVariant;

namespace neuroshard::ui {

enum class Scheme { Unknown, Light, Dark };

// Threads: ui. Never blocks: a source that has to ask says Unknown until it is answered.
class SchemeSource : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  virtual Scheme scheme() const = 0;
 Q_SIGNALS:
  void changed();
};

// org.freedesktop.appearance color-scheme of the desktop portal; while there is none, the lightness of the
// palette that the platform gave the application (taken when this is made, so make it before a theme is
// applied).
class DesktopSchemeSource final : public SchemeSource {
  Q_OBJECT
 public:
  explicit DesktopSchemeSource(QObject* parent = nullptr);
  Scheme scheme() const override { return portal_ != Scheme::Unknown ? portal_ : palette_; }

 private Q_SLOTS:
  void setting_changed(const QString& group, const QString& key, const QDBusVariant& value);

 private:
  void take(const QVariant& value);

  Scheme portal_ = Scheme::Unknown;
  Scheme palette_ = Scheme::Unknown;
};

}  // namespace neuroshard::ui
