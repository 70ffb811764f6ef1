// All pages, in the order of the rail.
#pragma once

#include <QString>
#include <functional>
#include <vector>

#include "ui/pages/page.h"

namespace neuroshard::ui {

struct PageFactory {
  QString key;    // stable: navigation, links, the page of the last session
  QString icon;   // in resources/icons
  QString title;  // for the rail, in the user's language; known before the page is made
  std::function<Page*(const Page::Context&, QWidget* parent)> make;
};

// In the language of the moment.
std::vector<PageFactory> page_factories();

}  // namespace neuroshard::ui
