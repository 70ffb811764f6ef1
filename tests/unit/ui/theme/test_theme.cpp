// One table of colours, readable in both looks; the theme follows the choice and the desktop.
#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QPalette>
#include <QPushButton>
#include <QRadioButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QtTest>
#include <set>

#include "tests/support/test_main.h"
#include "ui/theme/theme.h"

using namespace neuroshard::ui;

namespace {

class FakeScheme final : public SchemeSource {
 public:
  Scheme scheme() const override { return scheme_; }
  void set(Scheme scheme) {
    scheme_ = scheme;
    Q_EMIT changed();
  }

 private:
  Scheme scheme_ = Scheme::Light;
};

QString describe(const TokenPair& pair, bool dark, double value) {
  const auto name = [](Token t) {
    return QString::fromUtf8(token(t).name.data(), static_cast<int>(token(t).name.size()));
  };
  return QString("%1 on %2, %3: %4")
      .arg(name(pair.foreground), name(pair.background), dark ? "dark" : "light")
      .arg(value);
}

double contrast_of(const TokenPair& pair, bool dark) {
  const auto colour = [dark](Token t) { return dark ? token(t).dark : token(t).light; };
  return contrast(colour(pair.foreground), colour(pair.background));
}

}  // namespace

class ThemeTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void contrast_is_that_of_wcag() {
    QCOMPARE(contrast(Qt::black, Qt::white), 21.0);
    QCOMPARE(contrast(Qt::red, Qt::red), 1.0);
    // The example of the W3C: #777 on white misses AA by a hair.
    QVERIFY(qAbs(contrast(QColor("#777777"), Qt::white) - 4.478) < 0.001);
  }
  void all_text_can_be_read() {
    for (const bool dark : {false, true})
      for (const TokenPair& pair : text_pairs()) {
        const double value = contrast_of(pair, dark);
        QVERIFY2(value >= 4.5, qPrintable(describe(pair, dark, value)));
      }
  }
  void all_marks_can_be_seen() {
    for (const bool dark : {false, true})
      for (const TokenPair& pair : graphic_pairs()) {
        const double value = contrast_of(pair, dark);
        QVERIFY2(value >= 3, qPrintable(describe(pair, dark, value)));
      }
  }
  // Every "color: @x" of the style sheet is one of the pairs that are tested, so nobody slips a new pair past
  // them.
  void the_sheet_uses_tested_pairs() {
    QFile file(":/style/style.qss");
    style_sheet(false);  // registers the resources
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QString sheet = file.readAll();
    std::set<QString> pairs;
    for (const TokenPair& pair : text_pairs())
      pairs.insert(QString::fromLatin1(token(pair.foreground).name.data()) + '/' +
                   QString::fromLatin1(token(pair.background).name.data()));
    static const QRegularExpression rule("([^{}]+)\\{([^}]*)\\}");
    static const QRegularExpression text("(?<![-a-z])color:\\s*@([a-z0-9-]+)"),
        ground("background(?:-color)?:\\s*@([a-z0-9-]+)");
    int checked = 0;
    for (auto at = rule.globalMatch(sheet); at.hasNext();) {
      const auto match = at.next();
      const auto foreground = text.match(match.captured(2)), background = ground.match(match.captured(2));
      if (!foreground.hasMatch() || !background.hasMatch() || foreground.captured(1) == "text-disabled")
        continue;
      const QString pair = foreground.captured(1) + '/' + background.captured(1);
      QVERIFY2(pairs.count(pair) == 1, qPrintable(pair + " in" + match.captured(1)));
      ++checked;
    }
    QVERIFY(checked > 10);
  }
  void the_sheet_has_no_colour_of_its_own() {
    for (const bool dark : {false, true}) {
      const QString sheet = style_sheet(dark);
      QVERIFY(!sheet.contains('@'));
      QVERIFY(sheet.contains(dark ? token(Token::Surface).dark.name() : token(Token::Surface).light.name()));
    }
    QFile file(":/style/style.qss");
    QVERIFY(file.open(QIODevice::ReadOnly));
    static const QRegularExpression literal(":[^;]*#[0-9a-fA-F]{3,6}");
    QVERIFY(!QString(file.readAll()).contains(literal));
  }
  void follows_the_desktop_until_the_user_chooses() {
    auto source = std::make_unique<FakeScheme>();
    FakeScheme* desktop = source.get();
    Theme theme(std::move(source));
    QSignalSpy changed(&theme, &Theme::changed);
    QVERIFY(!theme.dark());
    desktop->set(Scheme::Dark);
    QVERIFY(theme.dark());
    QCOMPARE(changed.count(), 1);
    theme.choose(ThemeChoice::Light);
    QVERIFY(!theme.dark());
    desktop->set(Scheme::Light);
    desktop->set(Scheme::Dark);
    QVERIFY(!theme.dark());
    theme.choose(ThemeChoice::System);
    QVERIFY(theme.dark());
    QCOMPARE(changed.count(), 3);
    QCOMPARE(theme.color(Token::Window), token(Token::Window).dark);
  }
  void palette_and_sheet_switch_live() {
    auto source = std::make_unique<FakeScheme>();
    Theme theme(std::move(source));
    theme.apply(*qApp);
    QCOMPARE(qApp->palette().color(QPalette::Window), token(Token::Window).light);
    theme.choose(ThemeChoice::Dark);
    QCOMPARE(qApp->palette().color(QPalette::Window), token(Token::Window).dark);
    QCOMPARE(qApp->styleSheet(), style_sheet(true));
  }
  void icons_take_the_colour_of_the_theme() {
    Theme theme(std::make_unique<FakeScheme>());
    const QIcon icon = theme.icon("pause", Token::Danger);
    const auto has = [&icon](const QColor& colour) {
      const QImage image = icon.pixmap(48, 48).toImage();
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x)
          if (image.pixelColor(x, y) == colour) return true;
      return false;
    };
    QVERIFY(has(theme.color(Token::Danger)));
    theme.choose(ThemeChoice::Dark);
    QVERIFY(has(token(Token::Danger).dark));
    QVERIFY(!has(token(Token::Danger).light));
  }
  // Told apart without colour: as black shapes, any two of the six differ in a tenth of the icon's pixels.
  void tray_states_differ_by_shape() {
    Theme theme(std::make_unique<FakeScheme>());
    const QStringList names = {"training", "idle", "paused", "syncing", "warning", "error"};
    constexpr int side = 22;
    std::vector<QImage> shapes;
    for (const QString& name : names) {
      const QPixmap pixmap = QIcon(":/icons/tray-" + name + ".svg").pixmap(side, side);
      QVERIFY2(!pixmap.isNull(), qPrintable(name));
      shapes.push_back(pixmap.toImage().convertToFormat(QImage::Format_ARGB32));
    }
    for (std::size_t i = 0; i < shapes.size(); ++i)
      for (std::size_t k = i + 1; k < shapes.size(); ++k) {
        int different = 0;
        for (int y = 0; y < side; ++y)
          for (int x = 0; x < side; ++x) {
            const auto ink = [x, y](const QImage& image) {
              const QColor c = image.pixelColor(x, y);
              return c.alpha() > 128 ? (c.lightness() > 200 ? 2 : 1) : 0;  // white, coloured, empty
            };
            different += ink(shapes[i]) != ink(shapes[k]) ? 1 : 0;
          }
        QVERIFY2(different >= side * side / 10,
                 qPrintable(names[int(i)] + ' ' + names[int(k)] + ' ' + QString::number(different)));
      }
  }
  // Every field has a visible edge (WCAG 1.4.11), the same for every kind of field, and one
  // height.
  // Every check box is visible, checked or not.
  void boxes_to_tick_have_an_edge() {
    for (const ThemeChoice choice : {ThemeChoice::Light, ThemeChoice::Dark}) {
      Theme theme(std::make_unique<FakeScheme>());
      theme.choose(choice);
      theme.apply(*qApp);
      QCheckBox box;
      QRadioButton circle;
      for (QAbstractButton* button : std::initializer_list<QAbstractButton*>{&box, &circle}) {
        button->setAutoExclusive(false);
        button->setFocusPolicy(Qt::NoFocus);
        button->resize(40, 24);
        button->ensurePolished();
        for (const bool on : {false, true}) {
          button->setChecked(on);
          const QImage image = button->grab().toImage();
          double best = 0;
          for (int x = 0; x < 24; ++x)
            best = std::max(best, contrast(image.pixelColor(x, 12), theme.color(Token::Window)));
          QVERIFY2(
              best >= 3,
              qPrintable(
                  QString("%1, ticked %2: %3").arg(button->metaObject()->className()).arg(on).arg(best)));
        }
      }
    }
  }
  void fields_have_an_edge() {
    for (const ThemeChoice choice : {ThemeChoice::Light, ThemeChoice::Dark}) {
      Theme theme(std::make_unique<FakeScheme>());
      theme.choose(choice);
      theme.apply(*qApp);
      QLineEdit line;
      QSpinBox number;
      QComboBox list;
      list.addItem("one");
      for (QWidget* field : std::initializer_list<QWidget*>{&line, &number, &list}) {
        field->setFocusPolicy(Qt::NoFocus);
        field->resize(140, 32);
        field->ensurePolished();
        const QImage image = field->grab().toImage();
        for (const QPoint at : {QPoint(70, 0), QPoint(70, 31), QPoint(0, 16), QPoint(139, 16)}) {
          const double seen = contrast(image.pixelColor(at), theme.color(Token::Surface));
          QVERIFY2(seen >= 3, qPrintable(QString("%1 at %2,%3: %4")
                                             .arg(field->metaObject()->className())
                                             .arg(at.x())
                                             .arg(at.y())
                                             .arg(seen)));
        }
        QVERIFY2(std::abs(field->sizeHint().height() - 32) <= 2,
                 qPrintable(QString::number(field->sizeHint().height())));
        field->setEnabled(false);
        const QColor off = field->grab().toImage().pixelColor(70, 0);
        QVERIFY(off != image.pixelColor(70, 0));
      }
    }
  }
  void a_link_that_is_off_looks_off() {
    Theme theme(std::make_unique<FakeScheme>());
    theme.apply(*qApp);
    QPushButton link("Reset all of it");
    link.setProperty("role", "link");
    const auto blue = [&link] {
      const QImage image = link.grab().toImage();
      int pixels = 0;
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) pixels += image.pixelColor(x, y).saturation() > 150 ? 1 : 0;
      return pixels;
    };
    QVERIFY(blue() > 20);
    link.setEnabled(false);
    QCOMPARE(blue(), 0);
  }
};

NS_UI_TEST(ThemeTest)
#include "test_theme.moc"
