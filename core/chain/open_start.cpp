#include "core/chain/open_start.h"
