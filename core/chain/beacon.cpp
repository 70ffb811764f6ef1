#include "core/chain/beacon.h"
