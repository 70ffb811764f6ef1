// The error of a program with --json, as its standard error has it, for people.
#pragma once

#include <QByteArray>
#include <QString>

namespace neuroshard::ui {

// Of the error object that a program with --json writes: what is wrong, and with which file. Else all that it wrote.
QString error_of_program(const QByteArray& errors);

}  // namespace neuroshard::ui
