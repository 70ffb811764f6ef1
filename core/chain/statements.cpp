#include "core/chain/statements.h"
