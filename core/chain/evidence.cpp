#include "core/chain/evidence.h"
