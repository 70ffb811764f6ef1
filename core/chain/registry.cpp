#include "core/chain/registry.h"
