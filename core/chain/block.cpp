#include "core/chain/block.h"
