#include "core/chain/mempool.h"
