// neuroshardd: the core without a screen.
#include "app/node/program.h"

int main(int argc, char** argv) {
  return neuroshard::app::run_program(argc, argv);
}
