#include "core/chain/rights.h"
