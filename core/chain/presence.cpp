#include "core/chain/presence.h"
